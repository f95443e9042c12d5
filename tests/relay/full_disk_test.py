#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests a Redis server whose disk is full. Acknowledged changes must stay, and refused changes must
have no effect.

Usage: full_disk_test.py DRIVER

The server's directory is a small file system in memory, which only the server sees. With
appendfsync everysec the server refuses puts until the disk has room, and the library returns -EIO.
With appendfsync always the server ends when it cannot write. After a new start with room, all
acknowledged changes must be there, and each task must be complete.
"""

import errno
import os
import pathlib
import subprocess
import sys

from queue_client import Queue
from redis_server import SKIP, RedisError, Server
from servers_test import Driver, QUEUE, expect, unix, wait_until

DISK_KB, LEFT_KB = 1024, 64
NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount"]
DATA = "x" * 2000


class SmallDisk:
    """A directory with room for DISK_KB. Only programs whose command begins with `prefix` see
    it."""

    def __init__(self, folder):
        self.folder = folder
        mount = f"mount -t tmpfs -o size={DISK_KB}k tmpfs {folder} && echo mounted && exec cat"
        self.holder = subprocess.Popen([*NAMESPACE, "sh", "-c", mount], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.is_there = self.holder.stdout.readline() == "mounted\n"
        # The path of the mounted directory, as programs outside the mount namespace see it.
        self.seen = pathlib.Path(f"/proc/{self.holder.pid}/root{folder}")
        # Use --root too, because the namespace has another root if the test runs in a chroot.
        self.prefix = ["nsenter", f"--target={self.holder.pid}", "--mount", "--root",
                       *([] if os.geteuid() == 0 else ["--user", "--preserve-credentials"])]

    def fill(self):
        """Fills the directory until only LEFT_KB are free."""
        with open(self.seen / "ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(b"x" * 4096)
            except OSError as error:
                expect(error.errno == errno.ENOSPC, "fill:", error)
            ballast.truncate(ballast.tell() - 1024 * LEFT_KB)

    def clear(self):
        (self.seen / "ballast").unlink()

    def close(self):
        self.holder.kill()
        self.holder.wait()


class DiskServer(Server):
    """A server that keeps its data on a small disk."""

    def __init__(self, *options):
        self.disk = None
        super().__init__("--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", *options)

    def start(self, *more, wait=True):
        if not self.disk:
            path = pathlib.Path(self.folder) / "disk"
            path.mkdir()
            self.disk = SmallDisk(path)
            if not self.disk.is_there:
                self.close()
                print("skipped: no file system may be mounted here")
                sys.exit(SKIP)
            self.prefix = self.disk.prefix
        super().start("--dir", self.disk.folder, *more, wait=wait)

    def close(self):
        super().close()
        self.disk.close()


def put_until_refused(driver, name):
    """Puts tasks until a put is refused. Returns the number of acknowledged puts, and the result of
    the refused put."""
    for number in range(DISK_KB):
        result = driver("put", f"{name}-{number}", 3600_000, DATA)
        if result != 0:
            return number, result
    expect(False, "the disk is never full")
    return None


def check_kept(server, name, acknowledged, in_doubt):
    """Checks that all acknowledged tasks are complete, and that other tasks are there only if their
    puts are in doubt."""
    queue = Queue(server.client(), QUEUE)
    there = [queue.client("HEXISTS", queue.prefix + "task", f"{name}-{number}")
             for number in range(acknowledged + in_doubt)]
    expect(all(there[:acknowledged]), "acknowledged, and missing:", there.index(0))
    expect(queue.count("task") == queue.count("due"), "half a task is there")
    return sum(there)


def check_everysec():
    with DiskServer("--appendfsync", "everysec") as server:
        driver = Driver(unix(server))
        expect(driver.open() == 0, "open")
        server.disk.fill()
        kept, result = put_until_refused(driver, "first")
        expect(result == -errno.EIO, "put on a full disk:", result)
        expect(check_kept(server, "first", kept, 1) == kept, "refused, and there")
        server.disk.clear()
        wait_until(lambda: driver("put", "later", 0, "x") in (0, -errno.EEXIST), "a put with room")
        expect(driver("take", 60_000)[1] == "later", "another task came")
        expect(driver("done") == 0, "done")
        server.kill()  # the server has now written the changes that it could not write before
        server.start()
        check_kept(server, "first", kept, 1)
        driver.close()
        return kept


def check_always():
    with DiskServer("--appendfsync", "always") as server:
        driver = Driver(unix(server))
        expect(driver.open(1, 1000) == 0, "open")
        server.disk.fill()
        kept, result = put_until_refused(driver, "first")
        expect(server.process.wait(60) != 0, "it goes on although it cannot keep what it says")
        # The put was in flight when the server ended, so it is in doubt.
        expect(result in (-errno.ETIMEDOUT, -errno.ECONNREFUSED), "put:", result)
        server.disk.clear()
        os.unlink(server.address)
        server.start()
        check_kept(server, "first", kept, 1)
        driver("close")
        expect(driver.open() == 0, "open again")
        expect(driver("put", "later", 0, "x") == 0, "put with room")
        expect(driver("take", 60_000)[1] == "later", "another task came")
        expect(driver("done") == 0, "done")
        driver.close()
        return kept


def main(arguments):
    Driver.program = arguments[1]
    try:
        print(f"everysec: {check_everysec()} puts until the disk was full; always: "
              f"{check_always()}")
    except RedisError as error:
        expect(False, error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
