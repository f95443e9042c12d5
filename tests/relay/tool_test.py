#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the commands of timerhub-relay, and its daemon together with other daemons.

Usage: tool_test.py TIMERHUB_RELAY
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import openmetrics  # pylint: disable=wrong-import-position
from terminal import check_colour  # pylint: disable=wrong-import-position

from queue_client import Queue
from redis_server import (ARRIVES, PortServer, RedisError, Server, die_with_test, expect,
                          wait_until)
from sentinels import FakeSentinel, Sentinel, url_of
from servers_test import ids_of_shards
from wire_proxy import Proxy

QUEUE = "orders"


class Tool:
    """The program timerhub-relay, and the server that it uses."""

    def __init__(self, program, server, url=None):
        self.program, self.server = program, server
        self.environment = os.environ | {"REDIS_URL": url or f"unix:{server.address}"}

    def run(self, status, *words, given=None, **environment):
        done = subprocess.run([self.program, *words], env=self.environment | environment,
                              input=given, capture_output=True, text=True, timeout=3 * ARRIVES,
                              check=False)
        expect(done.returncode == status, words, "ended with", done.returncode, done.stderr)
        return done

    def __call__(self, *words, status=0, **how):
        done = self.run(status, *words, **how)
        expect((status == 0) == (done.stderr == "") or "check" in words, words, done.stderr)
        return done.stdout

    def says(self, status, *words):
        """Returns the error output of a command that is refused or fails."""
        return self.run(status, *words).stderr

    def json(self, *words):
        return json.loads(self("--json", *words))

    def where(self, queue=QUEUE):
        """What an error's line begins with."""
        return f"timerhub-relay: {queue}: {self.environment['REDIS_URL']}: "

    def over(self, *servers):
        """The tool with other servers."""
        return Tool(self.program, servers[0], ",".join(f"unix:{one.address}" for one in servers))


class Daemon:
    """Runs timerhub-relay run during the block, which must read every line that the daemon prints.

    On a busy machine a server may answer so late that the daemon says that it does not answer. Then
    further lines that say that a server is lost or back need not be read."""

    def __init__(self, tool, *queues, preexec=die_with_test, **environment):
        self.has_waited = False
        self.process = subprocess.Popen(
            [tool.program, "run", *(queues or (QUEUE,))], env=tool.environment | environment,
            stderr=subprocess.PIPE, text=True, preexec_fn=preexec)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def is_more(self, line):
        self.has_waited |= line.endswith(", or does not answer; tries again\n")
        return self.has_waited and line.endswith(("; tries again\n", ": serves again\n"))

    def says(self, line, begin=None):
        """Reads a line, which must be `line`, or begin with `begin` and end with `line`."""
        begin, said = begin or line, self.said()
        while not (said.startswith(begin) and said.endswith(line + "\n")):
            expect(self.is_more(said), "said", said, "not", begin, "...", line)
            said = self.said()

    def said(self):
        line = self.process.stderr.readline()
        self.is_more(line)
        return line

    def end(self, how=signal.SIGTERM, status=0):
        if how:
            self.process.send_signal(how)
        expect(self.process.wait(ARRIVES) == status, "daemon ended with", self.process.returncode)
        rest = [line for line in self.process.stderr if not self.is_more(line)]
        expect(not rest, "it says more:", rest)


def seats_of(redis, queue=QUEUE):
    """Returns the numbers of the processes that have seats among the relays of a queue."""
    seats = redis("ZRANGE", f"timerhub:{{{queue}}}:seats", 0, -1)
    return {int(seat.split(b"-")[-2]) for seat in seats}


def wait_for_seats(redis, *processes, queue=QUEUE):
    """Waits until these have seats. Others may have seats too: a relay that ends while it connects
    anew leaves its seat to be found dead."""
    pids = {process.pid for process in processes}
    wait_until(lambda: pids <= seats_of(redis, queue), f"seats of {pids}")


@contextlib.contextmanager
def serving(tool, redis):
    """Runs the daemon during the block."""
    with Daemon(tool) as daemon:
        wait_for_seats(redis, daemon.process)
        yield


def check_commands(tool, redis):
    tool("create", QUEUE, "attempts_max=1", "data_max=100")
    tool("set", QUEUE, "tasks_max=3")
    tool("put", QUEUE, "a", "1h", "data of a")
    tool("put", QUEUE, "a", "1h", status=1)
    tool("--replace", "put", QUEUE, "a", "30m", '"quoted"\n')
    tool("put", QUEUE, "b", "@1700000000.4999991", "-", given="from a pipe")
    tool("put", QUEUE, "c", "never")
    tool("put", QUEUE, "d", "1s", status=1)  # tasks_max
    expect([row["id"] for row in tool.json("list", QUEUE)] == ["b", "a", "c"], "list")
    expect(tool.json("list", QUEUE, "1")[0] == {"id": "b", "due": 1700000000500000, "attempts": 0,
                                               "put": tool.json("list", QUEUE)[0]["put"],
                                               "bytes": 11}, "a row of list")
    lines = tool("list", QUEUE).splitlines()
    expect(lines[0].startswith("b due 2023-11-14T22:13:20.5Z attempts 0 put 20"), "a date", lines)
    expect(lines[2].startswith("c due never "), "no date", lines)
    expect(tool("list", "--ns", QUEUE).startswith("b due 1700000000500000000 "), "list --ns")
    peek = tool.json("peek", QUEUE, "a")[0]
    expect(peek["where"] == "waiting" and peek["data"] == '"quoted"\n', "peek", peek)
    expect(peek["due"] - peek["put"] == 30 * 60 * 1000000, "the delay", peek)
    expect(r"data \x22quoted\x22\x0a" in tool("peek", QUEUE, "a"), "peek as text")
    for data in ("007", "42", ""):
        tool("--replace", "put", QUEUE, "a", "30m", data)
        expect(tool.json("peek", QUEUE, "a")[0]["data"] == data, "digits are no number", data)
    folder = os.open("/", os.O_RDONLY)
    done = subprocess.run([tool.program, "--replace", "put", QUEUE, "a", "1h", "-"], stdin=folder,
                          env=tool.environment, capture_output=True, check=False)
    os.close(folder)
    expect(done.returncode == 3 and b"standard input cannot be read" in done.stderr, done)
    tool("move", QUEUE, "c", "2100-02-28T23:59:59.25-02:00")
    expect(" due 2100-03-01T01:59:59.25Z" in tool("peek", QUEUE, "c"), "a date, moved")
    tool("cancel", QUEUE, "a")
    tool("cancel", QUEUE, "a", status=1)
    expect("no consumer has the task; cancel withdraws it" in tool.says(1, "done", QUEUE, "c"),
           "done of a task that waits")
    tool("cancel", QUEUE, "c")
    stat = tool.json("stat", QUEUE)
    expect(stat["waiting"] == 1 and stat["tasks_max"] == 3 and stat["past"] == 2, "stat", stat)
    expect("\ntasks_max 3\n" in tool("stat", QUEUE), "stat as text")
    tool("cancel", QUEUE, "b")
    redis("DEL", f"timerhub:{{{QUEUE}}}:past")


def check_fresh(tool, redis):
    """Tests a server without a queue and without functions. The tool must name the missing part and
    the server."""
    questions = (("stat", QUEUE), ("list", QUEUE), ("dead", QUEUE), ("check", QUEUE),
                 ("peek", QUEUE, "a"), ("cancel", QUEUE, "a"), ("move", QUEUE, "a", "1s"),
                 ("done", QUEUE, "a"), ("revive", QUEUE, "1-1"))
    where = tool.where()
    for words in questions:
        said = tool.says(1, *words)
        expect(said == f"{where}there is no such queue; 'timerhub-relay create {QUEUE}' or "
               f"'timerhub-relay run {QUEUE}' creates it\n", words, said)
    redis("SET", f"timerhub:{{{QUEUE}}}:task", "")
    for words in (*questions, ("put", QUEUE, "a", "1s")):
        said = tool.says(3, *words)
        expect(said.startswith(where + "the server has no functions"), words, said)
    redis("DEL", f"timerhub:{{{QUEUE}}}:task")
    tool("load")
    expect("no such queue" in tool.says(1, "check", QUEUE), "functions and no queue")
    said = json.loads(tool("--json", "check", QUEUE, status=1))
    expect(said["result"] == -2 and said["server"] == f"unix:{tool.server.address}", said)
    for word, words in (("nosuch=5", "there is no setting nosuch"),
                        ("tasks_max=0", "tasks_max is 1 to 1073741824"),
                        ("data_max=many", "data_max is 0 to 1048576")):
        said = tool.says(1, "create", QUEUE, "lease_us=1000", word)
        expect(said == where + words + "\n", "create", said)
    expect("no such queue" in tool.says(1, "set", QUEUE, "lease_us=1000"), "set without a queue")
    expect(redis("KEYS", "*") == [], "a refused command has made keys")


def check_wrong_use(tool):
    for words in ((), ("what",), ("put", QUEUE), ("put", QUEUE, "x", "soon"), ("run",),
                  ("put", QUEUE, "x", "-1s"), ("move", QUEUE, "x", "5"), ("--what", "load"),
                  ("list", QUEUE, "1001"), ("create", QUEUE, "x"), ("load", QUEUE, "more"),
                  ("--batch", "1001", "run", QUEUE),
                  ("create", "bad name"), ("run", "bad name"), ("top", "bad name"),
                  ("--redis", "rediss://localhost?ca=x", "load"), ("--redis", "nothing", "load"),
                  ("--redis", "nothing://:secret@", "run", QUEUE),
                  ("--redis", "redis://:secret@localhost", "load")):
        lines = tool.says(2, *words).splitlines()
        expect(lines[0].startswith("usage: ") and len(lines) <= 4, words, lines)
        expect(lines[-1].startswith("timerhub-relay: "), "the reason is not the last line", lines)
        expect("secret" not in "".join(lines), "a password is shown")
    expect("what" in tool.says(2, "what"), "the word is not named")
    for option, command in (("--metrics", "stat"), ("--replace", "put"), ("--repair", "check"),
                            ("--count=1", "top"), ("--interval=1", "top"), ("--horizon=1", "run"),
                            ("--grace=1", "run"), ("--batch=1", "run")):
        name = option.partition("=")[0]
        said = tool.says(2, option, "list", QUEUE)
        expect(f"{name} works only with {command}, not with list\n" in said, said)
    expect("--metrics and --json exclude each other" in
           tool.says(2, "--metrics", "--json", "stat", QUEUE), "both")
    for words in (("list", QUEUE, "--json"), ("list", QUEUE, "--redis", "unix:/nowhere"),
                  ("dead", QUEUE, "--ns")):
        said = tool.says(2, *words)
        expect("options stand before QUEUE, unlike " + words[2] in said, words, said)
    said = tool.says(3, "--redis", "unix:/nowhere", "load")
    expect(said == "timerhub-relay: load: unix:/nowhere: Connection refused\n", said)


def check_no_relay(tool, redis):
    """Tests that check reports a queue that no relay serves."""
    checked = json.loads(tool("--json", "check", QUEUE, status=1))
    expect(checked["fault"].endswith(f"timerhub-relay run {QUEUE}") and
           checked["keeps_text"].startswith("no persistence"), "the fault as JSON", checked)
    said = tool("check", QUEUE, status=1)
    expect("fault: no relay serves the queue" in said and "relays: 0" in said, said)
    check_colour(expect, tool.program, "check", QUEUE,
                 word="no relay serves the queue: no task becomes due; "
                 f"run timerhub-relay run {QUEUE}",
                 REDIS_URL=tool.environment["REDIS_URL"])
    with serving(tool, redis):
        expect("fault: none" in tool("check", QUEUE), "with a relay")
        checked = tool.json("check", QUEUE)
        expect(checked["relays"] == 1 and checked["fault"] is None, "with a relay, as JSON")


def check_refused_bells(tool, redis):
    """A relay whose user may not hear bells must print one line, and check must find a fault."""
    for right in ("subscribe", "ping"):
        redis("ACL", "SETUSER", "default", f"-{right}")
        with Daemon(tool) as daemon:
            said = daemon.said()
            expect(said.startswith(f"{tool.where()}NOPERM") and f"'{right}'" in said, said)
            wait_for_seats(redis, daemon.process)
            if right == "subscribe":
                expect("fault: no relay hears bells" in tool("check", QUEUE, status=1), "no fault")
            redis("ACL", "SETUSER", "default", f"+{right}")
            daemon.says(tool.where() + "serves again")


def check_words_of_server(tool):
    """Where no errno says what is wrong, the tool prints the server's own words."""
    with Server("--busy-reply-threshold", "1") as server:
        client, url = server.client(), f"unix:{server.address}"
        other = "redis.register_function('timerhub_put', function() return 1 end)"
        client("FUNCTION", "LOAD", f"#!lua name=other\n{other}")
        said = tool.says(3, "--redis", url, "load")
        expect("Function timerhub_put already exists" in said, "another library", said)
        client.send("EVAL", "while true do end", 0)
        asker = server.client()

        def is_busy():
            try:
                asker("DBSIZE")
            except RedisError as error:
                return str(error).startswith("BUSY")
            return False
        wait_until(is_busy, "BUSY")
        said = tool.says(3, "--redis", url, "load")
        expect("is busy running a script" in said, "a script of another", said)
        asker("SCRIPT", "KILL")


def check_sentinel_words(tool):
    """A Sentinel that refuses the question must not hide the next, and the text must say what each
    error is."""
    with PortServer() as refuses, PortServer() as master:
        refuses.client()("CONFIG", "SET", "requirepass", "secret")
        sentinel = FakeSentinel(master)
        at = f"127.0.0.1:{refuses.port}+127.0.0.1:{sentinel.port}"
        tool("--redis", f"sentinel://{at}/main", "load")
        sentinel.close()
        said = tool.says(3, "--redis", f"redis://127.0.0.1:{refuses.port}", "load")
        expect("another user or password" in said, said)
        own = Sentinel(master.folder, master.port)
        try:
            own.wait_until_it_knows(0)
            said = tool.says(3, "--redis", url_of([own]).replace("main", "none"), "load")
            expect("knows a master of this name" in said, said)
        finally:
            own.close()


def check_durability(tool, redis):
    expect("no persistence" in tool("check", QUEUE), "no persistence")
    for name, value, wanted in (("save", "86400 1", "RDB only"), ("appendonly", "yes", "up to 2 s"),
                                ("appendfsync", "always", "nothing is lost")):
        redis("CONFIG", "SET", name, value)
        expect(wanted in tool("check", QUEUE), wanted)
    for name, value in (("save", ""), ("appendonly", "no"), ("maxmemory-policy", "allkeys-lfu")):
        redis("CONFIG", "SET", name, value)
    expect("may vanish" in tool("check", QUEUE, status=1), "eviction")
    redis("CONFIG", "SET", "maxmemory-policy", "noeviction")


def promote(tool, name, delay, *data):
    tool("put", QUEUE, name, delay, *data)
    wait_until(lambda: tool.json("peek", QUEUE, name)[0]["where"] == "undelivered", "promotion")


def process_state(process):
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]


def received(manager):
    """Returns all messages that wait in the socket."""
    said = []
    manager.setblocking(False)
    try:
        while True:
            said.append(manager.recv(100))
    except BlockingIOError:
        return said


def check_daemon(tool, redis, folder):
    """The daemon must notify its manager, move due tasks, survive a restart of Redis, and end after
    SIGTERM."""
    path = f"{folder}/notify.sock"
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(path)
    manager.settimeout(ARRIVES)
    first = Daemon(tool, NOTIFY_SOCKET=path, WATCHDOG_USEC="100000")
    expect(manager.recv(100) == b"READY=1", "not ready")
    expect(manager.recv(100) == b"WATCHDOG=1", "no watchdog")
    second = Daemon(tool)
    wait_for_seats(redis, first.process, second.process)
    promote(tool, "due", "20ms")
    tool("cancel", QUEUE, "due")
    tool.server.kill()
    tool.server.start()
    fresh = tool.server.client()  # this server keeps no data, so the relays make the queue again
    wait_for_seats(fresh, first.process, second.process)
    promote(tool, "due", "20ms")
    for daemon in (first, second):
        expect(daemon.said().endswith("; tries again\n"), "no word about a lost server")
        daemon.says(tool.where() + "serves again")
    # A full socket drops messages. Therefore the test empties the socket while the daemon is
    # stopped.
    first.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: process_state(first.process) == "T", "it stops")
    expect(set(received(manager)) <= {b"WATCHDOG=1"}, "not a watchdog")
    first.process.send_signal(signal.SIGTERM)
    first.end(signal.SIGCONT)
    wait_until(lambda: seats_of(fresh) == {second.process.pid}, "the first leaves its seat")
    said = received(manager)
    expect(said[-1:] == [b"STOPPING=1"], "said", said)
    second.end(signal.SIGINT)
    wait_until(lambda: not seats_of(fresh), "the second leaves its seat")


def check_bad_queue(tool, redis):
    """One of three queues has a key of another type. The others are served, and this one too when
    it is mended. The server evicts keys, which the daemon says once."""
    redis("SET", "timerhub:{bad}:state", "another program's")
    redis("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    daemon = Daemon(tool, "good", "bad", "fine").process
    for queue in ("good", "fine"):
        wait_for_seats(redis, daemon, queue=queue)
    faults = json.loads(tool("--json", "check", "good", status=1))["faults"]
    expect(len(faults) == 1 and "allkeys" in faults[0], faults)
    redis("ZADD", "timerhub:{good}:due", "inf", "foreign")
    expect(tool("check", "good", status=1).count("fault: ") == 2, "one fault of two")
    redis("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    redis("DEL", "timerhub:{good}:due", "timerhub:{bad}:state")
    expect(json.loads(tool("--json", "check", "good"))["faults"] == [], "volatile-lru is no fault")
    wait_for_seats(redis, daemon, queue="bad")
    daemon.terminate()
    said = daemon.communicate(timeout=ARRIVES)[1]
    expect(daemon.returncode == 0, "the daemon ended with", daemon.returncode, said)
    expect(said.count("bad: ") >= 1 and "bad: serves again" in said, said)
    expect(said.count("good: maxmemory-policy") == 1, said)
    redis("CONFIG", "SET", "maxmemory-policy", "noeviction")


def check_pause(tool):
    tool("put", QUEUE, "paused", "1h")
    tool("pause", QUEUE)
    expect(tool.json("stat", QUEUE)["paused"] == 1, "it is paused")
    tool("resume", QUEUE)
    expect(tool.json("stat", QUEUE)["paused"] == 0, "it goes on")
    tool("cancel", QUEUE, "paused")
    expect(tool("parked", QUEUE) == tool("dead", QUEUE), "two names of a command")


def check_words_of_daemon(tool, redis):
    """The daemon must print one line when Redis is lost, and one line when Redis is back. It must
    print one line about a key of another program."""
    key, where = f"timerhub:{{{QUEUE}}}:", tool.where()
    with Daemon(tool) as daemon:
        wait_for_seats(redis, daemon.process)
        tool.server.kill()
        said = daemon.said()
        expect(said.startswith(where) and said.endswith("; tries again\n"), "lost", said)
        time.sleep(0.3)  # the daemon is refused several times, and must print no further line
        tool.server.start()
        daemon.says(where + "serves again")
        redis = tool.server.client()
        redis("SET", key + "seen", "another program's")
        tool("put", QUEUE, "due", "0s")
        daemon.says(where + "a key of the queue holds something else")
        redis("DEL", key + "seen")
        daemon.says(where + "serves again")
    tool.server.kill()
    with Daemon(tool) as early:
        expect(early.said().startswith(where + "Connection refused"), "not there yet")
        tool.server.start()
        early.says(where + "serves again")
    redis = tool.server.client()
    tool("create", QUEUE)
    redis("SET", key + "ready", "another program's")
    early = Daemon(tool)
    early.says(where + "a key of the queue holds something else")
    early.end(None, 3)
    redis("DEL", key + "ready")


def check_descriptors(tool):
    """A queue that lacks descriptors must not be left without a word."""
    def few():
        die_with_test()
        resource.setrlimit(resource.RLIMIT_NOFILE, (4, 1024))

    with Daemon(tool, preexec=few) as daemon:
        where = f"timerhub-relay: {QUEUE}: "
        daemon.says(f"{where}Too many open files; tries again")
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        daemon.says(f"{where}serves again")


def check_closed_streams(tool, redis):
    """The numbers of streams that are closed at the start must belong to nothing that the tool, the
    relay or Redis reads from or writes to."""
    def closed():
        die_with_test()
        os.closerange(0, 3)

    with subprocess.Popen([tool.program, "run", QUEUE], env=tool.environment,
                          preexec_fn=closed) as daemon:
        wait_for_seats(redis, daemon)
        links = [os.readlink(f"/proc/{daemon.pid}/fd/{stream}") for stream in range(3)]
        expect(links == ["/"] * 3, "descriptors", links)
        daemon.terminate()
        expect(daemon.wait(ARRIVES) == 0, "the daemon ended with", daemon.returncode)
    done = subprocess.run([tool.program, "stat", QUEUE], env=tool.environment, check=False,
                          stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
    expect(done.returncode == 3 and "standard output" in done.stderr, "a closed stdout", done)


def check_repair(tool, redis):
    """check must report keys that disagree. check --repair must correct them, and then check must
    find no fault."""
    key = f"timerhub:{{{QUEUE}}}:"
    tool("put", QUEUE, "lost", "1h", "data")
    redis("ZREM", key + "due", "lost")
    redis("ZADD", key + "due", "+inf", "nothing")
    redis("ZADD", key + "due", "+inf", "nothing else")
    expect("another program" in tool("check", QUEUE, status=1), "a fault")
    said = tool("--repair", "check", QUEUE)
    expect("1 put back, 2 removed" in said and "fault: none" in said, "repair", said)
    expect(tool.json("--repair", "check", QUEUE)["sound"] is True, "repaired, and told as JSON")
    expect(tool.json("peek", QUEUE, "lost")[0]["data"] == "data", "the data is lost")
    tool("cancel", QUEUE, "lost")
    redis("DEL", key + "past")


GAUGES = ("tasks", "waiting", "ready", "taken", "parked", "paused", "relays", "tasks_max")
COUNTERS = ("promoted", "leases_over", "parked_ever", "dead_cut", "orphans", "swept")
SINCE = ("lag", "overdue")  # durations, which grow between two calls of stat


def at_rest(stats):
    return [{name: value for name, value in stat.items() if name not in ("now", *SINCE)}
            for stat in stats]


def metrics_at_rest(tool, queue):
    """Returns the output of stat, the metrics after it, and the output of stat after the metrics.
    No number differs between the two calls of stat."""
    def stat():
        stats = tool.json("stat", queue)
        return stats if isinstance(stats, list) else [stats]

    while True:
        before, text, after = stat(), tool("stat", "--metrics", queue), stat()
        if at_rest(before) == at_rest(after):
            return before, text, after


def check_metrics(tool, queue):
    """Tests stat in the format of Prometheus, with the numbers of each server and the lateness."""
    for words in (("put", "--metrics", queue, "x", "1s"), ("--metrics", "top", queue),
                  ("--json", "--metrics", "stat", queue)):
        expect("--metrics" in tool.says(2, *words), words)
    expect("no such queue" in tool.says(1, "--metrics", "stat", "nothing"), "no queue")
    before, text, after = metrics_at_rest(tool, queue)
    try:
        families = openmetrics.parse(text)
    except openmetrics.NoParser as none:
        print(none)
        return

    def value(name, labels):
        family = families[f"timerhub_relay_{name}"]
        return next(value for _, of, value in family["samples"] if of == labels)

    for server, stat in enumerate(before):
        labels = {"queue": queue, "server": str(server)}
        expect([value(name, labels) for name in GAUGES + COUNTERS] ==
               [int(stat[name]) for name in GAUGES + COUNTERS], families, stat)
        for name in SINCE:
            us = round(value(name + "_seconds", labels) * 1e6)
            expect(int(stat[name]) <= us <= int(after[server][name]), name, us, stat)
        check_histogram(families["timerhub_relay_lateness_seconds"], labels, stat)
        for name, words in stat.items():
            if name.startswith("relay:"):
                of = {**labels, "relay": name[6:]}
                expect([value("looks", of), value("bells", of)] ==
                       [int(word) for word in words.split()[2:]], name, words)


def check_away(many, other, due):
    """While a server is away, stat, list, top, check and the metrics say what the other one has,
    and which server fails."""
    other.kill()
    where = f"unix:{other.address}"
    for command in ("stat", "list"):
        there, away = json.loads(many("--json", command, "many", status=3))
        expect((there["waiting"] if command == "stat" else len(there)) == due, command, there)
        expect(away["result"] < 0 and away["server"] == where, command, away)
        expect(where in many.says(3, command, "many"), command)
    lines = many("--json", "--count", "2", "--interval", "10", "top", "many", status=3).splitlines()
    for away, there in zip(*2 * [map(json.loads, lines)], strict=True):
        expect(away["server"] == where and there["waiting"] == due, "top", away, there)
        expect(there["promoted_per_s"] == 0, "a rate of a server that is away", there)
    for words in (("check",), ("--repair", "check")):
        away, there = map(json.loads, many("--json", *words, "many", status=3).splitlines())
        expect(away["server"] == where and there["tasks"] == due, "check", away, there)
        expect("a server does not answer" in there["faults"][-1], "check", there)
    text = many("--metrics", "stat", "many", status=3)
    for line in (f'timerhub_relay_waiting{{queue="many",server="0"}} {due}',
                 'timerhub_relay_server_up{queue="many",server="0"} 1',
                 'timerhub_relay_server_up{queue="many",server="1"} 0'):
        expect(f"{line}\n" in text, line, text)
    expect('waiting{queue="many",server="1"}' not in text, text)
    with contextlib.suppress(openmetrics.NoParser):
        openmetrics.parse(text)
    with Daemon(many, "many") as daemon:
        for begin, end in ((lambda: None, "; tries again"), (other.start, "serves again"),
                           (lambda: move_shard(other), "; tries again"),
                           (lambda: None, " in another order")):
            begin()
            daemon.says(end, f"timerhub-relay: many: {where}")


def move_shard(server):
    server.client()("HSET", "timerhub:{many}:state", "shard", 0)
    server.client()("CLIENT", "KILL", "TYPE", "normal")


def check_histogram(family, labels, stat):
    late = {int(name[5:]): int(count) for name, count in stat.items() if name.startswith("late:")}
    buckets = openmetrics.histogram(family, **labels)
    expect(len(buckets) == 31 and buckets[-1][0] is None, buckets)
    for bound_ns, count in buckets:
        expect(count == sum(number for bucket, number in late.items()
                            if bound_ns is None or (2 << bucket) - 1 <= bound_ns), count, late)


def check_json(tool):
    """Programs must be able to read the output of every command, also of a refused command."""
    expect(tool.json("create", QUEUE) == {"result": 0}, "create")
    expect(tool.json("put", QUEUE, "json", "1h") == {"result": 0}, "put")
    refused = json.loads(tool("--json", "put", QUEUE, "json", "1h", status=1))
    expect(refused["result"] == -17 and "the task exists" in refused["error"], "put again", refused)
    expect(tool.json("cancel", QUEUE, "json") == {"result": 0}, "cancel")
    expect(tool.json("load") == {"result": 0}, "load")
    expect(tool.json("list", QUEUE) == [], "no rows")
    expect(json.loads(tool("list", "--json", QUEUE)) == [], "an option behind the command")
    tool("--json", "cancel", "--", QUEUE, "--json", status=1)
    tool("cancel", QUEUE, "--json", status=1)
    expect(tool.json("dead", QUEUE)[0]["why"] == "record", "rows")
    lost = json.loads(tool("--json", "load", status=3, REDIS_URL="unix:/nowhere"))
    expect(lost["result"] == -111, "no server", lost)


def check_servers(tool, redis):
    """Tests several servers. A command must use the server of its id, or each server in turn. The
    addresses may be in a file."""
    with Server() as other:
        many = tool.over(tool.server, other)
        urls = many.environment["REDIS_URL"]
        client, key = other.client(), "timerhub:{many}:"
        expect(many.json("create", "many", "attempts_max=7") == 2 * [{"result": 0}], "create")
        expect([one["shard"] for one in many.json("stat", "many")] == [0, 1], "stat")
        expect(client("HGET", key + "state", "attempts_max") == b"7", "a setting of the second")
        for number in range(20):
            many("put", "many", f"id-{number}", "1h")
        mine = [f"id-{number}" for number in range(20) if zlib.crc32(b"id-%d" % number) % 2]
        expect(sorted(row["id"] for row in many.json("list", "many")[1]) == sorted(mine), "list")
        many("cancel", "many", mine[0])
        expect(client("HLEN", key + "task") == len(mine) - 1, "cancel")
        expect(many("list", "many").startswith("server 0\n"), "list as text")
        check_metrics(many, "many")
        checked = json.loads(many("--json", "check", "many", status=1))
        expect(checked["tasks"] == 19 and checked["relays"] == 0, "check", checked)
        client("XADD", key + "dead", "9-9", "id", "buried", "due", 1, "n", 1, "why", "attempts",
               "data", "")
        many("revive", "many", "9-9")
        many("revive", "many", "9-9", status=1)
        said = json.loads(many("--json", "revive", "none", "9-9", status=1))
        expect([one["result"] for one in said] == [-2, -2], "revive at two servers", said)
        backwards = ",".join(reversed(urls.split(",")))
        before = [one("HGETALL", key + "task") for one in (redis, client)]
        for words in (("set", "many", "attempts_max=1"), ("put", "many", "id-1", "1h"),
                      ("--replace", "put", "many", "id-2", "1h"), ("cancel", "many", "id-1"),
                      ("move", "many", "id-2", "1h"), ("done", "many", "id-1"),
                      ("peek", "many", "id-2"), ("stat", "many")):
            for other_list in (backwards, urls.split(",", maxsplit=1)[0], f"{urls},{urls}"):
                said = json.loads(many("--json", *words, status=1, REDIS_URL=other_list)
                                  .partition("\n")[0].lstrip("["))
                expect(said["result"] == -17 and "other servers" in said["error"], words, said)
        expect(before == [one("HGETALL", key + "task") for one in (redis, client)], "changed")
        top = many.json("--count", "1", "top", "many")
        expect(top["waiting"] == 20, "top of several servers", top)
        check_away(many, other, redis("ZCARD", key + "due"))
    path = pathlib.Path(tool.server.folder) / "url"
    path.write_text(f"unix:{tool.server.address}\n", encoding="utf-8")
    tool("--redis", f"@{path}", "stat", QUEUE, REDIS_URL="unix:/nowhere")
    tool("--redis", "@/nowhere", "stat", QUEUE, status=3)
    tool(f"--redis=@{path}", "stat", QUEUE, REDIS_URL="unix:/nowhere")
    path.write_text(",".join(64 * ["unix:/nowhere/redis.sock"]), encoding="utf-8")
    expect(tool.says(3, "--redis", f"@{path}", "load").count("load: unix:/nowhere/redis.sock: ") ==
           64, "a long list of servers is cut")
    redis("CONFIG", "SET", "maxmemory", 1)
    expect("memory is full" in tool.says(3, "put", QUEUE, "x", "1h"), "no words for a full server")
    redis("CONFIG", "SET", "maxmemory", 0)


def check_top(tool, redis):
    """Tests the counts, rates and relays of top, which calls each server once in a reading."""
    tool("create", QUEUE)
    daemon = Daemon(tool)
    wait_for_seats(redis, daemon.process)
    before = tool.json("--count", "1", "top", QUEUE)
    for number in range(10):
        tool("put", QUEUE, f"top-{number}", "0s")
    wait_until(lambda: tool.json("--count", "1", "top", QUEUE)["promoted"] ==
               before["promoted"] + 10, "ten promoted")
    after = tool.json("--count", "1", "top", QUEUE)
    relay = after["relays"][0]
    expect(relay["rank"] == 0 and relay["looks"] > 1 and relay["bells"] > 0, "a relay", relay)
    expect(0 < after["late_p50_ns"] <= after["late_p99_ns"] <= after["late_max_ns"], "late", after)
    expect(after["ready"] == before["ready"] + 10 and after["lag"] > 0, "ready", after)
    lines = tool("--count", "2", "--interval", "10", "top", QUEUE).splitlines()
    expect(len(lines) == 8 and " rank 0 " in lines[7], "top as text", lines)
    seat = redis("ZRANGE", f"timerhub:{{{QUEUE}}}:seats", 0, -1)[0].decode()
    redis("HSET", f"timerhub:{{{QUEUE}}}:state", f"relay:{seat}", "1 23 45")
    check_metrics(tool, QUEUE)
    daemon.end()
    expect("no consumer" in tool.says(1, "done", QUEUE, "top-0"), "done of an undelivered task")
    for number in range(10):
        tool("cancel", QUEUE, f"top-{number}")


def check_drain(tool):
    """drain must end when the last task of the last server has ended, and not before. While a
    server is away, it waits for the others, and then fails."""
    def asked():
        told = tool.server.client()("INFO", "commandstats").decode()
        return sum(map(int, re.findall(r"cmdstat_fcall\w*:calls=(\d+)", told)))

    with Server() as other:
        many = tool.over(tool.server, other)
        many("create", "drained")
        expect(many.json("drain", "drained") == [{"result": 0}], "drain")
        said = json.loads(many("--json", "drain", "nothing", status=1))
        expect(["no such queue" in one["error"] for one in said] == [True, True], "no queue", said)
        ids = ids_of_shards("id-", 2)
        for one in ids.values():
            many("put", "drained", one, "1h")
        with subprocess.Popen([many.program, "drain", "drained"], env=many.environment) as drain:
            for one in ids.values():
                begun = asked()
                # pylint: disable-next=cell-var-from-loop
                wait_until(lambda: asked() > begun + 1 or drain.poll() is not None, "a second look")
                expect(drain.poll() is None, "it ends before the queue is empty")
                many("cancel", "drained", one)
            expect(drain.wait(ARRIVES) == 0, "status of a drain")
        task = ids_of_shards("away-", 2)[0]
        many("put", "drained", task, "1h")
        other.kill()
        with subprocess.Popen([many.program, "drain", "drained"], env=many.environment, text=True,
                              stderr=subprocess.PIPE) as drain:
            said = drain.stderr.readline()
            expect(other.address in said, "the server that is away", said)
            expect(drain.poll() is None, "it ends before the other server is empty")
            many("cancel", "drained", task)
            expect(drain.wait(ARRIVES) == 3 and drain.stderr.read() == "", "named once")


def check_dead(tool, redis):
    """A task that has used up its attempts must be listed as dead, and revive must put it again."""
    tool("create", QUEUE, "attempts_max=1")
    with Daemon(tool):
        promote(tool, "poor", "0s", "data")
    queue = Queue(redis, QUEUE)
    queue.call("retry", "poor", 0, queue.read()[0][0])
    dead = next(one for one in tool.json("dead", QUEUE) if one["id"] == "poor")
    expect(dead["why"] == "attempts" and dead["data"] == "data", "dead", dead)
    due = f"due {dead['due']}000 n 1 why attempts data data\n"
    expect(due in tool("dead", "--ns", QUEUE), "dead as text")
    expect(" due 20" in tool("dead", QUEUE), "dead with a date")
    tool("revive", QUEUE, dead["entry"])
    tool("revive", QUEUE, dead["entry"], status=1)
    expect(tool.json("peek", QUEUE, "poor")[0]["where"] == "waiting", "revived")


class LateProxy(Proxy):
    """Cuts the connection at the call of a function. The call reaches the server at close()."""

    def __init__(self, path, server, function):
        self.function = f"_{function}\r".encode()
        super().__init__(path, server, "last", 1)

    def next_command(self, request):
        super().next_command(request)
        return self.number if self.function in request else 0


@contextlib.contextmanager
def cut_off(program):
    """A change that reaches the server after the tool has given up must have no effect. Each tool
    waits until its timeout, so the caller tests something else in the block."""
    with Server() as server:
        redis = server.client()
        tool = Tool(program, server)
        tool("create", QUEUE, "attempts_max=1")
        queue = Queue(redis, QUEUE)
        for name in ("dead", "taken"):
            queue.put(name, 0)
            queue.call("look", "relay", 128, 10**7, 10**5, "")
            entry = queue.read()[0][0]
            if name == "dead":
                queue.call("retry", name, 0, entry)
        queue.put("waits", "never")
        dead = redis("XRANGE", queue.prefix + "dead", "-", "+")[0][0].decode()
        late = []
        for number, words in enumerate((("put", "new", "1s"), ("cancel", "waits"),
                                        ("move", "waits", "1s"), ("done", "taken"),
                                        ("revive", dead), ("set", "lease_us=5000000"),
                                        ("pause",), ("resume",))):
            proxy = LateProxy(f"{server.folder}/late-{number}.sock", server.address,
                              "create" if words[0] == "set" else words[0])
            late.append((words, proxy, subprocess.Popen(
                [program, words[0], QUEUE, *words[1:]], stderr=subprocess.PIPE, text=True,
                env=os.environ | {"REDIS_URL": f"unix:{proxy.path}"})))
        yield
        redis("HSET", queue.prefix + "state", "look_by", 2 * 10**15)  # a resume would change it
        before = {key: redis("DUMP", key) for key in redis("KEYS", "*")}
        for words, proxy, process in late:
            said = process.communicate(timeout=3 * ARRIVES)[1]
            expect(process.returncode == 3 and "may have made" in said, words, said)
            expect(proxy.kept, words, "was not sent")
            proxy.close()
            after = {key: redis("DUMP", key) for key in redis("KEYS", "*")}
            expect(after == before, words, "had effect after the tool had ended")


def main(arguments):
    with cut_off(pathlib.Path(arguments[1]).resolve()), Server() as server:
        tool = Tool(pathlib.Path(arguments[1]).resolve(), server)
        redis = server.client()
        check_fresh(tool, redis)
        check_commands(tool, redis)
        check_wrong_use(tool)
        check_no_relay(tool, redis)
        check_refused_bells(tool, redis)
        check_words_of_server(tool)
        check_sentinel_words(tool)
        with serving(tool, redis):
            check_durability(tool, redis)
        check_daemon(tool, redis, server.folder)
        check_bad_queue(tool, server.client())
        check_pause(tool)
        check_words_of_daemon(tool, server.client())
        redis = server.client()
        check_descriptors(tool)
        check_closed_streams(tool, redis)
        check_dead(tool, redis)
        tool("cancel", QUEUE, "poor")
        redis("DEL", f"timerhub:{{{QUEUE}}}:past")
        with serving(tool, redis):
            check_repair(tool, redis)
        check_json(tool)
        check_servers(tool, redis)
        check_top(tool, redis)
        check_drain(tool)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
