#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the Debian packages, with lintian, and checks their names and dependencies.

Usage: test_deb.py SOURCE-ROOT

The optimizer is left out, since no file comes or goes with it. tools/run-roots installs, uses and
removes the packages. Exit status 77, and the reason, if this machine lacks a package.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from test_packaging import examples  # pylint: disable=wrong-import-position
from verdict import Skipped, Wrong, need, verdict  # pylint: disable=wrong-import-position

WANTED = {"libtimerhub0", "libtimerhub-dev", "libtimerhub-store0", "libtimerhub-store-dev",
          "libtimerhub-relay0", "libtimerhub-relay-dev", "timerhub-relay", "timerhub-tools"}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise Wrong(f"{words}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def check_machine(root):
    """build-deb would install what is missing; a test must not."""
    need("dpkg-query")
    script = f'. {shlex.quote(str(root / "tools/install_packages.sh"))}; ' \
             'packages_missing "${packages_build[@]}" "${packages_deb[@]}" ' \
             '"${packages_relay[@]}" lintian'
    missing = run("bash", "-c", script).split()
    if missing:
        raise Skipped(f"not installed: {' '.join(missing)}")


def check_packages(debs):
    names = {path.name.split("_")[0] for path in debs}
    if names != WANTED:
        raise Wrong(f"build-deb made {sorted(names)}")
    # The tools must depend on libtimerhub-store0.5, the package with the library's soname. A
    # package with the next soname must not satisfy this dependency. No library depends on another.
    store = "libtimerhub-store0.5 ("
    for name, needs in (("libtimerhub-store0", ""), ("libtimerhub-relay0", ""),
                        ("timerhub-relay", ""), ("timerhub-tools", store)):
        package = next(path for path in debs if path.name.startswith(f"{name}_"))
        depends = run("dpkg-deb", "--field", package, "Depends")
        if "libtimerhub" in depends.replace(needs, "") or needs not in depends:
            raise Wrong(f"{package.name} depends on {depends}")


def check_examples(debs, root):
    """The development package has the examples, and dh_compress has left them as they are."""
    package = next(path for path in debs if path.name.startswith("libtimerhub-dev_"))
    packed = set(re.findall(r"usr/share/doc/timerhub/(examples/.*[^/])$",
                            run("dpkg-deb", "--contents", package), re.MULTILINE))
    if packed != examples(root):
        raise Wrong(f"{package.name} has other examples: {packed ^ examples(root)}")


def test_deb(root, scratch):
    check_machine(root)
    print(run(root / "tools/build-deb", "--lintian", scratch / "debs",
              env=os.environ | {"DEB_BUILD_OPTIONS": "noautodbgsym noopt"}))
    debs = sorted((scratch / "debs").glob("*.deb"))
    check_packages(debs)
    check_examples(debs, root)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(verdict(test_deb, pathlib.Path(sys.argv[1]).resolve()))
