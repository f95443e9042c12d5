#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Joins the sources of a library in one file, in which every internal name is static.

Usage: one_file.py OUTPUT DEPFILE SOURCE...

So an archive has no global name that a program could define too. Hidden visibility doesn't do
this: it only begins where a shared library is linked. Headers of lib/ stand where they are first
included, system headers at the top. Macros of a source end with it. Its other static names are
known to all sources that follow, so no two may be equal.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = r"^(?!(?:static|typedef|extern|struct \w+;)\b)\w[\w\s*]*?\b(\w+)\("


def without_licence(text):
    return re.sub(r"\A/\* SPDX-License-Identifier: MIT \*/\n", "", text)


def without_guard(path, text):
    """The guard's lines become empty, so that all other lines keep their numbers."""
    bare = re.sub(r"^#ifndef (\w+_H)\n#define \1\n(.*)^#endif\n\Z", r"\n\n\2", text,
                  flags=re.MULTILINE | re.DOTALL)
    if bare == text:
        sys.exit(f"{path}: no include guard")
    return bare


class OneFile:
    """What is joined so far."""

    def __init__(self, with_lines):
        self.with_lines = with_lines  # debuggers and messages name the lines of lib/
        self.seen = set()    # headers of lib/ that the text already contains
        self.public = set()  # included headers of include/
        self.system = set()  # included system headers
        self.internal = set()  # functions that the headers of lib/ declare
        self.static = set()  # macros that stand for static and for attributes
        self.read = []       # paths of the sources and headers
        self.parts = []

    def add(self, path, optional=False):
        """Adds a source. The system headers of an optional source stay in the source."""
        text = self.text(path)
        macros = re.findall(r"^#define (\w+)", text, re.MULTILINE)
        ends = "".join(f"#undef {name}\n" for name in macros if name != "_GNU_SOURCE")
        self.parts.append(self.lines(path, text, optional) + ends)

    def text(self, path):
        self.read.append(path)
        return path.read_text(encoding="utf-8")

    def header(self, name):
        if name in self.seen:
            return ""
        self.seen.add(name)
        path = ROOT / "lib" / name
        text = without_guard(path, self.text(path))
        self.internal |= set(re.findall(NAME, text, re.MULTILINE))
        self.static |= set(re.findall(r"^#define (\w+) .*\bstatic\b", text, re.MULTILINE))
        # The compiler warns of a function in a source file that is not called.
        text = re.sub(r"^static inline ", "static inline __attribute__((unused)) ", text,
                      flags=re.MULTILINE)
        return self.lines(path, text, False)

    def lines(self, path, text, optional):
        kept, depth = [self.line(path, 1)], 0
        for number, line in enumerate(text.splitlines(), 1):
            include = re.match(r'#include ([<"])(.*)[>"]', line)
            depth += bool(re.match(r"#if", line)) - bool(re.match(r"#endif", line))
            if line == "#define _GNU_SOURCE":
                kept.append("")
            elif include and (ROOT / "include" / include[2]).exists():
                self.public.add(include[2])
                kept.append("")
            elif include and (ROOT / "lib" / include[2]).exists():
                part = self.header(include[2])
                kept.append(part + self.line(path, number + 1) if part else "")
            elif include and depth == 0 and not optional:
                self.system.add(include[2])
                kept.append("")
            else:
                kept.append(self.private(line))
        if self.with_lines:
            return "\n".join(kept) + "\n"
        name = path.relative_to(ROOT / "lib")
        bare = re.sub(r"\n{3,}", "\n\n", without_licence("\n".join(kept[1:])).strip("\n"))
        return f"\n/* ---- {name} ---- */\n\n{bare}\n"

    def line(self, path, number):
        return f'#line {number} "{os.path.relpath(path)}"' if self.with_lines else ""

    def private(self, line):
        match = re.match(NAME, line)
        if match and match[1] in self.internal and line.split()[0] not in self.static:
            return f"static {line}"
        return line

    def includes(self):
        return "".join(f"#include <{name}>\n" for name in sorted(self.system))


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    output, depfile, *sources = map(pathlib.Path, arguments)
    joined = OneFile(with_lines=True)
    for path in sources:
        joined.add(path.resolve())
    public = "".join(f'#include "{name}"\n' for name in sorted(joined.public))
    output.write_text("".join(["#define _GNU_SOURCE\n", public, joined.includes(), *joined.parts]),
                      encoding="utf-8")
    needed = " ".join(os.path.relpath(path).replace(" ", r"\ ")
                      for path in [*joined.read, pathlib.Path(__file__)])
    depfile.write_text(f"{output}: {needed}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
