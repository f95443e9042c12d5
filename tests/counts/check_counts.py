#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions of each operation, counted by valgrind, against the figures in the tree.

Usage: check_counts.py [--write] FIGURES BUILD PROGRAM LIBRARY

BUILD names compiler and build type. The program (counted.c) does each operation many times within
its function counted(). The instructions that lie in the library's own object are added up, and the
program's functions inline_*, which have the inline halves of calls. The rest of the program and the
C library do not count. A figure that is off by more than 3 % is an error: growth must be meant, and
a figure that is too high would hide the next growth. An operation without a figure is an error, and
a figure without an operation. A commit that means it runs this with --write and says why.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOLERANCE = 0.03
SKIPPED = 77


def instructions_of(object_name, lines):
    """Those that the functions of this object executed themselves, and functions inline_* of any
    object, in a file of callgrind's."""
    total, inside, inline, called = 0, False, False, False
    for line in lines:
        if line.startswith("ob="):
            inside = line[3:].strip() == object_name
        elif line.startswith("fn="):
            inline = line.startswith("fn=inline_")
        elif line.startswith("calls="):
            called = True  # the next line has the cost of the called functions
        elif line[:1].isdigit():
            if (inside or inline) and not called:
                total += int(line.split()[1])
            called = False
    return total


def count_part(part, library, operation, times):
    """Returns the instructions of one operation, from the file of one call of counted()."""
    with part.open(encoding="utf-8") as lines:
        instructions = instructions_of(str(library), lines)
    if instructions == 0:
        sys.exit(f"{operation}: no instruction of {library} was counted")
    return instructions / int(times)


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
        return {operation: count_part(out.with_suffix(f".{number}"), library, operation, times)
                for number, (operation, times) in enumerate(operations, 1)}


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
    wanted = {operation: figure for (of, operation), figure in figures.items() if of == build}
    for operation in counted | wanted:
        instructions, figure = counted.get(operation), wanted.get(operation)
        if instructions is None or figure is None:
            off += 1
            print(f"{operation:24}", "no figure: OFF" if figure is None else "not counted: OFF")
            continue
        growth = instructions / figure - 1
        bad = abs(growth) > TOLERANCE
        off += bad
        print(f"{operation:24}{instructions:10.1f}{figure:10.1f}{growth:+9.1%}",
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
    if not options.write and options.build not in {build for build, _ in figures}:
        print(f"no figures for {options.build} in {options.figures}; --write takes them")
        return SKIPPED
    if not shutil.which("valgrind"):
        print("valgrind is not installed")
        return SKIPPED
    counted = count(options.program, options.shared_object.resolve())
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
