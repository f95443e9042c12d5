# SPDX-License-Identifier: MIT
"""Every tool prints its help on one screen, and its version. Its page has the exit statuses.

Usage: test_help_and_version.py ROOT [TOOL...]

The scripts tools/run-* have no page. Their help has the exit status.
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
TOOLS = [pathlib.Path(tool) for tool in sys.argv[2:]]
SCRIPTS = sorted((ROOT / "tools").glob("run-*"))
OTHER_SCRIPTS = [ROOT / "tools" / name
                 for name in ("abi", "amalgamate", "build-site")]
LINES, COLUMNS = 24, 80
VERSION = re.search(r"^  version: '(.*)',$", (ROOT / "meson.build").read_text("utf-8"), re.M)[1]


def run(*command, **how):
    return subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          check=False, timeout=60, **{"stdout": subprocess.PIPE, **how})


def statuses_of_help(text):
    return set(re.findall(r"\b\d\b", text[text.index("Exit status:"):]))


def statuses_of_page(page):
    text = page.read_text("utf-8")
    section = re.search(r"^\.Sh EXIT STATUS\n(.*?)(?=^\.Sh )", text, re.M | re.S)
    return set(re.findall(r"^\.It (\d)$", section[1], re.M)) if section else set()


class Console(unittest.TestCase):
    def every(self, check):
        self.assertTrue(TOOLS and SCRIPTS)
        for program in TOOLS + SCRIPTS:
            with self.subTest(program=program.name):
                check(program)

    def test_help_fits_a_screen(self):
        self.every(self.check_help)

    def check_help(self, program):
        told = run(program, "--help")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        lines = told.stdout.expandtabs().splitlines()
        self.assertLessEqual(len(lines), LINES)
        self.assertLessEqual(max(map(len, lines)), COLUMNS)
        self.assertIn(program.name, told.stdout)
        self.assertRegex(told.stdout, "[Ee]xit\\s+status")
        self.assertEqual(run(program, "-h").stdout, told.stdout)

    def test_version(self):
        self.every(lambda program: self.assertEqual(
            [run(program, word).stdout for word in ("--version", "-V")],
            [f"{program.name} {VERSION}\n"] * 2))

    def test_behind_other_words(self):
        words = {"timerhub-relay": (["--redis", "x"], ["--json", "stat"], ["--count", "3", "top"]),
                 "timerhub-store": (["list"], ["x", "move", "1"]),
                 "timerhub-top": (["-j"], ["--interval", "2"], ["1"])}
        for tool in TOOLS:
            for before in words[tool.name]:
                with self.subTest(tool=tool.name, before=before):
                    for word in ("--help", "-h", "--version", "-V"):
                        told = run(tool, *before, word)
                        self.assertEqual((told.returncode, told.stdout, told.stderr),
                                         (0, run(tool, word).stdout, ""))

        for script in SCRIPTS + OTHER_SCRIPTS:
            with self.subTest(script=script.name):
                self.assertEqual(run(script, "x", "--version").stdout,
                                 f"{script.name} {VERSION}\n")
                self.assertEqual(run(script, "x", "--help").returncode, 0)

    def test_page_has_the_exit_statuses(self):
        for tool in TOOLS:
            with self.subTest(tool=tool.name):
                named = statuses_of_help(run(tool, "--help").stdout)
                self.assertIn("2", named)
                self.assertEqual(statuses_of_page(ROOT / "man" / f"{tool.name}.1"), named)
                self.assertEqual(run(tool, "--no-such-option").returncode, 2)

    def test_output_that_cannot_be_written(self):
        for tool in TOOLS:
            with self.subTest(tool=tool.name), open("/dev/full", "w", encoding="utf-8") as full:
                told = run(tool, "--version", stdout=full)
                self.assertIn(told.returncode, (1, 3))
                self.assertEqual(told.stderr, f"{tool.name}: standard output: No space left on "
                                              "device\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
