# SPDX-License-Identifier: MIT
"""The process that timerhub-top observes (watched.c)."""

import os
import signal
import subprocess

from tmux import eventually


class Watched:
    """It follows orders, and ends with the block."""

    program = None

    def __init__(self, *places, fds=(), before=()):
        """`before` is a command that runs the program in its own place."""
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
        """Gives an order that is over when it has been seen."""
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
