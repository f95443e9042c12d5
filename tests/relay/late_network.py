# SPDX-License-Identifier: MIT
"""A network that delivers late: it holds bytes, cuts, and delivers what it held after the cut."""

import asyncio
import time


class Network:
    """
    Listens on a unix socket and forwards bytes to the server. Each direction of a connection may be
    held. While `is_away`, all directions are held, also of new connections. `slowest` is the
    longest time, in ns, for which bytes were held that came through without a cut.
    """

    def __init__(self, path, target):
        self.path, self.target = path, target
        self.connections, self.is_away, self.slowest = [], False, 0
        self.listener, self.tasks = None, set()

    async def open(self):
        self.listener = await asyncio.start_unix_server(self.accepted, self.path)

    async def accepted(self, reader, writer):
        try:
            ends = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.close()
            return
        connection = Connection((reader, writer), ends)
        self.connections.append(connection)
        if self.is_away:
            connection.hold("up", "down")
        try:
            await asyncio.gather(connection.carry("up"), connection.carry("down"))
        finally:
            self.connections.remove(connection)

    def go_away(self):
        self.is_away = True
        for connection in self.connections:
            connection.hold("up", "down")

    def come_back(self):
        self.is_away = False
        for connection in self.connections:
            self.let_go(connection)

    def let_go(self, connection):
        if self.is_away:
            return
        if connection.held_since and not connection.is_cut:
            self.slowest = max(self.slowest, time.time_ns() - connection.held_since)
        connection.let_go()

    async def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.end()
        while self.connections:
            await asyncio.sleep(0.001)


class Connection:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.is_cut, self.held_since = False, 0
        self.open = {"up": asyncio.Event(), "down": asyncio.Event()}
        self.let_go()

    def hold(self, *directions):
        self.held_since = self.held_since or time.time_ns()
        for direction in directions:
            self.open[direction].clear()

    def let_go(self):
        self.held_since = 0
        for event in self.open.values():
            event.set()

    def cut(self):
        """The client finds its connection closed. What it sent is still on its way."""
        self.is_cut = True
        self.client[1].transport.abort()

    def end(self):
        self.let_go()
        self.client[1].transport.abort()
        self.server[1].transport.abort()

    async def carry(self, direction):
        """Forwards bytes. A client's end arrives behind its last byte."""
        reader, writer = ((self.client[0], self.server[1]) if direction == "up" else
                          (self.server[0], self.client[1]))
        try:
            while data := await reader.read(65536):
                await self.open[direction].wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        await self.open[direction].wait()
        try:
            if direction == "up":
                writer.write_eof()
            else:
                writer.close()
        except OSError:
            pass
