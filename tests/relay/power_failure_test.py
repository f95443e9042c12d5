#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests a server that has lost the end of its file. The queue must be as after one of the calls.

Usage: power_failure_test.py VICTIM [CUTS]

A server with appendfsync always gets random calls. After each reply the test records the size of
the server's file and a digest of all keys. Then the file is cut at a random byte, CUTS times, as a
power failure may leave it. The server must start with the keys after the last call that the file
still contains. Therefore a lost change was never acknowledged, and no task is half moved.
"""

import os
import pathlib
import random
import sys
import time

from queue_client import Queue, make
from redis_server import RedisError, Server

NAME = "torn"
STEPS = 600
LOOK = ("relay", 4, 10_000_000, 100_000, "")


def expect(condition, *what):
    if not condition:
        print("not so:", *what)
        sys.exit(1)


class Run:
    """The server, and its recorded states after each reply."""

    def __init__(self, server, victim, dice):
        self.server, self.dice = server, dice
        make(victim, NAME, server.address)
        self.queue = Queue(server.client(), NAME)
        self.queue.call("create", "past_us", 0)  # else a dozen ids are soon used up
        folder = pathlib.Path(server.folder) / "appendonlydir"
        self.file, = folder.glob("*.incr.aof")
        self.known = []

    def step(self):
        queue, dice = self.queue, self.dice
        name = f"id-{dice.randrange(12)}"
        kind = dice.randrange(10)
        if kind > 6:
            queue.put(name, dice.choice((0, 1000, 10**9, "never")), "r", "data")
        elif kind < 2:
            queue.call("look", *LOOK)
        elif kind == 2:
            queue.read(dice.randrange(1, 4))
        elif kind == 3:
            queue.call("done", name)
        elif kind == 4:
            queue.call("retry", name, dice.choice((0, 10**9)))
        elif kind == 5:
            queue.call("cancel", name)
        else:
            queue.call("move", name, dice.choice((0, 10**9)), "")

    def picture(self):
        stat = self.queue.stat()
        expect(int(stat["tasks"]) == int(stat["due"]) + int(stat["ready"]), "half moved:", stat)
        del stat["now"], stat["lag"], stat["overdue"]  # these values change without a call
        return self.queue.client("DEBUG", "DIGEST"), stat

    def note(self):
        self.known.append((os.stat(self.file).st_size, self.picture()))

    def restart(self):
        self.server.start()
        self.queue = Queue(self.server.client(), NAME)

    def check_cut(self, text, offset):
        self.server.kill()
        self.file.write_bytes(text[:offset])
        self.restart()
        _, wanted = max((size, index) for index, (size, _) in enumerate(self.known)
                        if size <= offset)
        got, wanted = self.picture(), self.known[wanted][1]
        expect(got == wanted, "cut at", offset, "of", len(text), ":", got, "not", wanted)


def main(arguments):
    cuts = int(arguments[2]) if len(arguments) > 2 else 300
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    dice = random.Random(seed)
    print(f"seed {seed}", flush=True)
    with Server("--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes",
                "--auto-aof-rewrite-percentage", "0") as server:
        run = Run(server, arguments[1], dice)
        run.note()
        for _ in range(STEPS):
            run.step()
            run.note()
        text = run.file.read_bytes()
        changes = len({size for size, _ in run.known})
        expect(changes > STEPS / 4, "only", changes, "changes")
        begin = run.known[0][0]
        try:
            for _ in range(cuts):
                run.check_cut(text, dice.randrange(begin, len(text) + 1))
        except RedisError as error:
            expect(False, error)
    print(f"{changes} changes, {len(text)} bytes, cut {cuts} times")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
