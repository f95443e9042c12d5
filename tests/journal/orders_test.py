#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets the example orders crash a few times and then finish. The example checks its book of orders
itself.

Usage: orders_test.py ORDERS
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile

CRASHES = 3
CRASHES_MAX = 50 # on a busy machine the example may crash before it has an order


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def found(result):
    return int(re.match(r"found (\d+) orders", result.stdout)[1])


def main(arguments):
    orders = arguments[1]
    with tempfile.TemporaryDirectory() as base:
        folder = str(pathlib.Path(base, "market"))
        crashes = recovered = 0
        while crashes < CRASHES or recovered == 0:
            expect(crashes < CRASHES_MAX, "there is never anything to find again")
            result = run(orders, "--crash", folder)
            expect(result.returncode == -signal.SIGKILL, result)
            recovered += found(result)
            crashes += 1
        result = run(orders, folder)
        print(result.stdout, result.stderr)
        expect(result.returncode == 0, "its book does not add up")
        put, paid, dropped = map(int, re.search(r"(\d+) orders put, (\d+) paid, (\d+) dropped",
                                                result.stdout).groups())
        expect(put >= 500 and paid > 0 and dropped > 0, "no customer came to the market")
        # No finished order is delivered again.
        result = run(orders, folder, "1")
        expect(result.returncode == 0 and found(result) == 0, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
