#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the fuzz targets as OSS-Fuzz does, without its image.

Usage: test_oss_fuzz.py SOURCE-ROOT

build.sh runs on a copy of the tree with the compiler, the flags and the folders that the image
sets. Each target of tests/ must come out, need no library that the image for running lacks, and run
on its first inputs. Exit status 77 if clang or a static library is not here.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / "packaging"), str(TESTS / "harness")]
from test_packaging import copy_sources, run  # pylint: disable=wrong-import-position
from verdict import Skipped, expect, need, verdict  # pylint: disable=wrong-import-position

FLAGS = ("-O1 -fno-omit-frame-pointer -gline-tables-only "
         "-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fsanitize=address "
         "-fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link")
# Matches the libraries that a target may need. The image in which OSS-Fuzz runs the targets has
# only the C and C++ libraries.
THERE = re.compile(r"linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)\.so")
PROJECT_KEYS = {"homepage", "main_repo", "primary_contact", "language", "fuzzing_engines",
                "sanitizers", "architectures"}
ARCHIVES = ("libcheck.a", "libsubunit.a", "libhiredis.a")


def targets(root):
    """The programs that tests/ has, by their sources."""
    return {path.stem for path in (root / "tests").rglob("fuzz_*.c")}


def check_files(root):
    """Without the image, as much as can be read from the files."""
    here = root / "tests/fuzz/oss-fuzz"
    project = (here / "project.yaml").read_text(encoding="utf-8")
    keys = set(re.findall(r"^(\w+):", project, re.MULTILINE))
    expect(keys == PROJECT_KEYS, f"project.yaml has {sorted(keys)}")
    docker = (here / "Dockerfile").read_text(encoding="utf-8")
    repository = re.search(r'^main_repo: "(.*)"$', project, re.MULTILINE)[1]
    expect(f"{repository} $SRC/timerhub" in docker, "the Dockerfile clones another repository")
    expect(re.search(r"^COPY build\.sh \$SRC/$", docker, re.MULTILINE), "no build.sh in the image")
    if shutil.which("shellcheck"):
        run("shellcheck", here / "build.sh")


def build(root, folder):
    copy_sources(root, folder / "src/timerhub")
    for name in ("work", "out"):
        (folder / name).mkdir()
    run("bash", folder / "src/timerhub/tests/fuzz/oss-fuzz/build.sh", env={
        "SRC": str(folder / "src"), "WORK": str(folder / "work"), "OUT": str(folder / "out"),
        "CC": "clang", "CXX": "clang++", "CFLAGS": FLAGS, "CXXFLAGS": FLAGS,
        "SANITIZER": "address", "FUZZING_ENGINE": "libfuzzer", "ARCHITECTURE": "x86_64",
        "LIB_FUZZING_ENGINE": "-fsanitize=fuzzer"})
    return folder / "out"


def check_target(program, folder):
    """It starts without this machine's packages, and takes inputs."""
    for line in run("ldd", program).splitlines():
        expect(THERE.search(line), f"{program.name} needs {line.strip()}")
    inputs = folder / f"{program.name}-inputs"
    inputs.mkdir()
    corpus = program.with_name(f"{program.name}_seed_corpus.zip")
    if corpus.exists():
        with zipfile.ZipFile(corpus) as archive:
            archive.extractall(inputs)
        expect(any(inputs.iterdir()), f"{corpus.name} is empty")
    printed = run(program, "-seed=1337", "-runs=100", "-print_final_stats=1", inputs, cwd=folder,
                  timeout=300)
    runs = re.search(r"^stat::number_of_executed_units: (\d+)$", printed, re.MULTILINE)
    expect(runs and int(runs[1]) >= 100, f"{program.name} did not run:\n{printed}")


def check_machine():
    need("clang")
    for name in ARCHIVES:
        path = subprocess.run(["clang", f"-print-file-name={name}"], check=True,
                              capture_output=True, text=True).stdout.strip()
        if not os.path.isabs(path):
            raise Skipped(f"there is no {name} here")


def test_targets(root, folder):
    check_machine()
    check_files(root)
    out = build(root, folder)
    made = {path.name for path in out.iterdir() if path.suffix != ".zip"}
    expect(made == targets(root), f"targets {sorted(made)}, not {sorted(targets(root))}")
    for name in sorted(made):
        check_target(out / name, folder)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    return verdict(test_targets, pathlib.Path(arguments[0]).resolve())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
