# SPDX-License-Identifier: MIT
"""Starts a Redis or Valkey server for a test, and has a small client for the tests.

The server listens on a unix socket in a directory that is removed with the server. It listens on no
port unless a test needs one, so no test can reach a server that is in use. Debian's package redis-
tools has the program under the name redis-check-rdb. If this program is called by the name redis-
server, it is the server.
"""

import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import scratch  # pylint: disable=wrong-import-position

SKIP = 77
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
ARRIVES = 20  # time limit for each expected event, in seconds


def expect(condition, *what):
    if condition:
        return
    print("not so:", *what, flush=True)
    if threading.current_thread() is threading.main_thread():
        sys.exit(1)
    os._exit(1)  # sys.exit() would end this thread alone


def wait_until(condition, what, limit=2 * ARRIVES):
    deadline = time.monotonic() + limit
    while not condition():
        expect(time.monotonic() < deadline, "never:", what)
        time.sleep(0.01)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def program(folder):
    """Returns the server's program, which may be a link in the folder. If there is no server, skips
    the test.

    The environment variable TIMERHUB_TEST_SERVER is redis (the default) or valkey."""
    name = os.environ.get("TIMERHUB_TEST_SERVER", "redis")
    found = shutil.which(f"{name}-server")
    if found:
        return found
    found = shutil.which(f"{name}-check-rdb")
    if not found:
        print(f"skipped: no {name}-server and no {name}-check-rdb here (package {name}-tools)")
        sys.exit(SKIP)
    link = pathlib.Path(folder) / f"{name}-server"
    if not link.exists():
        link.symlink_to(found)
    return link


class RedisError(Exception):
    """An error reply."""


class Client:
    """One connection to the server. A reply is an int, bytes, None, or a list of replies. An error
    reply is raised."""

    def __init__(self, address, timeout=ARRIVES):
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        self.socket = socket.socket(family)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    @staticmethod
    def encode(words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        return b"".join(parts)

    def send(self, *words):
        self.socket.sendall(self.encode(words))

    def receive(self):
        reply = self._read()
        if isinstance(reply, RedisError):
            raise reply
        return reply

    def _read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed by the server")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        count = int(rest)
        if count < 0:
            return None
        if kind == b"$":
            return self.file.read(count + 2)[:-2]
        return [self._read() for _ in range(count)]

    def __call__(self, *words):
        self.send(*words)
        return self.receive()


def die_with_test():
    """In the child process: lets the kernel end the server if the test is killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A server. start() starts it, and kill() ends it. close() removes its data."""

    def __init__(self, *options, environment=None):
        self.environment = os.environ | (environment or {})
        self.folder = tempfile.mkdtemp(prefix="timerhub-", dir=scratch.for_sockets())
        self.program = program(self.folder)
        self.address = f"{self.folder}/redis.sock"
        self.options = options
        self.process = None
        self.start()

    def start(self, *more, wait=True):
        command = [self.program, "--port", "0", "--unixsocket", self.address,
                   "--dir", self.folder, "--save", "", "--daemonize", "no", *self.options, *more]
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            env=self.environment, preexec_fn=die_with_test)
        deadline = time.monotonic() + ARRIVES
        while True:
            try:
                client = self.client()
                if wait:
                    client("PING")
                client.close()
                return
            except (OSError, RedisError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    print(pathlib.Path(f"{self.folder}/log").read_text(encoding="utf-8"))
                    raise
                time.sleep(0.01)

    def client(self, timeout=ARRIVES):
        return Client(self.address, timeout)

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()
        if os.path.exists(self.address):
            os.unlink(self.address)

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class PortServer(Server):
    """A server that also listens on a port."""

    def __init__(self, *options, host="127.0.0.1", port=None):
        self.host, self.port = host, port or free_port()
        super().__init__("--port", str(self.port), "--bind", host,
                         "--repl-diskless-sync-delay", "0", *options)


def library(path, now_key=None):
    """Returns the text of timerhub.lua. If now_key is given, the functions take the time from this
    key."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if now_key:
        begin = text.index("    local time = redis_call('TIME')")
        end = text.index("end\n", begin)
        text = f"{text[:begin]}    return tonumber(redis.call('GET', '{now_key}'))\n{text[end:]}"
    return text
