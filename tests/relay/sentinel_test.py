#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that callers leave a master that the Sentinels have replaced, while it still answers.

Usage: sentinel_test.py DRIVER

There are a master, two replicas and three Sentinels. The failover is planned, the master is
stopped and goes on, or it is cut off from all but its callers, alone or with one Sentinel. A caller
puts all the time. When all Sentinels name the new master and the old one follows it, what the new
one lacks of the acknowledged puts is lost: of 1.5 s at most, and none if both replicas confirm each
put. Of a master that is cut off, only what it acknowledges after two Sentinels name another one
counts, unless it has min-replicas-to-write: how soon they miss it is their setting.

anew    Sentinels that have lost their configuration name another master.
rest    A caller at rest asks one Sentinel once a second, and more often as soon as it makes calls.
far     The Sentinel and two masters are so far away that a round trip takes 1.5 s. No connection is
        cut for that, bells are heard, and a relay that serves learns of the other master.
"""

import itertools
import signal
import sys
import threading
import time

from queue_client import KEY, Driver
from redis_server import ARRIVES, Client, PortServer, RedisError, expect, wait_until
from sentinels import FakeSentinel, Sentinel, url_of
from servers_test import clients_of, has_role
from slow_proxy import SlowProxy

FAR_S = 0.75  # in one direction
LOST_S = 1.5  # of acknowledged puts
FAILOVER_S = 200  # after a vote without a winner, Sentinels wait 20 s; after a stop, 30 s
NEAR = "near"
HIDDEN = ("-ping -info -publish resetchannels",
          "-ping -info -psync -sync -replconf resetchannels")


class Sentinels(list):
    """Three Sentinels that watch a master. The first one logs in as the user NEAR."""

    def __init__(self, folder, port):
        login = (f"user {NEAR} on >{NEAR} ~* &* +@all", f"sentinel sentinel-user {NEAR}",
                 f"sentinel sentinel-pass {NEAR}", f"sentinel auth-user main {NEAR}",
                 f"sentinel auth-pass main {NEAR}")
        super().__init__(Sentinel(folder, port, *(login if number == 0 else ()), quorum=2)
                         for number in range(3))
        for one in self:
            one.wait_until_it_knows(2, 2)

    def masters(self):
        return {one.master() for one in self}


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


def plan(sentinels, _servers):
    def is_accepted():
        try:
            return sentinels[0].ask("failover", "main") == b"OK"
        except RedisError:
            return False
    wait_until(is_accepted, "a failover that is accepted")


def stop(sentinels, servers):
    """Stops the master until a Sentinel names another one."""
    master = servers[0]
    master.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: sentinels.masters() - {master.port}, "a failover", FAILOVER_S)
    master.process.send_signal(signal.SIGCONT)


def hide(port, user):
    """Refuses the user what replicas and Sentinels need, and nothing that callers need."""
    client = Client(("127.0.0.1", port))
    is_server = client("ROLE")[0] != b"sentinel"
    client("ACL", "SETUSER", user, *HIDDEN[is_server].split(), "&timerhub*")
    for kind in ("replica", "pubsub"):
        client("CLIENT", "KILL", "TYPE", kind, "USER", user)


def show(port, user):
    Client(("127.0.0.1", port))("ACL", "SETUSER", user, "allchannels", "+@all")


def cut(sentinels, hidden, new_servers):
    """Takes the rights of replicas and Sentinels from the `hidden` users until a new master has
    new tasks. Returns the time at which two Sentinels named this master."""
    for port, user in hidden:
        hide(port, user)
    others = {one.port for one in new_servers}
    wait_until(lambda: all(one.master() in others for one in sentinels[1:]), "a failover",
               FAILOVER_S)
    named = time.monotonic()
    new = next(one for one in new_servers if one.port == sentinels[1].master())
    had = new.client()("HLEN", KEY + "task")
    wait_until(lambda: new.client()("HLEN", KEY + "task") > had + 5, "puts on the new master")
    for port, user in hidden:
        show(port, user)
    return named


def part(sentinels, servers):
    """Cuts the master off from the Sentinels and replicas."""
    return cut(sentinels, [(servers[0].port, "default"), (servers[0].port, NEAR)], servers[1:])


def part_with_sentinel(sentinels, servers):
    """The first Sentinel, which logs in as NEAR, stays with the old master."""
    near = [(one.port, NEAR) for one in (*sentinels[1:], *servers[1:])]
    hidden = [(servers[0].port, "default"), (sentinels[0].port, "default"), *near]
    return cut(sentinels, hidden, servers[1:])


def check(how, replicas, *options):
    servers = [PortServer("--user", NEAR, "on", ">" + NEAR, "~*", "&*", "+@all", *options)
               for _ in range(3)]
    master = servers[0]
    sentinels = []
    try:
        for replica in servers[1:]:
            replica.client()("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: master.client()("INFO", "replication").count(b"state=online") == 2,
                   "replicas")
        sentinels = Sentinels(master.folder, master.port)
        caller = Caller(url_of(sentinels), replicas)
        wait_until(lambda: len(caller.acked) > 20, "puts")
        named = how(sentinels, servers)
        wait_until(lambda: sentinels.masters() in [{one.port} for one in servers[1:]],
                   "one new master", FAILOVER_S)
        new = next(one for one in servers[1:] if one.port in sentinels.masters())
        wait_until(lambda: has_role(master, b"slave"), "an old master that follows", FAILOVER_S)
        late = caller.number
        wait_until(lambda: caller.number > late + 2, "calls go on")
        caller.end()
        there = {name.decode() for name in new.client()("HKEYS", KEY + "task")}
        lost = sorted(at for name, at in caller.acked.items() if name not in there)
        when = [f"{at - min(caller.acked.values()):.2f}" for at in lost]
        span = lost[-1] - lost[0] if lost else 0
        if lost and named and not options:
            span = max(lost[-1] - named, 0)
        print(how.__name__, "replicas", replicas, *options, f"lost {len(lost)} of"
              f" {len(caller.acked)} puts, of {span:.2f} s", flush=True)
        expect(span <= LOST_S and not (lost and replicas), "too many lost:", when)
    finally:
        for one in sentinels:
            one.close()
        for server in servers:
            server.process.send_signal(signal.SIGCONT)
            server.close()


def far():
    with PortServer() as old, PortServer() as new:
        ways = [SlowProxy(None, server.address, FAR_S, FAR_S) for server in (old, new)]
        sentinel = FakeSentinel(ways[0], 2 * FAR_S)
        driver = Driver.opened(url_of([sentinel]), 1, 1500 * ARRIVES)
        expect(driver("put", "near", 0, "x") == 0, "put")
        expect(driver("take", 1000 * ARRIVES)[1] == "near" and driver("done") == 0, "take")
        expect(old.client()("PUBSUB", "NUMSUB", KEY + "bell")[1] == 1, "no bells are heard")
        made = ways[0].made
        expect(driver("take", 4000 * FAR_S) == 0, "a task")
        expect(ways[0].made == made, "connections were made again")
        sentinel.master = ways[1]
        wait_until(lambda: clients_of(new, "fcall"), "a connection to the other master")
        driver.close()
        sentinel.close()
        for way in ways:
            way.close()


def rest():
    with PortServer() as master:
        sentinels = [FakeSentinel(master) for _ in range(3)]
        driver = Driver.opened(url_of(sentinels), 0)
        begin, before = time.monotonic(), [one.asked for one in sentinels]
        time.sleep(4)
        wait_until(lambda: sum(one.asked for one in sentinels) >= sum(before) + 2, "questions")
        asked = [one.asked - was for one, was in zip(sentinels, before, strict=True)]
        expect(sum(asked) <= time.monotonic() - begin + 2 and max(asked) >= sum(asked) - 2,
               "questions at rest", asked)
        times = []  # of questions while calls are made
        while len(times) < 8:
            number = sum(one.asked for one in sentinels)
            expect(driver("put", f"task-{time.monotonic()}", 3600_000, "x") == 0, "put")
            if sum(one.asked for one in sentinels) > number:
                times.append(time.monotonic())
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        expect(min(gaps) < 0.7, "questions while calls are made come after", gaps)
        driver.close()
        for one in sentinels:
            one.close()


def anew():
    """A caller must ignore one Sentinel whose epoch has gone down, and believe most of them."""
    with PortServer() as old, PortServer() as new:
        sentinels = [FakeSentinel(old) for _ in range(3)]
        for one in sentinels:
            one.epoch = 5
        driver = Driver.opened(url_of(sentinels))
        first, asked = sentinels[0], sentinels[0].asked
        first.epoch, first.master = 1, new
        wait_until(lambda: driver("put", f"task-{first.asked}", 3600_000, "x") in (0, -17) and
                   first.asked >= asked + 3, "questions")
        expect(not clients_of(new, "fcall"), "a single Sentinel is believed")
        for one in sentinels:
            one.epoch, one.master = 1, new
        wait_until(lambda: clients_of(new, "fcall"), "a connection to the other master")
        driver.close()
        for one in sentinels:
            one.close()


def main(arguments):
    Driver.program = arguments[1]
    far()
    rest()
    anew()
    for how in (plan, stop, part, part_with_sentinel):
        for replicas in (0, 2):
            check(how, replicas)
    check(part, 0, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
