#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts examples/loops/asyncio_loop.py into the storm of storm.h.

Usage: storm_asyncio.py FOLDER

FOLDER has asyncio_loop.py.
"""

import asyncio
import socket
import sys

sys.dont_write_bytecode = True  # the sources may be read-only
sys.path.insert(0, sys.argv[1])
import asyncio_loop  # pylint: disable=import-error,wrong-import-position

CONNECTIONS = 300
HOUR_NS = 3_600_000_000_000


class Storm:
    """The connections, whose data lies in their sockets."""

    def __init__(self, timeouts):
        self.timeouts = timeouts
        self.served = self.hung_up = 0
        self.over = asyncio.Event()
        self.pairs = [socket.socketpair() for _ in range(CONNECTIONS)]
        self.idle = {pair[0]: timeouts.call_at(HOUR_NS + timeouts.now_ns(), self.hang_up)
                     for pair in self.pairs}
        for connection, sender in self.pairs:
            sender.send(b"x")
            asyncio.get_running_loop().add_reader(connection, self.serve, connection)

    def serve(self, connection):
        """The first handler gives all others a deadline in the past."""
        asyncio.get_running_loop().remove_reader(connection)
        connection.recv(1)
        self.served += 1
        if not self.hung_up:  # else the timeout may have gone
            self.timeouts.remove(self.idle.pop(connection))
        if self.served == 1:
            for other, idle in self.idle.items():
                self.timeouts.remove(idle)
                self.idle[other] = self.timeouts.call_at(1, self.hang_up)
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
