#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes put, take, answer, move, cancel and commit by seeds, and are killed at random. Their
books and the database must agree.

Usage: model_test.py WORKER SECONDS [SEED]
"""

import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import book

PROCESSES = 3


def live(folder, worker, seconds, dice):
    """Returns how often a process was killed."""
    database, ends, kills, names = folder / "t.db", time.monotonic() + seconds, 0, 0
    running = []
    while True:
        for process in [process for process in running if process.poll() is not None]:
            running.remove(process)
            if process.returncode not in (0, -signal.SIGKILL):
                sys.exit(f"a worker ended with {process.returncode}")
        if time.monotonic() > ends:
            break
        while len(running) < PROCESSES:
            names += 1
            running.append(subprocess.Popen(
                [worker, database, folder / f"book-{names}", f"w{names}",
                 str(dice.getrandbits(32)), str(dice.choice((300, 1000, 3000)))]))
        time.sleep(dice.random() * 0.2)
        if dice.random() < 0.6:
            dice.choice(running).kill()
            kills += 1
    for process in running:
        process.kill()
        process.wait()
    return kills


def lines_of(folder):
    """A kill may cut the last line of a book, where the line crosses a page of the file."""
    return [line for path in sorted(folder.glob("book-*"))
            for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def main(worker, seconds, seed=None):
    seed = int(seed) if seed else random.getrandbits(32)
    print(f"model_test.py {worker} {seconds} {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="store-model-") as name:
        folder = pathlib.Path(name)
        kills = live(folder, worker, float(seconds), random.Random(seed))
        complaints = book.check(lines_of(folder), folder / "t.db")
        ended = subprocess.run([worker, folder / "t.db", folder / "book-end", "end", "1", "0"],
                               check=False, timeout=100).returncode
        if ended != 0:
            complaints.append(f"the last worker ended with {ended}")
        lines = lines_of(folder)
        complaints += book.check(lines, folder / "t.db", all_are_ended=True)
        takes = sum(line.startswith("T") for line in lines)
        print(f"{kills} kills, {takes} deliveries")
        if takes < 10:
            complaints.append("hardly anything was delivered")
    return book.report(complaints)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
