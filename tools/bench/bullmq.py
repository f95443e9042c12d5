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
import re
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent / "tests/relay"))
from redis_server import RedisError, Server  # pylint: disable=wrong-import-position

NAME = "bench"
# Scripts that clients call. INFO commandstats counts the commands inside of scripts, too.
SCRIPTS = re.compile(r"cmdstat_(?:fcall|eval|evalsha):calls=(\d+)")
# (arguments of relay_load and bullmq.js, what they measure)
RATES = [(("put", 1, 3000), "puts a second, 1 caller"),
         (("put", 16, 20000), "puts a second, 16 callers"),
         (("put", 64, 20000), "puts a second, 64 callers"),
         (("put_many", 64, 20480), "puts a second, 1 caller, 64 at once"),
         (("submit", 1024, 20000), "puts a second, 1 caller that does not wait"),
         (("take", 16, 10000), "tasks taken and ended a second, 16 workers")]
LATE = [(("late", 1, 150, 20, 500, 1000), "20 a second, 1 worker"),
        (("late", 4, 150, 20, 500, 1000), "20 a second, 4 workers"),
        (("late", 1, 1000, 500, 500, 1000), "500 a second, 1 worker")]


@contextlib.contextmanager
def redis():
    """A Redis server on a free port, for one measurement."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Server("--port", str(port), "--bind", "127.0.0.1") as server:
        yield server, port


@contextlib.contextmanager
def relays(build, environment, count):
    """That many processes which serve the queue."""
    tool = build / "tools/relay/timerhub-relay"
    subprocess.run([tool, "create", NAME], env=environment, check=True)
    daemons = [subprocess.Popen([tool, "run", NAME], env=environment) for _ in range(count)]
    try:
        while json.loads(subprocess.run([tool, "--json", "stat", NAME], env=environment, check=True,
                                        stdout=subprocess.PIPE).stdout)["relays"] < count:
            time.sleep(0.05)
        yield
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.wait()


def used(server):
    """How many scripts clients have called, and how many bytes the server has in use."""
    client = server.client(120)
    return (sum(map(int, SCRIPTS.findall(client("INFO", "commandstats").decode()))),
            int(re.search(rb"used_memory:(\d+)", client("INFO", "memory"))[1]))


def load(server, command, environment):
    """Returns what the load prints, and the scripts and bytes that it took."""
    before = used(server)
    printed = subprocess.run([str(word) for word in command], env=environment, timeout=300,
                             stdout=subprocess.PIPE, check=True).stdout
    after = used(server)
    return json.loads(printed), after[0] - before[0], after[1] - before[1]


def run_relay(build, count, arguments):
    with redis() as (server, port):
        environment = os.environ | {"REDIS_URL": f"redis://127.0.0.1:{port}"}
        with relays(build, environment, count):
            return load(server, (build / "tools/bench/relay_load", NAME, *arguments), environment)


def run_bullmq(build, arguments):
    with redis() as (server, port):
        environment = os.environ | {"NODE_PATH": str(build / "node/node_modules")}
        return load(server, ("node", HERE / "bullmq.js", port, *arguments), environment)


def compare_rates(build, rounds):
    print("| | timerhub | scripts, bytes a task | BullMQ | scripts, bytes a task |\n"
          "|---|---|---|---|---|")
    for arguments, text in RATES:
        found = collections.defaultdict(list)
        for _ in range(rounds):
            found["timerhub"].append(run_relay(build, 1, arguments))
            if arguments[0] != "submit":  # BullMQ's adds never wait
                found["BullMQ"].append(run_bullmq(build, arguments))
        row = f"| {text}"
        for runs in found.values():
            rate, scripts, size = (statistics.median(column) for column in zip(*runs))
            row += f" | {rate:.0f} | {scripts / arguments[2]:.2f}, "
            row += f"{size / arguments[2]:.0f}" if arguments[0] != "take" else "-"
        print(row + " |" * (5 - row.count("|") + 1), flush=True)


def compare_lateness(build, rounds):
    """The tasks are due 0.5 to 1.5 s after their put. A task's scripts include put and finish."""
    subjects = {"timerhub, 1 relay": lambda how: run_relay(build, 1, how),
                "timerhub, 16 relays": lambda how: run_relay(build, 16, how),
                "BullMQ": lambda how: run_bullmq(build, how)}
    print("\n| late by | p50 ms | p99 ms | scripts a task |\n|---|---|---|---|")
    for arguments, text in LATE:
        found = collections.defaultdict(list)
        for _ in range(rounds):
            for name, subject in subjects.items():
                found[name].append(subject(arguments))
        for name, runs in found.items():
            late = sorted(one for run in runs for one in run[0])
            print(f"| {text}: {name} | {late[len(late) // 2] / 1000:.2f} | "
                  f"{late[len(late) * 99 // 100] / 1000:.2f} | "
                  f"{sum(run[1] for run in runs) / len(late):.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    try:
        compare_rates(options.build.resolve(), options.rounds)
        compare_lateness(options.build.resolve(), options.rounds)
    except (OSError, RedisError, subprocess.SubprocessError) as error:
        print(f"bullmq.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
