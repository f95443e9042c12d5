#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests connections by TLS to Redis servers and Sentinels.

Usage: tls_test.py DRIVER all|short [TIMERHUB_RELAY]

With `short` what waits for a timeout or for a failover is left out. DRIVER makes the calls of the
library. A server is refused if its certificate has another name, has expired, or is signed by a
foreign authority, or if it has no TLS. It may want a certificate of the client. A connection that
is cut inside the handshake is made again. Calls and the daemon work as they do without TLS, with as
many threads.
"""

import contextlib
import errno
import pathlib
import socket
import sys
import tempfile
import threading
import time

from certificates import Authority
from proxy_listener import hang_up
from queue_client import KEY, QUEUE, Driver, open_soon, opening, take_all
from redis_server import ARRIVES, SKIP, RedisError, Server, expect, free_port, wait_until
from sentinels import Sentinel
from servers_test import has_role, make_replica
from slow_proxy import SlowProxy
from tool_test import Daemon, Tool, wait_for_seats

EXPIRED = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z")


class TlsServer(Server):
    """A server with TLS on a port. Clients of the test reach it by its unix socket."""

    def __init__(self, authority, pair, *options):
        self.port = free_port()
        super().__init__("--tls-port", str(self.port), "--bind", "127.0.0.1", "--tls-cert-file",
                         str(pair[0]), "--tls-key-file", str(pair[1]), "--tls-ca-cert-file",
                         str(authority.certificate), "--tls-auth-clients", "no",
                         "--repl-diskless-sync-delay", "0", "--tls-replication", "yes", *options)

    def url(self, *options, host="127.0.0.1", port=None):
        return f"rediss://{host}:{port or self.port}{'?' if options else ''}{'&'.join(options)}"


def threads_of(driver):
    return len(list(pathlib.Path(f"/proc/{driver.process.pid}/task").iterdir()))


def check_calls(server, cafile):
    plain, driver = Driver(f"unix:{server.address}"), Driver(server.url(cafile))
    expect(plain.open() == 0 and driver.open() == 0, "open")
    expect(threads_of(plain) == threads_of(driver), "threads", threads_of(driver))
    plain.close()
    client = server.client()
    for number in range(50):
        expect(driver("put", f"task-{number}", 10, "x" * 8000) == 0, "put")
    expect(sorted(take_all(driver, 50)) == sorted(f"task-{n}" for n in range(50)), "came")
    # replies and commands of many TLS records
    client("HSET", KEY + "state", "data_max", 1048576)
    client("FCALL", "timerhub_put", 1, f"{{{QUEUE}}}", "long", 0, "", "y" * 1048576)
    answer = driver("take", 1000 * ARRIVES)
    expect(answer[1] == "long" and answer[3] == "y" * 1048576, "a long task")
    expect(driver("done") == 0 and driver("check", QUEUE)[-1] == "-", "done and check")
    # lost, and back
    driver.send("take", 1000 * ARRIVES)
    server.kill()
    server.start()
    wait_until(lambda: server.client()("EXISTS", KEY + "state") == 1, "it is back")
    server.client()("FCALL", "timerhub_put", 1, f"{{{QUEUE}}}", "back", 0, "", "x")
    expect(driver.receive()[1] == "back" and driver("done") == 0, "take after a restart")
    driver.close()


def check_names(server, authority, foreign):
    """The certificate of the server, and another one with the same names."""
    cafile = f"cafile={authority.certificate}"
    for url, wanted in ((server.url(cafile, host="localhost"), 0),
                        (server.url(cafile, host="localhost.localdomain"), None),
                        (server.url(f"cafile={foreign.certificate}"), -errno.EACCES),
                        (f"rediss://127.0.0.1:{server.port}", -errno.EACCES),
                        (server.url("insecure=1"), 0), (server.url("insecure=0"), -errno.EACCES),
                        (server.url("cafile=/nowhere"), -errno.EACCES),
                        (server.url(cafile, "cert=/nowhere"), -errno.EACCES)):
        got = opening(url) if wanted is not None else opening(url, 500)
        expect(got == wanted or (wanted is None and got < 0), "open of", url, got)
    client = server.client()
    driver = Driver(server.url(cafile))
    open_soon(driver, 0, 1, 500)
    # The certificate is renewed badly while the queue is open, and then well.
    good = client("CONFIG", "GET", "tls-cert-file", "tls-key-file")
    good = dict(zip(good[::2], good[1::2]))
    for name, names, dates in (("other", "DNS:elsewhere.example,IP:127.0.0.2", ()),
                               ("old", "IP:127.0.0.1", EXPIRED)):
        pair = authority.sign(name, *dates, names=names)
        client("CONFIG", "SET", "tls-cert-file", pair[0], "tls-key-file", pair[1])
        expect(opening(server.url(cafile)) == -errno.EACCES, "a certificate that is", name)
        expect(opening(server.url("insecure=1")) == 0, "unchecked", name)
        client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        wait_until(lambda: driver("put", "refused", 0, "x") == -errno.EACCES, "put")
        client("CONFIG", "SET", *(word for pair in good.items() for word in pair))
        wait_until(lambda at=name: driver("put", at, 0, "x") in (0, -errno.EEXIST),
                   "put with a good certificate")
        expect(take_all(driver, 1) == [name], "another task came")
    driver.close()


def check_client_certificate(server, authority, foreign):
    client, cafile = server.client(), f"cafile={authority.certificate}"
    client("CONFIG", "SET", "tls-auth-clients", "yes")
    pair, strange = authority.sign("client"), foreign.sign("client")
    both = pathlib.Path(authority.folder) / "both"
    both.write_bytes(pair[0].read_bytes() + pair[1].read_bytes())
    for version in ("TLSv1.3", "TLSv1.2"):
        client("CONFIG", "SET", "tls-protocols", version)
        for words, wanted in (((), -errno.EACCES),
                              ((f"cert={strange[0]}", f"key={strange[1]}"), -errno.EACCES),
                              ((f"cert={pair[0]}", f"key={strange[1]}"), -errno.EACCES),
                              ((f"cert={pair[0]}", f"key={pair[1]}"), 0), ((f"cert={both}",), 0)):
            got = opening(server.url(cafile, *words))
            expect(got == wanted, version, words, got)
    client("CONFIG", "SET", "tls-protocols", "")
    client("CONFIG", "SET", "tls-auth-clients", "no")


def check_without_tls(tools):
    with Server("--port", str(free_port()), "--bind", "127.0.0.1") as server:
        port = server.client()("CONFIG", "GET", "port")[1].decode()
        begin, url = time.monotonic(), f"rediss://127.0.0.1:{port}"
        expect(opening(url, 1500) == -errno.EHOSTUNREACH, "a server without TLS")
        expect(time.monotonic() - begin < ARRIVES, "late")
        for tool in tools:
            said = Tool(tool, server, url).says(3, "load")
            expect("does it have TLS?" in said, "a server without TLS", said)
    listener = socket.create_server(("127.0.0.1", 0))

    def talk():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.sendall(b"-ERR Protocol error\r\n")
            client.recv(1000)
            client.close()
    threading.Thread(target=talk, daemon=True).start()
    expect(opening(f"rediss://127.0.0.1:{listener.getsockname()[1]}") == -errno.EPROTO, "no TLS")
    hang_up(listener)
    listener.close()


def check_cut(server, cafile):
    """An open must connect again if it is cut in the TLS handshake, which has about 1000 bytes."""
    cutter = SlowProxy(None, server.port)
    driver = Driver(server.url(cafile, port=cutter.port))
    for left in (1, 5, 6, 100, 127, 128, 400, 700, 800, 900, 1000, 1100, 1200):
        cutter.cut_after = left
        # in the thread of the caller, which does not block signals
        expect(driver("check", QUEUE) == -errno.EHOSTUNREACH, "check, cut after", left)
        driver.send("open", QUEUE, 1, 1000 * ARRIVES, 0)
        time.sleep(0.1)
        cutter.cut_after = None
        got = driver.receive()
        expect(got == 0, "open, cut after", left, got)
        expect(driver("put", "after", 3600_000, "x") == 0, "put")
        expect(driver("cancel", "after") == 0, "cancel")
        server.client()("DEL", KEY + "past")
        driver("close")
    cutter.cut_after = 500
    expect(driver.open(1, 300) == -errno.EHOSTUNREACH, "open, always cut")
    cutter.cut_after = None
    driver.close()
    cutter.close()


# ---- Sentinels ----


def check_sentinel(authority, pair, cafile):
    with TlsServer(authority, pair) as master, TlsServer(authority, pair) as replica:
        make_replica(replica, master)
        sentinel = Sentinel(master.folder, master.port, "tls-replication yes",
                            f"tls-cert-file {pair[0]}", f"tls-key-file {pair[1]}",
                            f"tls-ca-cert-file {authority.certificate}", "tls-auth-clients no",
                            port="tls-port")
        url = f"sentinels://127.0.0.1:{sentinel.port}/main?{cafile}"
        try:
            sentinel.wait_until_it_knows(1)
            expect(opening(url.partition("?")[0]) == -errno.EACCES, "an untrusted Sentinel")
            expect(opening(url.replace("sentinels:", "sentinel:").partition("?")[0], 300) < 0,
                   "a Sentinel by TLS, asked without")
            driver = Driver.opened(url, 1)

            def fails_over():
                if sentinel.master() == master.port:
                    with contextlib.suppress(RedisError):  # one goes on; it may fail
                        sentinel.ask("failover", "main")
                return has_role(master, b"slave")
            # Until then the old master takes puts, and loses them when it becomes a replica.
            wait_until(fails_over, "a new replica", 3 * ARRIVES)
            wait_until(lambda: driver("put", "after", 50, "x") in (0, -errno.EEXIST), "put")
            expect(take_all(driver, 1) == ["after"], "another task came")
            driver.close()
        finally:
            sentinel.close()


def check_cluster(authority, pair, cafile):
    with TlsServer(authority, pair, "--cluster-enabled", "yes", "--cluster-port", str(free_port()),
                   "--tls-cluster", "yes") as server:
        server.client()("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        url = f"clusters://127.0.0.1:{server.port}"
        Driver.opened(f"{url}?{cafile}", 1, 1000 * ARRIVES)  # it serves its slots after a while
        expect(opening(url) == -errno.EACCES, "an untrusted node")


# ---- the tool ----


def check_tool(program, server, cafile):
    tool = Tool(program, server, server.url(cafile))
    tool("create", "tool")
    said = tool.says(3, "--redis", server.url(), "load")
    expect("the server's certificate is refused: " in said, said)
    insecure = Tool(program, server, server.url("insecure=1"))
    said = insecure.says(0, "stat", "tool")
    expect("insecure=1" in said and "is not checked" in said, "an insecure server", said)
    with Daemon(insecure, "tool") as daemon:
        expect("is not checked" in daemon.said(), "the daemon does not say it")
        wait_for_seats(server.client(), daemon.process, queue="tool")


def main(arguments):
    Driver.program = arguments[1]
    with tempfile.TemporaryDirectory() as folder:
        authority, foreign = (Authority(pathlib.Path(folder) / name) for name in ("own", "foreign"))
        pair, cafile = authority.sign("server"), f"cafile={authority.certificate}"
        if opening("rediss://127.0.0.1:1", 100) == -errno.EOPNOTSUPP:
            print("skipped: the library was built without TLS")
            return SKIP
        with TlsServer(authority, pair) as server:
            check_calls(server, cafile)
            check_names(server, authority, foreign)
            check_client_certificate(server, authority, foreign)
            check_cut(server, cafile)
            if len(arguments) > 3:
                check_tool(arguments[3], server, cafile)
        if arguments[2] == "all":
            check_without_tls(arguments[3:])
            check_sentinel(authority, pair, cafile)
            check_cluster(authority, pair, cafile)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
