#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The libraries need no libatomic: its compare-and-swap of 16 bytes may take a lock.

Usage: test_no_libatomic.py LIBRARY...

Each LIBRARY is a shared or static library of any machine. None may be linked with libatomic, and
none may call its functions. Exit status 1 if one does.
"""

import re
import sys

from libraries import check, printed


def complaints_of(library):
    """What the library has to do with libatomic."""
    called = re.findall(r" U (__(?:atomic|sync)_\w+)", printed("nm", library))
    found = [f"{library} calls {name}" for name in sorted(set(called))]
    if "libatomic" in printed("readelf", "--dynamic", library):
        found.append(f"{library} is linked with libatomic")
    return found


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:], complaints_of))
