#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions of one operation, counted by valgrind, against the figures in the tree.

Usage: check_counts.py [--write] FIGURES BUILD PROGRAM LIBRARY

BUILD names compiler and build type. The program (counted.c) does an operation many times within
its function counted(); the instructions that lie in the library's own object are added up, so
neither the program nor the C library counts. A figure that is off by more than 3 % is an error:
growth must be meant, and a figure that is too high would hide the next growth. A commit that means
it runs this with --write and says why.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

OPERATIONS = ("arm", "rearm", "rearm_many", "cancel", "delivery")
TOLERANCE = 0.03
SKIPPED = 77


def instructions_of(object_name, lines):
    """Those that the functions of this object executed themselves, in a file of callgrind's."""
    total, inside, called = 0, False, False
    for line in lines:
        if line.startswith("ob="):
            inside = line[3:].strip() == object_name
        elif line.startswith("calls="):
            called = True  # the next line has the cost of the called functions
        elif line[:1].isdigit():
            if inside and not called:
                total += int(line.split()[1])
            called = False
    return total


def count(program, library, operation):
    """Returns the instructions of one operation."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=counted",
             "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={out}",
             program, operation],
            capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{operation}: exit status {run.returncode}\n{run.stderr}")
        with out.open(encoding="utf-8") as lines:
            instructions = instructions_of(str(library), lines)
    if instructions == 0:
        sys.exit(f"{operation}: no instruction of {library} was counted")
    return instructions / int(run.stdout)


def read_figures(path):
    """Returns {(build, operation): instructions}, and the lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {(build, operation): float(figure) for build, operation, figure in words}, lines


def write_figures(path, build, counted):
    _, lines = read_figures(path)
    lines = [line for line in lines if line.split()[:1] != [build]]
    lines += [f"{build} {operation} {figure:.1f}" for operation, figure in counted.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def judge(figures, build, counted):
    """Prints a line for each operation; returns how many are off."""
    off = 0
    for operation, instructions in counted.items():
        figure = figures[build, operation]
        growth = instructions / figure - 1
        bad = abs(growth) > TOLERANCE
        off += bad
        print(f"{operation:12}{instructions:10.1f}{figure:10.1f}{growth:+9.1%}",
              "OFF" if bad else "")
    return off


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("build")
    parser.add_argument("program")
    parser.add_argument("shared_object", type=pathlib.Path)
    options = parser.parse_args()
    figures, _ = read_figures(options.figures)
    if not options.write and (options.build, OPERATIONS[0]) not in figures:
        print(f"no figures for {options.build} in {options.figures}; --write takes them")
        return SKIPPED
    if not shutil.which("valgrind"):
        print("valgrind is not installed")
        return SKIPPED
    counted = {operation: count(options.program, options.shared_object.resolve(), operation)
               for operation in OPERATIONS}
    if options.write:
        write_figures(options.figures, options.build, counted)
        return 0
    print(f"{options.build}: instructions an operation, the figure, growth")
    if judge(figures, options.build, counted) == 0:
        return 0
    print("If the change is meant: check_counts.py --write, and the commit says why.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
