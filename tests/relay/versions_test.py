#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that two versions of the library, which differ in their functions, work on one queue side
by side, and that a later layout of the keys is refused at once.

Usage: versions_test.py DRIVER DRIVER_OF_THE_NEXT_VERSION TIMERHUB_LUA
"""

import sys
import time

from queue_client import QUEUE, Driver, Queue, opening
from redis_server import ARRIVES, Server, expect, library, wait_until
from wire_proxy import Proxy

LATER = 99


class Next(Driver):
    """A program with the library of the next version."""


def libraries(redis):
    return sorted(dict(zip(one[::2], one[1::2]))[b"library_name"].decode()
                  for one in redis("FUNCTION", "LIST"))


def take(worker, name):
    answer = worker("take", 1000 * ARRIVES)
    expect(answer != 0 and answer[1] == name, "take of", name, answer)


def check_side_by_side(server, path):
    """Two versions must take each other's tasks, and the old one must go on without the next."""
    redis, address = server.client(), f"unix:{server.address}"
    old, new = Driver(address), Next(address)
    expect(old.open() == 0, "open of the old version")
    own = libraries(redis)
    expect(len(own) == 2 and own[0] == "timerhub", own)
    queue = Queue(redis, QUEUE)
    queue.put("first", 0)
    take(old, "first")
    expect(new.open() == 0, "open of the next version")
    expect(len(libraries(redis)) == 3 and set(own) < set(libraries(redis)), libraries(redis))
    plain = redis("FCALL_RO", "timerhub_version", 0)[1]
    expect(f"timerhub{plain}" in libraries(redis), "plain names have version", plain)
    expect(old("done") == 0, "done of what the old version took before")
    for putter, taker in ((old, new), (new, old), (old, old), (new, new)):
        name = f"{putter is new}-{taker is new}"
        expect(putter("put", name, 10, "data") == 0, "put")
        take(taker, name)
        expect(taker("done") == 0, "done of", name)
    expect(old("put", "far", 3_600_000, "data") == 0 and new("move", "far", 0) == 0, "move")
    take(old, "far")
    expect(old("retry", 0) == 0, "retry")
    take(new, "far")
    expect(new("done") == 0, "done")
    new.close()
    expect(old("put", "last", 10, "data") == 0, "put after the next version has gone")
    take(old, "last")
    expect(old("done") == 0 and old("close") == 0, "done")
    expect(old.open() == 0, "open again")
    old.close()
    # A server that still has the functions of 0.4 keeps them: its clients call plain names.
    redis("FUNCTION", "FLUSH", "SYNC")  # Valkey 8.1.1 can crash at a LOAD that follows an ASYNC one
    redis("FUNCTION", "LOAD", library(path).replace("local VERSION = ", "local VERSION = 3 --"))
    expect(opening(address, serve=0) == 0, "open beside the functions of 0.4")
    expect(redis("FCALL_RO", "timerhub_version", 0)[1] == 3, "the plain names were replaced")


class CutAtSecondLoad(Proxy):
    """Loses the second FUNCTION LOAD and its connection."""
    loads = 0

    def next_command(self, request):
        self.loads += b"FUNCTION" in request and b"LOAD" in request
        hit = self.loads == 2 and self.fault is None
        self.fault = "before" if hit else self.fault
        return self.number if hit else -1


def check_both_are_loaded():
    """A client is lost while it loads the functions. Whoever opens next loads what is missing, also
    the plain names, which only programs in other languages call."""
    with Server() as server:
        proxy = CutAtSecondLoad(f"{server.folder}/proxy", server.address)
        expect(opening(f"unix:{proxy.path}", serve=0) == 0, "open")
        names = libraries(server.client())
        expect(proxy.fault and len(names) == 2 and names[0] == "timerhub", names)
        proxy.close()


def check_layout(server):
    """A later version has changed the layout of the keys under open clients."""
    redis, address = server.client(), f"unix:{server.address}"
    worker, other = Driver(address), Driver(address)
    expect(worker.open(0) == 0, "open")
    queue = Queue(redis, QUEUE)
    for name in ("third", "fourth"):
        queue.put(name, 0)
    queue.call("look", "relay", 128, 10**7, 10**5, "")
    take(worker, "third")
    was = redis("HGET", queue.prefix + "state", "version")
    redis("HSET", queue.prefix + "state", "version", LATER)
    begin = time.monotonic()
    expect(worker("done") == -95, "done of a later layout")
    expect(worker("put", "x", 0, "") == -95, "put into a later layout")
    expect(other.open(0) == -95, "open of a later layout")
    expect(worker("cancel", "nobody") == -95, "cancel in a later layout")
    expect(time.monotonic() - begin < ARRIVES / 2, "a later layout is refused only after a while")
    expect(worker("take", 300) == 0, "a task was taken that could not be ended")
    expect(queue.call("repair", "task", "0") == [-95], "repair of records of a later layout")
    redis("HSET", queue.prefix + "state", "version", was)
    take(worker, "fourth")
    expect(worker("done") == 0, "done after the layout is known again")
    expect(other.open(1) == 0, "open of a relay that serves")
    redis("HSET", queue.prefix + "state", "version", LATER)
    redis("PUBLISH", queue.prefix + "bell", 1)
    wait_until(lambda: other("take", 0) == -95, "a poll that notices the layout")
    worker.close()
    other.close()


def main(arguments):
    Driver.program, Next.program = arguments[1], arguments[2]
    with Server() as server:
        check_side_by_side(server, arguments[3])
        check_layout(server)
    check_both_are_loaded()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
