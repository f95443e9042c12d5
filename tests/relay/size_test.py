#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many tasks, and storms of them.

Usage: size_test.py VICTIM [TASKS [SECONDS]]

many     TASKS tasks at random over SECONDS, with 4 relays (VICTIM --serve) and 4 takers: each comes
         once, none early.
backlog  TASKS tasks that are all due when a relay comes: in order of due time, while other clients
         are answered in between.
storms   puts that are each the earliest so far; puts that are cancelled; data of no bytes, and of
         the most.
"""

import os
import random
import struct
import subprocess
import sys
import threading
import time

from protocol import Queue, make
from redis_server import ARRIVES, Server

NAME = "size"
RELAYS = 4
TAKERS = 4
PIPELINE = 500


def expect(condition, *what):
    if not condition:
        print("not so:", *what)
        os._exit(1)  # other threads may be at work


def serve(victim, server, count):
    return [subprocess.Popen([victim, "--serve", NAME],
                             env=os.environ | {"REDIS_URL": f"unix:{server.address}"})
            for _ in range(count)]


def end(processes):
    for process in processes:
        process.kill()
        process.wait()


def pipeline(queue, calls):
    """Replies of the calls, which are put together into few packets."""
    replies = []
    for begin in range(0, len(calls), PIPELINE):
        chunk = calls[begin:begin + PIPELINE]
        queue.client.socket.sendall(b"".join(queue.client.encode(call) for call in chunk))
        replies += [queue.client.receive() for _ in chunk]
    return replies


class Takers:
    """Threads that take and finish; what came, by number: how late, in microseconds."""

    def __init__(self, server, tasks):
        self.late = [None] * tasks
        self.left, self.lock = tasks, threading.Lock()
        self.threads = [threading.Thread(target=self.take, args=(server, number))
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
            replies = pipeline(queue, [queue.words("done", entry[1]) for entry in entries])
            expect(all(reply == [0] for reply in replies), "done")
            with self.lock:
                self.left -= len(entries)

    def join(self, seconds):
        deadline = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0, deadline - time.monotonic()))
        expect(self.left == 0, self.left, "never came")
        return sorted(self.late)


def check_many(victim, tasks, seconds, dice):
    with Server("--maxmemory", "0") as server:
        make(victim, NAME, server.address)
        queue = Queue(server.client(), NAME)
        relays, takers = serve(victim, server, RELAYS), Takers(server, tasks)
        begin = time.monotonic()
        for first in range(0, tasks, 10000):
            calls = [queue.words("put", str(task), dice.randrange(int(seconds * 10**6)), "",
                                 struct.pack("I", task))
                     for task in range(first, min(first + 10000, tasks))]
            expect(all(reply[0] == 0 for reply in pipeline(queue, calls)), "put")
        put_s = time.monotonic() - begin
        late = takers.join(seconds + put_s + 6 * ARRIVES)
        end(relays)
        expect(queue.count("task") + queue.count("due") + queue.count("ready") == 0, "left")
        print(f"{tasks} tasks, put in {put_s:.1f} s; late p50 {late[tasks // 2] / 1000:.2f} ms, "
              f"p99 {late[tasks * 99 // 100] / 1000:.2f}, most {late[-1] / 1000:.2f}")


def ping(server, stop, took):
    redis = server.client()
    while not stop.is_set():
        begin = time.monotonic()
        redis("PING")
        took.append(time.monotonic() - begin)
        time.sleep(0.001)


def check_backlog(victim, tasks, dice):
    with Server() as server:
        make(victim, NAME, server.address)
        queue = Queue(server.client(), NAME)
        queue.call("create", "tasks_max", 2 * tasks)
        base = queue.now() - 10**9
        for first in range(0, tasks, 10000):
            calls = [queue.words("put", str(task), base + dice.randrange(10**8), "a", "")
                     for task in range(first, min(first + 10000, tasks))]
            expect(all(reply[0] == 0 for reply in pipeline(queue, calls)), "put")
        stop, took = threading.Event(), []
        pinger = threading.Thread(target=ping, args=(server, stop, took))
        pinger.start()
        begin, relays = time.monotonic(), serve(victim, server, 1)
        while queue.count("ready") < tasks:
            expect(time.monotonic() < begin + 6 * ARRIVES + tasks / 1000, "it does not end")
            time.sleep(0.01)
        promoted_s = time.monotonic() - begin
        stop.set()
        pinger.join()
        end(relays)
        order, cursor = [], "-"
        while entries := queue.client("XRANGE", queue.prefix + "ready", cursor, "+",
                                      "COUNT", 10000):
            order += [(int(fields[3]), fields[1]) for _, fields in entries]
            cursor = b"(" + entries[-1][0]
        expect(order == sorted(order) and len(order) == tasks, "out of order")
        took.sort()
        print(f"backlog of {tasks}, promoted in {promoted_s:.2f} s; meanwhile PING p50 "
              f"{took[len(took) // 2] * 1000:.2f} ms, p99 {took[len(took) * 99 // 100] * 1000:.2f}")


def check_storms(victim, tasks):
    with Server() as server:
        make(victim, NAME, server.address)
        queue = Queue(server.client(), NAME)
        relays = serve(victim, server, 2)
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
            queue.call("done", f"data-{size}")
        expect(queue.put("large", 0, "", b"x" * 65537) == [-90], "too large")
        end(relays)
        print(f"{tasks} puts, each the earliest, and cancelled, in {took_s:.1f} s")


def main(arguments):
    tasks = int(arguments[2]) if len(arguments) > 2 else 1_000_000
    seconds = float(arguments[3]) if len(arguments) > 3 else 600
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    dice = random.Random(seed)
    check_many(arguments[1], tasks, seconds, dice)
    check_backlog(arguments[1], tasks, dice)
    check_storms(arguments[1], max(1, tasks // 10))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
