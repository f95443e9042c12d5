#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts examples/loops/asyncio_loop.py into the storm of storm.h.

Usage: storm_asyncio.py FOLDER

FOLDER has asyncio_loop.py.
"""

import asyncio
import socket
import sys
import time

sys.dont_write_bytecode = True  # the sources may be read-only
sys.path.insert(0, sys.argv[1])
import asyncio_loop  # pylint: disable=import-error,wrong-import-position

CONNECTIONS = 20
IDLE_NS = 50_000_000


class Storm:
    """The connections, whose data lies in their sockets, and the first of which is slow."""

    def __init__(self, timeouts):
        self.timeouts = timeouts
        self.served = self.hung_up = 0
        self.over = asyncio.Event()
        self.pairs = [socket.socketpair() for _ in range(CONNECTIONS)]
        for pair in self.pairs:
            pair[1].send(b"x")
            idle = timeouts.call_at(timeouts.now_ns() + IDLE_NS, self.hang_up)
            asyncio.get_running_loop().add_reader(pair[0], self.serve, pair[0], idle)

    def serve(self, connection, idle):
        asyncio.get_running_loop().remove_reader(connection)
        connection.recv(1)
        self.served += 1
        if self.served == 1:
            time.sleep(2 * IDLE_NS / 1e9)
        if self.served > 1 or not self.hung_up:
            self.timeouts.remove(idle)
        self.end()

    def hang_up(self):
        self.hung_up += 1
        self.end()

    def end(self):
        if self.served + self.hung_up >= CONNECTIONS:
            self.over.set()


async def main(timeouts):
    asyncio.get_running_loop().add_reader(timeouts.fd(), lambda: None)
    storm = Storm(timeouts)
    await storm.over.wait()
    print(f"served {storm.served}, hung up {storm.hung_up} of {CONNECTIONS}")
    return 0 if (storm.served, storm.hung_up) == (CONNECTIONS, 0) else 1


if __name__ == "__main__":
    sys.exit(asyncio_loop.run(main))
