# SPDX-License-Identifier: MIT
"""Uses a queue without the library: calls the Redis functions, and reads the stream."""

import os
import subprocess

KEYS = {
    "put": "due task state seats past", "puts": "due task state seats past",
    "cancel": "due task ready state past",
    "move": "due task ready state past seats", "done": "due task ready state past",
    "retry": "due task ready state past seats dead",
    "park": "due task ready state past dead", "forget": "ready state",
    "pause": "due task ready state", "resume": "state seats",
    "each": "due task ready dead state",
    "touch": "task ready state", "fence": "state seen",
    "look": "due task ready dead past state seats seen", "leave": "seats seen state",
    "stat": "due task ready dead past state seats seen", "list": "due task",
    "peek": "due task ready", "revive": "dead due task state seats past", "create": "ready state",
    "repair": "due task ready dead past state seats",
}


class Queue:
    """One queue, used by one connection."""

    def __init__(self, client, name):
        self.client, self.prefix = client, f"timerhub:{{{name}}}:"

    def words(self, name, *arguments):
        keys = [self.prefix + key for key in KEYS[name].split()]
        return ("FCALL", "timerhub_" + name, len(keys), *keys, *arguments)

    def call(self, name, *arguments):
        return self.client(*self.words(name, *arguments))

    def put(self, name, when, flags="", data=""):
        return self.call("put", name, when, flags, data)

    def done(self, name):
        """Ends a task that is in the stream."""
        return self.call("done", name, self.call("peek", name)[6])

    def read(self, count=100, block_ms=None, consumer="c"):
        """Reads new entries of the stream. Returns a list of (entry, id, due time, number of the
        delivery, data)."""
        block = () if block_ms is None else ("BLOCK", block_ms)
        reply = self.client("XREADGROUP", "GROUP", "timerhub", consumer, "COUNT", count, *block,
                            "STREAMS", self.prefix + "ready", ">")
        return [(entry, fields[1].decode(), int(fields[3]), int(fields[5]), fields[7])
                for entry, fields in (reply[0][1] if reply else [])]

    def stat(self):
        words = [word.decode() for word in self.call("stat")[1:]]
        return dict(zip(words[::2], words[1::2]))

    def now(self):
        seconds, rest = self.client("TIME")
        return int(seconds) * 10**6 + int(rest)

    def count(self, what):
        command = {"due": "ZCARD", "task": "HLEN", "ready": "XLEN"}[what]
        return self.client(command, self.prefix + what)


def make(victim, queue, address):
    """Runs VICTIM --make, by which the library loads its functions and makes the queue."""
    subprocess.run([victim, "--make", queue], check=True,
                   env=os.environ | {"REDIS_URL": f"unix:{address}"})
