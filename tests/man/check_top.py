#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Watches the program of timerhub-top(1) with the tool: it shows the lines of the page.

Usage: check_top.py PAGE PROGRAM TOOL

Prints complaints, and exits with status 1 if there are any.
"""

import pathlib
import re
import subprocess
import sys

from check_man import program_and_output


def shown(tool, program):
    """Returns the tool's output about the program, after the program has printed its process id."""
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as watched:
        try:
            said = watched.stdout.readline()
            pid = re.fullmatch(r"timerhub-top (\d+)\n", said)
            if not pid:
                raise ValueError(f"the program printed {said!r}")
            return subprocess.run([tool, "-1", pid[1]], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout
        finally:
            watched.kill()


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    page, program, tool = arguments
    printed = shown(tool, program)
    # On some lines, timerhub-top prints a second column with the lateness. The page leaves out this
    # column. The test therefore compares the page's line only with the beginning of a printed line.
    missing = [line for line in program_and_output(pathlib.Path(page))[1].splitlines()
               if not re.search(rf"^{re.escape(line)}( |$)", printed, re.MULTILINE)]
    for line in missing:
        print(f"not shown: {line}")
    print(printed if missing else "", end="")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
