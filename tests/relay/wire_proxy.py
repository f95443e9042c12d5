# SPDX-License-Identifier: MIT
"""A proxy to Redis that fails at one command. The commands of all connections are numbered."""

import socket
import threading

from proxy_listener import Listener, hang_up

LATE = 5


def read_raw(file):
    """Returns one request or reply as its bytes on the wire, or no bytes at the end."""
    line = file.readline()
    if not line.endswith(b"\r\n"):
        return b""
    kind, rest = line[:1], line[1:-2]
    if kind == b"$" and int(rest) >= 0:
        return line + file.read(int(rest) + 2)
    if kind == b"*":
        return line + b"".join(read_raw(file) for _ in range(max(int(rest), 0)))
    return line


class Proxy(Listener):
    """
    Listens on a unix socket. `fault` is one of
      before    the command is lost, and its connection is closed
      after     the command is executed, its reply is lost, and the connection is closed
      late      the connection is closed, and a call of a function is executed LATE commands later
      last      the connection is closed, and a call of a function is executed at the end
      silent    no byte comes through on this connection any more, in either direction
      an error  the proxy replies with this error
    If `fault` is None, the proxy only counts the commands.
    """

    def __init__(self, path, server, fault=None, number=0):
        self.server, self.fault, self.number = server, fault, number
        self.commands, self.names = 0, []
        self.kept = None
        self.lock = threading.Lock()
        self.sockets = []
        super().__init__(path)

    def close(self):
        self.deliver()
        super().close()
        hang_up(*self.sockets)
        for one in self.sockets:
            one.close()

    def accepted(self, client):
        threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def next_command(self, request):
        """Returns the number of the command, from 1."""
        with self.lock:
            self.commands += 1
            words = request.split(b"\r\n")
            self.names.append(b" ".join(words[2:5:2]).decode(errors="replace"))
            number = self.commands
        if self.fault == "late" and number == self.number + LATE:
            self.deliver()
        return number

    def deliver(self):
        """Sends the kept call to the server."""
        with self.lock:
            kept, self.kept = self.kept, None
        if kept:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(self.server)
                server.sendall(kept)
                read_raw(server.makefile("rb"))

    def serve(self, client):
        server = socket.socket(socket.AF_UNIX)
        self.sockets += [client, server]
        try:
            server.connect(self.server)
            self.forward(client, server)
        except (OSError, ValueError):
            pass
        hang_up(client, server)
        client.close()
        server.close()

    def forward(self, client, server):
        requests, replies = client.makefile("rb"), server.makefile("rb")
        subscribed = False
        while request := read_raw(requests):
            hit = self.next_command(request) == self.number
            if hit and self.fault in ("before", "late", "last"):
                if self.fault != "before" and b"FCALL" in request:
                    self.kept = request
                return
            if hit and self.fault == "silent":
                while client.recv(65536):
                    pass
                return
            if hit and self.fault != "after":
                client.sendall(b"-" + self.fault.encode() + b"\r\n")
                continue
            server.sendall(request)
            if subscribed:
                continue
            if b"SUBSCRIBE" in request and not hit:
                subscribed = True
                threading.Thread(target=self.pump, args=(server, client), daemon=True).start()
                continue
            reply = read_raw(replies)
            if hit or not reply:
                return
            client.sendall(reply)

    @staticmethod
    def pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
