#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds an example of examples/loops to its job, from outside.

Usage: test_loop.py [--seed N] COMMAND...

Starts COMMAND with three fifos, writes reminders into them from three threads, and checks its
output. Each text comes once, not early by the clock of this process, and in order for each fifo.
Some have one time and take several turns of the loop. The program must sleep while nothing is due,
continue while a fifo is open, and exit with status 0 when all fifos have ended. A bad line or file
ends it with status 1. Exit status 77 if it needs io_uring, and the kernel refuses that.
"""

import collections
import errno
import itertools
import os
import pathlib
import random
import shlex
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
from skip_without_uring import check_uring  # pylint: disable=wrong-import-position
from idle_process import rests  # pylint: disable=wrong-import-position
from verdict import Wrong, verdict  # pylint: disable=wrong-import-position

READERS = 3
BURST = 400           # more than several batches of a loop
IDLE_S = 1.0
HANG_S = 60           # "for ever"


class Reminders:
    """The reminders: text -> time of the write, and delay. Also the printed texts."""

    def __init__(self):
        self.asked = {}
        self.printed = []
        self.all_printed = threading.Semaphore(0)

    def write(self, fifo, reminders):
        """Writes (text, delay in ms) in one go; no deadline can be earlier than now + delay."""
        now_ns = time.monotonic_ns()
        for text, delay_ms in reminders:
            self.asked[text] = (now_ns, delay_ms)
        fifo.write("".join(f"{delay_ms} {text}\n" for text, delay_ms in reminders))
        fifo.flush()

    def read(self, pipe):
        for line in pipe:
            self.printed.append((line.rstrip("\n"), time.monotonic_ns()))
            self.all_printed.release()

    def wait_for(self, count):
        for _ in range(count):
            if not self.all_printed.acquire(timeout=HANG_S):
                raise Wrong(f"{len(self.printed)} reminders came, of {len(self.asked)}")

    def check(self):
        counts = collections.Counter(text for text, _ in self.printed)
        asked = collections.Counter(self.asked.keys())
        if counts != asked:
            raise Wrong(f"not each once: {counts - asked} too many, {asked - counts} missing")
        for text, printed_ns in self.printed:
            written_ns, delay_ms = self.asked[text]
            early_ns = written_ns + delay_ms * 1_000_000 - printed_ns
            if early_ns > 0:
                raise Wrong(f"{text} came {early_ns} ns early")
        self.check_order()

    def check_order(self):
        """Of one fifo's lines, one written later with a longer delay comes later."""
        of_fifo = collections.defaultdict(list)
        for text, _ in self.printed:
            reader, number = text.split(" ")[0].split("-")
            of_fifo[reader].append((int(number), self.asked[text][1], text))
        for lines in of_fifo.values():
            for (number, delay, text), later in itertools.combinations(lines, 2):
                if later[0] < number and later[1] < delay:
                    raise Wrong(f"{later[2]} came after {text}")


def feed(reminders, fifo, reader, dice):
    """Different delays, with pauses. Then many reminders with one time."""
    number = 0
    for _ in range(10):
        batch = [(f"{reader}-{number + i}", dice.randrange(300)) for i in range(20)]
        number += len(batch)
        reminders.write(fifo, batch)
        time.sleep(dice.random() / 50)
    reminders.write(fifo, [(f"{reader}-{number + i} all at once", 200) for i in range(BURST)])


def serve(process, reminders, fifos, dice):
    """The whole job, from the first reminder to the exit status."""
    threads = [threading.Thread(target=feed,
                                args=(reminders, fifo, i, random.Random(dice.random())))
               for i, fifo in enumerate(fifos)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reminders.wait_for(len(reminders.asked))

    # Write a burst of reminders that are due as soon as the program reads them. No later reminder
    # follows, so the loop must handle the whole burst without another wake-up.
    reminders.write(fifos[0], [(f"0-{50000 + i} now", 0) for i in range(BURST)])
    reminders.wait_for(BURST)

    if not rests(process.pid, IDLE_S, HANG_S):
        raise Wrong(f"it does not sleep for {IDLE_S} s with nothing due")

    # Close all input files except one. The loop must run until the last file is closed and the last
    # reminder has come.
    for fifo in fifos[1:]:
        fifo.close()
    time.sleep(0.05)
    if process.poll() is not None:
        raise Wrong("it ended while a file was open")
    reminders.write(fifos[0], [("0-100000 last but one", 1), ("0-100001 last", 150)])
    fifos[0].close()
    reminders.wait_for(2)
    if process.wait(timeout=HANG_S) != 0:
        raise Wrong(f"exit status {process.returncode}")


def open_fifo(path, process):
    """Opens the fifo for writing once the program reads it. Fails if the program ends before
    that."""
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if process.poll() is not None:
            raise Wrong(f"it ended before it read, exit status {process.returncode}")
        time.sleep(0.01)
    os.set_blocking(fd, True)
    return open(fd, "w", encoding="utf-8")


def test_nothing(command):
    """A program without reminders ends. If the kernel refuses io_uring, the program says so."""
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=HANG_S,
                          check=False)
    check_uring(done.returncode, done.stderr)
    if done.returncode != 0 or done.stdout:
        raise Wrong(f"without reminders: exit status {done.returncode}, {done.stderr!r}")


def test_job(command, directory, seed):
    paths = [str(directory / f"fifo{i}") for i in range(READERS)]
    for path in paths:
        os.mkfifo(path)
    reminders = Reminders()
    with open(directory / "stderr", "a+", encoding="utf-8") as errors, \
            subprocess.Popen([*command, *paths], stdout=subprocess.PIPE, stderr=errors,
                             text=True) as process:
        watchdog = threading.Timer(2 * HANG_S, process.kill)
        watchdog.start()
        try:
            fifos = [open_fifo(path, process) for path in paths]
            printing = threading.Thread(target=reminders.read, args=(process.stdout,))
            printing.start()
            serve(process, reminders, fifos, random.Random(seed))
            printing.join()
        finally:
            process.kill()
            process.wait()
            watchdog.cancel()
            errors.seek(0)
            sys.stderr.write(errors.read())
    reminders.check()


def test_refusal(command, arguments, text):
    """Standard input if there are no files. An unreadable file ends the program with a message."""
    done = subprocess.run([*command, *arguments], input=text, capture_output=True, text=True,
                          timeout=HANG_S, check=False)
    if done.returncode != 1 or not done.stderr:
        raise Wrong(f"{arguments} {text!r}: exit status {done.returncode}, {done.stderr!r}")


def test_loop(command, seed, directory):
    test_nothing(command)
    test_job(command, directory, seed)
    test_refusal(command, [], "soon a line without a number\n")
    test_refusal(command, ["/nonexistent/file"], "")
    many = directory / "many"  # a thread still reads it when the program ends
    many.write_text("3600000 late\n" * 200_000, encoding="utf-8")
    test_refusal(command, ["/nonexistent/file", str(many)], "")


def main(arguments):
    seed = int.from_bytes(os.urandom(4), "little")
    if arguments[:1] == ["--seed"]:
        seed, arguments = int(arguments[1], 0), arguments[2:]
    emulator = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))  # set if cross-compiled
    arguments = emulator + arguments
    print(f"--seed {seed:#x}")
    return verdict(test_loop, arguments, seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
