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


def show(figures, build, counted):
    wanted = {operation: figure for (of, operation), figure in figures.items() if of == build}
    print(f"{build}: instructions an operation, the figure, growth")
    for operation, instructions in counted.items():
        figure = wanted.get(operation)
        growth = f"{figure:10.1f}{instructions / figure - 1:+9.1%}" if figure else ""
        print(f"{operation:24}{instructions:10.1f}{growth}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("build")
    parser.add_argument("program")
    parser.add_argument("shared_object", type=pathlib.Path)
    options = parser.parse_args()
    counted = count(options.program, options.shared_object.resolve())
    if options.write:
        write_figures(options.figures, options.build, counted)
    else:
        show(read_figures(options.figures)[0], options.build, counted)


if __name__ == "__main__":
    main()
