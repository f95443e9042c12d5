# SPDX-License-Identifier: MIT
"""The process that timerhub-top observes (watched.c)."""

import os
import signal
import subprocess

from tmux import eventually


class Watched:
    """Runs the program of watched.c, and kills it at the end of a `with` block."""

    program = None

    def __init__(self, *places, fds=(), before=()):
        """`before` is a command that calls exec() with the program, as unshare(1) does."""
        self.process = subprocess.Popen([*before, self.program, *places], text=True, bufsize=1,
                                        pass_fds=fds, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pid, self.children = self.process.pid, []
        assert not places or self.answer() == "ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            os.kill(child, 9)
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def answer(self):
        return self.process.stdout.readline().strip()

    def do(self, command):
        self.process.stdin.write(command + "\n")
        return self.answer()

    def stall(self, order, is_seen):
        """Begins a stall, waits until is_seen(), and ends the stall. Returns the answer."""
        self.process.stdin.write(order + " seen\n")
        eventually(is_seen)
        self.process.send_signal(signal.SIGUSR1)
        return self.answer()

    def ok(self, *commands):
        for command in commands:
            answer = self.do(command)
            assert answer == "ok", f"{command}: {answer}"

    def fork(self, hub, queue):
        self.children.append(int(self.do(f"fork {hub} {queue}")))
        return self.children[-1]
