#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the tables that manual and header share to one text.

Usage: check_shared_tables.py ROOT

The table "who may free when" is in include/timerhub.h and in man/timerhub-free.7, with its notes. A
cell may be wrapped differently, no word may differ. Prints complaints, and exits with status 1 if
there are any. test_check_shared_tables.py plants faults.
"""

import pathlib
import re
import sys

# For each table: the head of its first column, and the files that must contain the same table.
TABLES = {
    "the call returned": ("include/timerhub.h", "man/timerhub-free.7"),
}
LITERAL = {".h": (" *   ", " *"), ".7": ("", "")}  # prefix of a line, and of a blank line


def literal_lines(path):
    """The lines of a header or a page as a reader sees a table in them."""
    prefix, empty = LITERAL[path.suffix]
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.replace(r"\-", "-")
        if line == empty:
            yield ""
        else:
            yield line[len(prefix):] if line.startswith(prefix) else None


def block(lines, head):
    """The lines from the head of a table to the first that is neither table, blank nor note."""
    found = []
    for line in lines:
        if not found and not (line or "").startswith(head):
            continue
        if line is None or line.startswith(".Ed"):
            break
        if found and found[-1] == "" and not line.startswith("["):
            break
        found.append(line)
    return found


def cells_of(line, starts):
    """Splits a line at the columns. A heading across the columns is one cell."""
    if line.endswith(":") and not re.search(r"\s{2}", line):
        return [line[:-1]]
    return [line[start:end].strip() for start, end in zip(starts, starts[1:] + [None])]


def rows_and_notes(lines):
    """A row begins where the first column is not blank; a note where a line begins with [."""
    starts = [match.start() for match in re.finditer(r"-+", lines[1])]
    rows, notes = [cells_of(lines[0], starts)], []
    for line in lines[2:]:
        cells = cells_of(line, starts)
        if line.startswith("["):
            notes.append(line)
        elif notes:
            notes[-1] += " " + line.strip()
        elif cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [f"{cell} {more}".strip() for cell, more in zip(rows[-1], cells)]
    return rows, [note for note in notes if note]


def read_table(path, head):
    lines = block(literal_lines(path), head)
    if len(lines) < 3 or not lines[1].startswith("---"):
        return None
    return rows_and_notes([line for line in lines if line])


def differences(name, theirs, first, ours):
    """The first line in which two tables differ."""
    for kind, left, right in zip(("row", "note"), ours, theirs):
        for index in range(max(len(left), len(right))):
            mine = left[index] if index < len(left) else "nothing"
            other = right[index] if index < len(right) else "nothing"
            if mine != other:
                return [f"{name}: {kind} {index}: {other} is not {first}'s {mine}"]
    return []


def check_all(root):
    complaints = []
    for head, names in TABLES.items():
        tables = {name: read_table(root / name, head) for name in names}
        complaints += [f'{name}: no table "{head}"' for name in names if not tables[name]]
        found = [name for name in names if tables[name]]
        for name in found[1:]:
            complaints += differences(name, tables[name], found[0], tables[found[0]])
    return complaints


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    complaints = check_all(pathlib.Path(arguments[0]))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
