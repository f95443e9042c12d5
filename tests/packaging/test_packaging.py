#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds tiny programs with timerhub as its users do, and runs them.

Usage: test_packaging.py installed|subproject|musl SOURCE-ROOT

installed   installs into a prefix of its own and checks what is there; then compiles client.c and
            client.cc against it through pkg-config, and through CMake, each shared and static.
subproject  the same programs in a meson project with timerhub in its subprojects/, each shared and
            static; by default nothing but the library is built there.
musl        the library by musl-gcc, and client.c against it, static.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CLIENTS = {"client.c": ["gcc", "-std=c11"], "client.cc": ["g++", "-std=c++17"]}
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
PARTS = ("tests", "examples", "tools", "man")


class Wrong(Exception):
    """What is not as a user may expect it."""


def run(*command, env=None, **options):
    """Runs a command in a plain environment, returns what it printed."""
    plain = {name: value for name, value in os.environ.items()
             if name in ("PATH", "HOME", "TMPDIR", "LANG", "USER")}
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True, env=plain | (env or {}), **options)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise Wrong(f"{words}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def project_version(root):
    return re.search(r"version: '([\d.]+)'", (root / "meson.build").read_text(encoding="utf-8"))[1]


def exported(root):
    return re.findall(r"^\t\t(\w+);", (root / "lib/timerhub.map").read_text(encoding="utf-8"),
                      re.MULTILINE)


def needed(program):
    """The shared libraries that a program names."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", program))


def check_client(program, version, static, env=None):
    libraries = needed(program)
    if static:
        expect(not [name for name in libraries if "timerhub" in name],
               f"{program} is linked with {libraries}")
    else:
        expect("libtimerhub.so.0" in libraries, f"{program} is linked with {libraries}")
        expect("liburing.so.2" not in libraries, f"{program} is linked with {libraries}")
    printed = run(program, env=env, timeout=60).strip()
    expect(printed == version, f"{program} printed {printed}, not {version}")


# ---- installed ----


def library_folder(prefix):
    return next(prefix.rglob("timerhub.pc")).parent.parent


def check_tree(prefix, root, version):
    """The files that an installation consists of, and no others."""
    files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}
    libraries = library_folder(prefix).relative_to(prefix).as_posix()
    wanted = {"include/timerhub.h", f"{libraries}/libtimerhub.a", f"{libraries}/libtimerhub.so",
              f"{libraries}/libtimerhub.so.0", f"{libraries}/libtimerhub.so.{version}",
              f"{libraries}/pkgconfig/timerhub.pc", "share/man/man7/timerhub.7"}
    wanted |= {"include/timerhub_journal.h", f"{libraries}/pkgconfig/timerhub-journal.pc",
               f"{libraries}/libtimerhub-journal.a", f"{libraries}/libtimerhub-journal.so",
               f"{libraries}/libtimerhub-journal.so.0",
               f"{libraries}/libtimerhub-journal.so.{version}"}
    wanted |= {f"share/man/man3/{name}.3" for name in exported(root)}
    expect(wanted <= files, f"not installed: {sorted(wanted - files)}")
    extra = {name for name in files - wanted
             if not re.match(r"bin/timerhub-\w+$|share/man/man[18]/timerhub-", name)}
    expect(not extra, f"installed too: {sorted(extra)}")
    for name in wanted:
        expect((prefix / name).exists(), f"{name} leads nowhere")


def check_shared_library(prefix):
    dynamic = run("readelf", "--dynamic", library_folder(prefix) / "libtimerhub.so")
    expect("[libtimerhub.so.0]" in dynamic, f"no soname 0:\n{dynamic}")
    expect("RPATH" not in dynamic and "RUNPATH" not in dynamic, f"a path is built in:\n{dynamic}")


def check_pkg_config(env):
    def ask(*options):
        return run("pkg-config", *options, "timerhub", env=env).split()

    expect("-ltimerhub" in ask("--libs"), "no -ltimerhub")
    expect("-luring" not in ask("--libs"), "liburing is for static programs only")
    expect("-luring" in ask("--static", "--libs"), "a static program is not told of liburing")


def build_clients(directory, here, version, env):
    """Compiles and runs the clients by hand, as the README says."""
    for source, compiler in CLIENTS.items():
        for static in (False, True):
            options = ["--cflags", "--libs"] + (["--static"] if static else [])
            flags = run("pkg-config", *options, "timerhub", env=env).split()
            program = directory / f"{source.replace('.', '_')}{'_static' if static else ''}"
            run(*compiler, *WARNINGS, here / source, "-o", program,
                *(["-static"] if static else []), *flags)
            check_client(program, version, static, env)


def build_with_cmake(directory, here, version, env):
    run("cmake", "-S", here / "cmake", "-B", directory, env=env)
    run("cmake", "--build", directory, env=env)
    for name in ("client_c", "client_cc"):
        check_client(directory / name, version, False, env)
        check_client(directory / f"{name}_static", version, True, env)


def test_installed(root, directory):
    here, version, prefix = root / "tests/packaging", project_version(root), directory / "prefix"
    run("meson", "setup", directory / "build", root, f"--prefix={prefix}", "-Dbuildtype=debug",
        "-Dtests=false", "-Dexamples=false", "-Dtools=false")
    run("meson", "install", "-C", directory / "build", "--quiet")
    check_tree(prefix, root, version)
    check_shared_library(prefix)
    env = {"PKG_CONFIG_PATH": str(library_folder(prefix) / "pkgconfig"),
           "LD_LIBRARY_PATH": str(library_folder(prefix))}
    check_pkg_config(env)
    build_clients(directory, here, version, env)
    build_with_cmake(directory / "cmake", here, version, env)
    # A packager stages elsewhere; pkg-config finds it through a sysroot.
    stage = directory / "stage"
    run("meson", "install", "-C", directory / "build", "--quiet", "--no-rebuild",
        env={"DESTDIR": str(stage)})
    staged = stage / prefix.relative_to("/")
    check_tree(staged, root, version)
    env = {"PKG_CONFIG_PATH": str(library_folder(staged) / "pkgconfig"),
           "PKG_CONFIG_SYSROOT_DIR": str(stage), "LD_LIBRARY_PATH": str(library_folder(staged))}
    shutil.rmtree(prefix)  # nothing may be found there
    build_clients(directory, here, version, env)


# ---- subproject ----


def copy_sources(root, target):
    def builds(folder, names):
        return [name for name in names
                if name.startswith(".") or (pathlib.Path(folder) / name / "meson-info").is_dir()
                or name.startswith("build-")]

    shutil.copytree(root, target, ignore=builds, symlinks=True)


def check_targets(build):
    """Of timerhub nothing but the libraries is built by default, and nothing of it is a test."""
    def ask(what):
        return json.loads(run("meson", "introspect", build, what))

    names = {target["name"] for target in ask("--targets") if target["build_by_default"]}
    expect(names == {"timerhub", "timerhub-journal", "client_c", "client_cc"},
           f"built by default: {sorted(names)}")
    tests = [test["name"] for test in ask("--tests")]
    expect(not tests, f"tests: {tests}")
    installed = [path for path in ask("--installed").values() if "/man/" in path]
    expect(not installed, f"installed: {installed}")


def test_subproject(root, directory):
    version, project = project_version(root), directory / "project"
    shutil.copytree(root / "tests/packaging/subproject", project)
    for source in CLIENTS:
        shutil.copy(root / "tests/packaging" / source, project)
    copy_sources(root, project / "subprojects/timerhub")
    for library in ("shared", "static"):
        build = project / f"build-{library}"
        printed = run("meson", "setup", build, project, f"-Dtimerhub:default_library={library}",
                      "-Dbuildtype=debug")
        for part in PARTS:
            expect(re.search(rf"^ +{part} *: NO$", printed, re.MULTILINE),
                   f"the summary does not say that {part} is off:\n{printed}")
        check_targets(build)
        run("ninja", "-C", build)
        for name in ("client_c", "client_cc"):
            check_client(build / name, version, library == "static")
    # Who asks for more gets it.
    run("meson", "setup", project / "build-more", project, "-Dtimerhub:examples=true")
    run("ninja", "-C", project / "build-more", "subprojects/timerhub/examples/hello_timer")


# ---- musl ----


def test_musl(root, directory):
    """
    musl-tools brings musl's own headers alone: those of the kernel and of liburing are taken from
    the system, after musl's. liburing itself needs nothing of glibc; only its static library is
    of use, since the shared one names glibc.
    """
    version, prefix = project_version(root), directory / "prefix"
    triplet = run("gcc", "-print-multiarch").strip()
    headers = ["-idirafter/usr/include", f"-idirafter/usr/include/{triplet}"]
    run("meson", "setup", directory / "build", root, f"--prefix={prefix}", "-Dbuildtype=debug",
        "-Ddefault_library=static", "-Dprefer_static=true", "-Dwerror=true", "-Dtests=false",
        "-Dexamples=false", "-Dtools=false", f"-Dc_args={' '.join(headers)}",
        env={"CC": "musl-gcc"})
    run("meson", "install", "-C", directory / "build", "--quiet")
    uring = run("gcc", "-print-file-name=liburing.a").strip()
    program = directory / "client"
    run("musl-gcc", "-std=c11", *WARNINGS, "-static", f"-I{prefix / 'include'}",
        root / "tests/packaging/client.c", library_folder(prefix) / "libtimerhub.a", uring,
        "-o", program)
    check_client(program, version, static=True)


TESTS = {"installed": test_installed, "subproject": test_subproject, "musl": test_musl}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in TESTS:
        print(__doc__, file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        try:
            TESTS[arguments[0]](pathlib.Path(arguments[1]).resolve(), pathlib.Path(directory))
        except Wrong as wrong:
            print(wrong, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
