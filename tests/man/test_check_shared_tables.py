#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants faults in shared tables, and expects check_shared_tables.py to report each fault."""

import pathlib
import tempfile
import unittest

import check_shared_tables

FREE = """the call returned  one-shot    periodic
-----------------  ----------  --------
dispatch, alone:
cancel: 0          free        free [1]
cancel: -ENOENT    free after  do not
                   the batch   free

[1] Inside the callback
    too.
[2] Another note.
"""
def commented(text):
    return "".join(" *   " + line + "\n" if line else " *\n" for line in text.splitlines())


PAGE = "man/timerhub-free.7"
GOOD = {
    "include/timerhub.h": "/*\n * Before.\n *\n" + commented(FREE) + " *\n * After.\n */\n",
    "man/timerhub-free.7": ".Sh ALL CASES\n.Bd -literal\n" + FREE.replace("-E", r"\-E") +
                           ".Ed\n.Pp\nAfter.\n",
}


class Planted(unittest.TestCase):
    def complaints(self, name=None, old="", new=""):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in GOOD.items():
                if path == name:
                    self.assertIn(old, text)
                    text = text.replace(old, new)
                (pathlib.Path(folder) / path).parent.mkdir(exist_ok=True)
                (pathlib.Path(folder) / path).write_text(text, encoding="utf-8")
            return check_shared_tables.check_all(pathlib.Path(folder))

    def fault(self, expected, *change):
        complaints = self.complaints(*change)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(expected, complaints[0])

    def test_good_is_fine(self):
        self.assertEqual(self.complaints(), [])

    def test_a_word_differs(self):
        self.fault("timerhub-free.7: row 3", PAGE, "the batch", "the loop")
        self.fault("timerhub-free.7: row 2", PAGE, "cancel: 0 ", "cancel: 1 ")
        self.fault("timerhub-free.7: row 2", "include/timerhub.h", "cancel: 0 ", "cancel: 1 ")

    def test_a_row_or_a_group_is_missing(self):
        self.fault("timerhub-free.7: row 2", PAGE, "cancel: 0          free        free [1]\n", "")
        self.fault("timerhub-free.7: row 1", PAGE, "dispatch, alone:\n", "")

    def test_a_cell_is_under_another_column(self):
        self.fault("timerhub-free.7: row 2", PAGE, "free        free [1]", "free [1]    free")

    def test_a_note_differs_or_is_missing(self):
        self.fault("timerhub-free.7: note 0", PAGE, "    too.\n", "    also.\n")
        self.fault("timerhub-free.7: note 1", PAGE, "[2] Another note.\n", "")
        self.fault("timerhub-free.7: note 1", PAGE, "Another", "One")

    def test_a_table_is_missing(self):
        for name, text in GOOD.items():
            with self.subTest(name):
                self.assertIn(f'{name}: no table "the call returned"',
                              self.complaints(name, text, "nothing\n"))


if __name__ == "__main__":
    unittest.main()
