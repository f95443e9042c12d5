#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests a queue without the library: the commands of timerhub-relay(5), and examples/relay.

Usage: examples_test.py ROOT DRIVER PYTHON...

DRIVER is the relay. The first PYTHON that has redis-py runs the example in Python. If no
PYTHON has it, the test prints that it leaves the example out. The examples in Node and Go are left
out in the same way.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from queue_client import Driver, make, serve
from redis_server import ARRIVES, Server, expect

QUEUE = "orders"
CLI = shutil.which("redis-cli") or "valkey-cli"
NODE_PATHS = os.environ | {"NODE_PATH": "/usr/share/nodejs"}  # of Debian's packages
PRINTED = ["order:2: paid in time", "order:1: cancel unless paid, attempt 1",
           "order:3: cancel unless paid, attempt 1", "order:3: cancel unless paid, attempt 2"]


def run(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=3 * ARRIVES, check=False)
    expect(done.returncode == 0, command, "ended with", done.returncode, done.stdout, done.stderr)
    return done.stdout


def check_page(root, server, environment):
    """Runs the commands of the manual page, with a shorter delay than half an hour."""
    text = (root / "man/timerhub-relay.5").read_text(encoding="utf-8")
    block = re.search(r"^\.Bd -literal\n(.*?)^\.Ed", text, re.MULTILINE | re.DOTALL)[1]
    script = block.replace(r"\e", "\\").replace("1800000000", "0")
    script = "set -e\n" + script.replace("redis-cli ", f"{CLI} -s {server.address} ")
    printed = run(["bash", "-c", script], environment).split()
    wanted = ["id", "order:4711", "due", "n", "1", "data", "pay", "or", "cancel", "0"]
    rest = iter(printed)
    expect(all(word in rest for word in wanted), "the page's commands printed", printed)


def check_python(root, pythons, environment):
    for python in pythons:
        has = subprocess.run([python, "-c", "import redis; redis.Redis.fcall"], check=False,
                             stderr=subprocess.DEVNULL).returncode == 0
        if has:
            printed = run([python, root / "examples/relay/orders.py"], environment).splitlines()
            expect(printed == PRINTED, "orders.py printed", printed)
            return
    print("left out: no Python here has redis-py (package python3-redis)")


def check_other(name, command, environment, server):
    if not command:
        print("left out: nothing here runs", name)
        return
    # A put of the finished ids would be refused for a minute.
    server.client()("DEL", "timerhub:{orders}:past")
    printed = run(command, environment).splitlines()
    expect(printed == PRINTED, name, "printed", printed)


def node(root):
    """Returns the command that runs orders.js, or None if Node or node-redis (package node-redis)
    is missing."""
    program = shutil.which("node")
    if not program:
        return None
    has = subprocess.run([program, "-e", "require('redis')"], check=False, env=NODE_PATHS,
                         stderr=subprocess.DEVNULL).returncode == 0
    return [program, root / "examples/relay/orders.js"] if has else None


def go(root, folder):
    """Builds orders.go, which needs only the standard library. Returns the command that runs it, or
    None without Go."""
    program = shutil.which("go")
    if not program:
        return None
    built = pathlib.Path(folder) / "orders"
    run([program, "build", "-o", built, root / "examples/relay/orders.go"],
        os.environ | {"GO111MODULE": "off", "GOCACHE": f"{folder}/cache", "GOFLAGS": "",
                      "GOPROXY": "off"})
    return [built]


def main(arguments):
    root, Driver.program, pythons = pathlib.Path(arguments[1]), arguments[2], arguments[3:]
    with Server() as server:
        environment = os.environ | {"REDIS_URL": f"unix:{server.address}"}
        make(QUEUE, f"unix:{server.address}")
        relay = serve(f"unix:{server.address}", QUEUE)
        try:
            check_page(root, server, environment)
            # redis-py uses another scheme for the address of a socket.
            check_python(root, pythons, environment | {"REDIS_URL": f"unix://{server.address}"})
            sockets = NODE_PATHS | {"REDIS_SOCKET": server.address}
            check_other("orders.js", node(root), sockets, server)
            check_other("orders.go", go(root, server.folder), sockets, server)
        finally:
            relay.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
