#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions of each operation, counted by valgrind, beside the figures in the tree.

Usage: count.py [--write] FIGURES BUILD PROGRAM LIBRARY

BUILD names compiler and build type. The program (counted.c) does each operation many times within
its function counted(). Instructions count that lie in the library's own object, or in the program's
functions inline_*, which have the inline halves of calls. --write records new figures.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile


def instructions_of(library, part):
    """Those that the functions of this object executed themselves, and functions inline_* of any
    object, in a file of callgrind's."""
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


def write(path, build, counted):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines()
             if line.split()[:1] != [build]]
    lines += [f"{build} {operation} {figure:.1f}" for operation, figure in counted.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def show(path, build, counted):
    figures = dict(line.split()[1:] for line in path.read_text(encoding="utf-8").splitlines()
                   if line.split()[:1] == [build])
    print(f"{build}: instructions an operation, the figure, growth")
    for operation, number in counted.items():
        figure = float(figures.get(operation, "nan"))
        print(f"{operation:24}{number:10.1f}{figure:10.1f}{number / figure - 1:+9.1%}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("build")
    parser.add_argument("program")
    parser.add_argument("shared_object", type=pathlib.Path)
    options = parser.parse_args()
    counted = count(options.program, options.shared_object.resolve())
    (write if options.write else show)(options.figures, options.build, counted)


if __name__ == "__main__":
    main()
