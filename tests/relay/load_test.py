#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests many tasks, and many calls at once.

Usage: load_test.py VICTIM [TASKS [SECONDS]]

many      TASKS tasks are due at random times within SECONDS, with 16 relays (VICTIM --serve) and 4
          takers. Each task must come once, and none early, with at most CALLS_MAX calls of
          functions a task. The test is repeated with a tenth of the tasks on four servers.
instants  Tasks are due one after another, with 16 relays. Prints the number of polls.
backlog   TASKS tasks are all due when a relay starts, at random times or at one time. The tasks
          must come in the order of their due times, and other clients must get replies in between.
storms    Each put is the earliest so far, or is cancelled, or has no data or the most data.
"""

import bisect
import os
import random
import re
import struct
import subprocess
import sys
import threading
import time
import zlib

from queue_client import Queue, make
from redis_server import ARRIVES, Server

NAME = "size"
RELAYS = 16
TAKERS = 4
FRESH = 500  # number of tasks that become due during a backlog
INSTANTS, INSTANT_US = 200, 50_000
CALLS_MAX = 3.7  # calls for a task: its put, its done, and its share of the polls
SERVERS = 4
PIPELINE = 500


def expect(condition, *what):
    if not condition:
        print("not so:", *what)
        os._exit(1)  # other threads may still run


def addresses(servers):
    return ",unix:".join(server.address for server in servers)


def serve(victim, servers, count):
    return [subprocess.Popen([victim, "--serve", NAME],
                             env=os.environ | {"REDIS_URL": f"unix:{addresses(servers)}"})
            for _ in range(count)]


def calls_of(client):
    """Returns the number of calls of functions at the server."""
    found = re.search(r"cmdstat_fcall:calls=(\d+)", client("INFO", "commandstats").decode())
    return int(found[1])


def end(processes):
    for process in processes:
        process.kill()
        process.wait()


def pipeline(queue, calls):
    """Sends the calls together in few packets. Returns the replies."""
    replies = []
    for begin in range(0, len(calls), PIPELINE):
        chunk = calls[begin:begin + PIPELINE]
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


def check_many(victim, servers, tasks, seconds, dice):
    make(victim, NAME, addresses(servers))
    queues = [Queue(server.client(2 * ARRIVES), NAME) for server in servers]
    relays, takers = serve(victim, servers, RELAYS), Takers(servers, tasks)
    begin = time.monotonic()
    put_all(queues, [(str(task), dice.randrange(int(seconds * 10**6)), "", struct.pack("I", task))
                     for task in range(tasks)])
    put_s = time.monotonic() - begin
    late = takers.join(seconds + put_s + 6 * ARRIVES)
    end(relays)
    calls = sum(calls_of(queue.client) for queue in queues) / tasks
    for queue in queues:
        expect(queue.count("task") + queue.count("due") + queue.count("ready") == 0, "left")
    expect(calls <= CALLS_MAX, calls, "calls a task")
    print(f"{tasks} tasks, {len(servers)} servers, {RELAYS} relays, put in {put_s:.1f} s; late p50 "
          f"{late[tasks // 2] / 1000:.2f} ms, p99 {late[tasks * 99 // 100] / 1000:.2f}, most "
          f"{late[-1] / 1000:.2f}; {calls:.2f} calls a task", flush=True)


def check_instants(victim):
    """Each task is earlier than all others. It is put a while before its due time, and taken at
    once."""
    with Server() as server:
        make(victim, NAME, server.address)
        queue = Queue(server.client(2 * ARRIVES), NAME)
        relays = serve(victim, [server], RELAYS)
        while int(queue.stat()["relays"]) < RELAYS:
            time.sleep(0.01)
        before = calls_of(queue.client)
        for task in range(INSTANTS):
            queue.put(str(task), INSTANT_US)
            entries = queue.read(block_ms=1000 * ARRIVES)
            expect([entry[1] for entry in entries] == [str(task)], task, "came as", entries)
            queue.done(str(task))
        calls = (calls_of(queue.client) - before) / INSTANTS
        end(relays)
        # Only test_look_timing.c checks the number of polls, because its virtual time does not
        # depend on the machine's speed.
        print(f"{INSTANTS} due instants, {RELAYS} relays: {calls - 2:.2f} looks each", flush=True)


# Program of a process that sends PINGs and prints their durations in ms. In the test's own process,
# other threads could delay the PINGs.
PINGER = """
import sys, time
from redis_server import Client
redis, took, end = Client(sys.argv[1]), [], time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    begin = time.monotonic()
    redis("PING")
    took.append(1000 * (time.monotonic() - begin))
    time.sleep(0.001)
took.sort()
print(f"{took[len(took) // 2]:.2f} ms, p99 {took[len(took) * 99 // 100]:.2f}")
"""


def hurry(process):
    """Gives the process priority over other programs of the machine. Returns whether this is
    permitted."""
    try:
        os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(1))
    except OSError:
        return False
    return True


def start_pings(server, seconds):
    process = subprocess.Popen([sys.executable, "-c", PINGER, server.address, str(seconds)],
                               stdout=subprocess.PIPE, text=True,
                               env=os.environ | {"PYTHONPATH": os.path.dirname(__file__)})
    hurry(process)
    return process


def shares_of(entries, promoted_s):
    """
    Returns, for each task that became due during the backlog, its wait divided by its share. The
    share is the number of tasks that entered the stream during the wait, divided by the mean rate.
    `entries` are the entries of the stream: time of entry in ms, due time in us, name.
    """
    times, rate = [entry_ms for entry_ms, _, _ in entries], len(entries) / promoted_s
    for index, (entry_ms, due_us, name) in enumerate(entries):
        ahead = index - bisect.bisect_left(times, due_us / 1000)
        if name.startswith("fresh") and ahead > 0.05 * len(entries):
            yield (entry_ms / 1000 - due_us / 10**6) / (ahead / rate)


def check_backlog(victim, tasks, spread_us, dice):
    with Server() as server:
        make(victim, NAME, server.address)
        queue = Queue(server.client(), NAME)
        queue.call("create", "tasks_max", 2 * tasks)
        base = queue.now() - 10**9
        put_all([queue], [(str(task), base + dice.randrange(spread_us), "a", "")
                          for task in range(tasks)])
        hurried = hurry(server.process)
        seconds = max(0.2, tasks / 400_000)
        idle = start_pings(server, seconds).communicate()[0].strip()
        pings, begin = start_pings(server, seconds), time.monotonic()
        relays = serve(victim, [server], 1)
        fresh = 0  # number of tasks that become due during the backlog; they come last
        while queue.count("due") > 0:
            expect(time.monotonic() < begin + 6 * ARRIVES + tasks / 1000, "it does not end")
            if fresh < FRESH:
                expect(queue.put(f"fresh-{fresh}", 0)[0] == 0, "put")
                fresh += 1
            time.sleep(0.01)
        promoted_s = time.monotonic() - begin
        busy = pings.communicate()[0].strip()
        end(relays)
        order, cursor, entered = [], "-", []
        while entries := queue.client("XRANGE", queue.prefix + "ready", cursor, "+",
                                      "COUNT", 10000):
            order += [(int(fields[3]), fields[1]) for _, fields in entries]
            entered += [(int(entry.split(b"-")[0]), int(fields[3]), fields[1].decode())
                        for entry, fields in entries]
            cursor = b"(" + entries[-1][0]
        expect(len(order) == tasks + fresh, "not all")
        expect([due for due, _ in order] == sorted(due for due, _ in order), "out of order")
        expect(order[:tasks] == sorted(order[:tasks]), "equal times out of order")
        shares = list(shares_of(entered, promoted_s)) or [0]
        print(f"backlog of {tasks}, and {fresh} due meanwhile, promoted in {promoted_s:.2f} s; "
              f"{len(shares)} of these waited {min(shares):.2f} to {max(shares):.2f} of their "
              f"share; PING p50 {busy}, before it {idle}"
              f"{', server at real-time priority' if hurried else ''}", flush=True)


def check_storms(victim, tasks):
    with Server() as server:
        make(victim, NAME, server.address)
        queue = Queue(server.client(), NAME)
        relays = serve(victim, [server], 2)
        far = queue.now() + 10**12
        begin = time.monotonic()
        replies = pipeline(queue, [queue.words("put", str(task), far - task, "a", "")
                                   for task in range(tasks)])
        expect(all(reply[0] == 0 for reply in replies), "put")
        replies = pipeline(queue, [queue.words("cancel", str(task)) for task in range(tasks)])
        expect(replies == [[0]] * tasks, "cancel")
        took_s = time.monotonic() - begin
        expect(queue.count("task") + queue.count("due") == 0, "left")
        queue.call("create", "past_us", 0)
        for size in (0, 65536):
            data = os.urandom(size)
            expect(queue.put(f"data-{size}", 1000, "", data)[0] == 0, "put")
            entries = queue.read(1, 1000 * ARRIVES)
            expect([entry[4] for entry in entries] == [data], size, "bytes came otherwise")
            queue.done(f"data-{size}")
        expect(queue.put("large", 0, "", b"x" * 65537) == [-90], "too large")
        end(relays)
        print(f"{tasks} puts, each the earliest, and cancelled, in {took_s:.1f} s")


def main(arguments):
    tasks = int(arguments[2]) if len(arguments) > 2 else 1_000_000
    seconds = float(arguments[3]) if len(arguments) > 3 else 600
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    dice = random.Random(seed)
    with Server("--maxmemory", "0") as server:
        check_many(arguments[1], [server], tasks, seconds, dice)
    servers = [Server() for _ in range(SERVERS)]
    try:
        check_many(arguments[1], servers, max(1, tasks // 10), seconds / 10, dice)
    finally:
        for server in servers:
            server.close()
    check_instants(arguments[1])
    check_backlog(arguments[1], tasks, 10**8, dice)
    check_backlog(arguments[1], tasks, 1, dice)
    check_storms(arguments[1], max(1, tasks // 10))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
