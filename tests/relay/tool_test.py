#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""timerhub-relay: its commands, and the daemon among others of its kind.

Usage: tool_test.py TIMERHUB_RELAY
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from redis_server import ARRIVES, Server

QUEUE = "orders"


class Tool:
    """The program, and the server that it is told of."""

    def __init__(self, program, server):
        self.program, self.server = program, server
        self.environment = os.environ | {"REDIS_URL": f"unix:{server.address}"}

    def __call__(self, *words, status=0, given=None, **environment):
        done = subprocess.run([self.program, *words], env=self.environment | environment,
                              input=given, capture_output=True, text=True, timeout=3 * ARRIVES,
                              check=False)
        expect(done.returncode == status, words, "ended with", done.returncode, done.stderr)
        expect((status == 0) == (done.stderr == "") or "check" in words, words, done.stderr)
        return done.stdout

    def json(self, *words):
        return json.loads(self("--json", *words))

    def run(self, **environment):
        return subprocess.Popen([self.program, "run", QUEUE], env=self.environment | environment)


def expect(condition, *what):
    if not condition:
        print("not so:", *what)
        sys.exit(1)


def wait_until(condition, what):
    deadline = time.monotonic() + ARRIVES
    while not condition():
        expect(time.monotonic() < deadline, "never:", what)
        time.sleep(0.005)


def check_commands(tool, redis):
    tool("stat", QUEUE, status=3)  # no functions there
    tool("load")
    tool("check", QUEUE, status=3)  # no such queue
    tool("create", QUEUE, "attempts_max=1", "data_max=100")
    tool("set", QUEUE, "tasks_max=3")
    tool("set", QUEUE, "tasks_max=0", status=1)
    tool("put", QUEUE, "a", "1h", "data of a")
    tool("put", QUEUE, "a", "1h", status=1)
    tool("--replace", "put", QUEUE, "a", "30m", '"quoted"\n')
    tool("put", QUEUE, "b", "@1700000000.5", "-", given="from a pipe")
    tool("put", QUEUE, "c", "never")
    tool("put", QUEUE, "d", "1s", status=1)  # tasks_max
    expect([row["id"] for row in tool.json("list", QUEUE)] == ["b", "a", "c"], "list")
    expect(tool.json("list", QUEUE, "1")[0] == {"id": "b", "due": 1700000000500000, "attempts": 0,
                                               "put": tool.json("list", QUEUE)[0]["put"],
                                               "bytes": 11}, "a row of list")
    expect(tool("list", QUEUE).splitlines()[2].startswith("c due -1 "), "list as text")
    peek = tool.json("peek", QUEUE, "a")[0]
    expect(peek["where"] == "waiting" and peek["data"] == '"quoted"\n', "peek", peek)
    expect(r"data \x22quoted\x22\x0a" in tool("peek", QUEUE, "a"), "peek as text")
    tool("move", QUEUE, "c", "1d")
    tool("cancel", QUEUE, "a")
    tool("cancel", QUEUE, "a", status=1)
    tool("done", QUEUE, "c")
    stat = tool.json("stat", QUEUE)
    expect(stat["due"] == 1 and stat["tasks_max"] == 3 and stat["past"] == 2, "stat", stat)
    expect("\ntasks_max 3\n" in tool("stat", QUEUE), "stat as text")
    tool("cancel", QUEUE, "b")
    redis("DEL", f"timerhub:{{{QUEUE}}}:past")


def check_wrong_use(tool):
    for words in ((), ("what",), ("put", QUEUE), ("put", QUEUE, "x", "soon"), ("run",),
                  ("put", QUEUE, "x", "1y"), ("put", QUEUE, "x", "-1s"), ("--what", "load"),
                  ("list", QUEUE, "1001"), ("create", QUEUE, "x"), ("load", "more"),
                  ("--batch", "1001", "run", QUEUE),
                  ("--redis", "redis://:secret@localhost", "load")):
        tool(*words, status=2)
    tool("--redis", "unix:/nowhere", "load", status=3)
    tool("create", "bad name", status=3)
    expect("usage" in tool("--help"), "no usage")


def check_durability(tool, redis):
    expect("no persistence" in tool("check", QUEUE), "no persistence")
    for name, value, wanted in (("save", "60 1", "RDB only"), ("appendonly", "yes", "up to 2 s"),
                                ("appendfsync", "always", "nothing is lost")):
        redis("CONFIG", "SET", name, value)
        expect(wanted in tool("check", QUEUE), wanted)
    for name, value in (("save", ""), ("appendonly", "no"), ("maxmemory-policy", "volatile-lru")):
        redis("CONFIG", "SET", name, value)
    expect("may vanish" in tool("check", QUEUE, status=1), "eviction")
    redis("CONFIG", "SET", "maxmemory-policy", "noeviction")


def check_daemon(tool, redis, folder):
    """It tells its manager, is an alarm clock, survives Redis, and leaves when told to."""
    path = f"{folder}/notify.sock"
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(path)
    manager.settimeout(ARRIVES)
    seats = f"timerhub:{{{QUEUE}}}:seats"
    first = tool.run(NOTIFY_SOCKET=path, WATCHDOG_USEC="100000")
    expect(manager.recv(100) == b"READY=1", "not ready")
    expect(manager.recv(100) == b"WATCHDOG=1", "no watchdog")
    second = tool.run()
    wait_until(lambda: redis("ZCARD", seats) == 2, "two seats")
    tool("put", QUEUE, "due", "20ms")
    wait_until(lambda: tool.json("peek", QUEUE, "due")[0]["where"] == "undelivered", "promotion")
    tool("cancel", QUEUE, "due")
    tool.server.kill()
    tool.server.start()
    fresh = tool.server.client()  # this server keeps nothing: all is made again
    wait_until(lambda: fresh("ZCARD", seats) == 2, "two seats again")
    tool("put", QUEUE, "due", "20ms")
    wait_until(lambda: tool.json("peek", QUEUE, "due")[0]["where"] == "undelivered", "promotion")
    first.send_signal(signal.SIGTERM)
    expect(first.wait(ARRIVES) == 0, "the first did not end well")
    wait_until(lambda: fresh("ZCARD", seats) == 1, "the first has left")
    while (said := manager.recv(100)) == b"WATCHDOG=1":
        pass
    expect(said == b"STOPPING=1", "said", said)
    second.send_signal(signal.SIGINT)
    expect(second.wait(ARRIVES) == 0, "the second did not end well")
    expect(fresh("ZCARD", seats) == 0, "a seat is left")


def check_dead(tool, redis):
    """A task that has used up its attempts is shown, and put again."""
    tool("create", QUEUE, "attempts_max=1")
    tool("put", QUEUE, "poor", "0s", "data")
    daemon = tool.run()
    wait_until(lambda: tool.json("peek", QUEUE, "poor")[0]["where"] == "undelivered", "promotion")
    daemon.terminate()
    daemon.wait(ARRIVES)
    keys = [f"timerhub:{{{QUEUE}}}:{part}"
            for part in ("due", "task", "ready", "state", "past", "seats", "dead")]
    redis("XREADGROUP", "GROUP", "timerhub", "c", "STREAMS", keys[2], ">")
    redis("FCALL", "timerhub_retry", 7, *keys, "poor", 0)
    dead = next(one for one in tool.json("dead", QUEUE) if one["id"] == "poor")
    expect(dead["why"] == "attempts" and dead["data"] == "data", "dead", dead)
    expect("why attempts data data" in tool("dead", QUEUE), "dead as text")
    tool("revive", QUEUE, dead["entry"])
    tool("revive", QUEUE, dead["entry"], status=1)
    expect(tool.json("peek", QUEUE, "poor")[0]["where"] == "waiting", "revived")


def main(arguments):
    with Server() as server:
        tool = Tool(pathlib.Path(arguments[1]).resolve(), server)
        redis = server.client()
        check_commands(tool, redis)
        check_wrong_use(tool)
        check_durability(tool, redis)
        check_daemon(tool, redis, server.folder)
        check_dead(tool, server.client())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
