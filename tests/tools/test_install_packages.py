#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/install_packages.sh among stand-ins: programs of a folder that is the whole PATH.

Usage: test_install_packages.py PACKAGES.SH
"""

import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import scratch  # pylint: disable=wrong-import-position

SCRIPT = pathlib.Path()
# A stand-in for dpkg-query, which says that only the package `here` is installed.
DPKG_QUERY = 'for last; do :; done; [ "$last" = here ] && echo installed'
NEED = "packages_need here first second && echo went on"


class Machine:
    """A folder of programs, and their variables."""

    def __init__(self, folder, **programs):
        self.folder = pathlib.Path(folder)
        self.log = self.folder / "log"
        for name in ("bash", "grep"):
            os.symlink(shutil.which(name), self.folder / name)
        self.add("sleep", f'echo "sleep $*" >>{self.log}')
        for name, text in programs.items():
            self.add(name.replace("_", "-"), text)

    def add(self, name, text="true"):
        path = self.folder / name
        path.write_text(f"#!{shutil.which('bash')}\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def command(self, text):
        return ["bash", "-c", f". {shlex.quote(str(SCRIPT))}; {text}"]

    def run(self, text=NEED):
        """Without a terminal: status and output."""
        done = subprocess.run(self.command(text), stdin=subprocess.DEVNULL, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env={"PATH": str(self.folder)})
        return done.returncode, done.stdout

    def run_at_terminal(self, answer, text=NEED):
        try:
            master, slave = pty.openpty()
        except OSError as error:
            raise unittest.SkipTest(f"no terminal to be had: {error}") from error
        with subprocess.Popen(self.command(text), stdin=slave, stdout=slave, stderr=slave,
                              env={"PATH": str(self.folder)}) as process:
            os.close(slave)
            os.write(master, answer.encode())
            printed = b""
            try:
                while chunk := os.read(master, 4096):
                    printed += chunk
            except OSError:  # the other side is closed
                pass
            status = process.wait(timeout=60)
        os.close(master)
        return status, printed.decode().replace("\r\n", "\n")

    def done(self):
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


class Packages(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(dir=scratch.for_programs())
        self.addCleanup(self.scratch.cleanup)

    def machine(self, user="0", apt_get='echo "apt-get $*" >>LOG', dpkg_query=DPKG_QUERY):
        folder = tempfile.mkdtemp(dir=self.scratch.name)
        return Machine(folder, apt_get=apt_get.replace("LOG", f"{folder}/log"), id=f"echo {user}",
                       dpkg_query=dpkg_query)

    def test_all_there(self):
        machine = self.machine(dpkg_query="echo installed")
        self.assertEqual(machine.run(), (0, "went on\n"))
        self.assertEqual(machine.done(), [])

    def test_a_user_is_told_the_exact_line(self):
        machine = self.machine(user="1000")
        line = "sudo apt-get install --no-install-recommends first second\n"
        self.assertEqual(machine.run(), (1, "Packages are missing. Install them with:\n" + line))
        self.assertEqual(machine.done(), [])

    def test_root_without_a_terminal_is_told_and_not_asked(self):
        machine = self.machine()
        status, printed = machine.run()
        self.assertEqual(status, 0)
        self.assertTrue(printed.startswith("These packages are missing: first second\n"))
        self.assertTrue(printed.endswith("went on\n"))
        self.assertNotIn("[y/N]", printed)
        self.assertRegex(machine.done()[-1],
                         "^apt-get .* install -y --no-install-recommends first second$")

    def test_root_at_a_terminal_is_asked_after_being_told(self):
        for answer, installs in (("y\n", True), ("n\n", False), ("\n", False), ("\x04", False)):
            machine = self.machine()
            status, printed = machine.run_at_terminal(answer)
            self.assertRegex(printed, re.compile("missing: first second\n.*y/N", re.DOTALL))
            self.assertEqual(status, 0 if installs else 1, printed)
            self.assertEqual(bool(machine.done()), installs)
            self.assertEqual("Nothing was installed." in printed, not installs)

    def test_yes_is_not_asked_at_a_terminal(self):
        machine = self.machine()
        status, printed = machine.run_at_terminal("n\n", "packages_yes=yes; " + NEED)
        self.assertEqual(status, 0, printed)
        self.assertNotIn("[y/N]", printed)
        self.assertTrue(machine.done())

    def clang_machine(self, apt_cache):
        """Installing something brings clang 19 along, and it is then installed."""
        machine = self.machine(
            apt_get='echo "apt-get $*" >>LOG; echo "echo 19.1.7" >FOLDER/clang; '
                    'for last; do echo "$last" >>FOLDER/installed; done; '
                    'chmod +x FOLDER/clang',
            dpkg_query='for last; do :; done; grep -qx "$last" FOLDER/installed && echo installed')
        for name in ("apt-get", "dpkg-query"):
            path = machine.folder / name
            path.write_text(path.read_text(encoding="utf-8").replace("FOLDER", str(machine.folder)),
                            encoding="utf-8")
        for name in ("chmod", "sed"):
            os.symlink(shutil.which(name), machine.folder / name)
        machine.add("apt-cache", apt_cache)
        return machine

    def test_clang_comes_with_the_runtime_of_its_version(self):
        known = self.clang_machine("echo '  Depends: clang-19'; echo '  Breaks: clang-tools'")
        unknown = self.clang_machine("false")
        for machine, rounds in ((known, ["first clang libclang-rt-19-dev"]),
                                (unknown, ["first clang", "libclang-rt-19-dev"])):
            status, printed = machine.run("packages_need_clang first && echo went on")
            self.assertEqual((status, printed.splitlines()[-1]), (0, "went on"), printed)
            installed = [line.partition("--no-install-recommends ")[2]
                         for line in machine.done() if " install " in line]
            self.assertEqual(installed, rounds)

    def test_every_pause_is_announced(self):
        machine = self.machine(apt_get="false")
        status, printed = machine.run()
        self.assertEqual(status, 1)
        self.assertEqual(machine.done(), ["sleep 10", "sleep 30"])
        for pause in ("10", "30"):
            self.assertIn(f"apt-get failed; trying again in {pause} seconds\n", printed)
        self.assertIn("Could not install: first second\n", printed)

    def test_without_dpkg_it_says_what_is_not_there(self):
        machine = self.machine()
        for name in ("dpkg-query", "here"):
            (machine.folder / name).unlink(missing_ok=True)
        machine.add("here")
        machine.add("pkg-config", '[ "$2" = libuv ]')
        machine.add("cc", "grep -q stdio.h")
        machine.add("python3", '[ "$2" = "import redis" ]')
        need = ("packages_need here first ninja-build libuv1-dev liburing-dev libc6-dev libev-dev"
                " python3-redis python3-yaml && echo went on")
        status, printed = machine.run(need)
        self.assertEqual(status, 1)
        self.assertEqual(printed.splitlines()[1:], [
            "  program first (in Debian: first)", "  program ninja (in Debian: ninja-build)",
            "  library liburing (in Debian: liburing-dev)",
            "  header ev.h (in Debian: libev-dev)", "  module yaml (in Debian: python3-yaml)"])
        self.assertEqual(machine.run("packages_need here libuv1-dev python3-redis && echo went on"),
                         (0, "went on\n"))
        self.assertEqual(machine.done(), [])


if __name__ == "__main__":
    SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
