# SPDX-License-Identifier: MIT
"""timerhub-top finds the names of functions, wherever their symbols are, and never a wrong one.

Usage: test_function_names.py NAME_FUNCTIONS NAMED NAMED_WITHOUT_PIE LIBRARY OTHER_LIBRARY

NAMED prints addresses of its functions (named.c), and NAME_FUNCTIONS names them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import scratch  # pylint: disable=wrong-import-position

NAMER, NAMED, FIXED, LIBRARY, OTHER = sys.argv[1:6]
NAMES = ["static_function", "exported_function", "name_in_library"]
# setpriv takes away what the kernel wants of a reader of /proc/PID/map_files
UNPRIVILEGED = ["setpriv", "--bounding-set", "-checkpoint_restore,-sys_admin",
                "--inh-caps", "-checkpoint_restore,-sys_admin"]


class Program:
    def __init__(self, *command, namer=()):
        self.command, self.namer_command = command, namer

    def __enter__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.process = subprocess.Popen(self.command, **pipes)
        self.addresses = self.process.stdout.readline().split()
        assert len(self.addresses) == 3, self.command
        self.namer = subprocess.Popen([*self.namer_command, NAMER, str(self.process.pid)], **pipes)
        return self

    def __exit__(self, *_):
        for process in (self.namer, self.process):
            process.stdin.close()
            process.wait()
            process.stdout.close()

    def load(self, library):
        self.process.stdin.write(f"{library}\n")
        self.addresses = self.process.stdout.readline().split()

    def name(self, address):
        self.namer.stdin.write(f"{address}\n")
        return self.namer.stdout.readline().strip()

    def names(self):
        return [self.name(address) for address in self.addresses]


def can(*command):
    return bool(shutil.which(command[0])) and subprocess.run(
        command, capture_output=True, check=False).returncode == 0


NAMESPACE = ["unshare", "--map-root-user", "--mount"]


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=scratch.for_programs())
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def copy(self, program, name, *strip):
        to = self.folder / name
        shutil.copy(program, to)
        if strip:
            subprocess.run(["strip", *strip, to], check=True)
        return to

    def test_pie_and_shared_library(self):
        with Program(NAMED, LIBRARY) as program:
            self.assertEqual(program.names(), NAMES)

    def test_program_at_a_fixed_address(self):
        with Program(FIXED, LIBRARY) as program:
            self.assertEqual(program.names(), NAMES)

    def test_an_address_inside_a_function_is_no_function(self):
        with Program(NAMED, LIBRARY) as program:
            self.assertRegex(program.name(int(program.addresses[0]) + 1),
                             rf"^{os.path.basename(NAMED)}\+0x[0-9a-f]+$")
            self.assertEqual(program.name(4), "0x4")

    def test_stripped_without_debugging_symbols(self):
        """A stripped program still has the symbols of what it exports, and no others."""
        with Program(self.copy(NAMED, "bare", "--strip-all"),
                     self.copy(LIBRARY, "bare.so", "--strip-all")) as program:
            static, exported, library = program.names()
            self.assertRegex(static, r"^bare\+0x[0-9a-f]+$")
            self.assertEqual(exported, "exported_function")
            self.assertRegex(library, r"^bare\.so\+0x[0-9a-f]+$")

    def test_another_library_at_the_same_place(self):
        with Program(NAMED, LIBRARY) as program:
            self.assertEqual(program.names(), NAMES)
            before = program.addresses[2]
            program.load(OTHER)
            self.assertEqual(program.names()[2], "name_in_the_other")
            if program.addresses[2] != before:
                print("the other library is at another place, so less is tested")

    def test_a_file_replaced_under_its_path(self):
        """A new version is installed while the old one runs."""
        library = self.copy(LIBRARY, "library.so")
        with Program(NAMED, library) as program:
            fresh = self.copy(OTHER, "fresh.so")
            os.rename(fresh, library)
            # Who may open the mapping itself finds the old version, others nothing.
            self.assertRegex(program.names()[2], r"^(name_in_library|library\.so.*\+0x[0-9a-f]+)$")

    @unittest.skipUnless(can(*UNPRIVILEGED, "true"), "setpriv may not take privileges away")
    def test_a_file_replaced_without_the_privilege_to_open_mappings(self):
        library = self.copy(LIBRARY, "library.so")
        with Program(NAMED, library, namer=UNPRIVILEGED) as program:
            os.rename(self.copy(OTHER, "fresh.so"), library)
            self.copy(OTHER, "library.so (deleted)")  # as the kernel calls the file that is gone
            self.assertEqual(program.names()[:2], NAMES[:2])
            self.assertNotIn("name_in", program.names()[2])

    def make_root(self):
        """Returns a folder to be the root of another mount namespace, and how to enter it.

        The programs in it are stripped, and their symbols are under its own /usr/lib/debug.
        """
        root = self.folder / "root"
        for name in ("lib", "lib64", "app", "old"):
            (root / name).mkdir(parents=True)
        for program, name in ((NAMED, "named"), (LIBRARY, "library.so")):
            copy = root / "app" / name
            shutil.copy(program, copy)
            notes = subprocess.run(["readelf", "--notes", copy], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout
            build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
            debug = root / "usr/lib/debug/.build-id" / build_id[:2] / (build_id[2:] + ".debug")
            debug.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["objcopy", "--only-keep-debug", copy, debug], check=True)
            subprocess.run(["strip", "--strip-all", copy], check=True)
        folders = [name for name in ("lib", "lib64") if os.path.isdir(f"/{name}")]
        binds = "".join(f"mount --bind /{name} {root}/{name} && " for name in folders)
        return [*NAMESPACE, "sh", "-c",
                f"mount --bind {root} {root} && cd {root} && {binds}"
                "pivot_root . old && exec /app/named /app/library.so"]

    @unittest.skipUnless(can(*NAMESPACE, "true"), "no mount namespace may be made")
    def test_another_mount_namespace_with_debugging_symbols_by_build_id(self):
        command = self.make_root()
        for namer in ((), UNPRIVILEGED) if can(*UNPRIVILEGED, "true") else ((),):
            with self.subTest(namer=namer), Program(*command, namer=namer) as program:
                self.assertEqual(program.names(), NAMES)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:])
