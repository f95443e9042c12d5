#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the program of a page a second time, and compares its output with the page.

Usage: check_second_run.py PROGRAM    timerhub-relay(7): by with_server.py

Prints complaints, and exits with status 1 if there are any.
"""

import os
import pathlib
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


def check_relay(command, folder):
    """If this test is held up for the minute that the id is refused, it has nothing to say."""
    began = time.monotonic()
    run(command, folder)
    printed = run(command, folder)
    in_time = time.monotonic() - began < REFUSED
    return expect(printed, "put: Operation already in progress\n") if in_time else []


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    command = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")),
               str(pathlib.Path(arguments[0]).resolve())]
    with tempfile.TemporaryDirectory() as folder:
        complaints = check_relay(command, folder)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
