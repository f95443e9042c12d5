#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the packages of tools/fedora and tools/alpine, as far as that goes on Debian.

Usage: test_fedora_alpine.py fedora|alpine SOURCE-ROOT

fedora  rpmlint finds no error in the spec file; rpmbuild makes the packages from an archive of the
        tree, with the macros of Fedora's meson and systemd in place of its packages. rpmbuild
        itself fails if a file is in no package, or is not there.
alpine  shellcheck finds nothing in the APKBUILD; its functions are run as abuild runs them, and its
        own for static, dev, libs, doc and bash-completion in short.

Each: the version is the version of meson.build, each package has the files that it is for, and the
library in it prints that version. Exit status 77, and the reason, if this machine lacks the tool.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

from test_packaging import copy_sources, project_version, run
from verdict import chosen_verdict, expect, need

# The test ignores this error of rpmlint, because the error is about the package names of another
# distribution.
NOT_FEDORA = "lib-package-without-%mklibname"
# For each package: a file that only this package contains.
TELLING = {
    "timerhub": "usr/bin/timerhub-top",
    "timerhub-libs": "libtimerhub.so.VERSION",
    "timerhub-devel": "usr/include/timerhub.hpp",
    "timerhub-journal-libs": "libtimerhub-journal.so.VERSION",
    "timerhub-journal-devel": "usr/include/timerhub_journal.h",
    "timerhub-relay-libs": "libtimerhub-relay.so.VERSION",
    "timerhub-relay-devel": "usr/include/timerhub_relay.h",
    "timerhub-relay": "usr/bin/timerhub-relay",
}
FEDORA_MACROS = {
    "meson": "meson setup --buildtype=plain --prefix=%{_prefix} --libdir=%{_libdir} "
             "--mandir=%{_mandir} --wrap-mode=nodownload . output",
    "meson_build": "meson compile -C output",
    "meson_install": "DESTDIR=%{buildroot} meson install -C output --no-rebuild",
    "_unitdir": "/usr/lib/systemd/system",
    "systemd_post()": ":",
    "systemd_preun()": ":",
    "systemd_postun()": ":",
    "debug_package": "%{nil}",
}
ALPINE_MESON = """#!/bin/sh
exec meson setup --prefix=/usr --libdir=/usr/lib --mandir=/usr/share/man --buildtype=plain \\
	--wrap-mode=nodownload "$@"
"""
# A shell script with the main steps that abuild does with an APKBUILD.
ALPINE_ABUILD = r"""
set -eu
. ./APKBUILD
startdir=$PWD
mkdir -p "$packages"
pkgdir=$packages/$pkgname
amove() {
	for pattern; do
		found=no
		for file in "$pkgdir"/$pattern; do
			[ -e "$file" ] || [ -L "$file" ] || continue
			found=yes
			mkdir -p "$subpkgdir$(dirname "${file#"$pkgdir"}")"
			mv "$file" "$subpkgdir${file#"$pkgdir"}"
		done
		[ $found = yes ] || { echo "amove: no $pattern"; exit 1; }
	done
}
static() { amove "usr/lib/*.a"; }
doc() { amove usr/share/man usr/share/licenses; }
completion() { amove usr/share/bash-completion; }
dev() { amove usr/include "usr/lib/*.so" usr/lib/pkgconfig usr/lib/cmake; }
libs() { amove "usr/lib/*.so.*"; }
build
check
package
for word in $subpackages; do
	name=${word%%:*}
	function=${name##*-}
	case $word in *:*) function=${word#*:} ;; esac
	subpkgdir=$packages/$name
	"$function"
done
find "$pkgdir" -type d -empty -delete
"""


def unpacked(root, directory, version):
    copy_sources(root, directory / f"timerhub-{version}")
    return directory / f"timerhub-{version}"


def check_packages(packages, version):
    """Of each name its files: one telling file each, and no file twice."""
    for name, telling in TELLING.items():
        telling = telling.replace("VERSION", version)
        having = [other for other, files in packages.items()
                  if any(file.endswith(telling) for file in files)]
        expect(having == [name], f"{telling} is in {having}, not in {name}")
    files = [file for files in packages.values() for file in files]
    twice = {file for file in files if files.count(file) > 1 and "licenses" not in file}
    expect(not twice, f"in two packages: {sorted(twice)}")


# ---- Fedora ----


def lint_spec(spec, home):
    """rpmlint makes a folder in the home directory: it gets one of its own."""
    done = subprocess.run(["rpmlint", spec], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env={**os.environ, "HOME": str(home)})
    expect("1 specfiles checked" in done.stdout, f"rpmlint did not look:\n{done.stdout}")
    errors = [line for line in done.stdout.splitlines() if ": E: " in line and
              NOT_FEDORA not in line]
    expect(not errors, "\n".join(errors))


def rpm_files(package):
    listed = run("rpm", "--query", "--list", "--package", package).split("\n")
    return [line for line in listed if line.startswith("/usr") and "/.build-id" not in line]


def test_fedora(root, directory):
    need("rpmbuild")
    version, spec = project_version(root), root / "tools/fedora/timerhub.spec"
    text = spec.read_text(encoding="utf-8")
    expect(re.search(rf"^Version: +{version}$", text, re.MULTILINE), f"{spec} is not of {version}")
    expect(re.search(rf"^%changelog\n\* .* - {version}-\d+$", text, re.MULTILINE),
           f"the last change in {spec} is not of {version}")
    if shutil.which("rpmlint"):
        lint_spec(spec, directory)
    top = directory / "top"
    (top / "SOURCES").mkdir(parents=True)
    with tarfile.open(top / f"SOURCES/timerhub-{version}.tar.gz", "w:gz", compresslevel=1) as tar:
        tar.add(unpacked(root, directory, version), f"timerhub-{version}")
    macros = [word for name, value in FEDORA_MACROS.items()
              for word in ("--define", f"{name} {value}")]
    run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {top}", *macros, spec)
    packages = {path.name.rsplit("-", 2)[0]: rpm_files(path) for path in top.rglob("*.rpm")}
    check_packages(packages, version)
    expect(set(packages) == set(TELLING), f"packages: {sorted(packages)}")


# ---- Alpine ----


def files_below(folder):
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()]


def test_alpine(root, directory):
    version, recipe = project_version(root), root / "tools/alpine/APKBUILD"
    expect(f"\npkgver={version}\n" in recipe.read_text(encoding="utf-8"),
           f"{recipe} is not of {version}")
    if shutil.which("shellcheck"):
        run("shellcheck", recipe)
    programs = directory / "bin"
    programs.mkdir()
    (programs / "abuild-meson").write_text(ALPINE_MESON, encoding="utf-8")
    (programs / "abuild-meson").chmod(0o755)
    tree = unpacked(root, directory, version)
    shutil.copy(recipe, tree)
    run("sh", "-c", ALPINE_ABUILD, cwd=tree,
        env={"packages": str(directory / "packages"), "PATH": f"{programs}:{os.environ['PATH']}"})
    packages = {path.name.replace("-dev", "-devel"): files_below(path)
                for path in (directory / "packages").iterdir()}
    check_packages(packages, version)
    more = set(packages) - set(TELLING)
    expect(more == {"timerhub-static", "timerhub-doc", "timerhub-bash-completion"},
           f"packages: {sorted(packages)}")
    expect(sorted(packages["timerhub"]) == ["usr/bin/timerhub-journal", "usr/bin/timerhub-top"],
           f"timerhub has {packages['timerhub']}")


TESTS = {"fedora": test_fedora, "alpine": test_alpine}


if __name__ == "__main__":
    sys.exit(chosen_verdict(TESTS, __doc__, sys.argv[1:]))
