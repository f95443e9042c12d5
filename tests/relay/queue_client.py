# SPDX-License-Identifier: MIT
"""Uses a queue: by the library (Driver), and without it, by the Redis functions and the stream
(Queue)."""

import errno
import os
import subprocess
import threading
import time

from redis_server import ARRIVES, expect, wait_until

QUEUE = "spread"
KEY = f"timerhub:{{{QUEUE}}}:"

KEYS = {
    "put": "due task state seats past", "puts": "due task state seats past",
    "cancel": "due task ready state past",
    "move": "due task ready state past seats", "done": "due task ready state past",
    "retry": "due task ready state past seats dead",
    "park": "due task ready state past dead", "forget": "ready state",
    "pause": "due task ready state", "resume": "state seats",
    "each": "due task ready dead state",
    "touch": "task ready state", "fence": "state seen",
    "look": "due task ready dead past state seats seen", "leave": "seats seen state",
    "stat": "due task ready dead past state seats seen", "list": "due task",
    "peek": "due task ready", "revive": "dead due task state seats past", "create": "ready state",
    "repair": "due task ready dead past state seats",
}


class Queue:
    def __init__(self, client, name):
        self.client, self.prefix = client, f"timerhub:{{{name}}}:"

    def words(self, name, *arguments):
        keys = [self.prefix + key for key in KEYS[name].split()]
        return ("FCALL", "timerhub_" + name, len(keys), *keys, *arguments)

    def call(self, name, *arguments):
        return self.client(*self.words(name, *arguments))

    def put(self, name, when, flags="", data=""):
        return self.call("put", name, when, flags, data)

    def done(self, name):
        """Ends a task that is in the stream."""
        return self.call("done", name, self.call("peek", name)[6])

    def read(self, count=100, block_ms=None, consumer="c"):
        """Reads new entries of the stream. Returns a list of (entry, id, due time, number of the
        delivery, data)."""
        block = () if block_ms is None else ("BLOCK", block_ms)
        reply = self.client("XREADGROUP", "GROUP", "timerhub", consumer, "COUNT", count, *block,
                            "STREAMS", self.prefix + "ready", ">")
        return [(entry, fields[1].decode(), int(fields[3]), int(fields[5]), fields[7])
                for entry, fields in (reply[0][1] if reply else [])]

    def put_and_take(self, name, delay_us):
        """Returns how late the task came, in us."""
        due = self.put(name, delay_us)[1]
        entries = self.read(block_ms=1000 * ARRIVES)
        expect([entry[1:4] for entry in entries] == [(name, due, 1)], name, due, "came as", entries)
        late = self.now() - due
        expect(late >= 0, name, "is early")
        expect(self.done(name) == [0], "done", name)
        return late

    def stat(self):
        words = [word.decode() for word in self.call("stat")[1:]]
        return dict(zip(words[::2], words[1::2]))

    def now(self):
        seconds, rest = self.client("TIME")
        return int(seconds) * 10**6 + int(rest)

    def count(self, what):
        command = {"due": "ZCARD", "task": "HLEN", "ready": "XLEN"}[what]
        return self.client(command, self.prefix + what)


class Driver:
    """A process that makes calls of the library (calls_from_stdin.c). A call returns the result, or
    the words of the output."""

    program = None

    def __init__(self, url, command=(), **environment):
        self.process = subprocess.Popen([*command, self.program], text=True,
                                        env=os.environ | {"REDIS_URL": url} | environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @classmethod
    def opened(cls, url, *how):
        driver = cls(url)
        expect(driver.open(*how) == 0, "open of", url, how)
        return driver

    def __call__(self, *words):
        self.send(*words)
        return self.receive()

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def receive(self):
        answer = self.process.stdout.readline().split()
        expect(answer, "the driver ended with", self.process.poll())
        return int(answer[0]) if len(answer) == 1 else answer

    def open(self, serve=1, timeout_ms=1000 * ARRIVES, replicas=0):
        return self("open", QUEUE, serve, timeout_ms, replicas)

    def close(self):
        self.process.stdin.close()
        expect(self.process.wait(3 * ARRIVES) == 0, "the driver ended badly")

    def kill(self):
        self.process.kill()
        self.process.wait()


def open_soon(driver, wanted, *how):
    """
    Opens with a short timeout. On a busy machine the timeout may end before the wanted result
    arrives, or before the nodes of a cluster agree who serves the queue (-EROFS); the open is then
    repeated.
    """
    def is_done():
        result = driver.open(*how)
        expect(result in (wanted, -errno.ETIMEDOUT, -errno.EROFS), "open", how, result)
        return result == wanted
    wait_until(is_done, f"open with {how}: {wanted}")


def opening(url, timeout_ms=1000 * ARRIVES, serve=1):
    driver = Driver(url)
    result = driver.open(serve, timeout_ms)
    driver.close()
    return result


def take_all(driver, count):
    got = []
    while len(got) < count:
        answer = driver("take", 1000 * ARRIVES)
        expect(answer != 0, "only", got, "came")
        expect(driver("done") == 0, "done of", answer)
        got.append(answer[1])
    return got


def serve(url, queue, **environment):
    """Starts a relay that serves the queue until it is killed."""
    driver = Driver(url, **environment)
    driver.send("open", queue, 1, 1000 * ARRIVES, 0)
    return driver


def make(queue, url):
    """Lets the library load its functions, and make the queue."""
    driver = Driver(url)
    expect(driver("open", queue, 1, 1000 * ARRIVES, 0) == 0, "open of", queue)
    driver.close()


# What a call may say that repeats one in doubt. A put may repeat itself.
REPEATED = {"put": (-errno.EEXIST, -errno.EALREADY), "cancel": (-errno.ENOENT,),
            "done": (-errno.ENOENT,), "retry": (-errno.ESTALE, -errno.ENOENT)}


def surely(driver, *call):
    """Makes a call, and repeats it while it is in doubt. Returns the words of its output."""
    first = result = driver(*call)
    while result == -errno.ETIMEDOUT:
        result = driver(*call)
    repeats = first == -errno.ETIMEDOUT or call[0] == "put"
    expect(not isinstance(result, int) or result == 0 or (
        repeats and result in REPEATED.get(call[0], ())), call, result)
    return result


def put_pair(driver, *names):
    left = names
    while left:
        results = driver("put-pair", *names, 20)
        expect(set(map(int, results)) <= {0, -errno.ETIMEDOUT, *REPEATED["put"]}, names, results)
        left = [name for name, result in zip(names, results)
                if int(result) == -errno.ETIMEDOUT]


def live(queue, url, *command, **environment):
    """Uses the queue over a connection that may fail: the deliveries must agree with the results of
    the calls, and come long before the end of a lease of 300 s."""
    driver = Driver(url, command, **environment)
    hangs = threading.Timer(5 * ARRIVES, driver.process.kill)
    hangs.start()
    try:
        live_with(driver, queue)
        driver.close()
    finally:
        hangs.cancel()
        driver.kill()


def live_with(driver, queue):
    ended = []
    while (result := driver("open", queue, 1, 1000, 0)) == -errno.EHOSTUNREACH:
        pass  # this error is right if the connection is silent
    expect(result == 0, "open", result)
    for call in (("put", "a", 0, "a"), ("put", "c", 3600_000, "c"), ("put", "b", 20, "b"),
                 ("put", "d", 3600_000, "d"), ("cancel", "c"), ("move", "d", 30)):
        surely(driver, *call)
    put_pair(driver, "e", "f")
    while len(ended) < 5:
        answer = driver("take", 3000 * ARRIVES)
        expect(isinstance(answer, list) and answer[3] == answer[1], "take", answer)
        if answer[1] == "b" and answer[2] == "1":
            surely(driver, "retry", 0)
        else:
            surely(driver, "done")
            ended.append(answer[1])
    expect(sorted(ended) == list("abdef"), "ended", ended)
    expect(surely(driver, "stats")[1:3] == ["0", "0"], "some are left")


class Load:
    """Puts and takes tasks all the time. Each producer and the worker have a process of
    their own."""

    PRODUCERS = 3
    loads = 0
    # the tasks of all loads that have ended: a master that dies may lose the end of a task, so that
    # the task comes again under a later load
    earlier = set()

    def __init__(self, url, replicas=0):
        self.url, self.replicas = url, replicas
        self.ending = False
        self.acknowledged, self.in_doubt, self.taken, self.errors = set(), set(), {}, {}
        Load.loads += 1
        calls = [(self.take, ())]
        calls += [(self.put, (f"{Load.loads}-{n}-",)) for n in range(self.PRODUCERS)]
        self.threads = [threading.Thread(target=call, args=args, daemon=True)
                        for call, args in calls]
        for one in self.threads:
            one.start()

    def put(self, begin):
        driver, number = Driver(self.url), 0
        open_soon(driver, 0, 1, 3000, self.replicas)
        while not self.ending:
            name = f"{begin}{number}"
            result = driver("put", name, number % 200, "x")
            if result == 0:
                self.acknowledged.add(name)
            else:
                self.in_doubt.add(name)
                self.errors[result] = self.errors.get(result, 0) + 1
            number += 1
            time.sleep(0.002)
        driver.close()

    def take(self):
        driver = Driver(self.url)
        open_soon(driver, 0, 1, 3000)
        answer = is_over = None
        while answer != 0 or not is_over:
            putting = any(one.is_alive() for one in self.threads[1:])
            is_over = self.ending and not putting and self.has_nothing(driver)
            answer = driver("take", 1000)
            if isinstance(answer, int):
                continue
            self.taken[answer[1]] = self.taken.get(answer[1], 0) + 1
            driver("done")
        driver.close()

    @staticmethod
    def has_nothing(driver):
        """Nothing waits, and a worker has what is ready."""
        stats = driver("stats")
        return isinstance(stats, list) and stats[1] == "0" and stats[2] == stats[3]

    def wait_for_puts(self, count):
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted, f"{count} puts", 60)

    def end(self, what):
        self.ending = True
        for one in self.threads:
            one.join(4 * ARRIVES)
            expect(not one.is_alive(), "the load does not end")
        lost = self.acknowledged - set(self.taken)
        expect(not lost, what, "lost", len(lost), "of", len(self.acknowledged), sorted(lost)[:5])
        put = self.acknowledged | self.in_doubt | Load.earlier
        expect(set(self.taken) <= put, "a task that nobody put", sorted(set(self.taken) - put)[:5])
        Load.earlier |= put
        again = sum(count - 1 for count in self.taken.values())
        print(f"{what}: {len(self.acknowledged)} puts acknowledged, none lost, {again} delivered "
              f"again, errors {self.errors}", flush=True)
