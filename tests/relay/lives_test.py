#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Short lives of queues behind a network that delivers late, judged by a book of every call.

Usage: lives_test.py DRIVER [LIVES [FIRST]]

In a life three workers (DRIVER) use one queue. Each owns an id, which it puts, replaces, moves and
cancels, and each takes and answers any task. Two workers have a network (late_network.py) that
holds their bytes, cuts, and delivers what it held after they have connected again. They are also
stopped past their lease, and killed. At last all bytes arrive, and the third worker ends what is
left. book.py then judges the calls on each id. Life N makes the same choices in each run; the times
of its steps differ a little. Prints the book of each life that broke a law.
"""

import asyncio
import dataclasses
import errno
import os
import pathlib
import random
import signal
import sys
import time
import traceback

from book import Call, Judge
from late_network import Network
from redis_server import ARRIVES, Server, die_with_test

TIMEOUT_MS = 300
LEASE_MS = 300
PAST_MS = TIMEOUT_MS
DRIFT_NS = 5 * 10**6  # how far Redis's clock may be set or slowed in a life
STEPS = 14
AT_ONCE = 12  # number of lives that run at a time
HOUR_MS = 3_600_000
MS = 10**6
ANSWERS = ("done", "retry", "touch", "release")
REPLIES = (0, -errno.ENOENT, -errno.EBUSY, -errno.EEXIST, -errno.EALREADY,
           -errno.ESTALE)


class Ended(Exception):
    """The worker was killed during a call."""


def where_it_waits(pid):
    threads = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return [(thread / "wchan").read_text() + " " + (thread / "syscall").read_text().strip()
            for thread in threads]


class Worker:
    """A process, the one id that it owns, and its network, or none. `chances` makes its choices."""

    def __init__(self, life, name, chances, network):
        self.life, self.name, self.chances, self.network = life, name, chances, network
        self.process, self.task, self.last = None, None, None
        self.is_stopped = False
        self.blind = []  # intervals in which nothing reached the process
        self.doubts = []  # calls in doubt of this process since its last answered call
        self.number, self.began = 0, 0

    # ---- calls ----

    async def start(self):
        address = self.network.path if self.network else self.life.server.address
        self.process = await asyncio.create_subprocess_exec(
            self.life.driver, env=os.environ | {"REDIS_URL": f"unix:{address}"},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            preexec_fn=die_with_test)
        self.task, self.last, self.doubts = None, None, []
        await self.open()

    async def open(self):
        serves = 0 if self.network else 1
        while await self.say("open", self.life.queue, serves, TIMEOUT_MS, 0) != 0:
            await asyncio.sleep(0.05)
        if self.chances.random() < 0.5:
            await self.say("fd")

    async def say(self, *words):
        try:
            self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
            await self.process.stdin.drain()
            line = (await asyncio.wait_for(self.process.stdout.readline(), 3 * ARRIVES)).split()
        except TimeoutError:
            raise AssertionError(f"life {self.life.number}: {self.name} waits for {words}: "
                                 f"{where_it_waits(self.process.pid)}") from None
        except OSError:
            line = []
        if not line:
            raise Ended
        return int(line[0]) if len(line) == 1 else [word.decode() for word in line]

    async def call(self, task, name, *arguments, **more):
        words = (name, *arguments) if name in ANSWERS else (name, task,
                                                                              *arguments)
        call = Call(name, self.name, time.time_ns(), 0, -errno.ETIMEDOUT, **more)
        self.life.book[task].append(call)
        try:
            call.result = await self.say(*words)
        except Ended:
            call.end = time.time_ns() + TIMEOUT_MS * MS + DRIFT_NS
            raise
        call.end = time.time_ns()
        if name in ("move", "replace") and self.network:
            # While the call runs, Redis may execute both of its sendings.
            self.life.book[task].append(dataclasses.replace(call, result=-errno.ETIMEDOUT))
        # The fence comes before the next answered command, so a call in doubt ends before it.
        if call.result in REPLIES and name != "release":
            for doubt in self.doubts:
                doubt.end = min(doubt.end, call.end)
            self.doubts = []
        elif call.result == -errno.ETIMEDOUT:
            call.end += DRIFT_NS
            self.doubts.append(call)
        return call.result

    async def take(self, timeout_ms):
        begin = time.time_ns()
        answer = await self.say("take", timeout_ms)
        if not isinstance(answer, list):
            return
        end = time.time_ns()
        delivery, due = await self.say("which")
        entry = tuple(map(int, delivery.split("-")))
        # An entry that Redis gave out while nothing reached this process was taken after that.
        for since, until in self.blind:
            if entry[0] * MS >= since:
                begin = max(begin, until)
        self.task = (answer[1], entry)
        self.life.book[answer[1]].append(Call("take", self.name, begin, end, 1, data=answer[3],
                                              entry=entry, due=int(due)))

    # ---- choices ----

    async def change(self):
        """Makes a change of this worker's id, as a program does: what is in doubt is repeated."""
        chances, result = self.chances, None
        name, delay = self.last or (None, 0)
        if not name:
            name = chances.choices(("put", "replace", "cancel", "move"), (4, 1, 3, 2))[0]
            delay = chances.choice((0, 20, 150, HOUR_MS, HOUR_MS))
        if name in ("put", "replace"):
            self.number += 1
            data = f"{self.name}.{self.number}"
            result = await self.call(self.name, name, delay, data, delay=delay * MS, data=data)
        elif name == "move":
            result = await self.call(self.name, name, delay, delay=delay * MS)
        else:
            result = await self.call(self.name, name)
        in_doubt = result == -errno.ETIMEDOUT and chances.random() < 0.8
        self.last = (name, delay) if in_doubt else None
        if name == "cancel" and result == 0 and chances.random() < 0.7:
            self.last = ("put", chances.choice((150, HOUR_MS)))

    async def answer(self):
        (task, entry), chances = self.task, self.chances
        name = chances.choices(("done", "retry", "touch", "release", "wait"), (6, 3, 1, 1, 2))[0]
        if name == "wait":
            await asyncio.sleep(LEASE_MS / 1000 * 1.5 * chances.random())
            return
        if name == "release":
            await self.call(task, name, entry=entry)
            self.task = None
            return
        delay = chances.choice((0, 100, HOUR_MS)) if name == "retry" else 0
        words = (delay,) if name == "retry" else ()
        result = await self.call(task, name, *words, delay=delay * MS, entry=entry)
        if name != "touch" and (result != -errno.ETIMEDOUT or chances.random() < 0.2):
            self.task = None

    async def step(self):
        self.make_trouble()
        if self.task:
            await self.answer()
        elif self.chances.random() < 0.65:
            await self.change()
            if self.chances.random() < 0.3:
                self.life.see(self.name)
        else:
            await self.take(self.chances.choice((0, 0, 50, 400)))
        await asyncio.sleep(0.05 * self.chances.random())

    async def live(self):
        for _ in range(STEPS):
            try:
                await self.step()
            except Ended:
                await self.process.wait()
                # Another process changes the id only after the killed process's last call ends.
                await asyncio.sleep(TIMEOUT_MS / 1000 + DRIFT_NS / 10**9)
                await self.start()

    # ---- trouble ----

    def make_trouble(self):
        if not self.network:
            return
        chances = self.chances
        kind = chances.choices((None, self.hold, self.overtake, self.lose_sight, self.stop,
                                self.kill), (6, 6, 4, 1, 3, 1))[0]
        if kind:
            # Drawn here, because the order in which troubles run is not by seed.
            self.life.start(kind(random.Random(chances.random())))

    async def hold(self, chances):
        """Holds bytes of a connection. Either they arrive late, or the client finds the connection
        cut, and what it sent arrives later."""
        await asyncio.sleep(chances.choice((0, 0.01 * chances.random())))
        if not self.network.connections:
            return
        connection = chances.choice(self.network.connections)
        connection.hold(*chances.choice((("up",), ("up",), ("down",), ("up", "down"))))
        await asyncio.sleep(0.5 * chances.random() ** 2)
        if chances.random() < 0.8:
            connection.cut()
            await asyncio.sleep(1.2 * chances.random() ** 2)
        self.network.let_go(connection)

    async def overtake(self, chances):
        """All connections are cut, and what they carried arrives behind newer ones."""
        connections = self.network.connections[:]
        for connection in connections:
            connection.hold("up")
        await asyncio.sleep(0.02)
        for connection in connections:
            connection.cut()
        await asyncio.sleep(0.03 + 0.1 * chances.random())
        for connection in connections:
            self.network.let_go(connection)

    async def lose_sight(self, chances):
        """Nothing reaches the worker, nor the server from it."""
        if self.network.is_away:
            return
        self.network.go_away()
        begin = time.time_ns()
        await asyncio.sleep(LEASE_MS / 1000 * (0.5 + chances.random()))
        self.blind.append((begin, time.time_ns()))
        self.network.come_back()

    async def stop(self, chances):
        """Stops the process past the end of its lease."""
        await asyncio.sleep(0.03 * chances.random())
        process = self.process
        if self.is_stopped or process.returncode is not None:
            return
        self.is_stopped = True
        process.send_signal(signal.SIGSTOP)
        begin = time.time_ns()
        await asyncio.sleep(LEASE_MS / 1000 * (1.2 + chances.random()))
        if process is self.process and process.returncode is None:
            self.blind.append((begin, time.time_ns()))
            process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    async def kill(self, chances):
        await asyncio.sleep(0.02 * chances.random())
        if self.process.returncode is None:
            self.process.kill()

    async def close(self):
        self.process.stdin.close()
        await asyncio.wait_for(self.process.wait(), 6 * ARRIVES)


class Life:
    def __init__(self, driver, server, number):
        self.driver, self.server, self.number = driver, server, number
        self.queue, self.book = f"life-{number}", {name: [] for name in "abc"}
        self.workers, self.troubles, self.client = [], [], None

    def start(self, trouble):
        self.troubles.append(asyncio.create_task(trouble))

    async def run(self):
        """Returns the books of the ids on which a law was broken."""
        for name in self.book:
            network = None
            if name != "c":
                network = Network(f"{self.server.folder}/{self.number}{name}", self.server.address)
                await network.open()
            chances = random.Random(f"{self.number}{name}")
            self.workers.insert(0, Worker(self, name, chances, network))
        self.client = self.server.client()
        keys = [f"timerhub:{{{self.queue}}}:{key}" for key in ("ready", "state")]
        await self.workers[0].start()
        assert self.client("FCALL", "timerhub_create", 2, *keys, "lease_us", LEASE_MS * 1000,
                           "past_us", PAST_MS * 1000)[0] == 0
        await self.workers[0].say("close")  # a client learns the settings when it connects
        await self.workers[0].open()
        for worker in self.workers[1:]:
            await worker.start()
        await asyncio.gather(*(worker.live() for worker in self.workers))
        await asyncio.gather(*self.troubles)
        calm = self.workers[0]
        for worker in self.workers[1:]:
            await worker.close()
            await worker.network.close()
        await self.drain(calm)
        await calm.close()
        self.client.close()
        judge = Judge(LEASE_MS * MS, PAST_MS * MS)
        verdicts = {task: judge.verdict(calls) for task, calls in self.book.items()}
        return {task: verdict for task, verdict in verdicts.items() if verdict}

    def see(self, task):
        begin = time.time_ns()
        keys = [f"timerhub:{{{self.queue}}}:{key}" for key in ("due", "task", "ready")]
        reply = self.client("FCALL", "timerhub_peek", 3, *keys, task)
        if reply[0] == 0 and reply[1] == b"waiting":
            self.book[task].append(Call("see", "-", begin, time.time_ns(), 1, due=reply[2] * 1000,
                                        data=reply[5].decode()))

    async def drain(self, calm):
        calm.task = None
        for task in self.book:
            self.see(task)
            await calm.call(task, "move", 0)
        deadline = time.monotonic() + 3 * ARRIVES
        while True:
            await calm.take(100)
            if calm.task:
                task, entry = calm.task
                await calm.call(task, "done", entry=entry)
                calm.task = None
                continue
            for task in self.book:  # a retry may have put it off in the meantime
                await calm.call(task, "move", 0)
            stats = await calm.say("stats")
            if isinstance(stats, list) and stats[1:3] == ["0", "0"]:
                return
            assert time.monotonic() < deadline, (self.queue, stats)


async def run_lives(driver, server, numbers):
    turn, bad = asyncio.Semaphore(AT_ONCE), []


    async def run(number):
        async with turn:
            try:
                verdicts = await Life(driver, server, number).run()
            except Exception:  # Another life that is cut short may wait for ever for its worker.
                traceback.print_exc()
                print(f"life {number} did not end", flush=True)
                os._exit(1)
            for task, lines in verdicts.items():
                print(f"life {number}: a law is broken for the id {task}:", *lines, sep="\n",
                      flush=True)
            if verdicts:
                bad.append(number)

    await asyncio.gather(*map(run, numbers))
    return sorted(bad)


def main(arguments):
    lives = int(arguments[2]) if len(arguments) > 2 else 300
    seed = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or time.time_ns() % 2**32
    first = int(arguments[3]) if len(arguments) > 3 else 1
    first += seed * 10_000 if first < 10_000 else 0
    print(f"lives {first} to {first + lives - 1}", flush=True)
    with Server("--appendonly", "yes", "--appendfsync", "no") as server:
        bad = asyncio.run(run_lives(arguments[1], server, range(first, first + lives)))
    print(f"{lives} lives, {len(bad)} bad: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
