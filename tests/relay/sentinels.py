# SPDX-License-Identifier: MIT
"""Sentinels for tests: true ones, and one that names what the test tells it."""

import pathlib
import socket
import subprocess
import tempfile
import threading
import time

from redis_server import Client, RedisError, die_with_test, free_port, program, wait_until

RULES = ("sentinel down-after-milliseconds main 1000", "sentinel failover-timeout main 10000",
         "sentinel parallel-syncs main 2")


class Sentinel:
    """A Sentinel that watches the master "main". `lines` are more lines of its configuration."""

    def __init__(self, folder, master_port, *lines, quorum=1, port="port"):
        self.port, place = free_port(), pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.path, link = str(place / "sock"), place / "redis-sentinel"
        (place / "conf").write_text("\n".join(
            ("port 0", f"{port} {self.port}", "bind 127.0.0.1", f"dir {place}",
             f"unixsocket {self.path}", f"sentinel monitor main 127.0.0.1 {master_port} {quorum}",
             *RULES, *lines, "")), encoding="utf-8")
        link.symlink_to(program(place))
        with open(place / "log", "ab") as log:
            self.process = subprocess.Popen([link, place / "conf", "--sentinel"], stdout=log,
                                            stderr=log, preexec_fn=die_with_test)

    def ask(self, *words):
        return Client(self.path)("SENTINEL", *words)

    def knows(self, replicas, sentinels=0):
        try:
            return (len(self.ask("replicas", "main")) == replicas and
                    len(self.ask("sentinels", "main")) == sentinels)
        except (OSError, RedisError):
            return False  # it does not run yet

    def wait_until_it_knows(self, *counts):
        wait_until(lambda: self.knows(*counts), "a Sentinel that knows all", 60)

    def master(self):
        """Returns the port of the server that this Sentinel names as the master."""
        return int(self.ask("get-master-addr-by-name", "main")[1])

    def close(self):
        self.process.kill()
        self.process.wait()


class FakeSentinel:
    """A fake Sentinel that names the server `master` as the master, even if this server is none.
    `master` may change at any time. Its answers take `delay_s`. It tells its `epoch` unless this is
    None."""

    def __init__(self, master, delay_s=0):
        self.master, self.delay_s, self.epoch, self.asked = master, delay_s, None, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                client.recv(1000)
                time.sleep(self.delay_s)
                client.sendall(b"*2\r\n" + b"".join(
                    b"$%d\r\n%s\r\n" % (len(word), word)
                    for word in (self.master.host.encode(), b"%d" % self.master.port)))
                if self.epoch is not None:
                    client.sendall(b"*2\r\n+config-epoch\r\n+%d\r\n" % self.epoch)
                self.asked += 1

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def url_of(sentinels):
    return "sentinel://" + "+".join(f"127.0.0.1:{one.port}" for one in sentinels) + "/main"
