#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the notes of the library's static probes, as bpftrace and perf do.

Usage: test_probes.py yes|no LIBRARY PAGE

yes  the library has the probes of the table in the manual page, with as many arguments each, and
     none inside timerhub_rearm(), whose plain case may not pay for one
no   it has none
"""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def probes_of(library):
    notes = run("readelf", "--notes", "--wide", library)
    found = re.findall(r"Provider: timerhub\s+Name: (\w+)\s+Location: 0x(\w+),.*\s+Arguments:(.*)",
                       notes)
    return [(name, int(place, 16), arguments.count("@")) for name, place, arguments in found]


def table_of(page):
    with open(page, encoding="utf-8") as file:
        rows = re.findall(r"^\.It Li (\w+)\n([\w, ]+): ", file.read(), re.MULTILINE)
    return {name: len(arguments.split(",")) for name, arguments in rows}


def extent_of(library, function):
    symbols = run("readelf", "--syms", "--wide", library)
    row = re.search(rf"^ *\d+: (\w+) +(\d+) FUNC .* {function}(@.*)?$", symbols, re.MULTILINE)
    begin = int(row[1], 16)
    return range(begin, begin + int(row[2]))


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("yes", "no"):
        print(__doc__, file=sys.stderr)
        return 2
    wanted, library, page = arguments
    probes = probes_of(library)
    if wanted == "no":
        if probes:
            print(f"{library} has probes: {probes}")
        return 1 if probes else 0
    there, table = {name: count for name, _, count in probes}, table_of(page)
    if there != table or not table:
        print(f"{library} has {there}, and {page} tells of {table}")
        return 1
    inside = [name for name, place, _ in probes if place in extent_of(library, "timerhub_rearm")]
    if inside:
        print(f"inside timerhub_rearm: {inside}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
