#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the relay beside BullMQ, in rounds that alternate.

Usage: bullmq.py BUILD [--rounds N] [--only A,B]

BUILD is the folder in which timerhub was built, and bullmq was installed in node/. The parts are
lateness (20 tasks a second), fast (500), scripts and idle. tools/run-bench --relay installs what
this needs, and calls it.
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
# The commands that clients call. INFO commandstats counts the commands of scripts, too.
SCRIPTS, BLOCKS = "fcall|eval|evalsha", r"b\w+|xreadgroup"
ASKED = re.compile(rf"cmdstat_({SCRIPTS}|{BLOCKS}|ping|publish):calls=(\d+)")


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

    def bullmq(self, workers, rate, count, **more):
        return self.start("node", HERE / "bullmq.js", self.port, workers, rate, count, 500, 1000,
                          **more)

    def asked(self):
        """Returns the number of commands of each kind that clients have sent."""
        found = ASKED.findall(self.redis("INFO", "commandstats").decode())
        return collections.Counter({name: int(calls) for name, calls in found})


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
    """Returns the lateness of each task in us, and the commands that clients have sent."""
    with Bench(build) as bench:
        bench.relays(relays)
        takers = [Taker(bench, number) for number in range(workers)]
        time.sleep(1)
        before, begin = bench.asked(), time.monotonic()
        for number in range(count):
            time.sleep(max(0, begin + number / rate - time.monotonic()))
            bench.queue.put(f"task-{number}", 1000 * (500 + random.randrange(1000)))
        while sum(len(taker.late) for taker in takers) < count:
            time.sleep(0.01)
        time.sleep(0.2)
        asked = bench.asked() - before
        for taker in takers:
            taker.end()
        return [late for taker in takers for late in taker.late], asked


def run_bullmq(build, workers, rate, count):
    with Bench(build) as bench:
        before = bench.asked()
        peer = bench.bullmq(workers, rate, count, stdout=subprocess.PIPE)
        said = peer.communicate(timeout=300)[0]
        if peer.returncode != 0:
            raise subprocess.CalledProcessError(peer.returncode, peer.args)
        return json.loads(said), bench.asked() - before


SUBJECTS = {
    "timerhub, 1 relay": lambda build, *how: run_relay(build, 1, *how),
    "timerhub, 16 relays": lambda build, *how: run_relay(build, 16, *how),
    "BullMQ": run_bullmq,
}


def part_lateness(build, rounds, rate=20, count=150):
    """With one worker; the tasks are due 0.5 to 1.5 s after their put."""
    late = collections.defaultdict(list)
    for _ in range(rounds):
        for name, subject in SUBJECTS.items():
            late[name] += subject(build, 1, rate, count)[0]
    print(f"\n| lateness, {rate} a second | p50 ms | p99 ms | most ms | early |\n"
          "|---|---|---|---|---|")
    for name, values in late.items():
        print(f"| {name} | {rank(values, .5) / 1000:.2f} | {rank(values, .99) / 1000:.2f} | "
              f"{max(values) / 1000:.1f} | {sum(one < 0 for one in values)} |", flush=True)


def part_fast(build, rounds):
    part_lateness(build, rounds, 500, 1000)


def part_scripts(build, _rounds):
    print("\n| scripts a task, its put and finish included (and blocking reads) | 1 worker | "
          "4 workers |\n|---|---|---|")
    for name, subject in SUBJECTS.items():
        cells = []
        for workers in (1, 4):
            asked = subject(build, workers, 20, 200)[1]
            cells += [sum(calls for command, calls in asked.items()
                          if re.fullmatch(which, command)) / 200 for which in (SCRIPTS, BLOCKS)]
        print("| {} | {:.2f} ({:.2f}) | {:.2f} ({:.2f}) |".format(name, *cells), flush=True)


def part_idle(build, _rounds):
    print("\n| an idle queue | commands a second |\n|---|---|")
    for name, relays in (("timerhub, 1 relay", 1), ("timerhub, 100 relays", 100),
                         ("BullMQ, 4 workers", 0)):
        with Bench(build) as bench:
            if relays > 0:
                bench.relays(relays)
                time.sleep(30)  # until the relays' ranks are stable
            else:
                bench.bullmq(4, 1, 0)
                time.sleep(10)
            before = bench.asked()
            time.sleep(20)
            print(f"| {name} | {sum((bench.asked() - before).values()) / 20:.2f} |", flush=True)


PARTS = {"lateness": part_lateness, "fast": part_fast, "scripts": part_scripts, "idle": part_idle}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    try:
        for name in options.only.split(","):
            PARTS[name](options.build.resolve(), options.rounds)
    except (OSError, RedisError, subprocess.SubprocessError) as error:
        print(f"bullmq.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
