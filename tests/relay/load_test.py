#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests many tasks, and many calls at once.

Usage: load_test.py DRIVER [TASKS [SECONDS]]

many     TASKS tasks are due at random times within SECONDS, with 16 relays and 4 takers. Each task
         must come once, and none early, with at most CALLS_MAX calls of functions a task. The test
         is repeated with a tenth of the tasks on four servers.
backlog  TASKS tasks are all due when a relay starts, at random times or at one time, and others
         become due meanwhile. They must come in the order of their due times.
"""

import contextlib
import os
import random
import re
import struct
import sys
import threading
import time
import zlib

from queue_client import Driver, Queue, make, serve
from redis_server import ARRIVES, Server, expect

NAME = "size"
RELAYS = 16
TAKERS = 4
FRESH = 500  # number of tasks that become due during a backlog
CALLS_MAX = 3.7  # calls for a task: its put, its done, and its share of the polls
SERVERS = 4
PIPELINE = 500


def calls_of(client):
    found = re.search(r"cmdstat_fcall:calls=(\d+)", client("INFO", "commandstats").decode())
    return int(found[1])


def begin(count, *servers):
    """Returns the queue at each server, and as many relays that serve it."""
    url = ",".join(f"unix:{server.address}" for server in servers)
    make(NAME, url)
    return ([Queue(server.client(2 * ARRIVES), NAME) for server in servers],
            [serve(url, NAME) for _ in range(count)])


def end(relays):
    for relay in relays:
        relay.kill()


def pipeline(queue, calls):
    """Sends the calls together in few packets. Returns the replies."""
    replies = []
    for first in range(0, len(calls), PIPELINE):
        chunk = calls[first:first + PIPELINE]
        queue.client.socket.sendall(b"".join(queue.client.encode(call) for call in chunk))
        replies += [queue.client.receive() for _ in chunk]
    return replies


class Takers:
    """Threads that take and finish tasks. They store number of the task -> lateness in
    microseconds."""

    def __init__(self, servers, tasks):
        self.late = [None] * tasks
        self.left, self.lock = tasks, threading.Lock()
        self.threads = [threading.Thread(target=self.take,
                                         args=(servers[number % len(servers)], number))
                        for number in range(TAKERS)]
        for thread in self.threads:
            thread.start()

    def take(self, server, number):
        queue = Queue(server.client(2 * ARRIVES), NAME)
        while self.left > 0:
            entries = queue.read(1000, 200, f"taker-{number}")
            now = queue.now()
            for _, name, due, attempts, _ in entries:
                task = int(name)
                expect(self.late[task] is None and attempts == 1, name, "came twice")
                expect(now >= due, name, "is early")
                self.late[task] = now - due
            replies = pipeline(queue, [queue.words("done", name, key)
                                       for key, name, *_ in entries])
            expect(all(reply == [0] for reply in replies), "done")
            with self.lock:
                self.left -= len(entries)

    def join(self, seconds):
        deadline = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0, deadline - time.monotonic()))
        expect(self.left == 0, self.left, "never came")
        return sorted(self.late)


def put_all(queues, calls):
    """Makes puts with these arguments. The id of a task, which is its number, decides which server
    gets the task."""
    for first in range(0, len(calls), 10000):
        for shard, queue in enumerate(queues):
            words = [queue.words("put", *call) for call in calls[first:first + 10000]
                     if zlib.crc32(call[0].encode()) % len(queues) == shard]
            expect(all(reply[0] == 0 for reply in pipeline(queue, words)), "put")


def check_many(servers, tasks, seconds, dice):
    queues, relays = begin(RELAYS, *servers)
    takers, began = Takers(servers, tasks), time.monotonic()
    put_all(queues, [(str(task), dice.randrange(int(seconds * 10**6)), "", struct.pack("I", task))
                     for task in range(tasks)])
    put_s = time.monotonic() - began
    late = takers.join(seconds + put_s + 6 * ARRIVES)
    end(relays)
    calls = sum(calls_of(queue.client) for queue in queues) / tasks
    for queue in queues:
        expect(queue.count("task") + queue.count("due") + queue.count("ready") == 0, "left")
    expect(calls <= CALLS_MAX, calls, "calls a task")
    print(f"{tasks} tasks, {len(servers)} servers, {RELAYS} relays, put in {put_s:.1f} s; latest "
          f"{late[-1] / 1000:.2f} ms; {calls:.2f} calls a task", flush=True)


def check_backlog(tasks, spread_us, dice):
    with Server() as server:
        (queue,), relays = begin(0, server)
        queue.call("create", "tasks_max", 2 * tasks)
        base, fresh = queue.now() - 10**9, 0
        put_all([queue], [(str(task), base + dice.randrange(spread_us), "a", "")
                          for task in range(tasks)])
        relays.append(serve(f"unix:{server.address}", NAME))
        deadline = time.monotonic() + 6 * ARRIVES + tasks / 1000
        while queue.count("due") > 0:
            expect(time.monotonic() < deadline, "it does not end")
            if fresh < FRESH:  # they come last
                expect(queue.put(f"fresh-{fresh}", 0)[0] == 0, "put")
                fresh += 1
            time.sleep(0.01)
        end(relays)
        order, cursor = [], "-"
        while entries := queue.client("XRANGE", queue.prefix + "ready", cursor, "+",
                                      "COUNT", 10000):
            order += [(int(fields[3]), fields[1]) for _, fields in entries]
            cursor = b"(" + entries[-1][0]
        expect(len(order) == tasks + fresh, "not all")
        expect([due for due, _ in order] == sorted(due for due, _ in order), "out of order")
        expect(order[:tasks] == sorted(order[:tasks]), "equal times out of order")


def main(arguments):
    Driver.program = arguments[1]
    tasks = int(arguments[2]) if len(arguments) > 2 else 1_000_000
    seconds = float(arguments[3]) if len(arguments) > 3 else 600
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    dice = random.Random(seed)
    with Server("--maxmemory", "0") as server:
        check_many([server], tasks, seconds, dice)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server()) for _ in range(SERVERS)]
        check_many(servers, max(1, tasks // 10), seconds / 10, dice)
    check_backlog(tasks, 10**8, dice)
    check_backlog(tasks, 1, dice)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
