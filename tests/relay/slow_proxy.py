# SPDX-License-Identifier: MIT
"""A proxy to Redis that is slow, becomes silent, hangs up, or connects to another server."""

import random
import socket
import threading
import time

from proxy_listener import Listener, hang_up


class SlowProxy(Listener):
    """
    Listens on a unix socket and forwards bytes. New connections go to the server `target`. While
    `up` or `down` of a connection is False, no byte and no end of the connection arrives in this
    direction, as when a cable is cut. cut() makes all connections silent, also new connections,
    until mend(). Bytes take from `least_s` to `delay_s` in each direction. A new connection ends
    after `cut_after` bytes of the server, unless this is None.
    """

    cut_after = None

    def __init__(self, path, target, delay_s=0, least_s=0):
        """`target` is the path of a unix socket, or a port."""
        self.target, self.delays = target, (least_s, delay_s)
        self.connections, self.is_cut, self.made = [], False, 0
        super().__init__(path)

    def close(self):
        super().close()
        for connection in self.connections:
            hang_up(*connection.ends)

    def accepted(self, client):
        try:
            if isinstance(self.target, int):
                server = socket.create_connection((self.host, self.target))
            else:
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.target)
        except OSError:
            client.close()
            return
        self.made += 1
        self.connections.append(Connection(client, server, self))

    def cut(self):
        self.is_cut = True
        for one in self.open_connections():
            one.up = one.down = False

    def mend(self):
        self.is_cut = False
        for one in self.connections:
            one.up = one.down = True

    def open_connections(self):
        self.connections = [one for one in self.connections if one.is_open]
        return self.connections


class Connection:
    """A connection through the proxy: its two sockets, and the bytes between them."""

    def __init__(self, client, server, proxy):
        self.ends, self.delays, self.left = (client, server), proxy.delays, proxy.cut_after
        self.is_open, self.up, self.down = True, not proxy.is_cut, not proxy.is_cut
        self.has_subscribed = False
        for direction in ("up", "down"):
            threading.Thread(target=self.carry, args=(direction,), daemon=True).start()

    def bytes_left(self, direction):
        return self.left if direction == "down" and self.left is not None else 65536

    def carry(self, direction):
        source, target = self.ends if direction == "up" else self.ends[::-1]
        try:
            while data := source.recv(self.bytes_left(direction)):
                self.has_subscribed |= b"SUBSCRIBE" in data
                if self.delays[1]:
                    time.sleep(random.uniform(*self.delays))
                if getattr(self, direction):
                    target.sendall(data)
                if direction == "down" and self.left is not None:
                    self.left -= len(data)
        except OSError:
            pass
        # The end of a silent connection is not forwarded.
        while not (self.up and self.down):
            time.sleep(0.01)
        self.is_open = False
        hang_up(*self.ends)
