#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds examples/uring_server and examples/session_server to their job, from outside.

Usage: test_uring_server.py [--seed N] COMMAND...

Every byte comes back, to many clients at once. No connection is closed before it was silent for the
idle time, by the clock of this process. Every silent connection is closed, even if the client does
not read, or the server has no descriptors left. A socket with much data keeps no other waiting.
Nobody is hung up whose data came while the server was stopped. The server's counts are exact. It
ends on a signal, with open connections. Exit status 77 if the kernel refuses io_uring.
"""

import os
import pathlib
import random
import resource
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
from skip_without_uring import check_uring  # pylint: disable=wrong-import-position
from idle_process import rests  # pylint: disable=wrong-import-position
from verdict import Wrong, verdict  # pylint: disable=wrong-import-position

HANG_S = 60           # "for ever"
IDLE_MS = 200
CLIENTS = 6
BYTES = 200_000       # each: many times a server's buffer
SILENT = 60
FEW_DESCRIPTORS = 24
MANY_CONNECTIONS = 42
IDLE_S = 0.5
SO_TIMESTAMPNS = 35   # not in Python's module socket
GREEDY_BYTES = 30_000 # many times the 4096 of a server, and few enough for one window of TCP
STOPPED = 200         # more connections than the server's array of events holds
STOPPED_MS = 1000
PAUSE_S = 0.01        # much shorter than the time between two readings of the descriptors


class Server:
    """A run of the server, with the counts that the server must print at its end."""

    def __init__(self, command, idle_ms, descriptors=None):
        limit = None if descriptors is None else (lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (descriptors, descriptors)))
        # pylint: disable-next=subprocess-popen-preexec-fn # no thread of ours runs yet
        self.process = subprocess.Popen([*command, "-t", str(idle_ms)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=limit)
        self.watchdog = threading.Timer(2 * HANG_S, self.process.kill)
        self.watchdog.start()
        self.idle_ns = idle_ms * 1_000_000
        self.accepted = self.echoed = self.idle = 0
        self.lock = threading.Lock()
        line = self.process.stdout.readline()
        match = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)
        if not match:
            self.ended(line)
        self.port = int(match[1])

    def ended(self, line):
        self.watchdog.cancel()
        error = self.process.communicate()[1]
        check_uring(self.process.returncode, error)
        raise Wrong(f"it says {line!r}, {error!r}")

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S)
        with self.lock:
            self.accepted += 1
        return connection

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watchdog.cancel()
        self.process.kill()
        self.process.communicate()

    def stop(self, how):
        self.process.send_signal(how)
        out, error = self.process.communicate(timeout=HANG_S)
        if self.process.returncode != 0 or error:
            raise Wrong(f"exit status {self.process.returncode}, {error!r}")
        wanted = f"accepted={self.accepted} idle={self.idle} echoed_bytes={self.echoed}\n"
        if out != wanted:
            raise Wrong(f"it says {out!r}, not {wanted!r}")


def in_threads(count, function, *arguments):
    """Calls function(index, *arguments) in threads. Raises an exception of any thread."""
    raised = []

    def run(index):
        try:
            function(index, *arguments)
        except (Wrong, OSError) as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def receive_all(connection, count):
    received = bytearray()
    while len(received) < count:
        more = connection.recv(65536)
        if not more:
            raise Wrong(f"closed after {len(received)} bytes of {count}")
        received += more
    return bytes(received)


def echo(index, server, seed):
    """One direction in another thread, or both sides would wait for the other to read."""
    payload = random.Random(seed + index).randbytes(BYTES)
    with server.connect() as connection:
        writer = threading.Thread(target=connection.sendall, args=(payload,))
        writer.start()
        received = receive_all(connection, BYTES)
        writer.join()
    if received != payload:
        raise Wrong("other bytes came back")
    with server.lock:
        server.echoed += BYTES


def test_echo(command, seed):
    # The idle timeout is so long that a stall of the machine does not close a connection.
    with Server(command, 1000 * HANG_S) as server:
        in_threads(CLIENTS, echo, server, seed)
        left = [server.connect() for _ in range(10)]
        for connection in left:
            connection.sendall(b"x")
            receive_all(connection, 1)
            server.echoed += 1
        if not rests(server.process.pid, IDLE_S, HANG_S):
            raise Wrong(f"it does not sleep for {IDLE_S} s with nothing to do")
        server.stop(signal.SIGTERM)
        for connection in left:
            if connection.recv(1) != b"":
                raise Wrong("bytes after the end")
            connection.close()


def fall_silent(index, server, seed):
    """The client sends a few times, and then stops."""
    dice = random.Random(seed + index)
    last_ns = time.monotonic_ns()
    with server.connect() as connection:
        for _ in range(dice.randrange(5)):
            time.sleep(dice.random() * 0.8 * IDLE_MS / 1000)
            sign_ns = time.monotonic_ns()
            try:
                connection.sendall(b"alive")
                answer = connection.recv(5, socket.MSG_WAITALL)
            except ConnectionError:
                answer = b""
            if not answer: # this process was stopped for that long; the end is checked below
                break
            last_ns = sign_ns
            with server.lock:
                server.echoed += 5
        else:
            if connection.recv(1) != b"":
                raise Wrong("bytes that nobody sent")
        early_ns = last_ns + server.idle_ns - time.monotonic_ns()
    if early_ns > 0:
        raise Wrong(f"a connection was closed {early_ns} ns early")
    with server.lock:
        server.idle += 1


def test_silent(command, seed):
    with Server(command, IDLE_MS) as server:
        in_threads(SILENT, fall_silent, server, seed)
        server.stop(signal.SIGINT)


def test_glutton(command):
    """The client sends for ever and does not read. The server's send waits until the timer
    expires."""
    with Server(command, IDLE_MS) as server, server.connect() as connection:
        connection.setblocking(False)
        watch = select.poll()
        watch.register(connection, select.POLLOUT)
        try:
            while True:
                while watch.poll(10 * IDLE_MS):
                    connection.send(bytes(65536))
                if any(event & select.POLLHUP for _, event in watch.poll(0)):
                    break
        except ConnectionError:
            pass
        server.process.send_signal(signal.SIGTERM)
        out = server.process.communicate(timeout=HANG_S)[0]
        if not out.startswith("accepted=1 idle=1 "):
            raise Wrong(f"it says {out!r}")


def test_descriptors(command, seed):
    """More connections than it has descriptors: the others wait until there are some again."""
    with Server(command, IDLE_MS, FEW_DESCRIPTORS) as server:
        connections = [server.connect() for _ in range(MANY_CONNECTIONS)]
        dice = random.Random(seed)
        dice.shuffle(connections)
        for connection in connections:
            if connection.recv(1) != b"":
                raise Wrong("bytes that nobody sent")
            connection.close()
            server.idle += 1
        server.stop(signal.SIGTERM)


def test_want(command):
    """While it is out of descriptors, and connections wait, it sleeps; each gets its turn."""
    with Server(command, 1000 * HANG_S, FEW_DESCRIPTORS) as server:
        connections = [server.connect() for _ in range(MANY_CONNECTIONS)]
        if not rests(server.process.pid, PAUSE_S, HANG_S):
            raise Wrong("it never sleeps, for want of descriptors")
        for connection in connections:
            with connection:
                connection.sendall(b"x")
                receive_all(connection, 1)
            server.echoed += 1
        server.stop(signal.SIGTERM)


def wait_until(process, state):
    """Sleeping or stopped, as /proc/PID/stat names it."""
    stat = pathlib.Path(f"/proc/{process.pid}/stat")
    while stat.read_text("ascii").rsplit(") ", 1)[1][0] != state:
        time.sleep(0.001)


def stop(process):
    wait_until(process, "S")
    process.send_signal(signal.SIGSTOP)
    wait_until(process, "T")


def arrival(connection, count):
    """When the last of the bytes arrived: [seconds, nanoseconds]."""
    while count > 0:
        data, ancillary, _, _ = connection.recvmsg(count, 64)
        if not data:
            raise Wrong(f"closed with {count} bytes missing")
        count -= len(data)
    return struct.unpack("ll", ancillary[0][2])


def is_stamped(connection):
    """The kernel begins to note times a moment after the option was set."""
    connection.sendall(b"x")
    return bool(connection.recvmsg(1, 64)[1])


def test_greedy(command):
    """The kernel tells when the answers came, so a busy machine changes nothing."""
    with Server(command, 1000 * HANG_S) as server, server.connect() as greedy, \
            server.connect() as other:
        for connection in (greedy, other):
            connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            while not is_stamped(connection):
                pass
        stop(server.process)
        greedy.sendall(bytes(GREEDY_BYTES))
        other.sendall(b"x")
        # Else the server's kernel keeps the rest of the echo until an acknowledgment.
        greedy.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        server.process.send_signal(signal.SIGCONT)
        if arrival(other, 1) > arrival(greedy, GREEDY_BYTES):
            raise Wrong(f"a client waited until another had {GREEDY_BYTES} bytes echoed")


def answer(connection):
    try:
        return connection.recv(3)
    except ConnectionResetError:  # the server left data unread
        return b"reset"


def test_stopped(command, idle_ms=STOPPED_MS):
    """Data comes, and all timeouts pass, while the server is stopped: it serves the data."""
    with Server(command, idle_ms) as server:
        connections = [server.connect() for _ in range(STOPPED)]
        for connection in connections:
            connection.sendall(b"one")
            answer(connection)
        stop(server.process)
        closed = select.select(connections, [], [], 0)[0]  # before, if this process was slow
        connections = [one for one in connections if one not in closed]
        for connection in connections:
            connection.sendall(b"two")
        time.sleep(1.1 * idle_ms / 1000)
        server.process.send_signal(signal.SIGCONT)
        wrong = [said for said in map(answer, connections) if said != b"two"]
        if wrong:
            raise Wrong(f"after a stop, {len(wrong)} of {len(connections)} clients were told "
                        f"{wrong[:1]}")
    if not connections:  # this process stood still for that long
        test_stopped(command, 2 * idle_ms)


def test_server(command, seed, _):
    test_echo(command, seed)
    test_silent(command, seed)
    test_glutton(command)
    test_descriptors(command, seed)
    test_want(command)
    test_greedy(command)
    test_stopped(command)


def main(arguments):
    seed = int.from_bytes(os.urandom(4), "little")
    if arguments[:1] == ["--seed"]:
        seed, arguments = int(arguments[1], 0), arguments[2:]
    print(f"--seed {seed:#x}")
    return verdict(test_server, arguments, seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
