#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Other languages without our library: the commands of timerhub-relay(5), and examples/relay.

Usage: examples_test.py ROOT VICTIM PYTHON...

VICTIM --serve is the alarm clock. Of the Pythons the first that has redis-py runs the example;
without one that part is left out, and said so.
"""

import os
import pathlib
import re
import subprocess
import sys

from redis_server import ARRIVES, Server

QUEUE = "orders"
PRINTED = ["order:2: paid in time", "order:1: cancel unless paid, attempt 1",
           "order:3: cancel unless paid, attempt 1", "order:3: cancel unless paid, attempt 2"]


def run(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=3 * ARRIVES, check=False)
    if done.returncode != 0:
        print(command, "ended with", done.returncode, done.stdout, done.stderr)
        sys.exit(1)
    return done.stdout


def check_page(root, server, environment):
    """The page's commands, but for the half hour."""
    text = (root / "man/timerhub-relay.5").read_text(encoding="utf-8")
    block = re.search(r"^\.Bd -literal\n(.*?)^\.Ed", text, re.MULTILINE | re.DOTALL)[1]
    script = block.replace(r"\e", "\\").replace("1800000000", "0")
    script = "set -e\n" + script.replace("redis-cli ", f"redis-cli -s {server.address} ")
    printed = run(["bash", "-c", script], environment).split()
    wanted = ["id", "order:4711", "due", "n", "1", "data", "pay", "or", "cancel", "0"]
    rest = iter(printed)
    if not all(word in rest for word in wanted):
        print("the page's commands printed", printed)
        sys.exit(1)


def check_python(root, pythons, environment):
    for python in pythons:
        has = subprocess.run([python, "-c", "import redis; redis.Redis.fcall"], check=False,
                             stderr=subprocess.DEVNULL).returncode == 0
        if has:
            printed = run([python, root / "examples/relay/orders.py"], environment).splitlines()
            if printed != PRINTED:
                print("orders.py printed", printed)
                sys.exit(1)
            return
    print("left out: no Python here has redis-py (package python3-redis)")


def main(arguments):
    root, victim, pythons = pathlib.Path(arguments[1]), arguments[2], arguments[3:]
    with Server() as server:
        environment = os.environ | {"REDIS_URL": f"unix:{server.address}"}
        run([victim, "--make", QUEUE], environment)
        relay = subprocess.Popen([victim, "--serve", QUEUE], env=environment)
        try:
            check_page(root, server, environment)
            # redis-py writes the scheme of a socket otherwise.
            check_python(root, pythons, environment | {"REDIS_URL": f"unix://{server.address}"})
        finally:
            relay.kill()
            relay.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
