#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the relay beside BullMQ, in rounds that alternate.

Usage: bullmq.py BUILD [--rounds N]

BUILD is the folder in which timerhub was built, and bullmq was installed in node/. tools/run-bench
--relay installs what this needs, and calls it. Each measurement starts a Redis server of its own.
"""

import argparse
import collections
import contextlib
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


@contextlib.contextmanager
def redis():
    """A Redis server on a free port, for one measurement."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Server("--port", str(port), "--bind", "127.0.0.1") as server:
        yield server, port


def scripts(server):
    return sum(map(int, SCRIPTS.findall(server.client()("INFO", "commandstats").decode())))


def take(server, number, late, wanted):
    """A consumer of the relay's stream, in Python, without the library."""
    queue = Queue(server.client(120), NAME)
    while len(late) < wanted:
        for entry, name, due, _, _ in queue.read(16, 500, f"taker-{number}"):
            late.append(round(time.time() * 1e6) - due)
            queue.call("done", name, entry)


def run_relay(build, relays, workers, rate, count):
    """Returns the lateness of each task in us, and how many scripts clients have called."""
    tool, late = build / "tools/relay/timerhub-relay", []
    with redis() as (server, port):
        address = os.environ | {"REDIS_URL": f"redis://127.0.0.1:{port}"}
        queue = Queue(server.client(120), NAME)
        subprocess.run([tool, "create", NAME], env=address, check=True)
        daemons = [subprocess.Popen([tool, "run", NAME], env=address) for _ in range(relays)]
        try:
            while int(queue.stat()["relays"]) < relays:
                time.sleep(0.05)
            takers = [threading.Thread(target=take, args=(server, number, late, count))
                      for number in range(workers)]
            for taker in takers:
                taker.start()
            time.sleep(1)
            before, begin = scripts(server), time.monotonic()
            for number in range(count):
                time.sleep(max(0, begin + number / rate - time.monotonic()))
                queue.put(f"task-{number}", 1000 * (500 + random.randrange(1000)))
            for taker in takers:
                taker.join()
            return late, scripts(server) - before
        finally:
            for daemon in daemons:
                daemon.terminate()
            for daemon in daemons:
                daemon.wait()


def run_bullmq(build, workers, rate, count):
    with redis() as (server, port):
        said = subprocess.run(
            [str(word) for word in ("node", HERE / "bullmq.js", port, workers, rate, count, 500,
                                    1000)],
            env=os.environ | {"NODE_PATH": str(build / "node/node_modules")},
            stdout=subprocess.PIPE, timeout=300, check=True).stdout
        return json.loads(said), scripts(server)


SUBJECTS = {
    "timerhub, 1 relay": lambda build, *how: run_relay(build, 1, *how),
    "timerhub, 16 relays": lambda build, *how: run_relay(build, 16, *how),
    "BullMQ": run_bullmq,
}


def compare(build, rounds, workers, rate, count):
    """The tasks are due 0.5 to 1.5 s after their put. A task's scripts include put and finish."""
    late, called = collections.defaultdict(list), collections.Counter()
    for _ in range(rounds):
        for name, subject in SUBJECTS.items():
            more, calls = subject(build, workers, rate, count)
            late[name] += more
            called[name] += calls
    print(f"\n| {rate} tasks a second, {workers} workers | p50 ms | p99 ms | scripts a task |\n"
          "|---|---|---|---|")
    for name, values in late.items():
        values.sort()
        print(f"| {name} | {values[len(values) // 2] / 1000:.2f} | "
              f"{values[len(values) * 99 // 100] / 1000:.2f} | "
              f"{called[name] / len(values):.2f} |", flush=True)


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
