# SPDX-License-Identifier: MIT
"""A slow and simple model of a queue. It gives the reply and the effect of each function of
timerhub.lua.

The model searches its lists from the beginning, and sorts them when they are read. Its bounds are
the bounds of SMALL. The tests put these bounds into the text of timerhub.lua, so that few tasks
exceed every bound.
"""

import hashlib
import math

# The bounds of one call of timerhub_look in the tests: name of a constant in timerhub.lua -> value.
SMALL = {"CHUNK": 3, "LOOK_BYTES": 300, "FORGET_PAST": 1, "FORGET_SEEN": 2, "SWEEP": 4, "ACKED": 3}
NEVER = math.inf
LAST_US = 2**53 - 1
PUT_OFF_US = 15_000_000
OVERDUE_US = 1_000_000
ENOENT, EAGAIN, EBUSY, EEXIST, EINVAL = -2, -11, -16, -17, -22
ERANGE, ETIME, EMSGSIZE, EALREADY, ESTALE = -34, -62, -90, -114, -116
DEFAULTS = {"tasks_max": 1048576, "data_max": 65536, "attempts_max": 25, "lease_us": 30_000_000,
            "past_us": 60_000_000, "dead_max": 10000, "shards": 1, "shard": 0}


class Task:
    def __init__(self, due, put, data, call=None, interval=0):
        self.due, self.put, self.data, self.call = due, put, data, call
        self.interval, self.base = interval, None  # base: the period's time, if due is another
        self.attempts = 0
        self.entry = None


class Entry:
    """An entry of the stream. The server gives the entry an id. `number` counts all entries so
    far."""

    def __init__(self, number, name, due, attempts, data):
        self.number, self.name, self.due, self.attempts, self.data = (number, name, due, attempts,
                                                                      data)
        self.every = None  # of a periodic task, as in the entry
        self.key = None  # the id that the server gave the entry
        self.delivered = self.pending = self.over = False


class Model:
    """The model of the queue. `hears` has the relays that listen for wake-up messages. `rung` has
    the messages that they got."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.now = 1_700_000_000_000_000
        self.conf = dict(DEFAULTS)
        self.tasks, self.stream, self.dead, self.past = {}, [], [], {}
        self.poison = {}  # due without a record: id -> due
        self.look_by = self.sweep_at = self.sweep_from = None
        self.seats, self.seen = {}, {}
        self.hears, self.common, self.rung = set(), False, []
        self.entries = 0
        self.paused = False
        self.fences = {}  # holder -> epoch, when the fence is forgotten
        self.lateness = {}  # bucket of lateness, as in stat -> number of tasks
        self.counters = dict.fromkeys(
            ("promoted", "leases_over", "parked_ever", "orphans", "swept"), 0)

    # ---- what several functions do ----

    def due_of(self, when, absolute):
        if when == "never":
            return NEVER
        due = int(when) if absolute else self.now + int(when)
        return due if due <= LAST_US else None

    def rank(self, relay):
        order = sorted((order, name.encode()) for name, order in self.seats.items())
        return [name for _, name in order].index(relay.encode())

    def in_order(self):
        return sorted(self.seats, key=lambda name: (self.seats[name], name.encode()))

    def ring_seats(self, due):
        place = 0
        for relay in self.in_order()[:8]:
            if relay in self.hears:
                self.rung.append((relay, f"{due} {place}"))
                place += 1
                if place == 2:
                    break
            else:
                del self.seats[relay]
        return place

    def ring(self, due):
        promised = NEVER if self.look_by is None else self.look_by
        due = max(due, self.now)
        dead = self.now > promised + OVERDUE_US
        if dead:
            due = self.now
        elif due >= promised:
            return
        else:
            self.look_by = due
        if (self.ring_seats(due) == 0 or dead) and self.common:
            self.rung.append(("", f"{due}"))

    def remember(self, name, task):
        if task.put + self.conf["past_us"] > self.now:
            self.past[name] = task.put + self.conf["past_us"]

    def forget_entry(self, entry):
        if entry in self.stream:
            self.stream.remove(entry)

    def add(self, name, task, due):
        entry = Entry(self.entries, name, due, task.attempts + 1, task.data)
        self.entries += 1
        self.stream.append(entry)
        if task.interval:
            entry.every = f"{task.interval}" + (f"@{task.base}" if task.base else "")
        task.attempts += 1
        task.entry, task.call = entry, None

    def add_poison(self, name, due):
        if name in self.tasks and not self.tasks[name].entry:
            self.tasks[name].due = due
        else:
            self.poison[name] = due

    def add_foreign(self, key):
        entry = Entry(self.entries, None, 0, 0, b"foreign entry")
        entry.key = key
        self.entries += 1
        self.stream.append(entry)

    def lag(self):
        first = next((entry for entry in self.stream if not entry.delivered), None)
        return max(0, self.now - first.due) if first and first.name else 0

    # ---- producers ----

    def late(self, until=None, holder=None, epoch=0):
        """Returns the reply that refuses a change that comes too late, or None."""
        if until is not None and self.now > until:
            return [ETIME, self.now]
        if epoch < self.fences.get(holder, (0, 0))[0]:
            return [ETIME, self.now, 1]
        return None

    def fence(self, holder, epoch, until):
        was, ends = self.fences.get(holder, (0, 0))
        self.fences[holder] = max(was, epoch), max(ends, until)
        return [0, self.now]

    def puts(self, holder, epoch, tasks):
        if self.late(None, holder, epoch):
            return self.late(None, holder, epoch)
        ring, rung, reply = self.ring, [], [0, self.now]
        self.ring = rung.append
        for task in tasks:
            answer = self.put(*task[:5], holder, epoch, task[5])
            reply += [answer[0], answer[1] if answer[0] == 0 else 0]
        self.ring = ring
        if rung:
            self.ring(min(rung))
        return reply

    def put(self, name, when, flags, data, until=None, holder=None, epoch=0, call=None):
        if not 1 <= len(name) <= 64:
            return [EINVAL]
        flags, _, interval = flags.partition("e")
        interval = int(interval or 0)
        due = self.due_of(when, "a" in flags)
        if due is None:
            return [ERANGE]
        if self.late(until, holder, epoch):
            return self.late(until, holder, epoch)
        task = self.tasks.get(name)
        if call and task and task.call == call and not self.past.get(name, 0) > self.now and (
                len(data) <= self.conf["data_max"]):
            return [0, -1 if task.due == NEVER else task.due, self.now]
        if self.past.get(name, 0) > self.now and ("r" not in flags or "d" in flags):
            return [EALREADY]
        if len(data) > self.conf["data_max"]:
            return [EMSGSIZE]
        task = self.tasks.get(name)
        if task and ("r" not in flags or task.entry):
            return [EEXIST]
        refused = sum(until > self.now for until in self.past.values())
        anew = self.past.get(name, 0) > self.now  # its place among the ended ids becomes free
        if not task and not anew and len(self.tasks) + refused >= self.conf["tasks_max"]:
            return [EAGAIN]
        self.tasks[name] = Task(due, self.now, data, None if interval else call, interval)
        self.past.pop(name, None)
        self.poison.pop(name, None)
        self.ring(due)
        return [0, -1 if due == NEVER else due, self.now]

    def cancel(self, name, *life):
        task = self.tasks.get(name)
        if not task:
            return [ENOENT]
        if self.late(*life):
            return self.late(*life)
        if task.entry and task.entry.pending:
            return [EBUSY]
        if task.entry:
            self.forget_entry(task.entry)
        del self.tasks[name]
        self.remember(name, task)
        return [ENOENT if task.entry and task.entry.delivered else 0]

    def move(self, name, when, flags, *life):
        due = self.due_of(when, "a" in flags)
        if due is None:
            return [ERANGE]
        task = self.tasks.get(name)
        if not task:
            return [ENOENT]
        if self.late(*life):
            return self.late(*life)
        if task.entry:
            if task.entry.pending:
                return [EBUSY]
            if task.entry.delivered:
                return [ENOENT]
            self.forget_entry(task.entry)
            task.entry = None
            task.attempts -= 1
        task.due, task.base = due, None
        if task.interval:
            task.call = None
        self.poison.pop(name, None)
        self.ring(due)
        return [0, -1 if due == NEVER else due, self.now]

    # ---- consumers ----

    def read(self, count):
        given = [entry for entry in self.stream if not entry.delivered][:count]
        for entry in given:
            entry.delivered = entry.pending = True
            entry.over = False
        return given

    def find(self, name, entry):
        """Returns the task whose latest delivery is the entry, or the reply that refuses it."""
        task = self.tasks.get(name)
        if not task:
            return None, [ENOENT]
        if not task.entry or task.entry.key != entry:
            return None, [ESTALE]
        return task, None

    def touch(self, name, entry, *life):
        task, refusal = self.find(name, entry)
        refusal = refusal or self.late(*life)
        if refusal or not task.entry.pending:
            return refusal or [ESTALE]
        task.entry.over = False
        return [0, self.now]

    def done(self, name, entry, *life):
        task, refusal = self.find(name, entry)
        periods, life = int(life[3]) if len(life) > 3 else 0, life[:3]
        refusal = refusal or self.late(*life)
        if refusal:
            return refusal
        if task.interval:
            base = task.base or task.entry.due
            periods = periods or max(1, 1 + (self.now - base) // task.interval)
            self.forget_entry(task.entry)
            task.entry, task.base, task.attempts = None, None, 0
            task.due = base + periods * task.interval
            task.due = NEVER if task.due > LAST_US else task.due
            self.poison.pop(name, None)
            self.ring(task.due)
            return [0, -1 if task.due == NEVER else task.due, self.now]
        self.forget_entry(task.entry)
        del self.tasks[name]
        self.remember(name, task)
        return [0]

    def retry(self, name, delay, entry, *life):
        untaken, life = life[3:] == ("1",), life[:3]
        due = self.due_of(delay, False)
        if due is None:
            return [ERANGE]
        task, refusal = self.find(name, entry)
        if not refusal and not task.entry.pending:
            refusal = [ENOENT]
        refusal = refusal or self.late(*life)
        if refusal:
            return refusal
        if untaken:
            was_due = task.entry.due
            self.give_back(name, task)
            return [0, was_due, self.now, 0]
        self.forget_entry(task.entry)
        if 0 < self.conf["attempts_max"] <= task.entry.attempts:
            self.bury(name, task)
            return [0, -1, self.now, 1]
        if task.interval and task.base is None:
            task.base = task.entry.due
        task.entry = None
        task.due = due
        self.poison.pop(name, None)
        self.ring(due)
        return [0, -1 if due == NEVER else due, self.now, 0]

    def park(self, name, entry, reason, *life):
        task, refusal = self.find(name, entry)
        refusal = refusal or self.late(*life)
        if refusal:
            return refusal
        self.forget_entry(task.entry)
        self.bury(name, task, f"park:{reason}")
        return [0, self.now]

    def put_off(self, name, task):
        """Lets a task of the stream wait again, because the queue is paused."""
        self.forget_entry(task.entry)
        task.due, task.entry = task.entry.due, None
        self.poison.pop(name, None)

    def pause(self, *life):
        if self.late(*life):
            return self.late(*life)
        self.paused = True
        for entry in [entry for entry in self.stream if not entry.delivered and entry.name]:
            task = self.tasks[entry.name]
            self.put_off(entry.name, task)
            task.attempts -= 1
        return [0, b""]

    def resume(self, *life):
        if self.late(*life):
            return self.late(*life)
        self.paused = False
        self.ring(self.now)
        return [0]

    def give_back(self, name, task):
        """Takes a delivery back that no caller has seen. If the next entry is undelivered, this one
        keeps its place in the stream. If not, it is added anew at the end."""
        if self.paused:
            self.put_off(name, task)
            task.attempts -= 1
            return
        behind = self.stream[self.stream.index(task.entry) + 1:]
        if behind and not behind[0].delivered:
            task.entry.delivered = task.entry.pending = False
            return
        self.forget_entry(task.entry)
        task.attempts -= 1
        self.add(name, task, task.entry.due)

    def bury(self, name, task, why="attempts"):
        self.dead.append((name, task.entry.due, task.entry.attempts, why, task.data,
                          task.interval))
        self.counters["parked_ever"] += 1
        del self.tasks[name]
        self.remember(name, task)

    # ---- look ----

    def forget(self):
        outdated = sorted((until, name.encode(), name) for name, until in self.past.items()
                          if until <= self.now)
        for _, _, name in outdated[:SMALL["FORGET_PAST"]]:
            del self.past[name]
        gone = sorted([(until, relay) for relay, until in self.seen.items() if until <= self.now] +
                      [(until, "fence:" + holder) for holder, (_, until) in self.fences.items()
                       if until <= self.now])
        for _, relay in gone[:SMALL["FORGET_SEEN"]]:
            if relay.startswith("fence:"):
                del self.fences[relay[6:]]
                continue
            del self.seen[relay]
            self.seats.pop(relay, None)
        return len(outdated) > SMALL["FORGET_PAST"]

    def waiting(self):
        found = [(task.due, name.encode(), name) for name, task in self.tasks.items()
                 if not task.entry]
        return sorted(found + [(due, name.encode(), name) for name, due in self.poison.items()])

    def chunk(self):
        return max(1, min(SMALL["CHUNK"], SMALL["LOOK_BYTES"] // max(1, self.conf["data_max"])))

    def promote(self, batch):
        heads = [head for head in self.waiting() if head[0] <= self.now][:batch]
        late, size = [], 0
        for index, (due, _, name) in enumerate(heads):
            if index % self.chunk() == 0 and size >= SMALL["LOOK_BYTES"]:
                return late, True
            if name in self.poison:
                del self.poison[name]
                if name not in self.tasks:
                    self.dead.append((name, due, 0, "record", b"", 0))
                self.counters["orphans"] += 1
                continue
            task = self.tasks[name]
            self.add(name, task, due)
            size += len(task.data)
            late.append(max(0, self.now - max(due, task.put)))
        return late, size >= SMALL["LOOK_BYTES"] or len(heads) == batch

    def sweep_pending(self):
        """Ends leases. Returns the number of tasks delivered again, the number of tasks moved to
        the dead tasks, and whether there are more."""
        again = buried = size = 0
        pending = [entry for entry in self.stream if entry.pending and
                   (self.sweep_from is None or entry.number > self.sweep_from)]
        chunk = pending[:SMALL["SWEEP"]]
        for entry in chunk:
            if not entry.over:
                continue
            self.forget_entry(entry)
            entry.pending = False
            size += len(entry.data) if entry.name else 0
            if entry.name is None:
                self.dead.append(("", 0, 0, "entry", entry.data, 0))
                self.counters["orphans"] += 1
                continue
            task = self.tasks[entry.name]
            if 0 < self.conf["attempts_max"] <= entry.attempts:
                self.bury(entry.name, task)
                buried += 1
            elif self.paused:
                self.put_off(entry.name, task)
                again += 1
            else:
                self.add(entry.name, task, entry.due)
                again += 1
            if size >= SMALL["LOOK_BYTES"]:
                self.sweep_from = entry.number
                return again, buried, True
        self.sweep_from = chunk[-1].number if len(chunk) == SMALL["SWEEP"] else None
        return again, buried, self.sweep_from is not None

    def sweep_acked(self):
        size = 0
        for index in range(SMALL["ACKED"]):
            if index % self.chunk() == 0 and size >= SMALL["LOOK_BYTES"]:
                return True
            if not self.stream or not self.stream[0].delivered or self.stream[0].pending:
                return False
            entry = self.stream.pop(0)
            task = self.tasks.get(entry.name)
            if task:
                del self.tasks[entry.name]
                self.remember(entry.name, task)
            size += len(entry.data) if entry.name else 0
            self.counters["swept"] += 1
        return True

    def sweep(self):
        again, buried, more = self.sweep_pending()
        if not more:
            more = self.sweep_acked()
        if more:
            self.sweep_at = self.now
        else:
            self.sweep_at = self.now + self.eighth() if self.stream else None
        return again, buried

    def eighth(self):
        return math.ceil(self.conf["lease_us"] / 8)

    def sit(self, relay, horizon, grace):
        if relay not in self.seats:
            text = f"{self.prefix}state{relay}".encode()
            self.seats[relay] = int(hashlib.sha1(text).hexdigest()[:8], 16) / 2**32
        broken = (self.look_by is None or self.now >= self.look_by + grace or
                  self.look_by > self.now + horizon)
        if self.rank(relay) > 0 and broken:
            for other in self.in_order()[:self.rank(relay)]:
                self.seats[other] += 1
        return self.rank(relay)

    def look(self, relay, batch, horizon, grace):
        outdated = self.forget()
        length = len(self.stream)
        late, more = ([], False) if self.paused else self.promote(batch)
        self.counters["promoted"] += len(late)
        again = buried = 0
        if self.sweep_at is None:
            if late or length > 0:
                self.sweep_at = self.now + self.eighth()
        elif self.now >= self.sweep_at or self.sweep_at > self.now + self.conf["lease_us"]:
            again, buried = self.sweep()
            self.counters["leases_over"] += again
        rank = self.sit(relay, horizon, grace)
        life = 4 * (horizon + PUT_OFF_US + rank * grace)
        until = self.seen.get(relay)
        if until is None or not life / 2 <= until - self.now <= life:
            self.seen[relay] = self.now + life
        if rank > 0:
            steps = min(grace * 2 ** (rank - 1), PUT_OFF_US + rank * grace)
            wait = max(0, min(self.look_by, self.now + horizon) + steps - self.now)
        else:
            waiting = [] if self.paused else self.waiting()
            times = [waiting[0][0]] if waiting else []
            times += [self.now + horizon] + ([self.sweep_at] if self.sweep_at else [])
            self.look_by = max(self.now, min(times))
            wait = self.look_by - self.now
        more = rank == 0 and (more or outdated or
                              (self.sweep_at is not None and self.sweep_at <= self.now))
        reply = [0, len(late), wait, rank, self.now, int(more), sum(late), max(late, default=0),
                 again, buried]
        buckets = [max(0, (1000 * us).bit_length() - 1) for us in late]
        for bucket in sorted(set(buckets)):
            reply += [bucket, buckets.count(bucket)]
            name = f"late:{bucket}"
            self.lateness[name] = self.lateness.get(name, 0) + buckets.count(bucket)
        return reply

    def leave(self, relay):
        if relay not in self.seats:
            return [ENOENT]
        rank = self.rank(relay)
        del self.seats[relay]
        self.seen.pop(relay, None)
        if rank < 2 and self.look_by is not None:
            self.ring_seats(self.look_by)
        return [0]

    def revive(self, index, *life):
        name, _, _, _, data, interval = self.dead[index]
        if not 1 <= len(name) <= 64:
            return [EINVAL]
        if self.late(*life):
            return self.late(*life)
        if name in self.tasks:
            return [EEXIST]
        del self.dead[index]
        self.tasks[name] = Task(self.now, self.now, data, None, interval)
        self.poison.pop(name, None)
        self.ring(self.now)
        self.past.pop(name, None)
        return [0, self.now, self.now]
