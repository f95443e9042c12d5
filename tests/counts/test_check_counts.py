#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of check_counts.py: its sums, and the differences that it reports."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import check_counts

TRACE = """\
positions: line
events: Ir

ob=/lib/libc.so.6
fl=clock.c
fn=clock_gettime
10 1000

ob=/build/libtimerhub.so.1
fl=arm_cancel.c
fn=timerhub_arm
20 7
cob=/lib/libc.so.6
cfi=clock.c
cfn=clock_gettime
calls=4 10
21 1000
fi=inbox.h
22 5

ob=/build/counted
fl=counted.c
fn=counted
30 9
cob=/build/libtimerhub.so.1
cfn=timerhub_arm
calls=4 20
31 1012

fn=inline_set
40 3
41 2
cob=/build/libtimerhub.so.1
cfi=timeouts.c
cfn=timerhub_timeout_set
calls=1 50
41 500
fi=timerhub_loop.h
50 1

fn=main
60 70
"""


class Counting(unittest.TestCase):
    def test_only_what_the_object_and_inline_functions_executed_themselves(self):
        self.assertEqual(check_counts.instructions_of("/build/libtimerhub.so.1",
                                                      io.StringIO(TRACE)), 12 + 6)

    def test_an_object_that_is_not_there(self):
        self.assertEqual(check_counts.instructions_of("/build/other.so", io.StringIO(TRACE)), 6)


class Judging(unittest.TestCase):
    def off(self, counted):
        with contextlib.redirect_stdout(io.StringIO()):
            return check_counts.judge({("b", "arm"): 100.0}, "b", {"arm": counted})

    def test_three_percent(self):
        self.assertEqual([self.off(c) for c in (96.9, 97.1, 100.0, 102.9, 103.1)],
                         [1, 0, 0, 0, 1])

    def test_an_operation_without_a_figure_and_a_figure_without_an_operation(self):
        figures = {("b", "arm"): 100.0, ("b", "gone"): 1.0, ("other", "else"): 1.0}
        with contextlib.redirect_stdout(io.StringIO()) as told:
            self.assertEqual(check_counts.judge(figures, "b", {"arm": 100.0, "new": 1.0}), 2)
        self.assertRegex(told.getvalue(), r"new +no figure: OFF\ngone +not counted: OFF\n")

    def test_figures_are_written_in_place_of_those_of_the_same_build(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "figures.txt"
            path.write_text("# a comment\nother arm 9.0\nb arm 100.0\n", encoding="utf-8")
            check_counts.write_figures(path, "b", {"arm": 50.04})
            figures, lines = check_counts.read_figures(path)
        self.assertEqual(figures, {("other", "arm"): 9.0, ("b", "arm"): 50.0})
        self.assertEqual(lines[0], "# a comment")


if __name__ == "__main__":
    unittest.main()
