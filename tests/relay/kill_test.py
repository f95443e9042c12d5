#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills relays at each of their commands, and kills the Redis server.

Usage: kill_test.py DRIVER [TIMES]

relays  Four relays each have a proxy that counts commands. A relay is killed before and after each
        of its first commands, in random order, and started again, while a thousand tasks and more
        become due. All tasks must come once, and none early.
always  A load of calls goes on while a Redis with appendfsync always is killed and started again,
        TIMES times. Nothing that was acknowledged may be lost, or come after its end.
"""

import os
import random
import sys
import time

from queue_client import Driver, Load, Queue, make, serve
from redis_server import ARRIVES, Server, expect
from wire_proxy import Proxy

QUEUE = "killed"
RELAYS = 4
TASKS = 1000
COMMANDS = 14  # number of first commands: handshakes on two connections, subscriptions, some polls


class Doomed:
    """A relay that is killed at a command and started again, until the common plan of all relays is
    done."""

    def __init__(self, server, name, plan):
        self.server, self.plan = server, plan
        self.path = f"{server.folder}/{name}.sock"
        self.deaths = 0
        self.start()

    def start(self):
        self.proxy = Proxy(self.path, self.server.address, *self.plan.pop())
        self.driver = serve(f"unix:{self.path}", QUEUE)

    def look_after(self):
        """If the proxy has cut the connection at the planned command, kills the relay and starts it
        again. Returns whether the relay goes on."""
        if self.proxy.commands < self.proxy.number:
            expect(self.driver.process.poll() is None, "a relay has ended by itself")
            return True
        self.end()
        self.deaths += 1
        if not self.plan:
            return False
        self.start()
        return True

    def end(self):
        self.driver.kill()
        self.proxy.close()


def check_relays(dice):
    with Server() as server:
        make(QUEUE, f"unix:{server.address}")
        queue = Queue(server.client(), QUEUE)
        plan = [(fault, number + 1) for fault in ("before", "after") for number in range(COMMANDS)]
        deaths = len(plan)
        dice.shuffle(plan)
        relays = [Doomed(server, f"relay-{number}", plan) for number in range(RELAYS)]
        last = None
        dues, got = {}, {}
        deadline = time.monotonic() + 6 * ARRIVES
        while relays or len(got) < len(dues):
            # If few relays are left, their ranks are low. A relay with a low rank polls more often.
            relays = [relay for relay in relays if relay.look_after()]
            if not relays and not last:
                last = serve(f"unix:{server.address}", QUEUE)
            if relays or len(dues) < TASKS:
                name = f"task-{len(dues)}"
                dues[name] = queue.put(name, dice.randrange(3_000_000))[1]
            time.sleep(0.001 if len(dues) >= TASKS else 0)
            entries, now = queue.read(), queue.now()
            for entry, name, due, _, _ in entries:
                expect(name not in got, name, "came twice")
                expect(due == dues[name] <= now, name, "is early")
                expect(int(entry.split(b"-")[0]) * 1000 + 999 >= due, name, "went early")
                got[name] = now
                expect(queue.call("done", name, entry) == [0], name)
            expect(time.monotonic() < deadline, "only", len(got), "of", len(dues), "came; left:",
                   [(relay.proxy.fault, relay.proxy.number) for relay in relays], plan)
        last.kill()
        expect(queue.count("task") == 0, "records are left")
        print(f"{len(got)} tasks, {deaths} relays killed")


def check_always(times, dice):
    with Server("--appendonly", "yes", "--appendfsync", "always") as server:
        load = Load(f"unix:{server.address}", is_stable=True)
        for _ in range(times):
            time.sleep(dice.random() / 4)
            server.kill()
            time.sleep(dice.random() / 20)
            server.start()
        load.wait_for_puts(100)
        load.end(f"Redis killed {times} times")


def main(arguments):
    Driver.program = arguments[1]
    times = int(arguments[2]) if len(arguments) > 2 else 200
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    check_relays(random.Random(seed))
    check_always(times, random.Random(seed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
