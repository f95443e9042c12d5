#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles what tools/amalgamate writes as a user does, by each compiler that is here.

Usage: test_amalgamation.py SOURCE-ROOT

With the warnings of the project's own build and more, as errors, with io_uring and without; by
musl-gcc too. The object has no global name but the public ones, and nothing of libatomic. With it
the example hello_timer and client.c are built, and run. The server of README is built. meson.build
links programs of the laws with it.
"""

import os
import pathlib
import re
import shutil
import sys

from test_packaging import WARNINGS, project_version, run
from verdict import Skipped, expect, verdict

OWN_WARNINGS = ["-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes"]
COMPILERS = {"gcc": [], "clang": [], "musl-gcc": ["-static"]}

# The path of liburing's static library. If this library is not installed, gcc prints `liburing.a`
# instead of a path. musl-gcc needs this library, because Debian's shared library depends on glibc.
URING = run("gcc", "-print-file-name=liburing.a").strip()


def headers_of_the_system(compiler):
    """musl-gcc finds musl's alone: those of the kernel and of liburing come after them."""
    if compiler != "musl-gcc":
        return []
    triplet = run("gcc", "-print-multiarch").strip()
    return ["-idirafter/usr/include", f"-idirafter/usr/include/{triplet}"]


def public_functions(header):
    return set(re.findall(r"^TIMERHUB_API\b[^(;]*?\b(\w+)\(", header.read_text(encoding="utf-8"),
                          re.MULTILINE))


def check_names(object_file, header):
    lines = [line.split() for line in run("nm", object_file).splitlines()]
    defined = {words[2] for words in lines if len(words) == 3 and words[1].isupper()}
    wanted = public_functions(header)
    expect(defined == wanted, f"{object_file} defines {sorted(defined ^ wanted)} too, or not")
    needs = [words[-1] for words in lines if words[-2] == "U"]
    expect(not [name for name in needs if re.match("__(atomic|sync)_", name)],
           f"{object_file} needs {needs}")


def compile_and_run(root, folder, compiler, with_uring):
    own = headers_of_the_system(compiler)
    object_file = folder / f"timerhub-{compiler}.o"
    define = ["-DTIMERHUB_WITH_URING"] if with_uring else []
    run(compiler, "-O2", *WARNINGS, *OWN_WARNINGS, *define, *own, "-c", folder / "timerhub.c",
        "-o", object_file)
    check_names(object_file, folder / "timerhub.h")
    libraries = ["-pthread", *([URING] if with_uring else [])]
    for source, wanted in ((root / "examples/hello_timer.c", None),
                           (root / "tests/packaging/client.c", f"{project_version(root)}\n")):
        program = folder / f"{source.stem}-{compiler}"
        run(compiler, *WARNINGS, *own, f"-I{folder}", source, object_file, *COMPILERS[compiler],
            *libraries, "-o", program)
        printed = run(program, timeout=60)
        expect(printed and wanted in (None, printed), f"{program} printed {printed}")
    run(compiler, *WARNINGS, *own, f"-I{folder}", root / "examples/idle_server.c", object_file,
        *COMPILERS[compiler], *libraries, "-o", folder / "idle_server")


def test_one_file(root, folder):
    compilers = [compiler for compiler in COMPILERS if shutil.which(compiler)]
    if not compilers:
        raise Skipped(f"no {', '.join(COMPILERS)} here")
    run(root / "tools/amalgamate", folder)
    for compiler in compilers:
        for with_uring in (False, True) if os.path.isabs(URING) else (False,):
            compile_and_run(root, folder, compiler, with_uring)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    return verdict(test_one_file, pathlib.Path(arguments[0]).resolve())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
