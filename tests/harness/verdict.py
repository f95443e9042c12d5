# SPDX-License-Identifier: MIT
"""How a test in Python ends: passed, skipped with a reason, or wrong with the difference."""

import pathlib
import shutil
import sys
import tempfile

SKIPPED = 77  # the exit status of a skipped test


class Wrong(Exception):
    """A difference from the result that a user may expect."""


class Skipped(Exception):
    """The reason why this machine cannot run the test."""


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skipped(f"there is no {program} here")


def verdict(test, *arguments):
    """Calls the test with the arguments and an empty folder. Returns the exit status."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            test(*arguments, pathlib.Path(folder))
    except Skipped as why:
        print(f"skipped: {why}")
        return SKIPPED
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0
