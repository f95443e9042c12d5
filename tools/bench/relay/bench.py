#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the relay and other services for delayed tasks, in interleaved rounds.

Usage: bench.py BUILD PEERS [--rounds N] [--only A,B]

BUILD is the folder in which timerhub was built. PEERS is a folder with bullmq, bull and bee-queue
in node_modules. The parts are: lateness fast scripts looks idle throughput always
memory. Every figure is of this machine and this run. The bars (targets) are multiples of other
figures of the run. tools/run-bench-relay installs the needed packages, and calls this script.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent.parent.parent / "tests/relay")]
from queue_client import Queue  # pylint: disable=wrong-import-position
from redis_server import RedisError, Server  # pylint: disable=wrong-import-position

NAME = "bench"
# Matches the commands that clients call. INFO commandstats also counts the commands of scripts.
ASKED = re.compile(r"cmdstat_(fcall|eval|evalsha|b\w+|xreadgroup|ping|publish):calls=(\d+)")


def rank(values, share):
    if not values:
        return float("nan")
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Bench:
    """A Redis server on a free port, for one measurement."""

    def __init__(self, build, peers, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.build, self.peers = pathlib.Path(build), pathlib.Path(peers)
        self.server = Server("--port", str(self.port), "--bind", "127.0.0.1", *options)
        self.redis = self.server.client(120)
        self.queue = Queue(self.redis, NAME)
        self.url = f"redis://127.0.0.1:{self.port}"
        self.environment = os.environ | {
            "REDIS_URL": self.url,
            "NODE_PATH": str(self.peers / "node_modules")}
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
        self.server.close()

    def start(self, *words, **more):
        more = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | more
        process = subprocess.Popen([str(word) for word in words], env=self.environment, **more)
        self.processes.append(process)
        return process

    def tool(self, *words):
        subprocess.run([self.build / "tools/relay/timerhub-relay", *words], env=self.environment,
                       check=True, stdout=subprocess.DEVNULL)

    def relays(self, count):
        self.tool("create", NAME)
        tool = self.build / "tools/relay/timerhub-relay"
        relays = [self.start(tool, "run", NAME) for _ in range(count)]
        while int(self.queue.stat()["relays"]) < count:
            time.sleep(0.05)
        return relays

    def asked(self):
        """Returns the number of commands of each kind that clients have sent."""
        found = ASKED.findall(self.redis("INFO", "commandstats").decode())
        return collections.Counter({name: int(calls) for name, calls in found})


class Taker(threading.Thread):
    """A consumer of the relay's stream, in Python, without the library."""

    def __init__(self, bench, number):
        super().__init__(daemon=True)
        self.queue = Queue(bench.server.client(120), NAME)
        self.number, self.late, self.dues, self.ending = number, [], [], False
        self.start()

    def run(self):
        while not self.ending:
            for entry, name, due, _, _ in self.queue.read(16, 500, f"taker-{self.number}"):
                self.late.append(round(time.time() * 1e6) - due)
                self.dues.append(due)
                self.queue.call("done", name, entry)

    def end(self):
        self.ending = True
        self.join()


def put_at_rate(bench, rate, count, min_ms, span_ms):
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(0, begin + number / rate - time.monotonic()))
        delay = 1000 * (min_ms + random.randrange(span_ms))
        bench.queue.put(f"task-{number}", delay)


class Result:
    """The lateness of tasks in microseconds, and the calls of Redis during the measurement."""

    def __init__(self, late, asked):
        self.late, self.asked = late, asked

    def per_task(self, *names):
        return sum(self.asked[name] for name in names or self.asked) / max(1, len(self.late))


def run_relay(where, relays, workers, rate, count):
    with Bench(*where) as bench:
        bench.relays(relays)
        takers = [Taker(bench, number) for number in range(workers)]
        time.sleep(1)
        before = bench.asked()
        put_at_rate(bench, rate, count, 500, 1000)
        while sum(len(taker.late) for taker in takers) < count:
            time.sleep(0.01)
        time.sleep(0.2)
        asked = bench.asked() - before
        for taker in takers:
            taker.end()
        return Result([late for taker in takers for late in taker.late], asked)


def run_node(where, kind, workers, rate, count):
    with Bench(*where) as bench:
        before = bench.asked()
        peer = bench.start("node", HERE / "peers.js", kind, bench.port, workers, rate, count, 500,
                           1000, stdout=subprocess.PIPE)
        late = json.loads(peer.communicate(timeout=300)[0])
        return Result(late, bench.asked() - before)


def late_row(name, late):
    print(f"| {name} | {len(late)} | {rank(late, .5) / 1000:.2f} | {rank(late, .99) / 1000:.2f} | "
          f"{max(late, default=0) / 1000:.1f} | {sum(one < 0 for one in late)} |", flush=True)


LATE_HEAD = ("| | tasks | p50 ms | p99 ms | most ms | early |\n|---|---|---|---|---|---|")


# ---- parts ----


def part_lateness(where, rounds, rate=20, count=150):
    """Measures each service with one worker. The tasks are due 0.5 to 1.5 s after their put."""
    subjects = {
        "timerhub, 1 relay": lambda: run_relay(where, 1, 1, rate, count),
        "timerhub, 16 relays": lambda: run_relay(where, 16, 1, rate, count),
        "BullMQ": lambda: run_node(where, "bullmq", 1, rate, count),
        "Bull": lambda: run_node(where, "bull", 1, rate, count),
        "bee-queue": lambda: run_node(where, "bee", 1, rate, count),
    }
    late = collections.defaultdict(list)
    for _ in range(rounds):
        for name, subject in subjects.items():
            late[name] += subject().late
    print(f"\nLateness at the consumer, {rate} tasks a second, {rounds} rounds\n\n{LATE_HEAD}")
    for name, values in late.items():
        late_row(name, values)


def part_fast(where, rounds):
    part_lateness(where, rounds, 500, 1000)


def part_scripts(where):
    """Counts the scripts that a task needs, including its put and its finish."""
    print("\nScripts a task, put and finish included (and blocking reads)\n\n"
          "| | 1 worker | 4 workers |\n|---|---|---|")
    rows = {
        "timerhub, 1 relay": lambda workers: run_relay(where, 1, workers, 20, 200),
        "timerhub, 16 relays": lambda workers: run_relay(where, 16, workers, 20, 200),
        "BullMQ": lambda workers: run_node(where, "bullmq", workers, 20, 200),
        "Bull": lambda workers: run_node(where, "bull", workers, 20, 200),
    }
    scripts = ("fcall", "eval", "evalsha")
    blocks = ("bzpopmin", "brpoplpush", "blmove", "brpop", "xreadgroup")
    for name, run in rows.items():
        results = [run(workers) for workers in (1, 4)]
        print(f"| {name} | " + " | ".join(
            f"{result.per_task(*scripts):.2f} ({result.per_task(*blocks):.2f})"
            for result in results) + " |", flush=True)


def part_looks(where):
    """Counts the calls for tasks that are due one after another, except puts, dones and reads."""
    print("\nLooks a due instant, 200 instants\n")
    for relays in (1, 16):
        result = run_relay(where, relays, 1, 20, 200)
        print(f"- {relays} relays: {result.per_task('fcall') - 2:.2f}", flush=True)


def part_idle(where):
    print("\nCommands a second of an idle queue, over 20 s\n")
    subjects = {"timerhub, 1 relay": 1, "timerhub, 100 relays": 100, "BullMQ, 4 workers": "bullmq",
                "Bull, 4 workers": "bull", "bee-queue, 4 workers": "bee"}
    for name, subject in subjects.items():
        with Bench(*where) as bench:
            if isinstance(subject, int):
                bench.relays(subject)
                time.sleep(30)  # wait until the relays' ranks are stable
            else:
                bench.start("node", HERE / "peers.js", subject, bench.port, 4, 1, 0, 1, 1)
                time.sleep(10)
            before = bench.asked()
            time.sleep(20)
            print(f"- {name}: {sum((bench.asked() - before).values()) / 20:.2f}", flush=True)


class Rate:
    """A rate of operations per second, and per second of the server's processor time."""

    def __init__(self, wall, busy):
        self.wall, self.busy = wall, busy

    @staticmethod
    def together(*rates):
        """Returns the rate of an operation that consists of one operation of each rate."""
        return Rate(1 / sum(1 / rate.wall for rate in rates),
                    1 / sum(1 / rate.busy for rate in rates))

    @staticmethod
    def median(rates):
        return Rate(*(rank([getattr(rate, name) for rate in rates], .5)
                      for name in ("wall", "busy")))


def busy_s(bench):
    found = re.findall(r"used_cpu_(?:sys|user):([\d.]+)", bench.redis("INFO", "cpu").decode())
    return sum(map(float, found))


def redis_benchmark(bench, *words, pipeline=64, clients=50, count=200_000):
    before = busy_s(bench)
    done = subprocess.run(["redis-benchmark", "-p", str(bench.port), "-q", "-P", str(pipeline),
                           "-c", str(clients), "-n", str(count), "-r", "1000000000", "--csv",
                           *map(str, words)], check=True, capture_output=True, text=True)
    # A line of redis-benchmark has the test's name, the requests per second, and six latencies.
    wall = float(done.stdout.splitlines()[-1].strip('"').rsplit('","', 7)[1])
    return Rate(wall, count / (busy_s(bench) - before))


def fill(bench, count, due_us):
    words = bench.queue.words("put", "t:__rand_int__", due_us, "", "data")
    return redis_benchmark(bench, *words, count=count)


def fill_by_many(bench, count, due_us, each=64):
    words = ["t:__rand_int__", due_us, "", "data", "", ""] * each  # after holder and epoch
    calls = redis_benchmark(bench, *bench.queue.words("puts", "", "", *words), pipeline=4,
                            count=count // each)
    return Rate(calls.wall * each, calls.busy * each)


def part_throughput(where, rounds):
    found = collections.defaultdict(list)
    for _ in range(rounds):
        with Bench(*where) as bench:
            bench.tool("create", NAME, "past_us=60000000")
            zadd = redis_benchmark(bench, "ZADD", "z", "__rand_int__", "task:__rand_int__")
            raw = [redis_benchmark(bench, *words) for words in (
                ("XADD", "s", "*", "id", "__rand_int__", "due", "1", "n", "1", "data", "data"),
                ("HGET", "h", "__rand_int__"), ("HSET", "h", "task:__rand_int__", "data"),
                ("ZPOPMIN", "z"))]
            found["promote, raw commands"].append(Rate.together(*raw))
            found["put, raw ZADD and HSET, pipelined"].append(Rate.together(zadd, raw[2]))
            found["put, pipelined"].append(fill(bench, 200_000, 3_600_000_000))
            found["put, 64 in a call"].append(fill_by_many(bench, 200_000, 3_600_000_000))
            found["SET, one at a time"].append(
                redis_benchmark(bench, "SET", "k:__rand_int__", "data", pipeline=1, clients=1,
                                count=20_000))
            words = bench.queue.words("put", "one:__rand_int__", 3_600_000_000, "", "data")
            found["put, one at a time"].append(
                redis_benchmark(bench, *words, pipeline=1, clients=1, count=20_000))
        with Bench(*where) as bench:
            bench.tool("create", NAME)
            fill(bench, 200_000, 0)
            tasks, before = bench.queue.count("due"), busy_s(bench)
            begin, first = None, 0
            bench.relays(1)
            while (ready := bench.queue.count("ready")) < tasks:
                if begin is None and ready > 0:
                    begin, first = time.monotonic(), ready
                time.sleep(0.005)
            found["promote"].append(Rate((tasks - first) / (time.monotonic() - begin),
                                         tasks / (busy_s(bench) - before)))
    rates = {name: Rate.median(values) for name, values in found.items()}
    print(f"\nThroughput, median of {rounds} rounds\n\n"
          "| | a second | a second of the server's processor time |\n|---|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate.wall:,.0f} | {rate.busy:,.0f} |")
    for name, raw in (("promote", "promote, raw commands"),
                      ("put, pipelined", "put, raw ZADD and HSET, pipelined"),
                      ("put, 64 in a call", "put, raw ZADD and HSET, pipelined"),
                      ("put, one at a time", "SET, one at a time")):
        print(f"| {name}, against {raw} | {rates[name].wall / rates[raw].wall:.2f} x | "
              f"{rates[name].busy / rates[raw].busy:.2f} x |", flush=True)


def part_always(where, rounds):
    library, raw = [], []
    for _ in range(rounds):
        for kind in ("library", "raw"):
            with Bench(*where, "--appendonly", "yes", "--appendfsync", "always") as bench:
                bench.tool("create", NAME)
                if kind == "library":
                    put = bench.build / "tools/bench/relay/relay_put"
                    library.append(float(subprocess.run(
                        [put, bench.url, NAME, "64", "40000"], check=True, capture_output=True,
                        text=True).stdout))
                else:
                    words = bench.queue.words("put", "t:__rand_int__", 3_600_000_000, "", "data")
                    raw.append(redis_benchmark(bench, *words, pipeline=1, clients=64,
                                               count=40_000).wall)
    print(f"\nPuts a second, appendfsync always: 64 threads of the library "
          f"{rank(library, .5):,.0f}, 64 clients of redis-benchmark {rank(raw, .5):,.0f}, "
          f"{rank(library, .5) / rank(raw, .5):.2f} x", flush=True)


def part_calls(where, rounds):
    """Puts by one caller, by 16 and 64 that wait, by put_many of 64, and by submit, in turn."""
    found = collections.defaultdict(list)
    kinds = {"1": "one caller", "16": "16 callers", "64": "64 callers",
             "many": "one caller, put_many of 64", "submit": "one caller, submit"}
    for _ in range(rounds):
        for how in kinds:
            with Bench(*where) as bench:
                bench.tool("create", NAME)
                put = bench.build / "tools/bench/relay/relay_put"
                done = subprocess.run([put, bench.url, NAME, how, "40960"], check=True,
                                      capture_output=True, text=True)
                found[how].append(float(done.stdout))
    print(f"\nPuts a second by the library, median of {rounds} rounds\n\n| | |\n|---|---|")
    for how, name in kinds.items():
        print(f"| {name} | {rank(found[how], .5):,.0f} |")
    for a, b in (("many", "1"), ("submit", "16")):
        ratio = rank(found[a], .5) / rank(found[b], .5)
        print(f"| {kinds[a]}, against {kinds[b]} | {ratio:.2f} x |", flush=True)


def part_memory(where):
    with Bench(*where) as bench:
        bench.tool("create", NAME)
        used = r"used_memory:(\d+)"
        before = int(re.search(used, bench.redis("INFO", "memory").decode())[1])
        fill(bench, 200_000, 3_600_000_000)
        after = int(re.search(used, bench.redis("INFO", "memory").decode())[1])
        tasks = bench.queue.count("due")
        each = (after - before) / tasks
        print(f"\nBytes a waiting task: {each:.0f}, beside id and data "
              f"{each - len('data') - len('t:000000000000'):.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="lateness,fast,scripts,looks,idle,"
                                          "throughput,calls,always,memory")
    options = parser.parse_args()
    where, rounds = (options.build, options.peers), options.rounds
    parts = {"lateness": lambda: part_lateness(where, rounds),
             "fast": lambda: part_fast(where, rounds),
             "scripts": lambda: part_scripts(where), "looks": lambda: part_looks(where),
             "idle": lambda: part_idle(where), "throughput": lambda: part_throughput(where, rounds),
             "calls": lambda: part_calls(where, rounds),
             "always": lambda: part_always(where, rounds), "memory": lambda: part_memory(where)}
    try:
        for name in options.only.split(","):
            parts[name]()
    except (OSError, RedisError, subprocess.SubprocessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    load = os.getloadavg()
    print(f"\nLoad of the machine at the end: {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
