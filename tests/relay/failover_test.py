#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests a failover, in which a replica takes the place of its master.

Usage: failover_test.py VICTIM FACTS [TIMES]

asked   Commands FAILOVER, TIMES times there and back, while FACTS makes calls and records their
        results. No acknowledged change may be lost. If the relays of a queue sleep for a minute, a
        new task must not wait for the end of the minute.
killed  The replica is cut off, the master works on and is killed, and the replica takes its place.
        Only the last changes may be missing, and no change that the replica has confirmed (WAIT).
"""

import os
import random
import socket
import subprocess
import sys
import time

from queue_client import Queue, make
from redis_server import ARRIVES, RedisError, Server, expect
from slow_proxy import SlowProxy

NAME = "failover"
QUIET = "quiet"
PUTS = 200


def wait_until(condition, what):
    deadline = time.monotonic() + ARRIVES
    while True:
        try:
            if condition():
                return
        except (OSError, RedisError):
            pass
        expect(time.monotonic() < deadline, "never:", what)
        time.sleep(0.01)


class Member:
    """A server that is a master or a replica. Replication needs a port."""

    def __init__(self, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server = Server("--port", str(self.port), "--bind", "127.0.0.1",
                             "--repl-diskless-sync-delay", "0", *options)
        self.redis = self.server.client()

    def is_master(self):
        return self.redis("ROLE")[0] == b"master"

    def follow(self, master):
        self.redis("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: self.redis("ROLE")[3] == b"connected", "replication")
        # Wait until the master has received the replica's first acknowledgement.
        wait_until(lambda: b"state=online" in master.redis("INFO", "replication"), "online")

    def close(self):
        self.server.close()


def check_bell(redis, number):
    """Puts a task before look_by at a server to which no relay was connected. A relay must learn of
    the task."""
    queue = Queue(redis, QUIET)
    due = queue.put(f"task-{number}", 200_000)[1]
    entries = queue.read(block_ms=1000 * ARRIVES)
    expect([entry[1:3] for entry in entries] == [(f"task-{number}", due)], "came as", entries)
    expect(queue.done(f"task-{number}") == [0], "done")
    return queue.now() - due


def check_asked(victim, facts, times, dice):
    one, other = Member(), Member()
    way = SlowProxy(f"{one.server.folder}/way.sock", one.server.address)
    environment = os.environ | {"REDIS_URL": f"unix:{way.path}", "HORIZON_MS": "60000"}
    make(victim, QUIET, one.server.address)
    Queue(one.redis, QUIET).call("create", "lease_us", 10**9)
    book = subprocess.Popen([facts, NAME], env=environment, stdin=subprocess.PIPE)
    relay = subprocess.Popen([victim, "--serve", QUIET], env=environment)
    latest = 0
    try:
        wait_until(lambda: Queue(one.redis, QUIET).stat()["relays"] == "1", "a relay")
        other.follow(one)
        for number in range(times):
            time.sleep(dice.random() / 4)
            wait_until(lambda: one.redis("FAILOVER", "TO", "127.0.0.1", other.port) == b"OK", "OK")
            wait_until(other.is_master, "a new master")
            way.target = other.server.address
            latest = max(latest, check_bell(other.redis, number))
            expect(book.poll() is None and relay.poll() is None, "it ended early")
            wait_until(lambda: one.redis("ROLE")[3] == b"connected", "replication")
            one, other = other, one
        book.stdin.close()
        expect(book.wait(6 * ARRIVES) == 0, "the book and the queue disagree")
        expect(Queue(one.redis, NAME).count("task") == 0, "records are left")
    finally:
        for process in (book, relay):
            process.kill()
            process.wait()
        way.close()
        one.close()
        other.close()
    print(f"FAILOVER {times} times: latest task put to a quiet queue {latest / 1000:.1f} ms")


def put_until_killed(master, replica, wait):
    """Returns the puts that were acknowledged. If `wait` is set, the replica has confirmed them
    too."""
    queue, answered = Queue(master.server.client(), NAME), []
    for number in range(PUTS):
        if number == PUTS * 3 // 4:
            replica.redis("REPLICAOF", "127.0.0.1", 1)  # no server listens on this port
        expect(queue.put(f"task-{number}", "never")[0] == 0, "put")
        if not wait or queue.client("WAIT", 1, 10) == 1:
            answered.append(number)
    master.server.kill()
    return answered


def check_killed(victim, wait):
    master, replica = Member(), Member()
    try:
        make(victim, NAME, master.server.address)
        replica.follow(master)
        answered = put_until_killed(master, replica, wait)
        replica.redis("REPLICAOF", "NO", "ONE")
        wait_until(replica.is_master, "a new master")
        queue = Queue(replica.redis, NAME)
        there = [queue.client("HEXISTS", queue.prefix + "task", f"task-{n}")
                 for n in range(PUTS)]
        kept = sum(there)
        expect(there == [1] * kept + [0] * (len(there) - kept), "not the last are missing")
        expect(queue.count("due") == kept, "half a task is there")
        lost = len([n for n in answered if n >= kept])
        expect(answered and (lost == 0) == wait, "lost", lost, "of", len(answered))
        expect(queue.put("more", 0)[0] == 0, "it takes no put")
        return lost
    finally:
        master.close()
        replica.close()


def main(arguments):
    times = int(arguments[3]) if len(arguments) > 3 else 50
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    check_asked(arguments[1], arguments[2], times, random.Random(seed))
    for wait in (False, True):
        lost = sum(check_killed(arguments[1], wait) for _ in range(max(1, times // 3)))
        print(f"killed{', with WAIT 1' if wait else ''}: {lost} facts lost")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
