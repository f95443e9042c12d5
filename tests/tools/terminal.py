# SPDX-License-Identifier: MIT
"""Runs a program at a terminal, for tests of output that appears only there."""

import os
import pty
import subprocess

ESCAPE = "\033"


def check_colour(expect, *command, word, **environment):
    """Checks that the command prints `word` in colour, but not with NO_COLOR or TERM=dumb.

    `expect` gets a condition, and what to print if that is false.
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


def at_terminal(*command, streams=("stdout", "stderr"), **environment):
    """Runs a command at a terminal. Returns its exit status, and what it has written to `streams`.

    NO_COLOR is not set and TERM has colours, if `environment` does not change that. Raises OSError
    if the system gives no terminal.
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
