#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs Spin on a model, as the lines `true` and `bug` of its header say.

Usage: check_models.py MODEL.pml [WORD...]

In a true configuration Spin must find no fault, in a complete search. A planted bug must break the
law that is named beside it. With WORDs, only runs with a WORD in their names are made. Prints the
Test Anything Protocol. Exit status 1 if a run failed.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

RUN = re.compile(r"^ \*   (?:(true)|bug (\w+) +(\w+))((?: +-D\w+(?:=\w+)?)*)(?: .*)?$",
                 re.MULTILINE)
# Largest depth of a search. A path with more steps is an error.
DEPTH_MAX = "-m200000"


def runs_of(path):
    """Returns the name, the definitions and the law of each run. A true run has no law."""
    for match in RUN.finditer(path.read_text(encoding="utf-8")):
        defines = ([] if match[1] else [f"-D{match[2]}"]) + match[4].split()
        yield " ".join([match[1] or "bug"] + defines), defines, match[3]


def call(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def search(path, defines):
    """Returns the error that Spin found, None, or how the search was cut short."""
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        call(folder, "spin", "-a", *defines, str(path.resolve()))
        # tcc's program is slower than gcc's, but ready before gcc has read the source.
        call(folder, "tcc", "-DNOCOMP", "-w", "-DSAFETY", "-o", "pan", "pan.c")
        output = call(folder, "./pan", DEPTH_MAX, "-w23")
    error = re.search(r"^pan:\d+: (?:assertion violated )?(.*?)(?: \(at depth \d+\))?$", output,
                      re.MULTILINE)
    if error:
        return error[1]
    if "errors: 0\n" not in output or re.search(r"depth too small|not completed", output):
        return "not searched to the end"
    return None


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    path, words = pathlib.Path(arguments[1]), arguments[2:]
    runs = [run for run in runs_of(path) if not words or any(word in run[0] for word in words)]
    print(f"1..{len(runs)}", flush=True)
    failed = not runs
    for number, (name, defines, law) in enumerate(runs, 1):
        found = search(path, defines)
        failed |= found != law
        print(f"{'ok' if found == law else 'not ok'} {number} - {name}: {found}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
