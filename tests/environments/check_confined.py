#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs programs of tests on less than this machine grants, by the launcher `confine`.

Usage: check_confined.py CONFINE OPTION... -- PROGRAM [ARGUMENT]...
       check_confined.py --skip CONFINE OPTION... -- PROGRAM...

The program must succeed. With --skip each program is told to use io_uring, which the options
refuse. It must end as skipped, and print the kernel's errno. Exit status 77 if this machine does
not let itself be confined so.
"""

import os
import re
import subprocess
import sys

SKIPPED = 77
CANNOT_CONFINE = 125
REFUSED = re.compile(r"^skipped: io_uring: .+ \(errno \d+\)$", re.MULTILINE)


def run(launcher, command, **environment):
    """Status and output; ends this program where the launcher cannot confine."""
    done = subprocess.run(launcher + command, check=False, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=os.environ | environment)
    if done.returncode == CANNOT_CONFINE:
        print(f"skipped: {done.stdout}")
        sys.exit(SKIPPED)
    return done.returncode, done.stdout


def check_skips(launcher, programs):
    """Two variables name the sleeper: one for programs in C, one for programs in C++."""
    wrong = 0
    for program in programs:
        status, said = run(launcher, [program], TIMERHUB_TEST_SLEEPER="uring",
                           TIMERHUB_SLEEPER="uring")
        if status != SKIPPED or not REFUSED.search(said):
            print(f"{program}: status {status}, not skipped with an errno:\n{said}")
            wrong += 1
    print(f"{len(programs) - wrong} of {len(programs)} programs skipped")
    return 1 if wrong else 0


def main(words):
    skip = words[:1] == ["--skip"]
    split = words.index("--")
    launcher, command = words[skip:split], words[split + 1:]
    if skip:
        return check_skips(launcher, command)
    status, said = run(launcher, command)
    print(said, end="")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
