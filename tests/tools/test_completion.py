# SPDX-License-Identifier: MIT
"""The words that bash offers for the tools, with the installed completions.

Usage: test_completion.py COMPLETIONS BUILD TOOL...

Bash must offer exactly the commands and options of a tool's help. So neither the help nor the
completion can lack one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

COMPLETIONS, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
TOOLS = {pathlib.Path(tool).name: tool for tool in sys.argv[3:]}

# A bash script that completes the last of the given words. It calls the completion function of the
# first word, as bash would.
SCRIPT = """
set -u
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
declared=$(complete -p "$1")
[[ $declared =~ -F\\ ([a-z_]+) ]]
"${BASH_REMATCH[1]}" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words, cwd=None):
    done = subprocess.run(["bash", "--norc", "-c", SCRIPT, "bash", COMPLETIONS / words[0], *words],
                          capture_output=True, text=True, check=False, timeout=60, cwd=cwd)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.splitlines()


def help_of(tool):
    return subprocess.run([TOOLS[tool], "--help"], capture_output=True, text=True,
                          check=True).stdout


def options_of(tool):
    return set(re.findall(r"(?<![\w<-])-{1,2}[a-zA-Z1][a-z]*\b", help_of(tool)))


class Completion(unittest.TestCase):
    def only(self, tool):
        if tool not in TOOLS:
            self.skipTest(f"{tool} is not built")
        return tool

    def test_installed_where_bash_looks(self):
        said = json.loads((BUILD / "meson-info" / "intro-installed.json").read_text("utf-8"))
        installed = {os.path.normpath(source): target for source, target in said.items()}
        for tool in TOOLS:
            self.assertRegex(installed[str(COMPLETIONS / tool)],
                             f"/share/bash-completion/completions/{tool}$")

    def test_options_are_those_of_the_help(self):
        for tool in TOOLS:
            with self.subTest(tool=tool):
                self.assertEqual(set(offered(tool, "-")), options_of(tool))

    def test_store(self):
        tool = self.only("timerhub-store")
        self.assertEqual(set(offered(tool, "re")), {"revive"})
        with tempfile.TemporaryDirectory() as folder:
            for name in ("orders.db", "older.db", "other.db"):
                pathlib.Path(folder, name).touch()
            self.assertEqual(sorted(offered(tool, "check", "o", cwd=folder)),
                             ["older.db", "orders.db", "other.db"])
            self.assertEqual(offered(tool, "--queue", "o", cwd=folder), [])

    def test_relay(self):
        tool = self.only("timerhub-relay")
        commands = set()
        for line in help_of(tool).splitlines():
            if match := re.match(r"  ([a-z|]+) ", line):
                commands |= set(match[1].split("|"))
            if match := re.search(r"make a queue; ([a-z]+):", line):
                commands.add(match[1])
        self.assertGreater(len(commands), 14)
        for before in ((), ("--json",), ("--redis", "unix:/nowhere", "--json")):
            self.assertEqual(set(offered(tool, *before, "")), commands, before)
        self.assertEqual(offered(tool, "--redis", ""), [])
        self.assertEqual(offered(tool, "stat", "--m"), ["--metrics"])
        self.assertEqual(offered(tool, "create", ""), [])
        self.assertEqual(offered(tool, "create", "orders", "lease"), ["lease_us="])
        self.assertEqual(offered(tool, "--json", "set", "orders", "lease_us=5", "att"),
                         ["attempts_max="])
        self.assertEqual(offered(tool, "put", "orders", "l"), [])

    def test_top(self):
        """The processes that may be watched."""
        tool = self.only("timerhub-top")
        descriptor = os.memfd_create("timerhub")
        try:
            self.assertIn(str(os.getpid()), offered(tool, ""))
            self.assertIn(str(os.getpid()), offered(tool, "-j", str(os.getpid())))
            self.assertNotIn(str(os.getppid()), offered(tool, ""))
        finally:
            os.close(descriptor)
        self.assertNotIn(str(os.getpid()), offered(tool, ""))
        self.assertEqual(offered(tool, "--interval", ""), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
