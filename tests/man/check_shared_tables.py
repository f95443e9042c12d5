#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table "who may free when" has the same words in timerhub.h and in timerhub-free(7).

Usage: check_shared_tables.py ROOT

A cell may be wrapped differently, so their order does not count. Exit status 1 if they differ.
"""

import collections
import pathlib
import re
import sys

HEAD = "the call returned"
FILES = ("include/timerhub.h", "man/timerhub-free.7")


def words_of(path):
    """From the head of the table to the end of the comment or of the literal block."""
    text = path.read_text(encoding="utf-8").replace(r"\-", "-")
    table = re.search(rf"^[ *]*({HEAD}.*?)(?:^ \*/|^ \* (?! |\[|-)|^\.Ed)", text,
                      re.MULTILINE | re.DOTALL)
    words = [word for word in table[1].split() if word.strip("*-")] if table else []
    return collections.Counter(words)


def main(root):
    ours, theirs = (words_of(root / name) for name in FILES)
    differ = (ours - theirs) + (theirs - ours)
    if differ or sum(ours.values()) < 100:
        print(f"{' and '.join(FILES)}: {sum(ours.values())} words, not in both: {sorted(differ)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
