# SPDX-License-Identifier: MIT
"""The words that bash offers for the tools, with the installed completion.

Usage: test_completion.py COMPLETION BUILD WATCHED TOOL...

The completion reads the help, so this test names some words that must be offered, and counts them.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from watched import Watched

OBSERVABLE = 2
COMPLETION, BUILD, Watched.program = sys.argv[1:4]
TOOLS = {pathlib.Path(tool).name: pathlib.Path(tool).resolve() for tool in sys.argv[4:]}

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


def offered(tool, *words):
    path = f"{TOOLS[tool].parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "--norc", "-c", SCRIPT, "bash", COMPLETION, tool, *words],
                          capture_output=True, text=True, check=False, timeout=60,
                          env=os.environ | {"PATH": path})
    assert done.returncode == 0 and done.stderr == "", done
    return set(done.stdout.splitlines())


class Completion(unittest.TestCase):
    def only(self, tool):
        if tool not in TOOLS:
            self.skipTest(f"{tool} is not built")
        return tool

    def test_installed_where_bash_looks(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--tags", "completion",
                            "--destdir", folder], check=True, stdout=subprocess.DEVNULL)
            installed = pathlib.Path(folder).rglob("share/bash-completion/completions/*")
            self.assertEqual({path.name for path in installed}, set(TOOLS))

    def test_store(self):
        tool = self.only("timerhub-store")
        self.assertEqual(offered(tool, ""), {"put", "list", "show", "cancel", "move", "revive",
                                             "stat", "check"})
        self.assertEqual(offered(tool, "-"),
                         {"--queue", "--json", "--ns", "--metrics", "--key", "--replace",
                          "--interval", "--help", "-h", "--version", "-V"})
        for words in (("--queue", "l"), ("check", "l")):
            self.assertEqual(offered(tool, *words), set(), words)
        self.assertEqual(offered(tool, "--json", "li"), {"list"})

    def test_relay(self):
        tool = self.only("timerhub-relay")
        for before in ((), ("--json",), ("--redis", "unix:/nowhere", "--json")):
            self.assertEqual(len(offered(tool, *before, "")), 18, before)
        self.assertEqual(offered(tool, "pa"), {"parked", "pause"})
        self.assertEqual(offered(tool, "stat", "--m"), {"--metrics"})
        for words in (("--redis", ""), ("put", "orders", "l")):
            self.assertEqual(offered(tool, *words), set(), words)

    def test_top(self):
        """The processes that may be watched."""
        tool = self.only("timerhub-top")
        self.assertEqual(offered(tool, "--w"), {"--watch"})
        self.assertEqual(offered(tool, "--interval", ""), set())
        with Watched() as process:
            self.assertNotIn(str(process.pid), offered(tool, ""))
            process.ok(f"hub m {OBSERVABLE} 10")
            for before in ((), ("-j",), ("-j", str(os.getpid()))):
                self.assertIn(str(process.pid), offered(tool, *before, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
