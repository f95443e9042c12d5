#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs of timerhub-store(5) in Python, Go and Node, each with a new database.

Usage: languages_test.py ROOT TOOL

A language whose interpreter, or whose module for SQLite, is not installed is left out with a line.
"""

import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

LIMIT_S = 300  # for the compilation of SQLite, which the Go package contains
GO_PACKAGES = "/usr/share/gocode"
NODE_PATH = ":".join(["/usr/share/nodejs", *map(str, pathlib.Path("/usr/lib").glob("*/nodejs"))])


def run(command, folder, **variables):
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True,
                          text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def plain(text):
    """A program as the page shows it. Its lines are indented by tabs or blanks."""
    return text.replace(r"\e", "\\").replace(r"\-", "-").replace(r"\(aq", "'")


def has_go():
    return shutil.which("go") and os.path.exists(f"{GO_PACKAGES}/src/github.com/mattn/go-sqlite3")


def has_node():
    path = {"NODE_PATH": os.environ.get("NODE_PATH", NODE_PATH)}
    return shutil.which("node") and subprocess.run(
        ["node", "-e", "require('sqlite3')"], env=os.environ | path, check=False,
        stderr=subprocess.DEVNULL).returncode == 0


LANGUAGES = {
    "Python": ("orders.py", lambda: True, [sys.executable, "orders.py"], {}),
    "Go": ("orders.go", has_go, ["go", "run", "orders.go"],
           {"GO111MODULE": "off", "GOPATH": GO_PACKAGES, "GOFLAGS": "-buildvcs=false"}),
    "Node": ("orders.js", has_node, ["node", "orders.js"],
             {"NODE_PATH": os.environ.get("NODE_PATH", NODE_PATH)}),
}


def check(program, language, wanted, tool):
    file, is_there, command, variables = LANGUAGES[language]
    if not is_there():
        print(f"left out: nothing here runs the program in {language}")
        return
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, file).write_text(program, encoding="utf-8")
        # A task of another queue makes the tables; it is gone when the program begins.
        first = run([tool, "--queue", "first", "put", "shop.db", "never"], folder).strip()
        run([tool, "--queue", "first", "cancel", "shop.db", first], folder)
        printed = run(command, folder, **variables)
        if printed != wanted:
            sys.exit(f"the program in {language} printed {printed!r}, not {wanted!r}")
        with sqlite3.connect(f"{folder}/shop.db") as db:
            orders = dict(db.execute("SELECT id, state FROM orders"))
            tasks = db.execute("SELECT key, data, due_us - unixepoch() * 1000000"
                               " FROM timerhub_tasks").fetchall()
        if orders != {17: "paid", 18: "open"} or len(tasks) != 1 or \
                tasks[0][:2] != ("order 18", "18") or not 86e9 < tasks[0][2] < 87e9:
            sys.exit(f"the program in {language} left {orders}, {tasks}")


def main():
    root, tool = pathlib.Path(sys.argv[1]), os.path.abspath(sys.argv[2])
    text = (root / "man/timerhub-store.5").read_text(encoding="utf-8")
    blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", text[text.index(".Sh EXAMPLES"):],
                        re.MULTILINE | re.DOTALL)
    for language, program in zip(LANGUAGES, blocks[1:], strict=True):
        check(plain(program), language, plain(blocks[0]), tool)


main()
