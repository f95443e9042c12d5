#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the instructions of each operation, counted by valgrind.

Usage: count.py PROGRAM LIBRARY

The program (counted.c) does each operation many times within its function counted(). Instructions
count that lie in the library's own object, or in the program's functions inline_*, which have the
inline halves of calls. If one call handles many timers, the number is the share of one timer.
"""

import pathlib
import subprocess
import sys
import tempfile


def instructions_of(library, part):
    """Returns how many instructions a file of callgrind's has for functions of the library, and for
    functions inline_* of any object. The cost of the calls that these make is left out."""
    total, inside, inline, called = 0, False, False, False
    for line in part.read_text(encoding="utf-8").splitlines():
        if line.startswith("ob="):
            inside = line[3:].strip() == str(library)
        elif line.startswith("fn="):
            inline = line.startswith("fn=inline_")
        elif line.startswith("calls="):
            called = True  # the next line has the cost of the called functions
        elif line[:1].isdigit():
            if (inside or inline) and not called:
                total += int(line.split()[1])
            called = False
    if total == 0:
        sys.exit(f"{part}: no instruction of {library} was counted")
    return total


def count(program, library):
    """Returns {operation: instructions}."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=counted",
             "--dump-after=counted", "--compress-strings=no", "--compress-pos=no",
             f"--callgrind-out-file={out}", program],
            capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{program}: exit status {run.returncode}\n{run.stderr}")
        operations = [line.split() for line in run.stdout.splitlines()]
        if len(list(out.parent.glob("out.*"))) != len(operations):
            sys.exit(f"{program}: {len(operations)} operations, and another number of files")
        return {operation: instructions_of(library, out.with_suffix(f".{number}")) / int(times)
                for number, (operation, times) in enumerate(operations, 1)}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for operation, number in count(sys.argv[1], pathlib.Path(sys.argv[2]).resolve()).items():
        print(f"{operation:28}{number:10.1f}")


if __name__ == "__main__":
    main()
