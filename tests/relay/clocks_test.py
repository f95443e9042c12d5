#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests clocks that are an hour apart. Only the clock of Redis decides when a task is due.

Usage: clocks_test.py DRIVER OTHER_CLOCK.so [TIMES]

callers  DRIVER puts, moves, takes and serves tasks while its wall clock is an hour ahead or behind,
         and while its clocks since boot are, if time namespaces are permitted. Its calls must have
         their usual results.
server   While two relays serve, the wall clock of Redis is set forward and back by an hour, TIMES
         times. Each task must come when it is due by the clock of Redis, and not before.
"""

import os
import random
import struct
import subprocess
import sys
import time

from queue_client import Driver, Queue, live, make, serve
from redis_server import ARRIVES, Server, expect

NAME = "victim"
HOUR_US = 3_600_000_000


class OtherClock:
    """Makes the environment of a program whose wall clock the method set() sets."""

    def __init__(self, library, path):
        self.path = path
        self.set(0)
        self.environment = {"LD_PRELOAD": library, "OTHER_CLOCK": path}

    def set(self, ahead_us):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack("q", ahead_us))

    def date(self):
        return int(subprocess.run(["date", "+%s"], env=os.environ | self.environment, check=True,
                                  capture_output=True, text=True).stdout)


def check_callers(library):
    with Server() as server:
        queue = Queue(server.client(), NAME)
        clock = OtherClock(library, f"{server.folder}/clock")
        lives = []
        for sign in (1, -1):
            clock.set(sign * HOUR_US)
            expect(abs(clock.date() - time.time() - sign * 3600) < ARRIVES, "the clock is not set")
            lives.append(((), clock.environment, sign))
        space = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--time"]
        if subprocess.run([*space, "true"], check=False, capture_output=True).returncode == 0:
            lives += [((*space, f"--monotonic={ahead}", f"--boottime={ahead}"), {}, 0)
                      for ahead in (3600, 7 * 86400)]
        else:
            print("time namespaces are not permitted here: left out")
        for command, environment, sign in lives:
            print("wall clock", sign, "h ahead,", *command, flush=True)
            clock.set(sign * HOUR_US)
            queue.client("FLUSHALL")
            live(NAME, f"unix:{server.address}", *command, **environment)
            expect(queue.count("task") == 0, "records are left")
    return len(lives)


def check_dead_worker(clock, queue, ahead_us):
    """A worker takes a task and dies, and the clock is set back by an hour. The task must come
    again after its lease, not an hour later."""
    queue.call("create", "lease_us", 2_000_000)
    queue.put("dead-worker", 0)
    expect([entry[1] for entry in queue.read(block_ms=1000 * ARRIVES)] == ["dead-worker"], "taken")
    clock.set(ahead_us)
    again = queue.read(block_ms=1000 * ARRIVES)
    expect([entry[1:4:2] for entry in again] == [("dead-worker", 2)], "came again:", again)
    queue.done("dead-worker")
    queue.call("create", "lease_us", 30_000_000)


def check_server(library, times, dice):
    """Puts tasks that are due before the next planned poll of the relays, while the clock of Redis
    is set."""
    clock = OtherClock(library, f"/tmp/timerhub-clock-{os.getpid()}")
    try:
        with Server(environment=clock.environment) as server:
            make(NAME, f"unix:{server.address}")
            relays = [serve(f"unix:{server.address}", NAME) for _ in range(2)]
            queue = Queue(server.client(2 * ARRIVES), NAME)
            ahead_us = 0
            try:
                for number in range(times):
                    queue.put_and_take(f"before-{number}", dice.randrange(50_000))
                    queue.put(f"far-{number}", HOUR_US // 2)
                    clock.set(ahead_us + HOUR_US)
                    # The clock was wrong by half an hour. No put wakes a relay, so the task comes
                    # at the next poll.
                    entries = queue.read(block_ms=1000 * ARRIVES)
                    expect([entry[1] for entry in entries] == [f"far-{number}"], "came", entries)
                    queue.done(f"far-{number}")
                    queue.put_and_take(f"ahead-{number}", dice.randrange(50_000))
                    for step in range(20):
                        clock.set(ahead_us + HOUR_US + step * 500)
                        queue.put_and_take(f"fast-{number}-{step}", 1000)
                    if number == 0:
                        check_dead_worker(clock, queue, ahead_us)
                    clock.set(ahead_us)
                    queue.put_and_take(f"back-{number}", dice.randrange(50_000))
            finally:
                for relay in relays:
                    relay.kill()
    finally:
        os.unlink(clock.path)


def main(arguments):
    times = int(arguments[3]) if len(arguments) > 3 else 20
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    Driver.program = arguments[1]
    lives = check_callers(arguments[2])
    check_server(arguments[2], times, random.Random(seed))
    print(f"{lives} lives by other clocks; Redis's set {2 * times} times")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
