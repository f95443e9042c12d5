#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the workflows of .github to the scripts that they call.

Usage: test_workflows.py SOURCE-ROOT

Each file is YAML and has the shape of a workflow. Each command is a shell's, each script of this
tree that it names is there and takes the options that it is given, and each environment of
ENVIRONMENTS is a job. With actionlint and shellcheck these look too. Exit status 77 without PyYAML.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

# For each environment: a pattern that a job of some workflow must contain.
ENVIRONMENTS = {
    "Debian 12": r"debian:12",
    "Debian 13": r"debian:13",
    "a container's defaults": r"container: \S*(matrix\.image|debian:12)",
    "nothing refused": r"--privileged",
    "a plain user": r"su tester -c \./\.ci/run",
    "64 KiB of memory to lock": r"confine --memlock 65536 \./\.ci/run",
    "one processor": r"confine --processors 1 \./\.ci/run",
    "AArch64": r"\./tools/run-aarch64",
}
SCRIPT = re.compile(r"(?:^|\s)\./((?:tools|\.ci)/\S+)((?: --?\S+(?: \d+)?)*)")
SOURCE = re.compile(r"(?:^|\s)((?:tests|lib|examples)/\S+)")


class Workflows(unittest.TestCase):
    def setUp(self):
        self.paths = sorted((ROOT / ".github/workflows").iterdir())
        self.texts = {path: path.read_text(encoding="utf-8") for path in self.paths}
        self.workflows = {path: yaml.safe_load(text) for path, text in self.texts.items()}

    def steps(self):
        for path, workflow in self.workflows.items():
            for name, job in workflow["jobs"].items():
                for step in job["steps"]:
                    yield f"{path.name}: {name}", step

    def commands(self):
        return [(place, step["run"]) for place, step in self.steps() if "run" in step]

    def test_there_are_workflows_of_the_right_shape(self):
        self.assertTrue(self.paths)
        for path, workflow in self.workflows.items():
            self.assertEqual(path.suffix, ".yml")
            # YAML 1.1 reads the key `on` as the value True.
            self.assertEqual(set(workflow), {"name", True, "permissions", "concurrency", "jobs"})
            self.assertEqual(workflow["permissions"], {"contents": "read"})
            for job in workflow["jobs"].values():
                self.assertLessEqual({"runs-on", "timeout-minutes", "steps"}, set(job))

    def test_each_step_is_a_command_or_an_action_of_a_version(self):
        for place, step in self.steps():
            with self.subTest(place):
                self.assertEqual(len({"run", "uses"} & set(step)), 1, step)
                if "uses" in step:
                    self.assertRegex(step["uses"], r"^actions/[\w-]+@v\d+$")

    def test_commands_are_a_shells(self):
        self.assertTrue(self.commands())
        for place, command in self.commands():
            with self.subTest(place):
                done = subprocess.run(["bash", "-n", "-c", command], capture_output=True,
                                      text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_scripts_are_there_and_take_their_options(self):
        named = 0
        for place, command in self.commands():
            for script, options in SCRIPT.findall(command):
                with self.subTest(place, script=script):
                    named += 1
                    done = subprocess.run([ROOT / script, "--help"], capture_output=True,
                                          text=True, check=True)
                    for option in re.findall(r"--[\w-]+", options):
                        self.assertRegex(done.stdout, rf"[\s\[]{option}\s")
            for source in SOURCE.findall(command):
                with self.subTest(place, source=source):
                    self.assertTrue((ROOT / source).exists())
        self.assertGreater(named, len(ENVIRONMENTS))

    def test_each_environment_has_a_job(self):
        texts = "".join(self.texts.values())
        for name, sign in ENVIRONMENTS.items():
            with self.subTest(name):
                self.assertRegex(texts, sign)

    def test_linters_find_nothing(self):
        linter = shutil.which("actionlint")
        if not linter:
            self.skipTest("there is no actionlint here")
        done = subprocess.run([linter, *self.paths], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
