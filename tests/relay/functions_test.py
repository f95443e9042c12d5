#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares timerhub.lua on a real Redis server with the model of model.py, step by step.

Usage: functions_test.py TIMERHUB_LUA STEPS [SEED]

A step is a random call of a random relay, producer or consumer, or a change of the time, which is a
key in this test. The reply to a call must be the reply of the model. After each step the keys must
agree with each other, and after every fiftieth step with the whole model. The exit status is 1
after the first difference.
"""

import collections
import os
import random
import re
import select
import sys
import time

from model import SMALL, Model, NEVER
from queue_client import KEYS
from redis_server import Server, library

QUEUE_KEY = "{model}"
QUEUE = f"timerhub:{QUEUE_KEY}:"
RELAYS = [f"relay-{number}" for number in range(5)]
NAMES = [f"id-{number}" for number in range(24)]
HOLDERS = ("4-a", "4-b")
HORIZON, GRACE = 10_000_000, 100_000


class Difference(Exception):
    """A reply or a key differs from the model."""


def expect(condition, *what):
    if not condition:
        raise Difference(" ".join(map(str, what)))


def small_library(path):
    text = library(path, QUEUE + "clock")
    for name, value in SMALL.items():
        line = next(line for line in text.splitlines()
                    if re.match(rf"local [\w, ]*\b{name}\b", line))
        names, values = line[len("local "):].split("--")[0].split("=")
        names, values = names.replace(" ", "").split(","), values.replace(" ", "").split(",")
        values[names.index(name)] = str(value)
        text = text.replace(line, f"local {', '.join(names)} = {', '.join(values)}")
    return text


class Run:
    def __init__(self, server, seed):
        self.redis = server.client()
        self.bells = {relay: server.client() for relay in RELAYS + [""]}
        self.dice = random.Random(seed)
        self.model = Model(QUEUE)
        self.steps = 0
        self.calls = collections.Counter()
        self.redis("FLUSHALL")
        self.set_clock()
        self.call("create")
        self.keys = set()  # ids of the stream's entries that the model knows

    def close(self):
        for client in [self.redis, *self.bells.values()]:
            client.close()

    def call(self, name, *arguments):
        keys = [QUEUE + key for key in KEYS[name].split()]
        if self.dice.randrange(2):
            keys = [QUEUE_KEY]  # one key stands for all keys of the queue
        return self.redis("FCALL", "timerhub_" + name, len(keys), *keys, *arguments)

    def set_clock(self):
        self.redis("SET", QUEUE + "clock", self.model.now)

    # ---- steps; each returns (reply of Redis, reply of the model) ----

    def when(self):
        """Returns a random time for a call: its text, and whether the time is absolute."""
        kind = self.dice.randrange(10)
        if kind == 0:
            return "never", ""
        if kind == 1:
            return str(2**53 - 1 - self.dice.randrange(2) * 10**9), "a"
        if kind < 5:
            return str(max(0, self.model.now + self.dice.randrange(-10**6, 10**7))), "a"
        if kind == 5:
            return str(self.dice.choice((10**12, 2**53, 10**30))), ""
        return str(self.dice.randrange(self.dice.choice((1, 1000, 10**6, 10**8)))), ""

    def task(self):
        """Returns the arguments of a random put, except `until`."""
        name = self.dice.choice(NAMES + 9 * list(self.model.past) + ["", "x" * 65])
        when, flags = self.when()
        if self.dice.randrange(4) == 0:
            flags += self.dice.choice(("r", "r", "rd"))
        if self.dice.randrange(6) == 0:
            flags += f"e{self.dice.choice((1, 1000, 10**6, 10**8))}"
        return name, when, flags, b"d" * self.dice.choice((0, 1, 60, 120, 301))

    def until(self):
        return self.model.now + self.dice.choice((-1, 0, 1, 10**6))

    def life(self):
        """Returns what limits when a change counts: nothing, until, or until, holder and epoch."""
        return self.dice.choice(([], [self.until()], [
            self.until(), self.dice.choice(HOLDERS), self.dice.randrange(1, 4)]))

    def number(self):
        """Returns the number of a call. Few numbers, so that a put is often one sent before."""
        return self.dice.choice(("call-no1", "call-no2"))

    def step_fence(self):
        fence = self.dice.choice(HOLDERS), self.dice.randrange(1, 4), self.until()
        return self.call("fence", *fence), self.model.fence(*fence)

    def step_put(self):
        task, life = self.task(), self.life()
        if len(life) == 3 and self.dice.randrange(2):
            life.append(self.number())
        return self.call("put", *task, *life), self.model.put(*task, *life)

    def step_puts(self):
        holder, epoch = self.dice.choice((("", 0), (HOLDERS[0], 2)))
        tasks = [(*self.task(), self.dice.choice((None, self.until())),
                  self.dice.choice((None, self.number())))
                 for _ in range(self.dice.randrange(1, 5))]
        if self.dice.randrange(3) == 0:
            tasks.append((tasks[0][0], *self.task()[1:], None, None))
        words = [word if word is not None else "" for task in tasks for word in task]
        return (self.call("puts", holder, epoch, *words),
                self.model.puts(holder, epoch, tasks))

    def step_cancel(self):
        name, life = self.dice.choice(NAMES), self.life()
        return self.call("cancel", name, *life), self.model.cancel(name, *life)

    def step_move(self):
        name, life = self.dice.choice(NAMES), self.life()
        when, flags = self.when()
        return (self.call("move", name, when, flags, *life),
                self.model.move(name, when, flags, *life))

    def entry_for(self, name):
        """Returns the argument `entry` of a call: the task's latest delivery, or a wrong one."""
        task = self.model.tasks.get(name)
        return self.dice.choice((task.entry.key if task and task.entry else "1-1", "9-9"))

    def step_done(self):
        name = self.dice.choice(NAMES)
        entry, life = self.entry_for(name), self.life()
        if len(life) == 3 and self.dice.randrange(2):
            life.append(str(self.dice.randrange(1, 4)))
        return self.call("done", name, entry, *life), self.model.done(name, entry, *life)

    def step_park(self):
        name, life = self.dice.choice(NAMES), self.life()
        entry, reason = self.entry_for(name), self.dice.choice((0, 7, 2**32 - 1))
        return (self.call("park", name, entry, reason, *life),
                self.model.park(name, entry, reason, *life))

    def step_pause(self):
        life, cursor = self.life(), ""
        if self.model.paused:
            return self.call("resume", *life), self.model.resume(*life)
        while True:
            answer = self.call("pause", cursor, *life)
            cursor = answer[1] if answer[0] == 0 else b""
            if cursor == b"":
                return answer, self.model.pause(*life)

    def each(self, which, count):
        cursor, rows = "", []
        while True:
            answer = self.call("each", which, cursor, count)
            cursor, more = answer[1], answer[2:]
            rows += [more[at:at + 8] for at in range(0, len(more), 8)]
            if cursor == b"":
                return rows

    def step_each(self):
        """Compares the rows of `each` with the model, but of taken and parked tasks not since when
        they are in this state: that depends on Redis's real clock."""
        model, which = self.model, self.dice.choice(("waiting", "taken", "parked"))
        rows = self.each(which, self.dice.randrange(1, 9))
        got = [(row[0], row[2], *row[3 if which == "waiting" else 4:]) for row in rows]
        if which == "parked":
            wanted = [(name.encode(), due, attempts, interval, len(data),
                       int(why[5:]) if why.startswith("park:") else 2**32 - 1)
                      for name, due, attempts, why, data, interval in model.dead]
            return got, wanted
        entries = [entry for entry in model.stream if entry.name and
                   (entry.pending if which == "taken" else not entry.delivered)]
        since = [(model.tasks[entry.name].put, entry.attempts - 1) if which == "waiting" else
                 (entry.attempts,) for entry in entries]
        wanted = [(entry.name.encode(), entry.due, *one, model.tasks[entry.name].interval,
                   len(entry.data), 0) for one, entry in zip(since, entries)]
        if which == "waiting":
            waiting = [(due, name, model.tasks[text]) for due, name, text in model.waiting()
                       if text not in model.poison]
            wanted += [(name, -1 if due == NEVER else due, task.put, task.attempts, task.interval,
                        len(task.data), 0) for due, name, task in waiting]
        return got, wanted

    def step_touch(self):
        name = self.dice.choice(NAMES)
        entry, life = self.entry_for(name), self.life()
        return self.call("touch", name, entry, *life), self.model.touch(name, entry, *life)

    def step_retry(self):
        name = self.dice.choice(NAMES)
        entry, life = self.entry_for(name), self.life()
        delay = self.dice.choice(("0", "1000", "50000000", "never"))
        if len(life) == 3 and self.dice.randrange(2):
            life.append(self.dice.choice(("", "1")))
        answers = (self.call("retry", name, delay, entry, *life),
                   self.model.retry(name, delay, entry, *life))
        self.learn_entries()
        return answers

    def step_look(self):
        relay, batch = self.dice.choice(RELAYS), self.dice.choice((1, 2, 5, 128))
        answer = self.call("look", relay, batch, HORIZON, GRACE, "here")
        wanted = self.model.look(relay, batch, HORIZON, GRACE)
        self.learn_entries()
        return answer, wanted

    def step_read(self):
        count, consumer = self.dice.randrange(1, 5), self.dice.choice(("a", "b"))
        reply = self.redis("XREADGROUP", "GROUP", "timerhub", consumer, "COUNT", count, "STREAMS",
                           QUEUE + "ready", ">")
        got = [key.decode() for key, _ in reply[0][1]] if reply else []
        return got, [entry.key for entry in self.model.read(count)]

    def step_ack(self):
        if not self.model.stream:
            return None, None
        entry = self.dice.choice(self.model.stream)
        pending, entry.pending = entry.pending, False
        return self.redis("XACK", QUEUE + "ready", "timerhub", entry.key), int(pending)

    def step_age(self):
        """Ends a lease. Leases count by the real clock of Redis."""
        pending = [entry for entry in self.model.stream if entry.pending]
        if not pending:
            return None, None
        entry = self.dice.choice(pending)
        entry.over = True
        return self.redis("XCLAIM", QUEUE + "ready", "timerhub", "a", 0, entry.key, "IDLE",
                          10**9, "JUSTID"), [entry.key.encode()]

    def step_time(self):
        ahead = self.dice.choice((1, 1000, 10**5, 10**6, 10**7, 10**8, 4 * 10**9))
        if self.dice.randrange(20) == 0:
            ahead = -min(ahead, 10**7)
        heads = self.model.waiting()
        if heads and heads[0][0] < NEVER and self.dice.randrange(2):
            ahead = max(0, heads[0][0] - self.model.now - self.dice.randrange(2))
        if ahead < 10**10:
            self.model.now += ahead
        self.set_clock()
        return None, None

    def step_leave(self):
        relay = self.dice.choice(RELAYS)
        return self.call("leave", relay), self.model.leave(relay)

    def step_hear(self):
        relay = self.dice.choice(RELAYS + [""])
        channel = QUEUE + "bell" + (":" + relay if relay else "")
        hears = self.model.common if relay == "" else relay in self.model.hears
        client = self.bells[relay]
        client("UNSUBSCRIBE" if hears else "SUBSCRIBE", channel)
        if relay == "":
            self.model.common = not hears
        else:
            self.model.hears ^= {relay}
        return None, None

    def step_set(self):
        name, values = self.dice.choice((
            ("tasks_max", (5, 15, 1000)), ("data_max", (60, 301, 300)), ("attempts_max", (0, 2, 3)),
            ("past_us", (0, 1000, 60_000_000)), ("lease_us", (20_000_000, 30_000_001))))
        value = self.dice.choice(values)
        answer = self.call("create", name, value)
        self.model.conf[name] = value
        wanted = [0, 0, self.model.now]
        for setting in self.model.conf.items():
            wanted += setting
        return [word.decode() if isinstance(word, bytes) else word for word in answer], wanted

    def step_poison(self):
        """Acts as another program, which adds an id to due without a record, or an entry to the
        stream."""
        if self.dice.randrange(2):
            name = self.dice.choice(("poison", *NAMES))
            due = self.model.now + self.dice.randrange(10**6)
            self.redis("ZADD", QUEUE + "due", due, name)
            self.model.add_poison(name, due)
        else:
            key = self.redis("XADD", QUEUE + "ready", "*", "foreign", "entry").decode()
            self.model.add_foreign(key)
            self.keys.add(key)
        return None, None

    def step_revive(self):
        dead = self.redis("XRANGE", QUEUE + "dead", "-", "+")
        if not dead:
            return self.call("revive", "1-1"), [-2]
        index = self.dice.randrange(len(dead))
        life = self.life()
        return self.call("revive", dead[index][0], *life), self.model.revive(index, *life)

    def step_peek(self):
        name = self.dice.choice(NAMES)
        task, answer = self.model.tasks.get(name), self.call("peek", name)
        if not task:
            return answer, [-2]
        entry = task.entry
        where = "waiting"
        if entry:
            where = "finished" if entry.delivered else "undelivered"
            where = "taken" if entry.pending else where
        due = entry.due if entry else task.due
        return answer, [0, where.encode(), -1 if due == NEVER else due, task.attempts, task.put,
                        task.data, entry.key.encode() if entry else b""]

    def step_list(self):
        start, count = self.dice.randrange(4), self.dice.randrange(1, 9)
        wanted, size = [0], 0
        for due, name, text in self.model.waiting()[start:start + count]:
            if size >= SMALL["LOOK_BYTES"]:
                break
            task = None if text in self.model.poison else self.model.tasks.get(text)
            wanted += [name, -1 if due == NEVER else due]
            wanted += [task.attempts, task.put, len(task.data)] if task else [-1, -1, -1]
            size += len(task.data) if task else 0
        return self.call("list", start, count), wanted

    # ---- what holds after every step ----

    def learn_entries(self):
        """Stores in the model the server's ids of the entries that a look has added."""
        fresh = [entry for entry in self.model.stream if entry.key is None]
        added = [entry for entry in self.redis("XRANGE", QUEUE + "ready", "-", "+")
                 if entry[0].decode() not in self.keys]
        expect(len(fresh) == len(added), "entries added:", added, "not", len(fresh))
        for entry, (key, fields) in zip(fresh, added):
            entry.key = key.decode()
            self.keys.add(entry.key)
            wanted = [b"id", entry.name.encode(), b"due", b"%d" % entry.due, b"n",
                      b"%d" % entry.attempts, b"data", entry.data]
            wanted += [b"every", entry.every.encode()] if entry.every else []
            expect(fields == wanted, "entry", fields, "not", wanted)

    def check_bells(self):
        """Checks the wake-up messages. On each connection they arrive in the order in which they
        were sent. The reply to a PING comes after the last message."""
        wanted = collections.defaultdict(list)
        for relay, message in self.model.rung:
            wanted[relay].append(message)
        self.model.rung.clear()
        for relay, client in self.bells.items():
            hears = self.model.common if relay == "" else relay in self.model.hears
            told = select.select([client.socket], [], [], 0)[0]
            if not hears or (not wanted[relay] and not told):
                continue
            client.send("PING")
            got = []
            while (reply := client.receive()) != [b"pong", b""]:
                got.append(reply[2].decode())
            expect(got == wanted[relay], "bells of", relay, got, "not", wanted[relay])

    def check_keys(self):
        self.redis.send("HLEN", QUEUE + "task")
        self.redis.send("ZCARD", QUEUE + "due")
        self.redis.send("XLEN", QUEUE + "ready")
        self.redis.send("HMGET", QUEUE + "state", "look_by", "sweep_at")
        tasks, due, ready, (look_by, sweep_at) = [self.redis.receive() for _ in range(4)]
        foreign = sum(entry.name is None for entry in self.model.stream)
        expect(tasks == len(self.model.tasks), "records:", tasks, len(self.model.tasks))
        expect(due == len(self.model.waiting()), "due:", due, len(self.model.waiting()))
        expect(ready == len(self.model.stream), "entries:", ready, len(self.model.stream))
        expect(tasks + len(self.model.poison) + foreign == due + ready, "one is in both, or none")
        wanted = None if self.model.look_by is None else b"%d" % self.model.look_by
        expect(look_by == wanted, "look_by:", look_by, wanted)
        wanted = None if self.model.sweep_at is None else b"%d" % self.model.sweep_at
        expect(sweep_at == wanted, "sweep_at:", sweep_at, wanted)

    def check_all(self):
        dues = self.redis("ZRANGE", QUEUE + "due", 0, -1, "WITHSCORES")
        wanted = [(name, due) for due, name, _ in self.model.waiting()]
        expect(list(zip(dues[::2], map(float, dues[1::2]))) == wanted, "due:", dues, wanted)
        past = self.redis("ZRANGE", QUEUE + "past", 0, -1, "WITHSCORES")
        expect({name.decode(): int(float(until)) for name, until in zip(past[::2], past[1::2])} ==
               self.model.past, "past:", past, self.model.past)
        dead = [(fields[1].decode(), int(fields[3]), int(fields[5]), fields[7].decode(), fields[9],
                 int(*fields[11:]))
                for _, fields in self.redis("XRANGE", QUEUE + "dead", "-", "+")]
        expect(dead == self.model.dead, "dead:", dead, self.model.dead)
        seats = self.redis("ZRANGE", QUEUE + "seats", 0, -1, "WITHSCORES")
        expect([name.decode() for name in seats[::2]] == self.model.in_order(), "seats:", seats)
        seen = self.redis("ZRANGE", QUEUE + "seen", 0, -1, "WITHSCORES")
        wanted = self.model.seen | {"fence:" + holder: until
                                    for holder, (_, until) in self.model.fences.items()}
        expect({name.decode(): int(float(until)) for name, until in zip(seen[::2], seen[1::2])} ==
               wanted, "seen:", seen, wanted)
        known = {name.decode()[6:] for name in self.redis("HKEYS", QUEUE + "state")
                 if name.startswith(b"relay:")}
        expect(known == set(self.model.seen), "relays told of:", known)
        self.check_stat()

    def check_stat(self):
        words = self.call("stat")
        stat = {words[i].decode(): words[i + 1].decode() for i in range(1, len(words), 2)}
        model = self.model
        wanted = {"now": model.now, "lag": model.lag(), "tasks": len(model.tasks),
                  "waiting": len(model.waiting()), "paused": int(model.paused),
                  "ready": len(model.stream), "past": len(model.past), "parked": len(model.dead),
                  "taken": sum(entry.pending for entry in model.stream),
                  "relays": len(model.seats), "sweep_at": model.sweep_at or 0, **model.conf,
                  **model.counters, **model.lateness}
        for name, value in wanted.items():
            expect(stat[name] == str(value), name, stat[name], "not", value)
        for rank, relay in enumerate(model.in_order()):
            expect(stat["relay:" + relay].startswith(f"{rank} "), "rank of", relay)

    def step(self):
        weights = {self.step_put: 10, self.step_puts: 3, self.step_look: 10, self.step_time: 8,
                   self.step_read: 6, self.step_done: 4, self.step_retry: 4,
                   self.step_cancel: 4,
                   self.step_park: 1, self.step_pause: 1, self.step_each: 1,
                   self.step_touch: 2, self.step_fence: 1, self.step_move: 4,
                   self.step_ack: 2, self.step_age: 4, self.step_leave: 1,
                   self.step_hear: 2, self.step_set: 1, self.step_poison: 1, self.step_revive: 1,
                   self.step_peek: 1, self.step_list: 1}
        call = self.dice.choices(list(weights), list(weights.values()))[0]
        self.steps += 1
        answer, wanted = call()
        name = call.__name__[5:]
        if name not in ("read", "age", "each"):
            name += f" {wanted[0] if isinstance(wanted, list) and wanted else ''}"
        self.calls[name] += 1
        try:
            expect(answer == wanted, "answered", answer, "not", wanted)
            self.check_bells()
            self.check_keys()
            if self.steps % 50 == 0:
                self.check_all()
        except Difference as difference:
            raise Difference(f"{call.__name__}: {difference}") from None


def run_seed(server, seed, steps):
    run = Run(server, seed)
    try:
        while run.steps < steps:
            run.step()
        run.check_all()
    except Difference as difference:
        raise Difference(f"seed {seed}, step {run.steps}: {difference}") from None
    finally:
        run.close()
    return run.calls


def main(arguments):
    path, steps = arguments[1], int(arguments[2])
    given = arguments[3] if len(arguments) > 3 else os.environ.get("TIMERHUB_TEST_SEED", "")
    seed = int(given, 0) if given else time.time_ns() % 2**32
    calls, done, begin = collections.Counter(), 0, time.monotonic()
    print(f"seed {seed}", flush=True)
    with Server() as server:
        server.client()("FUNCTION", "LOAD", "REPLACE", small_library(path))
        while done < steps:
            try:
                calls += run_seed(server, seed, min(steps, 1000))
            except Difference as difference:
                print(difference)
                return 1
            done += 1000
            seed += 1
    print(f"{done} steps in {time.monotonic() - begin:.1f} s; calls and first words of answers:")
    print(", ".join(f"{name}: {count}" for name, count in sorted(calls.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
