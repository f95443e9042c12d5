#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that callers leave a master that the Sentinels have replaced, while it still answers.

Usage: sentinel_test.py DRIVER

There are a master, two replicas and three Sentinels. The failover is planned, or the master is
stopped and goes on. A caller puts all the time. When all Sentinels name the new master and the old
one follows it, what the new one lacks of the acknowledged puts is lost: of 1.5 s at most, and none
if both replicas confirm each put.
"""

import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

from redis_server import Client, RedisError, die_with_test, program
from servers_test import KEY, Driver, PortServer, expect, free_port, wait_until

LOST_S = 1.5  # of acknowledged puts
RULES = ("sentinel down-after-milliseconds main 1000", "sentinel failover-timeout main 20000",
         "sentinel parallel-syncs main 2")


class Sentinels:
    """Three Sentinels that watch a master."""

    def __init__(self, folder, port):
        self.ports, self.processes = [free_port() for _ in range(3)], []
        for number, own in enumerate(self.ports):
            place = pathlib.Path(folder) / f"sentinel-{number}"
            place.mkdir()
            conf, link = place / "conf", place / "redis-sentinel"
            conf.write_text("\n".join((f"port {own}", "bind 127.0.0.1", f"dir {place}",
                                       f"sentinel monitor main 127.0.0.1 {port} 2", *RULES, "")))
            link.symlink_to(program(place))
            with open(place / "log", "ab") as log:
                self.processes.append(subprocess.Popen([link, conf, "--sentinel"], stdout=log,
                                                       stderr=log, preexec_fn=die_with_test))
        wait_until(lambda: all(self.knows(own) for own in self.ports), "Sentinels", 60)

    @staticmethod
    def ask(port, *words):
        client = Client(("127.0.0.1", port))
        try:
            return client("SENTINEL", *words)
        finally:
            client.close()

    def knows(self, port):
        try:
            return (len(self.ask(port, "sentinels", "main")) == 2 and
                    len(self.ask(port, "replicas", "main")) == 2)
        except (OSError, RedisError):
            return False

    def masters(self):
        return {int(self.ask(port, "get-master-addr-by-name", "main")[1]) for port in self.ports}

    def url(self):
        return "sentinel://" + "+".join(f"127.0.0.1:{port}" for port in self.ports) + "/main"

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Caller(threading.Thread):
    """Puts until it is told to end, and keeps when each put was acknowledged."""

    def __init__(self, url, replicas):
        super().__init__(daemon=True)
        self.driver, self.acked, self.ends, self.number = Driver(url), {}, False, 0
        expect(self.driver.open(0, 5000, replicas) == 0, "open")
        self.start()

    def run(self):
        while not self.ends:
            name = f"task-{self.number}"
            self.number += 1
            result = self.driver("put", name, 3600_000, "x")
            if result == 0:
                self.acked[name] = time.monotonic()
            time.sleep(0.01)

    def end(self):
        self.ends = True
        self.join()
        self.driver.close()


def plan(sentinels, _master):
    wait_until(lambda: _ordered(sentinels), "a failover that is accepted")


def _ordered(sentinels):
    try:
        return sentinels.ask(sentinels.ports[0], "failover", "main") == b"OK"
    except RedisError:
        return False


def stop(sentinels, master):
    """Stops the master until a Sentinel names another one."""
    master.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: sentinels.masters() - {master.port}, "a failover", 60)
    master.process.send_signal(signal.SIGCONT)


def follows(server):
    try:
        return server.client()("ROLE")[0] == b"slave"
    except (OSError, RedisError):
        return False  # the Sentinel closes all connections when it changes the role


def check(how, replicas):
    servers = [PortServer("--repl-diskless-sync-delay", "0") for _ in range(3)]
    master = servers[0]
    sentinels = None
    try:
        for replica in servers[1:]:
            replica.client()("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: master.client()("INFO", "replication").count(b"state=online") == 2,
                   "replicas")
        sentinels = Sentinels(master.folder, master.port)
        caller = Caller(sentinels.url(), replicas)
        wait_until(lambda: len(caller.acked) > 20, "puts")
        how(sentinels, master)
        wait_until(lambda: len(sentinels.masters()) == 1 and sentinels.masters() != {master.port},
                   "one new master", 60)
        new = next(one for one in servers if one.port in sentinels.masters())
        wait_until(lambda: follows(master), "an old master that follows", 60)
        late = caller.number
        wait_until(lambda: caller.number > late + 2, "calls go on")
        caller.end()
        there = {name.decode() for name in new.client()("HKEYS", KEY + "task")}
        lost = sorted(at for name, at in caller.acked.items() if name not in there)
        span = lost[-1] - lost[0] if lost else 0
        print(f"{how.__name__}, replicas {replicas}: {len(lost)} of {len(caller.acked)} puts lost,"
              f" of {span:.2f} s", flush=True)
        expect(span <= LOST_S and not (lost and replicas), "too many lost")
    finally:
        if sentinels:
            sentinels.close()
        for server in servers:
            server.process.send_signal(signal.SIGCONT)
            server.close()


def main(arguments):
    Driver.program = arguments[1]
    for how in (plan, stop):
        for replicas in (0, 2):
            check(how, replicas)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
