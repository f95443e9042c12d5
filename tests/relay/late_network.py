# SPDX-License-Identifier: MIT
"""A network that delivers late: it holds bytes, cuts, and delivers what it held after the cut."""

import asyncio


class Network:
    """
    Listens on a unix socket and forwards bytes to the server. Each direction of a connection may be
    held. While `is_away`, all directions are held, also of new connections.
    """

    def __init__(self, path, target):
        self.path, self.target = path, target
        self.connections, self.is_away = [], False
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
        if not self.is_away:
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
        self.open = {"up": asyncio.Event(), "down": asyncio.Event()}
        self.let_go()

    def hold(self, *directions):
        for direction in directions:
            self.open[direction].clear()

    def let_go(self):
        for event in self.open.values():
            event.set()

    def cut(self):
        """The client finds its connection closed. What it sent is still on its way."""
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
