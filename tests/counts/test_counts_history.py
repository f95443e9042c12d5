#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of tools/bench/counts-history, with a small repository that has a history of figures.

Usage: test_counts_history.py COUNTS_HISTORY
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TOOL = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                    pathlib.Path(__file__).parents[2] / "tools/bench/counts-history").resolve()
SVG = "{http://www.w3.org/2000/svg}"
# With these variables the user's configuration of git has no effect on the test.
WHO = {f"GIT_{role}_{what}": word for role in ("AUTHOR", "COMMITTER")
       for what, word in (("NAME", "A"), ("EMAIL", "a@example.org"))}
ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull,
               "GIT_CONFIG_NOSYSTEM": "1", **WHO}
NEW = "tests/counts/figures.txt"
OLD = "counts/figures.txt"  # its place before it moved


class History(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "-q")
        self.commit("begin", OLD, "# a comment\nb arm 100.0\nb wait 50.0\nother arm 7.0\n")
        self.commit("arm: less & less", OLD, "b arm 80.0\nb wait 50.1\nother arm 7.0\n")
        (self.root / NEW).parent.mkdir(parents=True)
        self.git("mv", OLD, NEW)
        self.git("commit", "-qm", "moved")
        self.commit("wait: more", NEW, "b arm 80.0\nb wait 75.0\nother arm 7.0\n")
        self.commit("not of the figures", "else", "b arm 1.0\n")
        self.commit("now: is counted", NEW, "b arm 80.1\nb wait 75.0\nb now 8.0\nother arm 7.0\n")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *arguments], env=ENVIRONMENT, check=True,
                       capture_output=True, timeout=60)

    def commit(self, title, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.git("add", name)
        self.git("commit", "-qm", title)

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, TOOL, *arguments, self.root], env=ENVIRONMENT,
                              text=True, capture_output=True, check=False, timeout=60)

    def rows(self, *arguments):
        """The rows of the table without the hashes."""
        told = self.run_tool(*arguments)
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        return [re.sub(r" [0-9a-f]{7,} ", " ", line).split(maxsplit=4)
                for line in told.stdout.splitlines()[1:]]

    def test_the_last_change_of_each_operation(self):
        self.assertEqual(self.rows(), [["arm", "100.0", "80.0", "-20.0%", "arm: less & less"],
                                       ["wait", "50.1", "75.0", "+49.7%", "wait: more"],
                                       ["now", "8.0", "new", "now:", "is counted"]])

    def test_another_build(self):
        self.assertEqual(self.rows("--build", "other"), [["arm", "7.0", "new", "begin"]])

    def test_no_figures(self):
        told = self.run_tool("--build", "none")
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertIn("no figures of none", told.stderr)

    def test_wrong_arguments(self):
        self.assertEqual(self.run_tool("--no-such-option").returncode, 2)

    def test_no_repository(self):
        self.root /= "nowhere"
        told = self.run_tool()
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertIn("counts-history: git log: ", told.stderr)

    def test_the_picture_cannot_be_written(self):
        told = self.run_tool("--svg", self.root / "nowhere" / "h.svg")
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stderr, r"^counts-history: .*h\.svg: No such file or directory\n$")

    def test_a_line_for_each_operation(self):
        path = self.root / "h.svg"
        self.rows("--svg", path)
        picture = xml.etree.ElementTree.parse(path).getroot()
        lines = [[tuple(map(float, place.split(","))) for place in line.get("points").split()]
                 for line in picture.iter(f"{SVG}polyline")]
        # Five commits of the small repository wrote figures.txt. Only the last commit has a figure
        # of the operation `now`.
        self.assertEqual([len(line) for line in lines], [5, 5, 1])
        arm, wait, _ = lines
        self.assertGreater(arm[1][1], arm[0][1])  # fewer instructions are lower in the picture
        self.assertLess(wait[3][1], wait[2][1])
        for line in lines:
            self.assertEqual(line, sorted(line))  # from left to right
        colours = [dot.get("fill") for dot in picture.iter(f"{SVG}circle")]
        self.assertEqual([colours.count(name) for name in ("seagreen", "firebrick", "gray")],
                         [1, 1, 9])
        words = [text.text for text in picture.iter(f"{SVG}text")]
        for said in ("arm", "wait", "now", "80.1 (-20.0%)", "75.0 (+49.7%)", "8.0"):
            self.assertIn(said, words)


class Console(unittest.TestCase):
    def test_help_and_version(self):
        for words, said in ((("--help", "-h"), "Exit status"), (("--version", "-V"), "\\d\n$")):
            told = [subprocess.run([sys.executable, TOOL, word], text=True, capture_output=True,
                                   check=True, timeout=60).stdout for word in words]
            self.assertEqual(told[0], told[1])
            self.assertRegex(told[0], said)
            self.assertIn("counts-history", told[0])
            self.assertLessEqual(len(told[0].splitlines()), 24)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
