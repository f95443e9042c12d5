#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs Spin on a model of a protocol in lib/, as its header says.

Usage: check_models.py ROOT MODEL.pml [WORD...]

The header of a model lists the modelled functions, its laws, its true configurations and the bugs
that can be planted. This script runs them. A true configuration must be searched to the end without
an error, and together they must reach every line of the model. A planted bug must break the law
that is named beside it. With WORDs, only runs with a WORD in their names are made, and the reached
lines are not checked.

Prints the Test Anything Protocol, one line for the header, each configuration and each bug. Exit
status 1 if anything failed. test_check_models.py plants a fault for every check.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

# Largest depth of a search. A path with more steps is an error. Each search is complete, without
# bit states or hash compaction.
DEPTH_MAX = 200000

# Large searches. gcc compiles their programs, and tcc compiles all others. gcc needs two seconds
# more than tcc. The program from gcc runs nearly twice as fast.
LARGE = {("timer.pml", "true"), ("timer.pml", "true -DINTERVAL=2"),
         ("timer.pml", "true -DINTERVAL=1 -DNO_ARMER -DREARMERS"), ("timer.pml", "true -DSLACK"),
         ("timer.pml", "true -DTO_NEVER -DNO_REARM"), ("inbox.pml", "true -DONE_SLOT"),
         ("inbox.pml", "bug -DLOOK_UNCOUNTED -DONE_SLOT"),
         ("inbox.pml", "bug -DCONFIRMED_ANYWAY -DONE_SLOT"),
         ("queue_close.pml", "true -DLATE")}

HEADER = re.compile(r"\A/\* SPDX-License-Identifier: MIT \*/\n(/\*\n.*? \*/\n)", re.DOTALL)
FILE = re.compile(r" \*   (lib/[\w/]+\.(?:[ch]|lua)) +(\S.*)")
LAW = re.compile(r" \*   (\w+) +\S")
TRUE = re.compile(r" \*   true((?: -D\w+(?:=\w+)?)*)")
BUG = re.compile(r" \*   bug (\w+) +(\w+) +((?:-D\w+(?:=\w+)? )*)[^-\s].*")


class Run:
    """One call of Spin: its definitions, and the law that must break, or None."""

    def __init__(self, defines, law=None):
        self.defines = defines
        self.law = law
        self.name = " ".join(["true" if law is None else "bug"] + defines)


class Model:
    """A model's text, the entries of its header, and the complaints about them."""

    def __init__(self, path):
        self.name = path.name
        text = path.read_text(encoding="utf-8")
        header = HEADER.match(text)
        self.files, self.laws, self.runs, self.complaints = {}, [], [], []
        self.body = text[header.end():] if header else text
        if header:
            self.read(header[1].splitlines())
        else:
            self.complain("no header")

    def complain(self, what):
        self.complaints.append(what)

    def read(self, lines):
        section, file = None, None
        for line in lines:
            if re.fullmatch(r" \* \w.*:", line):
                section, file = line[3:-1], None
            elif line in (" *", " */"):
                file = None if section == "Models" else file
            elif section == "Models":
                match = FILE.fullmatch(line)
                file = match[1] if match else file
                if file is None:
                    self.complain(f"what is this: {line}")
                else:
                    names = match[2] if match else line[2:]
                    self.files.setdefault(file, []).extend(names.split())
            elif section == "Laws":
                self.read_law(line)

    def read_law(self, line):
        if re.match(r" \*   true\b", line):
            match = TRUE.fullmatch(line)
            if match:
                self.runs.append(Run(match[1].split()))
        elif re.match(r" \*   bug\b", line):
            match = BUG.fullmatch(line)
            if match:
                self.runs.append(Run(["-D" + match[1]] + match[3].split(), match[2]))
        else:
            match = LAW.match(line)
            if match:
                self.laws.append(match[1])
            elif re.match(r" \* {4,}\S", line):  # continues the line before
                match = True
        if not match:
            self.complain(f"what is this: {line}")


# ---- the header ----


def functions_of(path, text):
    """Returns the functions that the file defines: name and parameters at the margin, then the
    body."""
    if path.suffix == ".lua":
        return set(re.findall(r"^local function (\w+)\(", text, re.MULTILINE))
    text = re.sub(r"__attribute__\(\(.*?\)\) ", "", text)
    return set(re.findall(r"^[a-z][^;={}]*?\b(\w+)\([^;{}]*?\)\n\{", text, re.MULTILINE))


def check_files(model, root):
    """Each modelled function exists, and its file names the model."""
    if not model.files:
        model.complain("models nothing")
    for file, names in model.files.items():
        path = root / file
        if not path.exists():
            model.complain(f"{file} is not there")
            continue
        text = path.read_text(encoding="utf-8")
        there = functions_of(path, text)
        for name in names:
            if not name.endswith("()") or name[:-2] not in there:
                model.complain(f"{file} has no function {name}")
        if f"tests/models/{model.name}" not in text:
            model.complain(f"{file} does not name this model")
    for path in sorted((root / "lib").rglob("*.*")):
        file = str(path.relative_to(root))
        if path.suffix in (".c", ".h", ".lua") and file not in model.files and \
                f"tests/models/{model.name}" in path.read_text(encoding="utf-8"):
            model.complain(f"{file} names this model, and is not modelled")


def check_laws(model):
    if not any(run.law is None for run in model.runs):
        model.complain("no true configuration")
    broken = {run.law for run in model.runs}
    for law in model.laws:
        if f"bool {law} = true;" not in model.body or f"assert({law})" not in model.body:
            model.complain(f"law {law} is not asserted")
        if law not in broken:
            model.complain(f"no bug breaks law {law}")
    for law in sorted(broken - {None} - set(model.laws)):
        model.complain(f"law {law} is not listed")


def check_macros(model):
    """Every switch in the model is listed, and every switch that is listed is in the model."""
    tested = set()
    for line in re.findall(r"^#\s*(?:el)?if(?:n?def)?\b(.*)", model.body, re.MULTILINE):
        tested |= set(re.findall(r"[A-Za-z_]\w*", line)) - {"defined"}
    defined = set(re.findall(r"^#\s*define\s+(\w+)", model.body, re.MULTILINE))
    listed = set()
    for run in model.runs:
        listed |= {define[2:].split("=")[0] for define in run.defines}
    for name in sorted(tested - listed - defined):
        model.complain(f"{name} is listed nowhere")
    for name in sorted(listed - tested):
        model.complain(f"{name} is listed, and not in the model")


def check_header(model, root):
    check_files(model, root)
    check_laws(model)
    check_macros(model)
    seen = set()
    for run in model.runs:
        if run.name in seen:
            model.complain(f"{run.name} is listed twice")
        seen.add(run.name)
    return model.complaints


# ---- running ----


class Failure(Exception):
    """It did not come out as it should."""


def call(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-400:]}")
    return done.stdout


def search(folder, path, run):
    """Makes the search program by Spin, runs it, and returns its output."""
    call(folder, "spin", "-a", *run.defines, str(path.resolve()))
    # Spin writes a C program for the search. If the search is small, tcc compiles the program. A
    # program from tcc runs slower than a program from gcc, but is ready before gcc has read the
    # source. With NOCOMP the search stores states uncompressed. NOCOMP shortens a search by a
    # fifth, and increases its memory by a third.
    large = (path.name, run.name) in LARGE
    compiler = ["gcc", "-O1"] if large else ["tcc", "-DNOCOMP"]
    call(folder, *compiler, "-w", "-DSAFETY", "-o", "pan", "pan.c")
    # The option -w, the logarithm of the size of the hash table, affects only the speed.
    return call(folder, "./pan", f"-m{DEPTH_MAX}", "-w21" if run.law else "-w24")


def states_of(output):
    match = re.search(r"^ *(\S+) states, stored", output, re.MULTILINE)
    return f"{match[1]} states" if match else "?"


def check_true(output):
    error = re.search(r"^pan:\d+: (.*)", output, re.MULTILINE)
    if error:
        raise Failure(error[1])
    for sign in ("max search depth too small", "Search not completed", "out of memory"):
        if sign in output:
            raise Failure(f"the search did not end: {sign}")
    if "errors: 0\n" not in output:
        raise Failure("no result")


def check_found(output, law):
    error = re.search(r"^pan:\d+: (.*?) \(at depth \d+\)", output, re.MULTILINE)
    if not error:
        raise Failure("not found")
    if error[1] != f"assertion violated {law}":
        raise Failure(f"found as: {error[1]}")


def lines_of(folder, output):
    """Returns the lines of the model in this configuration, and the lines that the search
    reached."""
    states, proctype = {}, None
    for line in call(folder, "./pan", "-d").splitlines():
        match = re.match(r"(?:proctype|init|claim) *(\S*)", line)
        proctype = (match[1] or "init") if match else proctype
        match = re.match(r"\s+state +(\d+) .*?\] .*?:(\d+) =>", line)
        if match:
            states[proctype, int(match[1])] = int(match[2])
    unreached = set()
    for line in output.splitlines():
        match = re.match(r"unreached in (?:proctype|init|claim) *(\S*)", line)
        proctype = (match[1] or "init") if match else proctype
        match = re.match(r"\t.*?:\d+, state (\d+), ", line)
        if match:
            unreached.add((proctype, int(match[1])))
    reached = {line for state, line in states.items() if state not in unreached}
    return set(states.values()), reached


class Report:
    """Prints the Test Anything Protocol."""

    def __init__(self, count):
        self.done = 0
        self.failed = 0
        print(f"1..{count}", flush=True)

    def tell(self, name, failure="", remark=""):
        self.done += 1
        self.failed += bool(failure)
        remark = f": {remark}" if remark else ""
        print(f"{'not ok' if failure else 'ok'} {self.done} - {name}{remark}", flush=True)
        for line in failure.splitlines():
            print(f"# {line}", flush=True)


def do_run(path, run, reach):
    """Returns a remark; raises Failure."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        output = search(folder, path, run)
        if run.law:
            check_found(output, run.law)
            return f"found, breaks {run.law}"
        check_true(output)
        had, reached = lines_of(folder, output)
        reach[0] |= had
        reach[1] |= reached
    return f"{states_of(output)} in {time.monotonic() - begin:.1f} s"


def check_model(root, path, words=()):
    """True if all is well."""
    model = Model(path)
    complaints = check_header(model, root)
    runs = [run for run in model.runs if not words or any(word in run.name for word in words)]
    report = Report(len(runs) + (1 if words else 2))
    report.tell("header", "\n".join(complaints))
    reach = [set(), set()]
    for run in runs:
        try:
            report.tell(run.name, remark=do_run(path, run, reach))
        except Failure as failure:
            report.tell(run.name, failure=str(failure))
    if not words:
        lines = sorted(reach[0] - reach[1])
        failure = "\n".join(f"{model.name}:{line} is never reached" for line in lines)
        report.tell("every line is reached", failure or ("" if reach[1] else "nothing was"))
    return report.failed == 0


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    words = tuple(arguments[3:])
    return 0 if check_model(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]), words) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
