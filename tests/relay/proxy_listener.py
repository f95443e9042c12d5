# SPDX-License-Identifier: MIT
"""The listening socket of a proxy to Redis."""

import os
import socket
import threading


def hang_up(*sockets):
    """Ends the connections of the sockets in both directions. Threads that read a socket return."""
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Listener:
    """Listens on a unix socket, or on a port if the path is None, and passes each accepted
    connection to the method accepted()."""

    host = "127.0.0.1"

    def __init__(self, path):
        self.path = path
        if path and os.path.exists(path):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listener.bind(path or (self.host, 0))
        self.port = None if path else self.listener.getsockname()[1]
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.accepted(client)

    def accepted(self, client):
        raise NotImplementedError

    def close(self):
        hang_up(self.listener)
        self.listener.close()
        if self.path:
            os.unlink(self.path)
