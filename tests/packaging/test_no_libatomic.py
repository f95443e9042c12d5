#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The libraries need no libatomic: its compare-and-swap of 16 bytes may take a lock.

Usage: test_no_libatomic.py LIBRARY...

Each LIBRARY is a shared or static library of any machine. None may be linked with libatomic, and
none may call its functions. Exit status 1 if one does.
"""

import re
import subprocess
import sys


def printed(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def complaints_of(library):
    """What the library has to do with libatomic."""
    called = re.findall(r" U (__(?:atomic|sync)_\w+)", printed("nm", library))
    found = [f"{library} calls {name}" for name in sorted(set(called))]
    if "libatomic" in printed("readelf", "--dynamic", library):
        found.append(f"{library} is linked with libatomic")
    return found


def main(libraries):
    complaints = [line for library in libraries for line in complaints_of(library)]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints or not libraries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
