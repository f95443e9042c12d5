# SPDX-License-Identifier: MIT
"""A program in a terminal of tmux, for tests of what it shows."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import scratch  # pylint: disable=wrong-import-position


def eventually(holds):
    """Returns the result of `holds`, as soon as it is true."""
    for _ in range(600):
        result = holds()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError("never came")


class Terminal:
    """The tool in a terminal of tmux; afterwards the terminal shows how it ended."""

    def __init__(self, program, columns, lines, *arguments, environment=""):
        self.folder = tempfile.TemporaryDirectory(dir=scratch.for_sockets())
        line = (f"{environment} '{program}' {' '.join(map(str, arguments))}; "
                "echo ended with $?; exec sleep 1000")
        # In words: tmux runs a line by the user's shell, and some shells end at Ctrl-C.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  "bash", "-c", line, ";", "set", "status", "off")

    def tmux(self, *arguments):
        socket = os.path.join(self.folder.name, "tmux")
        done = subprocess.run(["tmux", "-S", socket, *arguments], capture_output=True, text=True,
                              check=False, timeout=60,
                              env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))
        assert done.returncode == 0, f"tmux {arguments}: {done.stderr}"
        return done.stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")
        self.folder.cleanup()

    def lines(self):
        return self.tmux("capture-pane", "-p").splitlines()

    def coloured_lines(self):
        """The lines with escape sequences, but without those at the end of a line."""
        return [re.sub("(\033\\[[0-9;]*m| )*$", "", line)
                for line in self.tmux("capture-pane", "-p", "-e").splitlines()]

    def shows(self, *texts):
        """Waits until all of them are on the screen; returns its lines."""
        def look():
            lines = self.lines()
            screen = "\n".join(lines)
            return lines if all(text in screen for text in texts) else None
        try:
            return eventually(look)
        except AssertionError:
            raise AssertionError("\n".join([f"not on the screen: {texts}"] + self.lines()))

    def fits(self, columns, lines, beginnings):
        """Is the screen that small, with lines that begin so?"""
        shown = self.lines()
        return (len(shown) == lines and all(len(line) <= columns for line in shown) and
                all(shown[at].startswith(text) for at, text in beginnings.items()))

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))
