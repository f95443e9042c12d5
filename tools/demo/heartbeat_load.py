#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts the heartbeat server of examples/ under load, and judges it.

Usage: heartbeat_load.py [-n CONNECTIONS] [-d SECONDS] [-t IDLE_MS] [-w TIMERHUB_TOP]
                         SERVER [ARGUMENT...]

The clients connect during two seconds and send heartbeats at random intervals of at most half the
timeout; a tenth of them falls silent at random times. With its last message the server tells a
client its deadline and when it was closed, both on CLOCK_MONOTONIC, so the judgement needs no
assumption of how long anything takes. SECONDS must be longer than the timeout by 4, so that each
silent client can time out. Exit status 1 if the server closed an active connection or left a silent
one open. Ctrl-C ends the run and prints the table so far.
"""

import argparse
import ctypes
import heapq
import os
import random
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time

MS, S = 10**6, 10**9
SPARE_FDS = 64
CLIENTS_MAX = 20000  # an address has 28,232 ports for its clients
RAMP_NS = 2 * S  # until all clients have begun to connect
GRACE_NS = 20 * S  # from a client's deadline until it counts as missed
SETTLE_NS = S  # from the last silent client's deadline to the run's end
SILENT_ONE_IN = 10
PR_SET_PDEATHSIG = 1

now = time.monotonic_ns


class Client:
    """A connection. Its times are ns on CLOCK_MONOTONIC."""

    def __init__(self, number, connection, silent_from_ns):
        self.number = number
        self.connection = connection
        self.silent_from_ns = silent_from_ns  # 0: never
        self.is_silent = False
        self.previous_sent_ns = self.sent_ns = now()  # just before a send(), or connect()
        self.gone_ns = self.sent_ns  # just after the last send(), when the server had the data
        self.deadline_ns = self.closed_ns = 0  # as the server's last message says; 0: none came

    def falls_silent(self, now_ns):
        if not self.is_silent and 0 < self.silent_from_ns <= now_ns:
            self.is_silent = True
            return True
        return False


class Server:
    """The server, whose output is read as it comes."""

    def __init__(self, command, idle_ms):
        def prepare():
            # Ctrl-C reaches only this program, which then ends the server.
            os.setpgid(0, 0)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

        # pylint: disable=subprocess-popen-preexec-fn,consider-using-with
        self.process = subprocess.Popen([*command, "-p", "0", "-t", str(idle_ms), "-s", "500"],
                                        stdout=subprocess.PIPE, preexec_fn=prepare)
        self.said = b""
        self.has_ended = False
        while not self.has_ended and b"\n" not in self.said:
            self.hear()
        found = re.search(rb"127\.0\.0\.1:(\d+)\n", self.said)
        if not found:
            sys.exit(f"{command[0]} does not say on which port it listens")
        self.port = int(found[1])

    def hear(self):
        more = os.read(self.process.stdout.fileno(), 65536)
        self.said += more
        self.has_ended = not more

    def figure(self, key):
        """The number behind the key in the latest line that has it."""
        found = re.findall(rb" %s=(\d+)" % key, self.said)
        return int(found[-1]) if found else 0

    def stop(self):
        """Ends the server after its last figures. Returns whether it ended as it should."""
        ended_early = self.has_ended
        self.process.terminate()
        while not self.has_ended:
            self.hear()
        return self.process.wait() == 0 and not ended_early


class Load:
    """The clients, and what they have seen."""

    def __init__(self, options, server):
        self.options, self.server = options, server
        self.idle_ns, self.duration_ns = options.idle * MS, options.seconds * S
        self.start_ns = now()
        self.interrupted = False
        self.clients = {}  # by descriptor
        self.beats = []  # a heap of (time of a client's next heartbeat, its number, the client)
        self.epoll = select.epoll()
        self.epoll.register(server.process.stdout, select.EPOLLIN)
        self.begun = self.refused = self.heartbeats = self.fell_silent = 0
        self.closed_silent = self.closed_wrongly = self.missed = 0
        self.closed_our_pause = 0  # of clients that this process kept from sending in time
        self.lateness_ns = []

    def plan_beat(self, client, now_ns):
        """Plans the next heartbeat within half the timeout: only a stall makes it late."""
        pause_ns = random.randrange(self.idle_ns // 15, self.idle_ns // 2)
        heapq.heappush(self.beats, (now_ns + pause_ns, client.number, client))

    def connect(self):
        silent_from_ns = 0
        if self.begun % SILENT_ONE_IN == 0:
            end_ns = self.start_ns + self.duration_ns - SETTLE_NS - self.idle_ns
            silent_from_ns = random.randrange(now() + 1, max(now() + 2, end_ns))
        self.begun += 1
        connection = socket.socket()
        connection.setblocking(False)
        client = Client(self.begun, connection, silent_from_ns)
        try:
            connection.connect(("127.0.0.1", self.server.port))
        except BlockingIOError:
            pass
        except OSError as error:
            if self.refused == 0:
                print(f"a client cannot connect: {error}", file=sys.stderr)
            self.refused += 1
            connection.close()
            return
        self.clients[connection.fileno()] = client
        self.epoll.register(connection, select.EPOLLIN)
        self.plan_beat(client, client.sent_ns)

    def beat(self, client):
        now_ns = now()
        if client.connection.fileno() < 0:
            return
        if client.falls_silent(now_ns):
            self.fell_silent += 1
            return
        try:
            client.connection.send(b"beat...\n", socket.MSG_NOSIGNAL)
            client.previous_sent_ns, client.sent_ns, client.gone_ns = client.sent_ns, now_ns, now()
            self.heartbeats += 1
        except OSError:
            pass  # what cannot be sent does not count; hear() learns of a close
        self.plan_beat(client, now_ns)

    def is_overdue(self, client, now_ns):
        return client.is_silent and now_ns > client.sent_ns + self.idle_ns + GRACE_NS

    def judge(self, client):
        """The server must close a client after the deadline that it names, which must be a whole
        timeout after the last heartbeat. This process can stall just before a send(): a heartbeat
        that had not gone before the deadline does not count, and the one before does."""
        counts_ns = (client.sent_ns if client.gone_ns < client.deadline_ns
                     else client.previous_sent_ns)
        self.fell_silent += client.falls_silent(now())
        if not counts_ns + self.idle_ns <= client.deadline_ns <= client.closed_ns:
            self.closed_wrongly += 1
            return
        self.lateness_ns.append(client.closed_ns - client.deadline_ns)
        if not client.is_silent:
            self.closed_our_pause += 1
        elif self.is_overdue(client, client.closed_ns):
            self.missed += 1
        else:
            self.closed_silent += 1

    def hear_client(self, fd):
        client = self.clients[fd]
        try:
            text = client.connection.recv(128)
        except BlockingIOError:
            return
        except OSError:
            text = b""
        if text:  # over loopback the last message comes in one piece
            _, deadline_ns, closed_ns = text.split()
            client.deadline_ns, client.closed_ns = int(deadline_ns), int(closed_ns)
            return
        self.judge(client)
        del self.clients[fd]
        client.connection.close()

    def hear(self, timeout_s):
        """Handles what comes within this time, and returns whether anything came."""
        events = self.epoll.poll(timeout_s)
        for fd, _ in events:
            if fd in self.clients:
                self.hear_client(fd)
            else:
                self.server.hear()
        return events and not self.server.has_ended

    def advance(self, now_ns):
        """Begins the connections and sends the heartbeats that are due."""
        ramp_ns = min(now_ns - self.start_ns, RAMP_NS)
        while self.begun < self.options.connections * ramp_ns // RAMP_NS:
            self.connect()
        while self.beats and self.beats[0][0] <= now_ns:
            self.beat(heapq.heappop(self.beats)[2])

    def anybody_waits(self, now_ns):
        """Whether a client is silent, or will be, and may still be closed in time."""
        return any(client.silent_from_ns > 0 and not self.is_overdue(client, now_ns)
                   for client in self.clients.values())

    def run(self):
        now_ns = shown_ns = self.start_ns
        shown = 0
        while not self.interrupted and not self.server.has_ended and (
                now_ns < self.start_ns + self.duration_ns or self.anybody_waits(now_ns)):
            self.hear(0.001)
            now_ns = now()
            self.advance(now_ns)
            if now_ns - shown_ns < 2 * S:
                continue
            rate = (self.heartbeats - shown) * S // (now_ns - shown_ns)
            print(f"{(now_ns - self.start_ns) / S:5.1f} s  {len(self.clients):7} connections  "
                  f"{rate:7} heartbeats/s  {len(self.lateness_ns) + self.closed_wrongly:6} closed",
                  flush=True)
            shown_ns, shown = now_ns, self.heartbeats
        # What the server closed in time before it ended does not count as missed.
        while self.hear(0):
            pass
        self.missed += sum(self.is_overdue(client, now_ns) for client in self.clients.values())

    def table(self):
        late, count = sorted(self.lateness_ns), len(self.lateness_ns)
        messages = self.server.figure(b"messages")
        yield "connections", self.begun - self.refused, ""
        if self.refused:
            yield "not connected", self.refused, ""
        yield "heartbeats", self.heartbeats, "sent"
        yield "clients that fell silent", self.fell_silent, ""
        yield "closed for silence", self.closed_silent, ""
        yield "wrongly closed", self.closed_wrongly, "not silent for the whole timeout"
        yield "missed", self.missed, "silent, and not closed 20 s after the timeout"
        if self.closed_our_pause:
            yield "closed while this program stalled", self.closed_our_pause, "for a whole timeout"
        for name, at in (("p50", count // 2), ("p99", count * 99 // 100), ("max", count - 1)):
            if late:
                yield (f"lateness {name}, us", late[at] // 1000,
                       "of the server's close() after the deadline")
        yield "messages", messages, "the server moves a timeout for each"
        yield ("loop's time per message, ns",
               round(self.server.figure(b"loop_ns") / max(messages, 1), 1),
               "timerhub_loop_turn() without its callbacks")
        yield ("wake-ups by timeouts", self.server.figure(b"wakes"),
               "times that the loop's fd was readable")

    def wrong(self, server_is_well):
        if not server_is_well:
            return "the server ended by itself, or not as it should"
        if self.closed_wrongly or self.missed:
            return "connections were closed wrongly or missed"
        if self.begun - self.refused != self.options.connections and not self.interrupted:
            return "not all connections could be made"
        return None


def between(low, high):
    def number(text):
        if not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"not a number from {low} to {high}: {text}")
        return int(text)
    return number


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", dest="connections", type=between(1, CLIENTS_MAX), default=10000)
    parser.add_argument("-d", dest="seconds", type=between(1, 100000), default=20)
    parser.add_argument("-t", dest="idle", type=between(100, 60000), default=3000)
    parser.add_argument("-w", dest="top")  # for the hint to watch the server
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command or options.seconds < options.idle / 1000 + 4:
        parser.error("SERVER is missing, or SECONDS is too small")
    return options


def raise_file_limit(options):
    """Raises the limit of open files, also for the server, or lowers the number of connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = CLIENTS_MAX if most == resource.RLIM_INFINITY else min(most, CLIENTS_MAX)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    if options.connections > limit - SPARE_FDS:
        options.connections = limit - SPARE_FDS
        print(f"the limit of files allows {options.connections} connections")


def main():
    options = parse()
    raise_file_limit(options)
    server = Server(options.command, options.idle)
    print(f"the server closes each of {options.connections} connections after {options.idle} ms of "
          f"silence\nthe server is process {server.process.pid}")
    if options.top:
        print(f"to see its timeouts in another terminal: {options.top} {server.process.pid}")
    sys.stdout.flush()
    load = Load(options, server)

    def stop(*_):
        load.interrupted = True

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    load.run()
    is_well = server.stop()
    print(f"{'interrupted' if load.interrupted else 'finished'} after "
          f"{(now() - load.start_ns) / S:.1f} s")
    for label, value, remark in load.table():
        print(f"  {label:39} {value:12}  {remark}")
    wrong = load.wrong(is_well)
    print(f"FAILED: {wrong}" if wrong else
          "all closed connections were silent, all silent connections were closed in time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
