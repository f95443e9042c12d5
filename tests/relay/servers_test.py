#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests queues on several servers, and servers that a relay cannot use.

Usage: servers_test.py DRIVER

DRIVER makes the calls of the library.
Shards: A task must be on the server that its id gives. A lost server must not delay tasks of other
servers. Another order of the servers must be refused.
Replicas and Sentinels: A call must return only when replicas have its change, and later calls must
work with the new master.
Connections: The takers' connection must follow the command connection to another server, and must
be kept at the same server. If the reply with a delivery is lost, the relay must ask for it again.
Other servers: Each of these servers must cause its own error, without a loss: a replica, a server
of a cluster, a Sentinel, a server that is too old, that needs a password, is full, is loading, has
too few replicas, cannot persist, or has keys of other programs.
"""

import errno
import itertools
import os
import pathlib
import signal
import socket
import sys
import threading
import time
import zlib

from proxy_listener import hang_up
from queue_client import KEY, QUEUE, Driver, open_soon, opening, take_all
from redis_server import (ARRIVES, PortServer, RedisError, Server, expect, free_port, wait_until)
from sentinels import FakeSentinel, Sentinel, url_of
from slow_proxy import SlowProxy
from wire_proxy import Proxy

# The ACL rights that timerhub-relay(5) lists: of producers and consumers, and what others need too.
RIGHTS_MORE = {"relay": ("+function", "+subscribe", "+ping"), "replicas": ("+wait",),
               "check": ("+info", "+ping")}
RIGHTS = ("+fcall", "+fcall_ro", "+hello", "+xreadgroup", "+xack", "+xclaim", "+time", "+publish",
          "+@read", "+@write", "-@dangerous")


def has_role(server, role):
    try:
        return server.client()("ROLE")[0] == role
    except (OSError, RedisError):
        return False  # a Sentinel closes all connections when it changes the role


def expect_refused(driver, error, *call):
    """
    Checks that the call returns this error. On a busy machine the call's timeout may end before the
    refusal arrives. The call is then in doubt, and the test repeats it.
    """
    def is_refused():
        result = driver(*call)
        expect(result in (-error, -errno.ETIMEDOUT), call, result)
        return result == -error
    wait_until(is_refused, f"a refusal of {call}")


def expect_refused_open(url, wanted):
    driver = Driver(url)
    open_soon(driver, wanted, 1, 200)
    driver.close()


def unix(server):
    return f"unix:{server.address}"


# ---- shards ----


def check_shards(servers):
    clients = [server.client() for server in servers]
    urls = [unix(server) for server in servers]
    driver = Driver.opened(",".join(urls))
    names = [f"id-{number}" for number in range(60)]
    for name in names:
        expect(driver("put", name, 3600_000, name) == 0, "put", name)
    for number, client in enumerate(clients):
        mine = {name.encode() for name in names if zlib.crc32(name.encode()) % 3 == number}
        expect(set(client("HKEYS", KEY + "task")) == mine, "shard", number, "has other ids")
    expect(driver("stats")[1:5] == ["60", "0", "0", "1"], "stats", driver("stats"))
    expect(driver("check", QUEUE)[3:5] == ["60", "60"], "check")
    for name in names[:30]:
        expect(driver("cancel", name) == 0, "cancel", name)
    for name in names[30:]:
        expect(driver("move", name, 0) == 0, "move", name)
    expect(sorted(take_all(driver, 30)) == sorted(names[30:]), "another task came")
    for name in names[:9]:  # a take without waiting must get tasks from each shard
        expect(driver("put", name + "-now", 0, name) == 0, "put", name)
    got = []
    while len(got) < 9:
        answer = driver("take", 0)
        if answer != 0:
            expect(driver("retry", 3600_000) == 0, "retry")
            got.append(answer[1])
    expect(sorted(got) == sorted(name + "-now" for name in names[:9]), "came", got)
    for wrong in (urls[::-1], urls[:2], urls[:1], urls[1:] + urls[:1]):
        expect(opening(",".join(wrong)) == -errno.EEXIST, "open with", wrong)
    check_lost_shard(driver, servers, clients)
    driver.close()


def check_lost_shard(driver, servers, clients):
    """After the loss of a server, tasks on other servers must come, and calls about tasks on the
    lost server must return an error."""
    names = ids_of_shards("n")
    expect(driver("put", names[0], 100, "x") == 0, "put")
    servers[1].process.send_signal(signal.SIGSTOP)
    expect(driver("put", names[2], 100, "x") == 0, "put while another server stands still")
    expect(sorted(take_all(driver, 2)) == sorted([names[0], names[2]]), "another task came")
    servers[1].process.send_signal(signal.SIGCONT)
    servers[1].kill()
    driver("close")
    check_one_away(driver, servers)
    expect(driver.open() == 0, "open again")
    expect(clients[0]("HGET", KEY + "state", "shard") == b"0", "shard of the first")
    client = servers[1].client()
    expect(client("HGET", KEY + "state", "shard") == b"1", "shard of the second")
    # After FLUSHALL timerhub_look makes the queue again, with the index that the shard had before.
    client("FLUSHALL")
    expect(driver("put", names[1], 0, "x") == 0, "put on what was wiped")
    expect(take_all(driver, 1) == [names[1]], "another task came")
    driver("close")
    expect(driver.open() == 0, "open after it was wiped")


def ids_of_shards(begin, shards=3):
    """Returns an id on each shard, by the number of the shard."""
    return {zlib.crc32(f"{begin}{n}".encode()) % shards: f"{begin}{n}" for n in range(50)}


def check_one_away(driver, servers):
    """If a server is away, an open must succeed, and calls to this server must work as soon as it
    is back. If a wrong server comes in its place, only calls to this server may be refused."""
    names, others = ids_of_shards("away-"), ids_of_shards("other-")
    expect(driver.open(1, 3000) == 0, "open without one of the servers")
    for name in (names[0], names[2]):
        expect(driver("put", name, 100, "x") == 0, "put")
    expect(sorted(take_all(driver, 2)) == sorted([names[0], names[2]]), "another task came")
    expect(driver("put", names[1], 100, "x") == -errno.ECONNREFUSED, "put on what is away")
    servers[1].start()  # this server keeps no data, so the relay makes the queue again
    expect(driver("put", names[1], 100, "x") == 0, "put on what is back")
    expect(take_all(driver, 1) == [names[1]], "another task came")
    driver("close")
    servers[1].process.send_signal(signal.SIGSTOP)
    expect(driver.open(1, 3000) == 0, "open while one of the servers stands still")
    driver("close")
    servers[1].process.send_signal(signal.SIGCONT)
    servers[1].kill()
    expect(driver.open() == 0, "open without the server that will be another")
    # The server gets its address only when it is another one, because a relay that connects before
    # makes the queue there.
    address, servers[1].address = servers[1].address, servers[1].address + ".new"
    servers[1].start()
    servers[1].client()("HSET", KEY + "state", "version", 2, "shards", 3, "shard", 2)
    os.rename(servers[1].address, address)
    servers[1].address = address
    begin = time.monotonic()
    wait_until(lambda: driver("put", names[1], 0, "x") == -errno.EEXIST, "another order is found")
    expect_refused(driver, errno.EEXIST, "cancel", names[1])
    expect(time.monotonic() - begin < ARRIVES, "refused only after the timeout")
    expect(driver("put", others[0], 0, "x") == 0, "put beside it")
    expect(take_all(driver, 1) == [others[0]], "another task came")
    servers[1].client()("DEL", KEY + "state")
    wait_until(lambda: driver("put", ids_of_shards(f"right-{time.monotonic()}-")[1], 3600_000,
                              "x") == 0, "the right order")
    driver("close")


# ---- replicas ----


def make_replica(replica, master):
    client = replica.client()
    client("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: b"master_link_status:up" in client("INFO", "replication"), "a replica")
    return client


def check_replicas(master, replica):
    follower = make_replica(replica, master)
    driver = Driver(unix(master))
    hasty = Driver(unix(master))
    expect(driver.open(1, 1000 * ARRIVES, 1) == 0, "open")
    open_soon(hasty, 0, 0, 1000, 1)
    for number in range(20):
        expect(driver("put", f"held-{number}", 3600_000, "x") == 0, "put")
        expect(follower("HEXISTS", KEY + "task", f"held-{number}") == 1, "told and not held")
    replica.process.send_signal(signal.SIGSTOP)
    expect(hasty("put", "unsure", 0, "x") == -errno.ETIMEDOUT, "put without a replica")
    # A repeat tells of the first put, or cancel, which no replica has.
    expect(hasty("put", "unsure", 0, "x") == -errno.ETIMEDOUT, "put once more")
    for call in (("cancel", "held-0"), ("cancel", "held-0"), ("put", "held-0", 0, "x")):
        expect(hasty(*call) == -errno.ETIMEDOUT, call, "without a replica")
    hasty.close()
    # The master keeps a task that no replica has confirmed, and the relay still polls.
    answer = driver("take", 1000 * ARRIVES)
    expect(answer[1] == "unsure", "take", answer)
    driver.send("put", "unsure", 0, "x")
    replica.process.send_signal(signal.SIGCONT)
    expect(driver.receive() == -errno.EEXIST, "put once more, with the replica back")
    expect(driver("cancel", "held-0") == -errno.ENOENT, "cancel once more")
    expect(driver("done") == 0, "done with the replica back")
    expect(follower("HEXISTS", KEY + "task", "unsure") == 0, "done, told and not held")
    driver.close()
    check_demoted(master, replica)


def check_demoted(master, replica):
    """Tests a master in use that becomes a replica, and then a master again."""
    client = master.client()
    driver = Driver(unix(master))
    open_soon(driver, 0, 1, 500)
    follower = replica.client()
    follower("REPLICAOF", "NO", "ONE")
    make_replica(master, replica)
    expect_refused(driver, errno.EROFS, "put", "refused", 0, "x")
    expect_refused_open(unix(master), -errno.EROFS)
    expect(driver("check", QUEUE) == -errno.EROFS, "check of a replica")
    expect(client("HEXISTS", KEY + "task", "refused") == 0, "refused, and there")
    client("REPLICAOF", "NO", "ONE")
    wait_until(lambda: driver("put", "taken", 100, "x") in (0, -errno.EEXIST), "put on the master")
    expect(take_all(driver, 1) == ["taken"], "another task came")
    driver.close()


# ---- Sentinels ----


def check_sentinel(master, replica):
    make_replica(replica, master)
    sentinel = Sentinel(master.folder, master.port)
    sentinel.wait_until_it_knows(1)
    url = f"sentinel://127.0.0.1:{free_port()}+127.0.0.1:{sentinel.port}/main"
    expect(opening(f"redis://127.0.0.1:{sentinel.port}") == -errno.EOPNOTSUPP, "a Sentinel as such")
    expect_refused_open(url.replace("main", "none"), -errno.EROFS)
    driver = Driver(url)
    # The relay's config asks for one replica. After the failover the master has no replica, so
    # changes are in doubt.
    expect(driver.open(1, 5000, 1) == 0, "open by Sentinels")
    expect(driver("put", "before", 3600_000, "x") == 0, "put")
    master.kill()
    # If the machine was stopped for a moment, a Sentinel waits half a minute before a failover.
    wait_until(lambda: sentinel.master() == replica.port, "failover", 6 * ARRIVES)
    new = replica.client()
    wait_until(lambda: driver("put", "after", 3600_000, "x") == 0 or
               new("HEXISTS", KEY + "task", "after") == 1, "a put at the new master")
    sentinel.close()  # the Sentinel might still choose another master
    master.start()
    make_replica(master, replica)
    wait_until(lambda: b"state=online" in new("INFO", "replication"), "its replica")
    expect(new("HLEN", KEY + "task") == 2, "tasks at the new master")
    for name in ("before", "after"):
        expect(driver("move", name, 50) == 0, "move", name)
    expect(sorted(take_all(driver, 2)) == ["after", "before"], "another task came")
    driver.close()


def check_silent_sentinels():
    """If many Sentinels or cluster nodes are silent, an open and a call may exceed their timeout
    only by the time for which the library waits for one of them."""
    with PortServer() as server:
        silent = [FakeSentinel(server) for _ in range(8)]
        driver = Driver(url_of(silent))
        cluster = Driver(url_of(silent).replace("sentinel", "cluster").replace("/main", ""))
        expect(driver.open(0, 1000) == 0, "open")
        for one in silent:
            one.delay_s = 60
        server.kill()
        for one, *words in ((driver, "put", "x", 3600_000, "x"), (driver, "close"),
                            (driver, "open", QUEUE, 0, 1000, 0),
                            (cluster, "open", QUEUE, 0, 1000, 0)):
            begin = time.monotonic()
            result = one(*words)  # a put may be sent before the loss of the server is noticed
            expect(result in (-errno.EHOSTUNREACH, -errno.ETIMEDOUT) or words == ["close"], words)
            expect(time.monotonic() - begin < 5, words, "took", time.monotonic() - begin)
        driver.close()
        cluster.close()


# ---- the takers' connection ----


def clients_of(server, command):
    lines = server.client()("CLIENT", "LIST").decode().splitlines()
    found = [dict(word.split("=", 1) for word in line.split()) for line in lines]
    return [one["id"] for one in found if one["cmd"] == command]


def begin_take(driver, server):
    """Begins a take that waits. Returns the id of the connection that waits at the server."""
    driver.send("take", 1000 * ARRIVES)
    wait_until(lambda: clients_of(server, "xreadgroup"), "a blocked XREADGROUP")
    return clients_of(server, "xreadgroup")[0]


def break_commands(old, new):
    """Breaks the command connection to the old server, and waits until the relay has a command
    connection to the new server."""
    lost = clients_of(old, "fcall")
    expect(len(lost) == 1, "command connections:", lost)
    old.client()("CLIENT", "KILL", "ID", lost[0])
    known = lost if new is old else []  # connection ids of two servers cannot be compared
    wait_until(lambda: set(clients_of(new, "fcall")) - set(known), "a command connection")


def end_take(driver, server, name):
    """Ends the waiting take: another program puts a task at the server, and the take must return
    the task."""
    server.client()("FCALL", "timerhub_put", 1, f"{{{QUEUE}}}", name, 0, "", "x")
    answer = driver.receive()
    expect(answer != 0 and answer[1] == name, "take of", name, answer)
    expect(driver("done") == 0, "done of", name)


def check_same_server(driver, server):
    """If the command connection to the server is made again, the takers' connection must be
    kept."""
    blocked = begin_take(driver, server)
    break_commands(server, server)
    end_take(driver, server, "same")
    expect(clients_of(server, "xreadgroup") == [blocked], "the takers' connection was made again")


def check_other_server(driver, sentinel, new, breaks=True):
    """The master changes but the old server still runs. The relay must leave it, and must not wait
    on the takers' connection to it."""
    old = sentinel.master
    begin_take(driver, old)
    sentinel.master = new
    if breaks:
        break_commands(old, new)
    wait_until(lambda: clients_of(new, "fcall"), "a connection to the server that is named")
    end_take(driver, new, "other")
    wait_until(lambda: not clients_of(old, "xreadgroup"), "the old takers' connection closed")


def check_tries(server):
    """A takers' connection that fails again and again is tried less and less often."""
    proxy = SlowProxy(None, server.port)
    driver = Driver.opened(f"redis://127.0.0.1:{proxy.port}")
    begin_take(driver, server)
    end_take(driver, server, "tries")
    blocked, proxy.cut_after, made = begin_take(driver, server), 0, proxy.made
    server.client()("CLIENT", "KILL", "ID", blocked)
    time.sleep(1)
    expect(proxy.made - made < 15, "tries to connect in a second:", proxy.made - made)
    driver.kill()
    proxy.close()


def check_takers_connection():
    with PortServer() as a, PortServer(host="127.0.0.2", port=a.port) as b, \
            PortServer(host="127.0.0.2") as c:
        sentinel = FakeSentinel(a)
        driver = Driver.opened(url_of([sentinel]))
        check_tries(a)
        check_same_server(driver, a)
        check_other_server(driver, sentinel, b)  # a server on another host
        check_other_server(driver, sentinel, c)  # a server on another port
        check_other_server(driver, sentinel, a, breaks=False)  # no connection fails
        driver.close()
        sentinel.close()


class PlannedProxy(Proxy):
    """
    A proxy that fails by a plan, a list of (test, fault): the first command that passes the first
    test meets the first fault, and so on. The proxy delays each recovery, by which the relay asks
    again for its deliveries, and lets `ring` cause a poll (look) meanwhile. `early`: takers have
    read before a recovery has succeeded.
    """

    def __init__(self, path, server):
        self.plan, self.recovering, self.early = [], False, False
        self.ring = None
        super().__init__(path, server)

    def next_command(self, request):
        super().next_command(request)
        if blocks(request):
            self.early |= self.recovering
        if recovers(request):
            self.recovering = True
            self.ring()
        if self.recovering and (recovers(request) or b"_look\r" in request):
            time.sleep(0.2)
        is_hit = bool(self.plan) and self.plan[0][0](request)
        if recovers(request):
            self.recovering = is_hit
        if not is_hit:
            return -1
        self.fault = self.plan.pop(0)[1]
        return self.number


def blocks(request):
    return b"XREADGROUP" in request and b"BLOCK" in request


def reads(request):
    return b"XREADGROUP" in request and b"BLOCK" not in request and request.endswith(b"\r\n>\r\n")


def puts(request):
    return b"_put\r" in request


def recovers(request):
    return b"XREADGROUP" in request and request.endswith(b"\r\n0\r\n")


def check_recovery(wait_ms, plan):
    """The server has delivered a task, but the reply was lost. The relay must ask for the task
    again, because the lease is longer than the test."""
    with Server() as server:
        proxy = PlannedProxy(f"{server.folder}/proxy.sock", server.address)
        driver = Driver(f"unix:{server.folder}/proxy.sock")
        client = server.client()
        expect(driver.open() == 0, "open")
        client("HSET", KEY + "state", "lease_us", 300_000_000)
        expect(driver("put", "task", 0, "x") == 0, "put")
        wait_until(lambda: client("XLEN", KEY + "ready") == 1, "a task that is ready")
        # Each put of proxy.ring makes the relay poll when the new task is due.
        numbers = itertools.count()
        proxy.ring = lambda: client("FCALL", "timerhub_put", 1, f"{{{QUEUE}}}",
                                    f"bell-{next(numbers)}", 20_000, "", "x")
        proxy.plan += plan
        answer = driver("take", wait_ms)
        expect(answer == ["1", "task", "1", "x"], "take after", plan, answer)
        expect(not proxy.plan, "never met:", proxy.plan)
        expect(not proxy.early, "takers' read before the recovery was answered")
        expect(driver("done") == 0, "done")
        driver.close()
        proxy.close()


def check_recoveries():
    loading = "LOADING Redis is loading the dataset in memory"
    check_recovery(1000 * ARRIVES, [(blocks, "after")])
    check_recovery(1000 * ARRIVES, [(blocks, "after"), (recovers, "after")])
    check_recovery(1000 * ARRIVES, [(blocks, "after"), (recovers, loading)])
    check_recovery(0, [(reads, "after")])
    check_recovery(0, [(reads, "after"), (recovers, "before")])
    check_many_recovered(24, 65536, 0.2)
    check_many_recovered(1100, 1, 0)


def check_many_recovered(count, data_bytes, delay_s):
    """After a lost connection the relay must get all its deliveries again, even if their bytes take
    longer than the library waits for one reply."""
    with Server() as server:
        proxy = SlowProxy(f"{server.folder}/proxy.sock", server.address)
        driver, client = Driver(f"unix:{proxy.path}"), server.client()
        expect(driver.open(1, 8000) == 0, "open")
        client("HSET", KEY + "state", "lease_us", 600_000_000)
        expect(driver("put", "first", 0, "x") == 0, "put")
        take_all(driver, 1)
        consumer = client("XINFO", "CONSUMERS", KEY + "ready", "timerhub")[0][1]
        for number in range(count):
            client("FCALL", "timerhub_put", 1, f"{{{QUEUE}}}", number, 0, "", "x" * data_bytes)
        wait_until(lambda: client("XLEN", KEY + "ready") == count, "tasks that are ready")
        client("XREADGROUP", "GROUP", "timerhub", consumer, "STREAMS", KEY + "ready", ">")
        proxy.delays = (delay_s, delay_s)
        driver.send("take", 1000 * ARRIVES)
        # blocked, and not just the last command: that of the first take, or of this client
        wait_until(lambda: b" flags=b" in client("CLIENT", "LIST"), "a blocked XREADGROUP")
        for one in proxy.open_connections():
            hang_up(*one.ends)
        got = {driver.receive()[1]}
        for one in proxy.open_connections():
            one.delays = (0, 0)
        while len(got) < count:
            answer = driver("take", 1000 * ARRIVES)
            expect(answer != 0, "only", len(got), "of", count, "came")
            got.add(answer[1])
        driver.close()
        proxy.close()


def check_in_doubt():
    """A put has had effect, but the reply was lost. A refusal of the repeated put must not deny
    it."""
    with Server() as server:
        proxy = PlannedProxy(f"{server.folder}/proxy.sock", server.address)
        driver = Driver(f"unix:{server.folder}/proxy.sock")
        client = server.client()
        expect(driver.open(0) == 0, "open")
        for refusal in ("OOM command not allowed", "NOPERM no", "WRONGTYPE wrong", "ERR new"):
            proxy.plan += [(puts, "after"), (puts, refusal)]
            name = refusal.split()[0]
            answer = driver("put", name, 3600_000, "x")
            expect(answer == -errno.ETIMEDOUT, "put, repeated and refused with", refusal, answer)
            expect(client("HEXISTS", KEY + "task", name) == 1, "it had no effect")

        def enters(request):  # the stream, before it is put again
            return puts(request) and client("FCALL", "timerhub_look", 1, f"{{{QUEUE}}}", "r", 1,
                                            10**7, 10**5, "")[1] == 0
        proxy.plan += [(puts, "after"), (enters, "")]
        expect(driver("put", "due", 0, "x") == -errno.ETIMEDOUT, "put, repeated when it is due")
        driver.close()
        proxy.close()


# ---- servers that will not do ----


def check_old(folder):
    """Tests a server that reports version 6.2, a server that does not know the command HELLO, a
    server of another kind, and one that hangs up."""
    hello = b"*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.2.7\r\n" \
            b"$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n" \
            b"$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
    unknown = b"-ERR unknown command `HELLO`\r\n"
    for number, (answer, wanted) in enumerate(((hello, errno.EOPNOTSUPP),
                                               (unknown, errno.EOPNOTSUPP),
                                               (b"HTTP/1.1 4\r\n", errno.EPROTO),
                                               (None, errno.EHOSTUNREACH))):
        path = f"{folder}/old-{number}.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(16)

        def serve(one=listener, text=answer):
            for count in itertools.count():
                with one.accept()[0] as client:
                    if text or count % 2:  # else it hangs up before anything is read
                        client.recv(1000)
                    if text:
                        client.sendall(text)
                        client.recv(1000)
        threading.Thread(target=serve, daemon=True).start()
        for _ in range(1 if answer else 20):
            got = opening(f"unix:{path}", 5000 if answer else 1)
            expect(got == -wanted, "open of", answer, got)


def check_roles(client, at):
    """The rights of each role must be enough."""
    for role, more in RIGHTS_MORE.items():
        client("ACL", "SETUSER", role, "reset", "on", ">p", *RIGHTS, *more, f"~{KEY}*", f"&{KEY}*",
               f"~{{{QUEUE}}}")
    driver = Driver.opened(f"redis://replicas:p@{at}", 0, 5000, 1)
    driver.close()
    driver = Driver.opened(f"redis://relay:p@{at}", 1)
    wait_until(lambda: client("PUBSUB", "NUMSUB", KEY + "bell")[1] == 1, "a relay that hears bells")
    asker = Driver(f"redis://check:p@{at}")
    wait_until(lambda: asker("check", QUEUE)[-1] == "-", "a check without a fault")
    asker.close()
    expect(driver("put", "due", 100, "x") == 0, "put of a relay")
    expect(driver("take", 1000 * ARRIVES)[1] == "due" and driver("done") == 0, "take of a relay")
    driver.close()
    refused = [one for one in client("ACL", "LOG") if one[7] in (b"relay", b"replicas")]
    expect(not refused, "refused:", refused)


def check_password():
    with PortServer() as server:
        client = server.client()
        client("CONFIG", "SET", "requirepass", "right%")
        client("AUTH", "right%")
        at = f"127.0.0.1:{server.port}"
        for login, wanted in (("", -errno.EACCES), (":wrong@", -errno.EACCES), (":right%25@", 0),
                              ("default:right%25@", 0), ("nobody:right%25@", -errno.EACCES)):
            expect(opening(f"redis://{login}{at}") == wanted, "open with", login)
        client("ACL", "SETUSER", "poor", "on", ">p", "+@connection", "~*", "&*", "+fcall_ro")
        expect(opening(f"redis://poor:p@{at}") == -errno.EACCES, "open without rights")
        # A user with the rights that the manual page lists can open a queue without serving it.
        client("ACL", "SETUSER", "own", "on", ">p", *RIGHTS, f"~{KEY}*", f"&{KEY}*")
        driver = Driver.opened(f"redis://own:p@{at}", 0)
        expect(driver("put", "own", 0, "x") == 0, "put with them")
        expect(driver("cancel", "own") == 0, "cancel with them")
        expect(driver("take", 10) == 0, "take with them")
        driver.close()
        check_roles(client, at)
        other = server.client()
        other("AUTH", "own", "p")
        put = ("FCALL", "timerhub_put", 1, f"{{{QUEUE}}}", "one-key", 0, "", "")
        try:
            expect(False, "one key without the right to it", other(*put))
        except RedisError as error:
            expect(str(error).startswith("NOPERM"), error)
        client("ACL", "SETUSER", "own", f"~{{{QUEUE}}}")
        expect(other(*put)[0] == 0, "one key, with the rights of the manual")


def check_password_file():
    """If a server refuses the old password, the relay must read the new one from the file of the
    address. That holds for each connection, also if only the takers' connection was lost."""
    with PortServer() as server:
        client, path = server.client(), pathlib.Path(server.folder) / "url"

        def rotate(password):
            client("CONFIG", "SET", "requirepass", password)
            path.write_text(f"redis://:{password}@127.0.0.1:{server.port}\n", encoding="utf-8")

        expect(opening(f"@{path}") == -errno.ENOENT, "open without the file")
        path.touch()
        expect(opening(f"@{path}") == -errno.EINVAL, "open with an empty file")
        rotate("first")
        driver = Driver.opened(f"@{path}", 1)
        rotate("second")
        client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        expect(driver("put", "second", 0, "x") == 0, "put with the new password")
        expect(take_all(driver, 1) == ["second"], "another task came")
        rotate("third")
        driver.send("take", 1000 * ARRIVES)
        # its last command, and blocked: the connection of the takers
        wait_until(lambda: b" flags=b" in client("CLIENT", "LIST"), "a blocked XREADGROUP")
        for line in client("CLIENT", "LIST").decode().splitlines():
            if " flags=b" in line:
                client("CLIENT", "KILL", "ID", line.split()[0][3:])
        client("FCALL", "timerhub_put", 1, f"{{{QUEUE}}}", "third", 0, "", "x")
        expect(driver.receive()[1] == "third" and driver("done") == 0, "take with a new password")
        expect(driver("check", QUEUE)[-1] == "-", "check by the file")
        driver.close()


def check_faults_while_in_use():
    with PortServer("--dbfilename", "dump.rdb", "--enable-protected-configs", "yes") as server:
        client = server.client()
        driver, hasty = Driver(unix(server)), Driver(unix(server))
        expect(driver.open(1, 1000 * ARRIVES) == 0, "open")
        open_soon(hasty, 0, 0, 300)
        expect(driver("put", "there", 3600_000, "x") == 0, "put")
        for setting, bad, good, wanted in (("maxmemory", 1, 0, errno.ENOSPC),
                                           ("min-replicas-to-write", 1, 0, errno.EROFS)):
            client("CONFIG", "SET", setting, bad)
            expect_refused(hasty, wanted, "put", "refused", 3600_000, "x")
            client("CONFIG", "SET", setting, good)
        # The server cannot persist, because its directory is gone.
        place = pathlib.Path(server.folder) / "gone"
        place.mkdir()
        client("CONFIG", "SET", "dir", place)
        client("CONFIG", "SET", "save", "3600 1000000")
        place.rmdir()
        try:
            client("BGSAVE")
        except RedisError:
            pass  # the server may find out at once that it cannot persist
        wait_until(lambda: b"bgsave_status:err" in client("INFO", "persistence"), "MISCONF")
        expect_refused(hasty, errno.EIO, "put", "refused", 3600_000, "x")
        hasty.close()
        client("CONFIG", "SET", "dir", server.folder)
        client("SAVE")
        check_foreign(driver, client)
        left = client("HKEYS", KEY + "task")
        expect(left == [b"there"], "there are", left)
        check_loading(driver, server, client)


def check_foreign(driver, client):
    """Entries of another program must hold up no task. If a key belongs to another program, the
    library must return an error."""
    client("XADD", KEY + "ready", "*", "foreign", "entry")
    client("XADD", KEY + "ready", "*", "id", "x" * 65, "due", 1, "n", 1, "data", "")
    # If the connection was lost, the relay opens it again only after a while.
    wait_until(lambda: driver("put", "behind", 0, "x") in (0, -errno.EEXIST), "a put")
    expect(take_all(driver, 1) == ["behind"], "another task came")
    expect(driver("put", "i" * 65, 0, "x") == -errno.EINVAL, "an id that is too long")
    client("RENAME", KEY + "due", KEY + "aside")
    client("SET", KEY + "due", "another program's")
    expect(driver("put", "refused", 0, "x") == -errno.EBADMSG, "put with a wrong key")
    expect(driver("cancel", "there") == -errno.EBADMSG, "cancel with a wrong key")
    expect(driver("check", QUEUE) == -errno.EBADMSG, "check with a wrong key")
    client("RENAME", KEY + "aside", KEY + "due")


def check_loading(driver, server, client):
    """While a server loads its data, calls must wait. If the load takes too long, calls must be
    refused."""
    for number in range(200):
        client("SET", f"key-{number}", "x" * 2000)
    client("CONFIG", "SET", "rdbcompression", "no")
    client("SAVE")
    for delay_us in (5000, 20000, 80000):  # on a slow machine the first load may end too early
        server.kill()
        server.start("--key-load-delay", str(delay_us), "--loading-process-events-interval-bytes",
                     "1024", wait=False)
        if opening(unix(server), timeout_ms=100) == -errno.EROFS:
            break
    else:
        expect(False, "it has always loaded too soon: nothing was tried")
    wait_until(lambda: driver("put", "late", 0, "x") in (0, -errno.EEXIST), "a put after loading")
    expect(take_all(driver, 1) == ["late"], "another task came")
    expect(driver("cancel", "there") == 0, "what was there before is lost")
    driver.close()


def check_dead_server():
    """A take that does not wait leaves out a server to which there is no connection."""
    with Server() as alive, Server() as dead:
        driver = Driver.opened(f"{unix(alive)},{unix(dead)}", 0, 2500 * ARRIVES)
        dead.kill()
        begin = time.monotonic()
        expect(driver("take", 0) < 0 and driver("take", 0) < 0, "take from a dead server")
        expect(time.monotonic() - begin < ARRIVES, "a take has waited for a dead server")
        driver.close()


def check_stopped():
    """A server that does not answer holds up no take after a stop."""
    with Server() as server:
        driver = Driver.opened(unix(server), 0, 2500 * ARRIVES)
        server.process.send_signal(signal.SIGSTOP)
        late = threading.Timer(ARRIVES, server.process.send_signal, (signal.SIGCONT,))
        late.start()
        answer = driver("take-and-stop")
        expect(answer == -errno.ESHUTDOWN and late.is_alive(), "take and stop", answer)
        late.cancel()
        server.process.send_signal(signal.SIGCONT)
        driver.close()


class Idle:
    """A connection that is idle for long, while other checks run, and then silent, as if a router
    had forgotten it: nobody closes it, but no byte arrives. A put must use a new connection."""

    IDLE_S = 16

    def __init__(self):
        self.server = Server()
        self.proxy = SlowProxy(f"{self.server.folder}/proxy.sock", self.server.address)
        self.driver = Driver(f"unix:{self.proxy.path}")
        open_soon(self.driver, 0, 0, 4000)
        expect(self.driver("put", "before", 3600_000, "x") == 0, "put")
        self.begin = time.monotonic()

    def check(self):
        time.sleep(max(0, self.begin + self.IDLE_S - time.monotonic()))
        for one in self.proxy.open_connections():
            one.up = one.down = False
        begin = time.monotonic()
        expect(self.driver("put", "after", 3600_000, "x") == 0, "put after a long idle time")
        print(f"put on a forgotten connection: {time.monotonic() - begin:.1f} s")
        expect(self.server.client()("HEXISTS", KEY + "task", "after") == 1, "it is not there")
        self.driver.close()
        self.proxy.mend()
        self.proxy.close()
        self.server.close()


def main(arguments):
    Driver.program = arguments[1]
    idle = Idle()
    with Server() as a, Server() as b, Server() as c:
        check_shards([a, b, c])
    with PortServer() as master, PortServer() as replica:
        check_replicas(master, replica)
    with PortServer("--dbfilename", "dump.rdb") as master, PortServer() as replica:
        check_sentinel(master, replica)
        check_old(master.folder)
    check_takers_connection()
    check_silent_sentinels()
    check_recoveries()
    check_in_doubt()
    check_password()
    check_password_file()
    check_faults_while_in_use()
    check_stopped()
    check_dead_server()
    idle.check()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
