#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds a heartbeat server to "serve the sockets first", from outside.

Usage: test_storm.py COMMAND...

The server is stopped until the idle times of all connections are over, while each client sends.
When it goes on, data lies in every socket and every timeout is due. It must hang up nobody whose
data it has not read, and everybody a whole idle time later.
"""

import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
from verdict import Wrong, expect, verdict  # pylint: disable=wrong-import-position

CLIENTS = 20
IDLE_MS = 1000
HANG_S = 60           # "for ever"


def farewell(connection):
    """Returns the client's deadline and when it was closed, as the server's last message says."""
    said = b""
    try:
        while more := connection.recv(200):
            said += more
    except ConnectionResetError:  # so the kernel tells that the server left data unread
        return 0, time.monotonic_ns()
    match = re.fullmatch(rb"idle (\d+) (\d+)\n", said)
    expect(match, f"the server says {said!r}")
    return int(match[1]), int(match[2])


def storm(process, idle_ms):
    """Returns False if every connection was closed before the server was stopped."""
    port = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", process.stdout.readline())[1]
    clients = [socket.create_connection(("127.0.0.1", int(port)), timeout=HANG_S)
               for _ in range(CLIENTS)]
    while f"accepted={CLIENTS} " not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGSTOP)
    stopped_ns = time.monotonic_ns()
    for client in clients:
        client.send(b"alive")
    time.sleep(1.1 * idle_ms / 1000)
    goes_on_ns = time.monotonic_ns()
    process.send_signal(signal.SIGCONT)
    said = [farewell(client) for client in clients]
    # Whom the server closed before it stopped, because this process stood still, proves nothing.
    judged = [deadline_ns for deadline_ns, closed_ns in said if closed_ns > stopped_ns]
    wrong = [deadline_ns for deadline_ns in judged if deadline_ns < goes_on_ns]
    expect(not wrong, f"{len(wrong)} of {len(judged)} were hung up with data in the socket")
    return bool(judged)


def test_storm(command, _, idle_ms=IDLE_MS):
    with subprocess.Popen([*command, "-t", str(idle_ms), "-s", "20"], stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            is_judged = storm(process, idle_ms)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=HANG_S)
        finally:
            process.kill()
    if process.returncode != 0:
        raise Wrong(f"exit status {process.returncode}")
    if not is_judged:  # this process stood still for that long
        test_storm(command, _, 2 * idle_ms)


if __name__ == "__main__":
    sys.exit(verdict(test_storm, sys.argv[1:]))
