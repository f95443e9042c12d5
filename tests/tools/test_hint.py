#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Follows the hint of tools/run-demo: the command that its load generator prints shows the server.

Usage: test_hint.py LOAD TOP SERVER
"""

import json
import signal
import subprocess
import sys


def main(load, top, server):
    command = [load, "-n", "20", "-t", "1000", "-w", top, server]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        hint = next(line for line in process.stdout if line.startswith("to see"))
        told = subprocess.run(hint.split(": ")[1].strip() + " --once --json", shell=True,
                              capture_output=True, text=True, check=False)
        process.send_signal(signal.SIGINT)
        process.communicate()
    loops = json.loads(told.stdout)["loops"] if told.returncode == 0 else []
    if len(loops) == 1:
        return 0
    print(f"{hint}{told.stdout}{told.stderr}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
