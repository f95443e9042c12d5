#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Starts a Redis server and runs a program, which finds the server's address in REDIS_URL.

Usage: with_server.py PROGRAM [ARGUMENT...]
"""

import os
import subprocess
import sys

from redis_server import Server


def main(arguments):
    with Server() as server:
        return subprocess.run(arguments[1:], check=False,
                              env=os.environ | {"REDIS_URL": f"unix:{server.address}"}
                              ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv))
