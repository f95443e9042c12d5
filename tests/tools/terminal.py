# SPDX-License-Identifier: MIT
"""Runs a program at a terminal, for tests of output that appears only there."""

import os
import pty
import re
import subprocess
import time

ESCAPE = "\033"


def check_colour(expect, *command, word, **environment):
    """The word has a colour at a terminal, unless the environment forbids it.

    `expect` is called with a condition and words.
    """
    def run(**more):
        return at_terminal(*command, streams=("stdout",), **environment, **more)[1]
    try:
        told = run()
    except OSError as error:
        print(f"no terminal to be had, so no colour is tested: {error}")
        return
    expect(f"m{word}{ESCAPE}[0m" in told and told.count(ESCAPE) == 2, f"no colour: {told}")
    for forbids in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        told = run(**forbids)
        expect(word in told and ESCAPE not in told, f"{forbids}: {told}")
    expect(ESCAPE in run(NO_COLOR=""), "NO_COLOR that is empty forbids nothing")


def strace_works():
    try:
        return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True,
                              check=False).returncode == 0
    except FileNotFoundError:
        return False


def check_progress(expect, command, named, held, *filters, **environment):
    """Work that lasts has a line on standard error that ends up cleared; other work has none.

    `command` makes all ready and returns the words, each time. The line begins with `named`.
    `held`, as strace has it, are the system calls of the work that begin 2.1 s late.
    """
    try:
        begun = time.monotonic()
        told = at_terminal(*command(), streams=("stderr",), **environment)[1]
    except OSError as error:
        print(f"no terminal to be had, so no progress is tested: {error}")
        return
    expect(told == "" or time.monotonic() - begun > 2, f"quick work tells of itself: {told}")
    if not strace_works():
        print("strace cannot trace here, so no progress is tested")
        return
    # LeakSanitizer traces a process at its end. LeakSanitizer would fail in this test, because
    # strace already traces the process.
    environment["LSAN_OPTIONS"] = "detect_leaks=0"
    slowly = ("strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={held.partition(':')[0]}",
              "-e", f"inject={held}:delay_enter=2100000", *filters)
    told = at_terminal(*slowly, *command(), streams=("stderr",), **environment)[1]
    expect(re.match(rf"\r{re.escape(named)}: ([2-9]|\d\d+) s, \d", told), f"no progress: {told!r}")
    expect(told.endswith("\r" + " " * 79 + "\r"), f"it stays: {told!r}")
    done = subprocess.run([*slowly, *command()], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, env={**os.environ, **environment})
    expect(done.stderr == "", f"progress without a terminal: {done.stderr!r}")


def at_terminal(*command, streams=("stdout", "stderr"), **environment):
    """Returns the exit status, and the output to streams that are a terminal.

    The environment has no NO_COLOR and a TERM with colours, unless told otherwise. Raises OSError
    if there is no terminal to be had.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    master, slave = pty.openpty()
    streams = {name: slave for name in streams}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**inherited, "TERM": "xterm",
                                                                  **environment},
                          **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                             **streams}) as process:
        os.close(slave)
        written = read_all(master)
        return process.wait(), written


def read_all(master):
    """All that is written before the last writer closes its end, which reads as an error."""
    written = b""
    try:
        while part := os.read(master, 4096):
            written += part
    except OSError:
        pass
    os.close(master)
    return written.decode().replace("\r\n", "\n")
