#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes releases of copies of the tree, and holds them to what tools/release promises.

Usage: test_release.py SOURCE-ROOT

Each copy is a repository of its own in a temporary folder, with a CHANGELOG.md that is ready, and a
stand-in for tools/run-tests. Exit status 77, and the reason, if this machine lacks a program.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

NEEDS = ("git", "mandoc", "cmark-gfm", "sha256sum")
ENVIRONMENT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
               "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "TZ": "UTC",
               "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
               "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}


def run(*command, expected=0, **environment):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False,
                          env=os.environ | ENVIRONMENT | environment)
    if done.returncode != expected:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def left_out(folder, names):
    """Of a checkout: what is not in the repository."""
    return [name for name in names if name in (".git", "__pycache__")
            or (pathlib.Path(folder) / name / "meson-info").is_dir()
            or (pathlib.Path(folder) == ROOT and name.startswith("build"))]


class Copy:
    """A repository with one commit, which is ready for its release."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
        self.edit("CHANGELOG.md", rf"^## {re.escape(VERSION)} \(.*\)$",
                  f"## {VERSION} (2026-01-02)")
        self.stand_in("exit 0")
        run("git", "init", "--quiet", "--initial-branch=main", folder)
        self.commit()
        run("git", "-C", folder, "branch", "ready")

    def make_ready(self):
        """Undoes the changes, commits and tags of a test."""
        run("git", "-C", self.folder, "reset", "--quiet", "--hard", "ready")
        run("git", "-C", self.folder, "clean", "-dffqx")
        for tag in self.tags():
            run("git", "-C", self.folder, "tag", "--delete", tag)

    def edit(self, path, pattern, text):
        before = (self.folder / path).read_text(encoding="utf-8")
        after, count = re.subn(pattern, text, before, flags=re.MULTILINE)
        assert count == 1, (path, pattern)
        (self.folder / path).write_text(after, encoding="utf-8")

    def stand_in(self, command):
        """For the tests, which take minutes."""
        (self.folder / "tools/run-tests").write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")

    def commit(self):
        run("git", "-C", self.folder, "add", "--all")
        run("git", "-C", self.folder, "commit", "--quiet", "--message=all")

    def release(self, *options, expected=0, **environment):
        return run(self.folder / "tools/release", *options, expected=expected, **environment)

    def tags(self):
        return run("git", "-C", self.folder, "tag", "--list").split()


class Release(unittest.TestCase):
    # One copy serves all tests, because hundreds of new files for each test would take longer than
    # the test.
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.copy = Copy(pathlib.Path(scratch.name) / "copy")

    def setUp(self):
        self.copy.make_ready()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.output = self.scratch / "output"

    def refused(self, reason, *options):
        said = self.copy.release("--output", self.output, *options, VERSION, expected=1)
        self.assertRegex(said, rf"no release: .*{reason}")
        self.assertFalse(self.output.exists())
        self.assertNotIn(f"v{VERSION}", self.copy.tags())

    def test_two_archives_of_a_commit_are_the_same(self):
        other = Copy(self.scratch / "the other place")
        before = os.umask(0o077)
        try:
            other.release("--dry-run", "--output", self.scratch / "second", VERSION,
                          TZ="Asia/Tokyo", LC_ALL="C.UTF-8", SOURCE_DATE_EPOCH="1")
        finally:
            os.umask(before)
        self.copy.release("--dry-run", "--output", self.output, VERSION)
        names = sorted(path.name for path in self.output.iterdir())
        self.assertEqual(names, ["APKBUILD", "SHA256SUMS", f"timerhub-{VERSION}.spdx.json",
                                 f"timerhub-{VERSION}.tar.gz"])
        for name in names:
            self.assertEqual((self.output / name).read_bytes(),
                             (self.scratch / "second" / name).read_bytes(), name)
        self.assertEqual(self.copy.tags(), [])

    def test_what_is_in_it(self):
        self.copy.release("--dry-run", "--output", self.output, VERSION)
        run("sh", "-c", f"cd '{self.output}' && sha256sum --check --strict SHA256SUMS")
        archive = self.output / f"timerhub-{VERSION}.tar.gz"
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            begin = f"timerhub-{VERSION}/"
            files = {member.name.removeprefix(begin): tar.extractfile(member).read()
                     for member in members}
            tar.extractall(self.scratch / "unpacked")
        tracked = run("git", "-C", self.copy.folder, "ls-files").split("\n")[:-1]
        self.assertLess(200, len(tracked))
        self.assertEqual(sorted(name for name in files if not name.startswith("html/")),
                         sorted(tracked))
        for name in ("index.html", "man/timerhub.7.html", "style.css"):
            self.assertIn(f"html/{name}", files)
        self.assertEqual({(member.mtime, member.uid, member.gid) for member in members},
                         {(1700000000, 0, 0)})
        self.assertEqual({oct(member.mode) for member in members}, {"0o755", "0o644"})
        self.check_list(files, archive)
        recipe = (self.output / "APKBUILD").read_text(encoding="utf-8")
        self.assertIn(f"{hashlib.sha512(archive.read_bytes()).hexdigest()}  {archive.name}\n",
                      recipe)
        run("sh", "-n", self.output / "APKBUILD")
        run("meson", "setup", self.scratch / "build",
            self.scratch / f"unpacked/timerhub-{VERSION}")

    def check_list(self, files, archive):
        """The list of contents is that of the archive."""
        listed = json.loads((self.output / f"timerhub-{VERSION}.spdx.json").read_text("utf-8"))
        self.assertEqual((listed["spdxVersion"], listed["dataLicense"]), ("SPDX-2.3", "CC0-1.0"))
        self.assertRegex(listed["creationInfo"]["created"], r"^2023-11-14T22:13:20Z$")
        sums = {entry["fileName"].removeprefix("./"):
                {one["algorithm"]: one["checksumValue"] for one in entry["checksums"]}
                for entry in listed["files"]}
        self.assertEqual(sums, {name: {"SHA1": hashlib.sha1(content).hexdigest(),
                                       "SHA256": hashlib.sha256(content).hexdigest()}
                                for name, content in files.items()})
        package, = listed["packages"]
        self.assertEqual(package["checksums"][0]["checksumValue"],
                         hashlib.sha256(archive.read_bytes()).hexdigest())
        names = {entry["SPDXID"] for entry in listed["files"]}
        self.assertEqual(len(names), len(files))
        contained = {relation["relatedSpdxElement"] for relation in listed["relationships"]
                     if relation["relationshipType"] == "CONTAINS"}
        self.assertEqual(contained, names)

    def test_a_release_is_tagged_once(self):
        self.copy.release("--output", self.output, VERSION)
        self.assertEqual(self.copy.tags(), [f"v{VERSION}"])
        kind = run("git", "-C", self.copy.folder, "cat-file", "-t", f"v{VERSION}")
        self.assertEqual(kind, "tag\n")
        said = self.copy.release("--output", self.scratch / "again", VERSION, expected=1)
        self.assertIn(f"there is a tag v{VERSION} already", said)

    def test_failed_tests_are_no_release(self):
        self.copy.stand_in("exit 1")
        self.copy.commit()
        self.refused("tools/run-tests failed")

    def test_what_the_tests_leave_behind_is_no_release(self):
        self.copy.stand_in('touch "$(dirname "$0")/left"')
        self.copy.commit()
        self.refused("not committed")

    def test_changes_are_no_release(self):
        (self.copy.folder / "new").touch()
        self.refused("not committed", "--dry-run")

    def test_each_place_names_the_version(self):
        for path, pattern, text in (
                ("CHANGELOG.md", r" \(2026-01-02\)$", " (unreleased)"),
                ("meson.build", rf"version: '{re.escape(VERSION)}'", "version: '9.9.9'"),
                ("tools/debian/changelog", r"\A(timerhub) \(.*\)", r"\1 (9.9.9-1)"),
                ("tools/fedora/timerhub.spec", r"^(Version: +).*$", r"\g<1>9.9.9"),
                ("tools/alpine/APKBUILD", r"^pkgver=.*$", "pkgver=9.9.9")):
            with self.subTest(path):
                kept = (self.copy.folder / path).read_bytes()
                self.copy.edit(path, pattern, text)
                self.copy.commit()
                self.refused(f"{path} does not name {VERSION}", "--dry-run")
                (self.copy.folder / path).write_bytes(kept)
                self.copy.commit()

    def test_wrong_calls(self):
        for options in ([], ["1"], ["--no-such-option", VERSION], [VERSION, VERSION],
                        [f"v{VERSION}"]):
            self.copy.release(*options, expected=2)
        self.assertIn("Usage: tools/release", self.copy.release("--help"))


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    VERSION = re.search(r"^  version: '(.*)',$", (ROOT / "meson.build").read_text("utf-8"),
                        re.MULTILINE)[1]
    missing = [program for program in NEEDS if not shutil.which(program)]
    if missing:
        print(f"skipped: there is no {', '.join(missing)} here")
        sys.exit(77)
    unittest.main()
