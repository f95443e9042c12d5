#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that a call that has returned changes nothing any more, and that a worker that was stopped
past its lease gets no task that has ended.

Usage: late_test.py DRIVER TIMERHUB_LUA
"""

import os
import select
import signal
import subprocess
import sys
import time

from queue_client import Queue
from redis_server import ARRIVES, Server, expect, library

NAME = "late"
LIFE = "4-me"
FAR = 3_600_000_000


def check_fence(queue):
    """A command of an earlier epoch comes after the fence, as the network delivers it."""
    until = queue.now() + 60_000_000
    late = (until, LIFE, 1)
    for name, arguments in (("cancel", ()), ("move", (2 * FAR, ""))):
        expect(queue.call("put", name, FAR, "", "")[0] == 0, "put")
        expect(queue.call("fence", LIFE, 2, until)[0] == 0, "fence")
        reply = queue.call(name, name, *arguments, *late)
        expect(reply[0] == -62, name, "of an earlier epoch:", reply)
        expect(queue.call("peek", name)[1] == b"waiting", name, "had effect")
        expect(queue.call(name, name, *arguments, until, LIFE, 2)[0] == 0, name, "of this epoch")
        expect(queue.call("put", f"{name}-until", FAR, "", "")[0] == 0, "put")
        reply = queue.call(name, f"{name}-until", *arguments, queue.now() - 1)
        expect(reply[0] == -62, name, "after its until:", reply)
    reply = queue.call("put", "new", FAR, "", "", *late, "number-1")
    expect(reply[0] == -62, "put of an earlier epoch:", reply)
    expect(queue.call("put", "new", FAR, "", "", until, LIFE, 2, "number-1")[0] == 0, "put")
    expect(queue.call("put", "new", 0, "", "", until, LIFE, 2, "number-1")[0] == 0, "its own put")
    expect(queue.call("put", "new", 0, "", "", until, LIFE, 2, "number-2") == [-17], "another's")
    expect(queue.call("cancel", "new", until, "tasks_max", 1) == [-22], "no name of a holder")


def check_stopped(server, driver, known_us, lease_us):
    """A worker is stopped in a take until its lease is over, and the task is moved meanwhile. When
    it connected, the lease was `known_us`."""
    name = f"{NAME}-{known_us}"
    queue = Queue(server.client(), name)
    queue.call("create", "lease_us", known_us)
    environment = os.environ | {"REDIS_URL": f"unix:{server.address}"}
    with subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=environment) as one:

        def say(*words):
            one.stdin.write(" ".join(words) + "\n")
            one.stdin.flush()

        say("open", name, "0", "5000", "0")
        expect(one.stdout.readline() == "0\n", "open")
        say("take", "20000")
        while not any(b"cmd=xreadgroup" in line for line in
                      server.client()("CLIENT", "LIST").splitlines()):
            time.sleep(0.01)
        one.send_signal(signal.SIGSTOP)
        queue.call("create", "lease_us", lease_us)
        queue.call("put", "stopped", 0, "", "")
        while queue.call("peek", "stopped")[1] == b"waiting":
            queue.call("look", "relay", 128, 10**7, 10**5, "")
        while queue.call("move", "stopped", FAR, "")[0] == -16:
            queue.call("look", "relay", 128, 10**7, 10**5, "")
        queue.call("put", "next", 0, "", "")
        one.send_signal(signal.SIGCONT)
        while not select.select([one.stdout], [], [], 0.01)[0]:
            queue.call("look", "relay", 128, 10**7, 10**5, "")
        said = one.stdout.readline()
        expect("next" in said, "a worker that was stopped got", said, "its lease was", lease_us)
        one.stdin.close()


def main(arguments):
    with Server() as server:
        redis = server.client()
        redis("FUNCTION", "LOAD", "REPLACE", library(arguments[2]))
        queue = Queue(redis, NAME)
        queue.call("create")
        check_fence(queue)
        check_stopped(server, arguments[1], 20_000, 20_000)
        check_stopped(server, arguments[1], 30_000_000, 200_000)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
