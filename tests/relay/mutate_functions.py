#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Leaves out each line of timerhub.lua in turn, and checks if a test fails. The script is run by
hand and takes half an hour.

Usage: mutate_functions.py TIMERHUB_LUA [STEPS [FIRST LAST]]

Prints the lines without which functions_test.py, in STEPS steps, and functions_errors_test.py still
succeed. With FIRST and LAST the script tries only the lines from FIRST to LAST.
"""

import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
LIMIT_S = 300


def notices(test, *arguments):
    """Returns whether the test fails. A test that hangs counts as failed."""
    try:
        return subprocess.run([sys.executable, FOLDER / test, *map(str, arguments)], check=False,
                              capture_output=True, timeout=LIMIT_S).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def main(arguments):
    lines = pathlib.Path(arguments[1]).read_text(encoding="utf-8").splitlines(keepends=True)
    steps = arguments[2] if len(arguments) > 2 else "8000"
    first, last = map(int, arguments[3:5] or (2, len(lines)))
    survivors = mutants = 0
    for index in range(first - 1, min(last, len(lines))):
        line = lines[index]
        if not line.strip() or line.lstrip().startswith("--"):
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as mutant:
            mutant.write("".join(lines[:index] + lines[index + 1:]))
            mutant.flush()
            mutants += 1
            if notices("functions_errors_test.py", mutant.name):
                continue
            if notices("functions_test.py", mutant.name, steps, 1):
                continue
        survivors += 1
        print(f"{index + 1}: {line.rstrip()}", flush=True)
    print(f"{survivors} of {mutants} lines are missed by no test")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
