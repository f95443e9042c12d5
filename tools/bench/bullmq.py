#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the relay beside BullMQ, in rounds that alternate.

Usage: bullmq.py BUILD [--rounds N]

BUILD is the folder in which timerhub was built, and bullmq was installed in node/. tools/run-bench
--relay installs what this needs, and calls it. Each measurement starts a Redis server of its own.
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
sys.path.append(str(HERE.parent.parent / "tests/relay"))
from queue_client import Queue  # pylint: disable=wrong-import-position
from redis_server import RedisError, Server  # pylint: disable=wrong-import-position

NAME = "bench"
# Scripts that clients call. INFO commandstats counts the commands inside of scripts, too.
SCRIPTS = re.compile(r"cmdstat_(?:fcall|eval|evalsha):calls=(\d+)")


def rank(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Bench:
    """A Redis server on a free port, for one measurement."""

    def __init__(self, build):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.tool = build / "tools/relay/timerhub-relay"
        self.server = Server("--port", str(self.port), "--bind", "127.0.0.1")
        self.redis = self.server.client(120)
        self.queue = Queue(self.redis, NAME)
        self.environment = os.environ | {
            "REDIS_URL": f"redis://127.0.0.1:{self.port}",
            "NODE_PATH": str(build / "node/node_modules")}
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
        more = {"stdout": subprocess.DEVNULL} | more
        process = subprocess.Popen([str(word) for word in words], env=self.environment, **more)
        self.processes.append(process)
        return process

    def relays(self, count):
        subprocess.run([self.tool, "create", NAME], env=self.environment, check=True)
        for _ in range(count):
            self.start(self.tool, "run", NAME)
        while int(self.queue.stat()["relays"]) < count:
            time.sleep(0.05)

    def scripts(self):
        return sum(map(int, SCRIPTS.findall(self.redis("INFO", "commandstats").decode())))


class Taker(threading.Thread):
    """A consumer of the relay's stream, in Python, without the library."""

    def __init__(self, bench, number):
        super().__init__(daemon=True)
        self.queue = Queue(bench.server.client(120), NAME)
        self.number, self.late, self.ending = number, [], False
        self.start()

    def run(self):
        while not self.ending:
            for entry, name, due, _, _ in self.queue.read(16, 500, f"taker-{self.number}"):
                self.late.append(round(time.time() * 1e6) - due)
                self.queue.call("done", name, entry)

    def end(self):
        self.ending = True
        self.join()


def run_relay(build, relays, workers, rate, count):
    """Returns the lateness of each task in us, and how many scripts clients have called."""
    with Bench(build) as bench:
        bench.relays(relays)
        takers = [Taker(bench, number) for number in range(workers)]
        time.sleep(1)
        before, begin = bench.scripts(), time.monotonic()
        for number in range(count):
            time.sleep(max(0, begin + number / rate - time.monotonic()))
            bench.queue.put(f"task-{number}", 1000 * (500 + random.randrange(1000)))
        while sum(len(taker.late) for taker in takers) < count:
            time.sleep(0.01)
        time.sleep(0.2)
        scripts = bench.scripts() - before
        for taker in takers:
            taker.end()
        return [late for taker in takers for late in taker.late], scripts


def run_bullmq(build, workers, rate, count):
    with Bench(build) as bench:
        peer = bench.start("node", HERE / "bullmq.js", bench.port, workers, rate, count, 500, 1000,
                           stdout=subprocess.PIPE)
        said = peer.communicate(timeout=300)[0]
        if peer.returncode != 0:
            raise subprocess.CalledProcessError(peer.returncode, peer.args)
        return json.loads(said), bench.scripts()


SUBJECTS = {
    "timerhub, 1 relay": lambda build, *how: run_relay(build, 1, *how),
    "timerhub, 16 relays": lambda build, *how: run_relay(build, 16, *how),
    "BullMQ": run_bullmq,
}


def compare(build, rounds, workers, rate, count):
    """The tasks are due 0.5 to 1.5 s after their put. A task's scripts include put and finish."""
    late, scripts = collections.defaultdict(list), collections.Counter()
    for _ in range(rounds):
        for name, subject in SUBJECTS.items():
            more, called = subject(build, workers, rate, count)
            late[name] += more
            scripts[name] += called
    print(f"\n| {rate} tasks a second, {workers} workers | p50 ms | p99 ms | most ms | early | "
          "scripts a task |\n|---|---|---|---|---|---|")
    for name, values in late.items():
        print(f"| {name} | {rank(values, .5) / 1000:.2f} | {rank(values, .99) / 1000:.2f} | "
              f"{max(values) / 1000:.1f} | {sum(one < 0 for one in values)} | "
              f"{scripts[name] / len(values):.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    try:
        for workers, rate, count in ((1, 20, 150), (4, 20, 150), (1, 500, 1000)):
            compare(options.build.resolve(), options.rounds, workers, rate, count)
    except (OSError, RedisError, subprocess.SubprocessError) as error:
        print(f"bullmq.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
