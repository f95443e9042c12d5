#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the library over a proxy to Redis that fails at each command in turn.

Usage: wire_test.py DRIVER [STRIDE [COUNT]]

The proxy makes each fault of wire_proxy.py at every STRIDE-th command of a life of DRIVER,
including handshakes and looks, and COUNT errors of a server. The results of the calls must be true,
and each task must end once.
"""

import sys

from queue_client import Driver, live
from redis_server import Server
from wire_proxy import Proxy

QUEUE = "victim"
# Error replies of a server that accepts no changes at present. After such a reply a call must wait
# for another server.
ERRORS = ("READONLY You can't write against a read only replica.",
          "LOADING Redis is loading the dataset in memory",
          "MASTERDOWN Link with MASTER is down", "BUSY Redis is busy running a script.",
          "UNBLOCKED force unblock from blocking operation",
          "NOREPLICAS Not enough good replicas to write.",
          "NOGROUP No such key or consumer group", "ERR Function not found")


def run(server, fault=None, number=0):
    """Makes the calls of a life with this fault. Returns the proxy, or None if one went wrong."""
    redis = server.client()
    redis("FLUSHALL")
    redis("FUNCTION", "FLUSH", "SYNC")
    redis("HSET", f"timerhub:{{{QUEUE}}}:state", "lease_us", 300_000_000)
    path = f"{server.folder}/proxy.sock"
    proxy = Proxy(path, server.address, fault, number)
    try:
        live(QUEUE, f"unix:{path}")
        is_good = True
    except SystemExit:  # by expect(), which has said why
        is_good = False
    proxy.close()
    records = redis("HLEN", f"timerhub:{{{QUEUE}}}:task")
    redis.close()
    if is_good and records == 0:
        return proxy
    where = proxy.names[number - 1] if 0 < number <= len(proxy.names) else "?"
    print(f"{fault} at command {number} ({where}): {records} left")
    return None


def main(arguments):
    Driver.program = arguments[1]
    stride = int(arguments[2]) if len(arguments) > 2 else 1
    count = int(arguments[3]) if len(arguments) > 3 else len(ERRORS)
    runs = failures = 0
    with Server() as server:
        clean = run(server)
        if not clean:
            return 1
        looks, listens = (next(number for number, name in enumerate(clean.names) if word in name)
                          for word in ("_look", "SUBSCRIBE"))
        if looks < listens:
            print("it looks before it listens:", clean.names)
            return 1
        # After a fault the driver connects again, and so sends more commands.
        last = clean.commands + 8
        plan = [(fault, number) for fault in ("before", "after", "late", "last")
                for number in range(1, last, stride)]
        plan += [(ERRORS[(number + more) % len(ERRORS)], number)
                 for number in range(1, last, stride) for more in range(count)]
        # A blocked read whose connection is silent is given up after 30 s, which --all waits for.
        plan += [("silent", number) for number in range(1, last, 7 * stride)
                 if stride == 1 or "XREADGROUP" not in clean.names[min(number, clean.commands) - 1]]
        for fault, number in plan:
            runs += 1
            failures += run(server, fault, number) is None
            if failures == 3:
                break
    print(f"{clean.commands} commands in a life; {runs} lives with a fault, {failures} bad")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
