#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests queues in a Redis cluster of three masters and three replicas.

Usage: cluster_test.py DRIVER all|short [TIMERHUB_RELAY]

DRIVER makes the calls of the library. All keys of a queue have one slot. The slot is moved to
another master, and to a node that is added, and its master is killed, while tasks are put and
taken. No put that was acknowledged by a replica may be lost. With `short` nobody is killed, in a
cluster of three masters without replicas.
"""

import errno
import signal
import sys
import threading
import time

from queue_client import KEY, QUEUE, Driver, Load, open_soon, opening, take_all
from redis_server import ARRIVES, PortServer, expect, free_port, wait_until
from servers_test import RIGHTS, RIGHTS_MORE, expect_refused
from tool_test import Tool

SLOTS = 16384
NODE_TIMEOUT_MS = 1000 * ARRIVES  # so long may a node stand still


class Node(PortServer):
    def __init__(self):
        super().__init__("--cluster-enabled", "yes", "--cluster-port", str(free_port()),
                         "--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--appendonly", "yes")
        self.id = self.ask("CLUSTER", "MYID").decode()
        self.is_away = False

    def ask(self, *words):
        return self.client()(*words)

    def meet(self, other):
        bus = other.ask("CONFIG", "GET", "cluster-port")[1]
        self.ask("CLUSTER", "MEET", "127.0.0.1", other.port, bus)

    def is_master(self):
        return self.ask("ROLE")[0] == b"master"


class Cluster:
    def __init__(self, masters, replicas):
        self.nodes = [Node() for _ in range(masters * (1 + replicas))]
        self.masters = self.nodes[:masters]
        for number, node in enumerate(self.masters):
            node.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * number // masters,
                     SLOTS * (number + 1) // masters - 1)
        for node in self.nodes[1:]:
            self.nodes[0].meet(node)
        self.wait_for_all()
        for number, node in enumerate(self.nodes[masters:]):
            node.ask("CLUSTER", "REPLICATE", self.masters[number % masters].id)
        for node in self.nodes[masters:]:
            wait_until(lambda one=node: b"master_link_status:up" in one.ask("INFO", "replication"),
                       "a replica", 60)
        self.wait_for_all()
        self.slot = self.nodes[0].ask("CLUSTER", "KEYSLOT", KEY)

    def wait_for_all(self):
        def is_good(node):
            info = node.ask("CLUSTER", "INFO")
            return (b"cluster_state:ok" in info and
                    b"cluster_known_nodes:%d\r" % len(self.nodes) in info)
        for node in self.nodes:
            wait_until(lambda one=node: is_good(one), "a cluster", 60)

    def add(self):
        self.nodes.append(Node())
        self.nodes[0].meet(self.nodes[-1])
        self.wait_for_all()
        return self.nodes[-1]

    def set_timeout(self, milliseconds):
        for node in self.nodes:
            node.ask("CONFIG", "SET", "cluster-node-timeout", milliseconds)

    def owner(self):
        for node in self.nodes:
            if node.is_away:
                continue
            for first, last, master, *_ in node.ask("CLUSTER", "SLOTS"):
                if first <= self.slot <= last:
                    return next(one for one in self.nodes if one.id == master[2].decode())
        return None

    def begin_move(self, target):
        source = self.owner()
        target.ask("CLUSTER", "SETSLOT", self.slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", self.slot, "MIGRATING", target.id)
        return source

    def move_keys(self, source, target, pause_s):
        """One key after the other, so that clients meet a slot that is in two places."""
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", self.slot, 100):
            source.ask("MIGRATE", "127.0.0.1", target.port, keys[0], 0, 5000)
            time.sleep(pause_s)

    def end_move(self, target):
        for node in (target, *self.nodes):
            if node.is_master():
                node.ask("CLUSTER", "SETSLOT", self.slot, "NODE", target.id)

    def move(self, target, pause_s=0.02):
        source = self.begin_move(target)
        self.move_keys(source, target, pause_s)
        self.end_move(target)

    def url(self, *nodes):
        return "cluster://" + "+".join(f"127.0.0.1:{node.port}" for node in nodes or self.masters)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.close()


def check_kinds(cluster):
    node = cluster.masters[0]
    expect(opening(f"redis://127.0.0.1:{node.port}") == -errno.EOPNOTSUPP, "a node as such")
    with PortServer() as single:
        expect(opening(f"cluster://127.0.0.1:{single.port}") == -errno.EOPNOTSUPP, "no cluster")
        # the first node is of no use: another kind, nobody there
        for other in (single.port, free_port()):
            url = f"cluster://127.0.0.1:{other}+127.0.0.1:{node.port}"
            expect(opening(url) == 0, "open with", url)
    expect(opening(f"cluster://127.0.0.1:{free_port()}", 300) == -errno.ECONNREFUSED, "nobody")


def check_calls(cluster):
    """The queue is where its slot is, with the functions, and nowhere else."""
    owner = cluster.owner()
    driver = Driver.opened(cluster.url(next(one for one in cluster.masters if one != owner)))
    for name in ("a", "b", "c"):
        expect(driver("put", name, 20, name) == 0, "put")
    expect(sorted(take_all(driver, 3)) == ["a", "b", "c"], "another task came")
    for node in cluster.masters:
        here = node == cluster.owner()
        functions = node.ask("FUNCTION", "LIST")
        expect((len(functions) > 0) == here and (node.ask("DBSIZE") > 0) == here, node.port)
    expect(driver("check", QUEUE)[-1] == "-", "check")
    driver.close()


def check_rights(cluster):
    """The rights of the manual, with the one that a cluster needs."""
    for node in cluster.masters:
        node.ask("ACL", "SETUSER", "relay", "reset", "on", ">p", *RIGHTS, *RIGHTS_MORE["relay"],
                 "+cluster|slots", f"~{KEY}*", f"&{KEY}*", f"~{{{QUEUE}}}")
    driver = Driver.opened(cluster.url().replace("//", "//relay:p@"))
    expect(driver("put", "right", 20, "x") == 0 and take_all(driver, 1) == ["right"], "calls")
    driver.close()


def others(cluster):
    owner = cluster.owner()
    return [one for one in cluster.nodes if one != owner and one.is_master()]


def check_ask(cluster):
    """If another node has all keys, but not the slot, calls whose keys exist must follow ASK."""
    driver, hasty, source = Driver(cluster.url()), Driver(cluster.url()), cluster.owner()
    target = others(cluster)[0]
    client = source.client()
    expect(driver.open(0) == 0, "open")
    open_soon(hasty, 0, 0, 1000)
    expect(driver("put", "waits", 3600_000, "x") == 0, "put")
    expect(driver("put", "ended", 3600_000, "x") == 0 and driver("cancel", "ended") == 0, "cancel")
    # nobody is rung, so the only seat stays
    client("HSET", KEY + "state", "look_by", client("TIME")[0] + b"000000")
    client("ZADD", KEY + "seats", 0, "nobody")
    cluster.begin_move(target)
    cluster.move_keys(source, target, 0)
    expect(driver("put", "asked", 3600_000, "x") == 0, "put by ASK")
    expect_refused(hasty, errno.EROFS, "stats")  # which needs a key that is nowhere
    hasty.close()
    reader = target.client()
    reader("READONLY")
    expect(source.ask("DBSIZE") == 0, "the queue is in two places")
    reader("ASKING")
    expect(reader("HEXISTS", KEY + "task", "asked") == 1, "put elsewhere")
    cluster.end_move(target)
    for name in ("waits", "asked"):
        expect(driver("move", name, 0) == 0, "move", name)
    expect(driver("put", "behind", 20, "x") == 0, "put")
    target.client()("DEL", KEY + "seats")
    driver("close")
    expect(driver.open(1) == 0, "open")
    expect(sorted(take_all(driver, 3)) == ["asked", "behind", "waits"], "another task came")
    driver.close()


def check_idle(cluster):
    """The slot moves while nobody calls: a caller follows MOVED. A relay and a worker that wait
    learn of the next task, long before the horizon."""
    caller, worker = Driver(cluster.url()), Driver(cluster.url(), HORIZON_MS="600000")
    expect(caller.open(0) == 0 and worker.open(1) == 0, "open")
    expect(caller("put", "before", 0, "x") == 0 and take_all(worker, 1) == ["before"], "before")
    for name in ("first", "second"):
        wait_until(lambda: cluster.owner().ask("PUBSUB", "NUMSUB", KEY + "bell")[1] == 1, "a relay")
        worker.send("take", 1000 * ARRIVES)
        wait_until(lambda: b" flags=b" in cluster.owner().ask("CLIENT", "LIST"), "a blocked take")
        cluster.move(others(cluster)[0], 0)
        expect(caller("put", name, 200, "x") == 0, "put after a move")
        answer = worker.receive()
        expect(answer != 0 and answer[1] == name and worker("done") == 0, "take of", name, answer)
    caller.close()
    worker.close()


def check_moved(cluster, replicas):
    """If the slot moves to each master, also to one that is added, no task may be lost."""
    load = Load(cluster.url(), replicas)
    load.wait_for_puts(100)
    for target in (*others(cluster), cluster.owner()):
        cluster.move(target)
        load.wait_for_puts(100)
        wait_until(lambda at=target: at.ask("PUBSUB", "NUMSUB", KEY + "bell")[1] ==
                   1 + Load.PRODUCERS, "relays that are subscribed where the slot is")
    if replicas == 0:
        cluster.move(cluster.add())
        load.wait_for_puts(100)
    load.end(f"slot moved, replicas {replicas}")


def check_added(cluster):
    """The slot goes to a master that was added with a replica, and comes back."""
    load, home = Load(cluster.url(), 1), cluster.owner()
    added = cluster.add()
    replica = cluster.add()
    replica.ask("CLUSTER", "REPLICATE", added.id)
    wait_until(lambda: b"master_link_status:up" in replica.ask("INFO", "replication"), "a replica")
    for target in (added, home):
        cluster.move(target)
        load.wait_for_puts(100)
    load.end("nodes added")


def check_killed(cluster, times):
    """The master of the slot is killed, or stands still and goes on when it has been replaced. It
    is the only node that the URL names."""
    for number in range(times):
        master, stops = cluster.owner(), number % 2 == 1
        load = Load(cluster.url(master), 1)
        load.wait_for_puts(200)
        cluster.set_timeout(1000)  # so that the other masters soon miss it
        master.is_away = True
        if stops:
            master.process.send_signal(signal.SIGSTOP)
        else:
            master.kill()
        wait_until(lambda old=master: cluster.owner() != old, "a failover", 60)
        if stops:
            master.process.send_signal(signal.SIGCONT)
        else:
            master.start()
        master.is_away = False
        wait_until(lambda old=master: not old.is_master(), "the old master is a replica", 60)
        cluster.set_timeout(NODE_TIMEOUT_MS)
        load.wait_for_puts(100)
        load.end("master stopped" if stops else "master killed")
        cluster.wait_for_all()


def check_cut(cluster, seconds):
    """If the slot moves while connections are cut all the time, no task may be lost."""
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "load", "on", ">p", "~*", "&*", "+@all")
    load, end = Load(cluster.url().replace("//", "//load:p@"), 1), time.monotonic() + seconds
    while time.monotonic() < end:
        mover = threading.Thread(target=cluster.move, args=(others(cluster)[0], 0.01))
        mover.start()
        while mover.is_alive():
            for node in cluster.masters:
                node.ask("CLIENT", "KILL", "USER", "load")
            time.sleep(0.03)
        load.wait_for_puts(20)
    load.end("connections cut and slot moved")


def check_demoted(cluster):
    """A failover that somebody asks for: the old master goes on as a replica."""
    master = cluster.owner()
    load = Load(cluster.url(), 1)
    load.wait_for_puts(100)
    replica = next(one for one in cluster.nodes
                   if not one.is_master() and one.ask("ROLE")[2] == master.port)
    cluster.set_timeout(1000)  # the masters vote again after two of these
    while cluster.owner() != replica:
        replica.ask("CLUSTER", "FAILOVER")
        time.sleep(6)  # the replica gives up one that takes 5 s
    cluster.set_timeout(NODE_TIMEOUT_MS)
    load.wait_for_puts(100)
    load.end("master demoted")


def check_tool(program, cluster):
    tool = Tool(program, None, cluster.url())
    tool("create", "tool")
    tool("put", "tool", "a", "1h")
    expect("a due" in tool("list", "tool"), "list")
    for queue in ("one", "two", "three", "four", "five"):
        tool("create", queue)
        expect("\ntasks 0\n" in tool("stat", queue), "stat")
    expect("load QUEUE" in tool.says(2, "load"), "load of no queue")
    tool("load", "tool")
    said = tool.says(3, "--redis", f"redis://127.0.0.1:{cluster.masters[0].port}", "load")
    expect("must begin with cluster://" in said, said)


def main(arguments):
    Driver.program = arguments[1]
    with Cluster(3, 0) as cluster:
        check_kinds(cluster)
        check_calls(cluster)
        check_rights(cluster)
        check_ask(cluster)
        check_idle(cluster)
        check_moved(cluster, 0)
        if len(arguments) > 3:
            check_tool(arguments[3], cluster)
    if arguments[2] == "all":
        with Cluster(3, 1) as cluster:
            check_moved(cluster, 1)
            check_cut(cluster, 20)
            check_killed(cluster, 4)
            check_demoted(cluster)
            check_added(cluster)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
