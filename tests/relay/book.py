# SPDX-License-Identifier: MIT
"""Judges the results of calls on one task's id by the laws of timerhub-relay(7).

The book has every call on the id, with the times between which it ran. The judge searches for an
order of the calls in which each result is right, and in which a call that has returned before
another one begins comes first. Only a call in doubt may or may not have changed the task, and not
after `end`. At the end of the order the task must have ended. If there is no such order, a law is
broken: a task was lost, came again after its end, early, twice in one lease, with the data or the
time of another put, or a refused or returned call has changed it.
"""

import dataclasses
import errno

DOUBT = -errno.ETIMEDOUT
# Errors after which the queue has not changed, whatever its state.
NOT_SENT = (-errno.EHOSTUNREACH, -errno.ECONNREFUSED, -errno.EROFS, -errno.ECONNRESET,
            -errno.EPIPE)
MS = 10**6


@dataclasses.dataclass
class Call:
    """One call. Times are in ns on CLOCK_REALTIME. `entry` is of the delivery that the call
    concerns, and `delay` is the argument of a call that sets a time."""
    name: str
    caller: str
    begin: int
    end: int
    result: int
    delay: int = 0
    data: str = ""
    entry: tuple = None
    due: int = 0

    def __str__(self):
        what = {0: "0", 1: "1"}.get(self.result) or errno.errorcode.get(-self.result, "?")
        words = [self.data, f"in {self.delay // MS} ms" if self.delay else "",
                 f"entry {self.entry[0] % 10**6}-{self.entry[1]}" if self.entry else "",
                 f"due {self.due / 1e9 % 1000:.4f}" if self.due else ""]
        return (f"{self.begin / 1e9 % 1000:8.4f} to {self.end / 1e9 % 1000:8.4f} {self.caller} "
                f"{self.name} {' '.join(filter(None, words))}: {what}")


@dataclasses.dataclass(frozen=True)
class Task:
    """A live task: its data, and the earliest and the latest time at which it may be due. `entry`
    is its latest known delivery since that time was set; `is_released` if it was given back."""
    data: str
    earliest: int
    latest: int
    entry: tuple = None
    is_released: bool = False

    def may_be_taken(self, call):
        """Whether the task may have been due, and so may have been taken, before the call ended."""
        return self.earliest <= call.end

    def released(self):
        """Returns the task after a release. The same entry may come again, after a lost connection
        or when its taker has closed, so a smaller entry id is noted."""
        return dataclasses.replace(self, entry=(self.entry[0], self.entry[1] - 1),
                                   is_released=True)

    def may_be_free(self, call, lease):
        """Whether there may have been no taker with a running lease before the call ended."""
        return (not self.entry or self.is_released or
                call.end >= self.entry[0] * MS + lease)


class Judge:
    """Knows the settings of the queue: the lease and past_us, in ns."""

    def __init__(self, lease, past):
        self.lease, self.past = lease, past

    def changed(self, call, task):
        """Returns the task after the call has succeeded, or False if it can't have succeeded."""
        due = (call.begin + call.delay, call.end + call.delay + 1000)
        if call.name == "put":
            return not task and Task(call.data, *due)
        if call.name == "replace":
            return (not task or not task.entry) and Task(call.data, *due)
        if call.name == "release":
            return task.released() if task and task.entry == call.entry else task
        if not task:
            return False
        if call.name == "take":
            is_right = (task.data == call.data and task.earliest <= call.due <= task.latest and
                        call.due <= call.end and (not task.entry or task.entry < call.entry))
            return is_right and Task(task.data, call.due, call.due, call.entry)
        if call.name == "see":
            is_right = task.data == call.data and task.earliest <= call.due <= task.latest
            return is_right and task
        if call.name in ("cancel", "move"):
            if not task.may_be_free(call, self.lease):
                return False
            return None if call.name == "cancel" else Task(task.data, *due)
        if task.entry != call.entry:
            return False
        return {"done": None, "retry": Task(task.data, *due), "touch": task}[call.name]

    def is_refused(self, call, task, puts):
        """Returns whether the call's error was right while the task was in this state."""
        error = errno.errorcode[-call.result]
        if error == "EALREADY":
            return not task and call.name == "put" and any(
                put.begin < call.end and put.end + self.past > call.begin for put in puts)
        if error == "EEXIST":
            return task and (call.name == "put" or task.may_be_taken(call))
        if error == "ENOENT":
            return not task
        if error == "EBUSY":
            return task and task.may_be_taken(call)
        if error == "ESTALE":
            if not task:
                return call.name == "touch"
            return task.entry != call.entry or task.may_be_free(call, self.lease)
        return False

    def outcomes(self, call, task, puts):
        """Returns the states after the call that agree with its result."""
        if call.result in NOT_SENT:
            return [task]
        if call.result not in (0, 1, DOUBT):
            return [task] if self.is_refused(call, task, puts) else []
        after = self.changed(call, task)
        states = [] if after is False else [after]
        return states + [task] if call.result == DOUBT else states

    def verdict(self, calls):
        """Returns None, or all calls as lines: `wrong?` marks what the longest order lacks."""
        calls = sorted(calls, key=lambda call: call.begin)
        puts = [call for call in calls if call.name in ("put", "replace")]
        everything = (1 << len(calls)) - 1
        seen, todo, most = set(), [(0, None)], 0
        while todo:
            made, task = todo.pop()
            if (made, task) in seen:
                continue
            seen.add((made, task))
            if made == everything and not task:
                return None
            if made.bit_count() >= most.bit_count():
                most = made
            left = [call for index, call in enumerate(calls) if not made >> index & 1]
            bound = min((call.end for call in left), default=0)
            for index, call in enumerate(calls):
                if not made >> index & 1 and call.begin <= bound:
                    todo += [(made | 1 << index, after)
                             for after in self.outcomes(call, task, puts)]
        return [f"{'      ' if most >> index & 1 else 'wrong?'} {call}"
                for index, call in enumerate(calls)]
