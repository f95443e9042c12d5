#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the program of a page a second time, and compares its output with the page.

Usage: check_second_run.py journal PROGRAM    timerhub-journal(7): killed once its order is on disk
       check_second_run.py relay PROGRAM      timerhub-relay(7): by with_server.py

Prints complaints, and exits with status 1 if there are any.
"""

import os
import pathlib
import pty
import shlex
import subprocess
import sys
import tempfile
import time

ARRIVES = 60  # seconds within which what must come at all has come
REFUSED = 60  # seconds that the queue refuses an id for


def run(command, folder):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True,
                          timeout=ARRIVES).stdout


def expect(printed, wanted):
    return [] if printed == wanted else [f"it printed {printed!r}, not {wanted!r}"]


def kill_early(command, folder):
    """Kills it when it has said that its order is on disk, to a terminal, which it does at once.
    Was it alive?"""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=folder, stdout=theirs) as process:
        os.close(theirs)
        with os.fdopen(ours, encoding="utf-8") as terminal:
            line = terminal.readline()
            process.kill()
        if line != "put: it is on disk\n":
            raise ValueError(f"it printed {line!r}")
    return process.returncode < 0


def check_journal(command, folder):
    """If this test is held up for three seconds, the order has come before the kill."""
    killed = kill_early(command, folder)
    put = "File exists" if killed else "it is on disk"
    return expect(run(command, folder), f"put: {put}\nunpaid: 17 apples\n")


def check_relay(command, folder):
    """If this test is held up for the minute that the id is refused, it has nothing to say."""
    began = time.monotonic()
    run(command, folder)
    printed = run(command, folder)
    in_time = time.monotonic() - began < REFUSED
    return expect(printed, "put: Operation already in progress\n") if in_time else []


def main(arguments):
    checks = {"journal": check_journal, "relay": check_relay}
    if len(arguments) != 2 or arguments[0] not in checks:
        print(__doc__, file=sys.stderr)
        return 2
    command = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")),
               str(pathlib.Path(arguments[1]).resolve())]
    with tempfile.TemporaryDirectory() as folder:
        complaints = checks[arguments[0]](command, folder)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
