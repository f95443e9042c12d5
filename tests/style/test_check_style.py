#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A check that cannot fail is a defect: the rows of FAULTS change files of the tree, in memory.

Usage: test_check_style.py ROOT
"""

import pathlib
import sys

import check_style

# A file, a text in it, the text in its place ("" for the whole file's end), and the complaint.
FAULTS = [
    ("lib/base/clock.h", None, '#include "hub/hub.h"\n', "base/ may not"),
    ("lib/schedule/heap.h", None, "#include <time.h>\n", "time.h is at home in"),
    ("lib/schedule/heap.h", None, '#include "schedule/wheel.h"\n#include "schedule/schedule.h"\n',
     "a circle of includes"),
    ("lib/timer/pair.h", None, "/* [lonely] */\n", "[lonely] has only one end"),
    ("lib/timer/pair.h", None, "/* [lonely] */\n", "[lonely] is in no overview"),
    ("lib/schedule/heap.c", None, "\tprintf(1);\n", "the library never prints"),
    ("lib/schedule/heap.c", None, "\tpthread_mutex_lock(1);\n", "a lock"),
    ("lib/schedule/heap.c", None, "int f(void)\n{\n" + "\n" * 70 + "}\n", "a function of 73 lines"),
    ("lib/schedule/heap.c", None, "x" * 101 + "\n", "101 columns"),
    ("lib/schedule/heap.c", None, "\t\n", "blanks at the end"),
    ("lib/schedule/wheel.c", "SPDX-", "", "does not begin with an SPDX line"),
    ("include/timerhub.h", None, "\nTIMERHUB_API int timerhub_x(void);\n", "without a comment"),
    ("tests/unit/test_heap.c", None, "START_TEST(never_run)\n", "never_run is never added"),
    ("tests/unit/meson.build", "suite: 'unit'", "suite: 'fast'", "the suite is unit"),
    ("tests/unit/meson.build", "'heap'", "'heapless'", "test_heap.c:1: is in no meson.build"),
    ("tests/harness/hub_check.c", None, "\tLINE(no_such, 1),\n", "no_such is not in lib/README"),
]


def plant(source, old, new):
    text = "\n".join(source.lines) + "\n"
    if old is not None and old not in text:
        sys.exit(f"{source.path} has no {old}")
    source.lines = (text + new if old is None else text.replace(old, new)).splitlines()


def main(root):
    sources = check_style.read_sources(root)
    for path, old, new, _ in FAULTS:
        plant(next(one for one in sources if one.path.as_posix() == path), old, new)
    found = check_style.check_all(root, sources)
    missed = [(path, complaint) for path, _, _, complaint in FAULTS
              if not [line for line in found if complaint in line]]
    for path, complaint in missed:
        print(f"planted in {path}, and not found: {complaint}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
