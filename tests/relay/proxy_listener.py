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
    """Listens on a unix socket, and passes each accepted connection to the method accepted()."""

    def __init__(self, path):
        self.path = path
        if os.path.exists(path):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
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
        os.unlink(self.path)
