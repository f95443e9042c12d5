#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests relays on networks that become silent without closing connections.

Usage: network_test.py DRIVER [TIMES [SECONDS]]

silent  Three relays have a horizon of a minute. One or both connections of the
        first relay become silent, in one or both directions. Then a task is put that is due before
        look_by. The task must come before the end of the horizon. Then the connections work again.
        The test repeats these steps TIMES times.
cut     For SECONDS no byte reaches or leaves the first relay, also on new connections. The other
        relays must move the tasks. Then the other relays are killed, the connections work again,
        and the first relay must move the tasks.
late    The timeout of puts is 200 ms. Bytes take 80 ms, then 250 ms. So a put arrives after its
        call has returned, and must not be made.
"""

import errno
import os
import random
import sys
import time

from queue_client import QUEUE, Driver, Queue, make, open_soon, serve
from redis_server import ARRIVES, Server, expect, wait_until
from slow_proxy import SlowProxy

NAME = "network"
RELAYS = 3


class Relay:
    def __init__(self, server, number):
        self.way = SlowProxy(f"{server.folder}/way-{number}.sock", server.address)
        self.driver = serve(f"unix:{self.way.path}", NAME, HORIZON_MS="60000")
        self.process = self.driver.process

    def go_silent(self, dice):
        which = dice.choice(("both", "bells", "commands"))
        ways = dice.choice(("up", "down", "up down"))
        for connection in self.way.open_connections():
            if which == "both" or (which == "bells") == connection.has_subscribed:
                for way in ways.split():
                    setattr(connection, way, False)
        return f"{which} {ways}"

    def end(self):
        self.driver.kill()
        self.way.close()


class Scene:
    """A server, its relays, and a producer and consumer with a direct connection."""

    def __init__(self, server):
        make(NAME, f"unix:{server.address}")
        self.queue = Queue(server.client(2 * ARRIVES), NAME)
        # The lease is long, because a poll that ends a lease would hide a missing wake-up message.
        self.queue.call("create", "lease_us", 10**9)
        self.relays = [Relay(server, number) for number in range(RELAYS)]
        wait_until(lambda: len(self.in_order()) == RELAYS, "seats")

    def in_order(self):
        """Returns the relays in the order of their ranks. The name of a relay contains its process
        id."""
        ranks = {}
        for name, value in self.queue.stat().items():
            for relay in self.relays:
                if name.startswith("relay:") and f"{relay.process.pid}" in name.split("-"):
                    ranks[int(value.split()[0])] = relay
        return [ranks[rank] for rank in sorted(ranks)]

    def listeners(self):
        channels = self.queue.client("PUBSUB", "CHANNELS", self.queue.prefix + "bell:*")
        return [relay for relay in self.relays for channel in channels
                if f"{relay.process.pid}" in channel.decode().split("bell:")[1].split("-")]

    def close(self):
        for relay in self.relays:
            relay.end()


def check_silent(times, dice):
    latest = 0
    with Server() as server:
        scene = Scene(server)
        try:
            for number in range(times):
                first = scene.in_order()[0]
                what = first.go_silent(dice)
                late = scene.queue.put_and_take(f"task-{number}", 50_000)
                expect(late < ARRIVES * 10**6, what, ":", late, "us late")
                latest = max(latest, late)
                first.way.mend()
                wait_until(lambda: len(scene.in_order()) == RELAYS, "back")
            expect(all(relay.process.poll() is None for relay in scene.relays), "one has ended")
        finally:
            scene.close()
    print(f"silent {times} times: latest {latest / 1000:.1f} ms")


def check_cut(seconds):
    latest = number = 0
    with Server() as server:
        scene = Scene(server)
        try:
            first = scene.in_order()[0]
            first.way.cut()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                late = scene.queue.put_and_take(f"during-{number}", 50_000)
                expect(late < ARRIVES * 10**6, late, "us late")
                latest, number = max(latest, late), number + 1
                time.sleep(min(1, seconds / 10))
            expect(first.process.poll() is None, "it has ended")
            first.way.mend()
            for relay in scene.relays:
                if relay is not first:
                    relay.process.kill()
            # While Redis keeps the connections of the killed relays open, a put wakes the killed
            # relays and not the first relay.
            wait_until(lambda: scene.listeners() == [first], "only the first one listens")
            scene.queue.put_and_take("after", 50_000)
        finally:
            scene.close()
    print(f"cut for {seconds} s: {number} tasks, latest {latest / 1000:.1f} ms", flush=True)


def check_late(times):
    with Server() as server:
        way = SlowProxy(f"{server.folder}/way.sock", server.address)
        driver, queue = Driver(f"unix:{way.path}"), Queue(server.client(), QUEUE)
        open_soon(driver, 0, 0, 200)

        def put(name, way_s):
            for one in (way, *way.open_connections()):
                one.delays = (way_s, way_s)
            return driver("put", name, 3_600_000, "x")

        for number in range(times):
            wait_until(lambda: put("first", 0) in (0, -errno.EEXIST), "connected again")
            put(f"slow-{number}", 0.08)
            result = put(f"late-{number}", 0.25)
            expect(result in (-errno.ETIMEDOUT, -errno.EHOSTUNREACH), "late put:", result)
            time.sleep(0.6)  # if it is too short, the test only finds less
            expect(queue.call("peek", f"late-{number}") == [-errno.ENOENT], "a late put came")
        driver.kill()
        way.close()
    print(f"late {times} times: nothing came", flush=True)


def main(arguments):
    Driver.program = arguments[1]
    times = int(arguments[2]) if len(arguments) > 2 else 200
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    check_late(3)
    check_silent(times, random.Random(seed))
    check_cut(float(arguments[3]) if len(arguments) > 3 else 300)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
