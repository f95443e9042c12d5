# SPDX-License-Identifier: MIT
"""Runs a test in Python. The test passes, is skipped with a reason, or is wrong."""

import pathlib
import shutil
import sys
import tempfile

import scratch

SKIPPED = 77  # the exit status of a skipped test


class Wrong(Exception):
    """Says that a result differs from the result that a user may expect."""


class Skipped(Exception):
    """Says why this machine cannot run the test."""


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skipped(f"there is no {program} here")


def verdict(test, *arguments):
    """Calls `test` with the arguments and an empty folder. Returns the program's exit status."""
    try:
        with tempfile.TemporaryDirectory(dir=scratch.for_programs()) as folder:
            test(*arguments, pathlib.Path(folder))
    except Skipped as why:
        print(f"skipped: {why}")
        return SKIPPED
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


def chosen_verdict(tests, usage, arguments):
    """Takes two arguments, a key of `tests` and a path. Returns the verdict of this test, to which
    verdict() passes the absolute path. For other arguments prints `usage` and returns 2."""
    if len(arguments) != 2 or arguments[0] not in tests:
        print(usage, file=sys.stderr)
        return 2
    return verdict(tests[arguments[0]], pathlib.Path(arguments[1]).resolve())
