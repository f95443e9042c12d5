#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills relays at each of their commands, and kills the Redis server.

Usage: kill_test.py VICTIM FACTS [TIMES [RELAYS]]

relays  Four relays (VICTIM --serve), or RELAYS relays, each have a proxy that counts commands. A
        relay is killed before and after each of its first commands, in random order, and started
        again, while a thousand tasks and more become due. All tasks must come once, and none early.
always  FACTS makes calls and records their results, while a Redis with appendfsync always is killed
        and started again, TIMES times.
everysec: After a kill of Redis only puts of the last two seconds may be missing, and the keys must
        agree.
RDB     A task that was done after the snapshot comes again, and a task that was put after the
        snapshot is lost, as the manual says.
"""

import os
import random
import subprocess
import sys
import time

from queue_client import make
from redis_server import ARRIVES, Client, RedisError, Server, expect
from wire_proxy import Proxy

QUEUE = "killed"
PREFIX = f"timerhub:{{{QUEUE}}}:"
TASKS = 1000
COMMANDS = 14  # number of first commands: handshakes on two connections, subscriptions, some polls


def call(redis, name, keys, *arguments):
    keys = [PREFIX + key for key in keys.split()]
    return redis("FCALL", "timerhub_" + name, len(keys), *keys, *arguments)


# ---- relays ----


class Doomed:
    """A relay that is killed at a command and started again, until the common plan of all relays is
    done."""

    def __init__(self, victim, server, name, plan):
        self.victim, self.server, self.plan = victim, server, plan
        self.path = f"{server.folder}/{name}.sock"
        self.deaths = 0
        self.start()

    def start(self):
        self.proxy = Proxy(self.path, self.server.address, *self.plan.pop())
        self.process = serve(self.victim, self.path)

    def look_after(self):
        """If the proxy has cut the connection at the planned command, kills the relay and starts it
        again. Returns whether the relay goes on."""
        if self.proxy.commands < self.proxy.number:
            expect(self.process.poll() is None, "a relay has ended by itself")
            return True
        self.end()
        self.deaths += 1
        if not self.plan:
            return False
        self.start()
        return True

    def end(self):
        self.process.kill()
        self.process.wait()
        self.proxy.close()


def serve(victim, path):
    return subprocess.Popen([victim, "--serve", QUEUE],
                            env=os.environ | {"REDIS_URL": f"unix:{path}"})


def check_relays(victim, count, seed):
    dice = random.Random(seed)
    print(f"seed {seed}", flush=True)
    with Server() as server:
        make(victim, QUEUE, server.address)
        redis = server.client()
        plan = [(fault, number + 1) for fault in ("before", "after") for number in range(COMMANDS)]
        plan *= max(1, count // 4)
        deaths = len(plan)
        dice.shuffle(plan)
        relays = [Doomed(victim, server, f"relay-{number}", plan) for number in range(count)]
        last = None
        dues, got = {}, {}
        deadline = time.monotonic() + 6 * ARRIVES
        while relays or len(got) < len(dues):
            # If few relays are left, their ranks are low. A relay with a low rank polls more often.
            relays = [relay for relay in relays if relay.look_after()]
            if not relays and not last:
                last = serve(victim, server.address)
            if relays or len(dues) < TASKS:
                name = f"task-{len(dues)}"
                reply = call(redis, "put", "due task state seats past", name,
                             dice.randrange(3_000_000), "", "")
                dues[name] = reply[1]
            time.sleep(0.001 if len(dues) >= TASKS else 0)
            reply = redis("XREADGROUP", "GROUP", "timerhub", "c", "COUNT", 100, "STREAMS",
                          PREFIX + "ready", ">")
            now = redis("TIME")
            now = int(now[0]) * 10**6 + int(now[1])
            for entry, fields in reply[0][1] if reply else []:
                name = fields[1].decode()
                expect(name not in got, name, "came twice")
                expect(int(fields[3]) == dues[name] <= now, name, "is early")
                expect(int(entry.split(b"-")[0]) * 1000 + 999 >= dues[name], name, "went early")
                got[name] = now
                expect(call(redis, "done", "due task ready state past", name, entry) == [0], name)
            expect(time.monotonic() < deadline, "only", len(got), "of", len(dues), "came; left:",
                   [(relay.proxy.fault, relay.proxy.number) for relay in relays], plan)
        last.kill()
        last.wait()
        expect(redis("HLEN", PREFIX + "task") == 0, "records are left")
        print(f"{len(got)} tasks, {deaths} relays killed")


# ---- Redis ----


def check_always(facts, times, dice):
    with Server("--appendonly", "yes", "--appendfsync", "always") as server:
        environment = os.environ | {"REDIS_URL": f"unix:{server.address}"}
        process = subprocess.Popen([facts, QUEUE], env=environment, stdin=subprocess.PIPE)
        for _ in range(times):
            time.sleep(dice.random() / 4)
            expect(process.poll() is None, "it ended early")
            server.kill()
            time.sleep(dice.random() / 20)
            server.start()
        process.stdin.close()
        expect(process.wait(6 * ARRIVES) == 0, "the book and the queue disagree")
        redis = server.client()
        expect(redis("HLEN", PREFIX + "task") == 0, "records are left")
    print(f"Redis killed {times} times")


def put_until_killed(server, seconds):
    """Puts tasks until the server is killed. Returns the times of the replies to puts, and the time
    of the kill."""
    redis, answered = server.client(), []
    begin = time.monotonic()
    try:
        while True:
            if time.monotonic() > begin + seconds:
                server.kill()
            reply = call(redis, "put", "due task state seats past", f"task-{len(answered)}",
                         "never", "", "data" * 50)
            expect(reply[0] == 0, "put", reply)
            answered.append(time.monotonic())
    except OSError:
        return answered, time.monotonic()


def check_everysec(victim, times, dice):
    """With appendfsync everysec, only the changes of the last two seconds may be missing."""
    lost = 0
    for _ in range(times):
        with Server("--appendonly", "yes", "--appendfsync", "everysec") as server:
            make(victim, QUEUE, server.address)
            answered, killed = put_until_killed(server, 2.2 + dice.random() / 2)
            server.start()
            redis = server.client()
            there = [redis("HEXISTS", PREFIX + "task", f"task-{number}")
                     for number in range(len(answered) + 1)]
            kept = sum(there)
            expect(there == [1] * kept + [0] * (len(there) - kept), "not the last are missing")
            expect(redis("ZCARD", PREFIX + "due") == kept, "half a task is there")
            for number in range(kept, len(answered)):
                expect(killed - answered[number] < 2, "lost after", killed - answered[number], "s")
            lost += max(0, len(answered) - kept)
    print(f"everysec: Redis killed {times} times, {lost} facts lost")


def check_snapshot(victim):
    """With only RDB, a task that was cancelled after the snapshot is there again."""
    with Server("--dbfilename", "dump.rdb") as server:
        make(victim, QUEUE, server.address)
        redis = server.client()
        call(redis, "put", "due task state seats past", "task", "never", "", "")
        redis("SAVE")
        expect(call(redis, "cancel", "due task ready state past", "task") == [0], "cancel")
        call(redis, "put", "due task state seats past", "later", "never", "", "")
        server.kill()
        server.start()
        redis = Client(server.address)
        try:
            expect(call(redis, "peek", "due task ready", "task")[1] == b"waiting", "not there")
            expect(call(redis, "peek", "due task ready", "later") == [-2], "kept for nothing")
        except RedisError as error:
            expect(False, error)


def main(arguments):
    victim, facts = arguments[1:3]
    times = int(arguments[3]) if len(arguments) > 3 else 200
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    check_relays(victim, int(arguments[4]) if len(arguments) > 4 else 4, seed)
    check_always(facts, times, random.Random(seed))
    check_everysec(victim, max(1, times // 20), random.Random(seed))
    check_snapshot(victim)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
