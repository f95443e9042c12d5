#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""timerhub in Python's asyncio, through ctypes, with a program that prints reminders.

Each FILE has a thread that reads it. Without a FILE the thread reads standard input. The thread
gives each line "MS TEXT" to the loop's thread, by a timer on the loop's queue that is due at once.
The loop's thread sets a timeout for the line, and prints TEXT when the timeout expires. The program
ends when all lines are printed.
Usage: asyncio_loop.py [FILE...]
"""
import asyncio
import ctypes
import itertools
import os
import selectors
import sys


class Event(ctypes.Structure):
    """struct timerhub_event"""
    _fields_ = [("data", ctypes.c_uint64), ("timer", ctypes.c_uint64),
                ("expires_ns", ctypes.c_uint64), ("count", ctypes.c_uint64),
                ("fn", ctypes.c_void_p), ("queue", ctypes.c_void_p),
                ("reserved", ctypes.c_uint64 * 2)]


assert ctypes.sizeof(Event) == 64  # the library writes as many bytes, whatever the class says


class Timeout(ctypes.Structure):
    """struct timerhub_timeout"""
    _fields_ = [("private", ctypes.c_uint64 * 4)]


EVENT_FN = ctypes.CFUNCTYPE(None, ctypes.POINTER(Event))
TIMEOUT_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Timeout))


def checked(result, function, _arguments):
    """Raises OSError if the result of a C function is negative."""
    if result < 0:
        raise OSError(-result, f"{function.__name__}: {os.strerror(-result)}")
    return result


class Timeouts:
    """A timerhub loop with a hub. Before asyncio blocks, class Selector below calls turn()."""

    def __init__(self):
        library = self._library = ctypes.CDLL("libtimerhub.so.0.5")
        for name in ("open", "loop_open", "loop_fd", "loop_turn", "call", "timeout_add",
                     "timeout_set_at", "timeout_remove"):
            getattr(library, "timerhub_" + name).errcheck = checked
        library.timerhub_loop_queue.restype = ctypes.c_void_p
        library.timerhub_now.restype = ctypes.c_uint64
        self._hub, self._loop = ctypes.c_void_p(), ctypes.c_void_p()
        library.timerhub_open(ctypes.byref(self._hub), None)
        library.timerhub_loop_open(ctypes.byref(self._loop), self._hub, None)
        self._queue = ctypes.c_void_p(library.timerhub_loop_queue(self._loop))
        self._numbers, self._posted, self._set = itertools.count(1), {}, {}
        self._event_fn = EVENT_FN(self._event)  # kept alive, because C calls it
        self._timeout_fn = TIMEOUT_FN(self._expire)

    def close(self):
        self._library.timerhub_loop_close(self._loop)
        self._library.timerhub_close(self._hub)

    def now_ns(self):
        """Returns the hub's time. Thread-safe."""
        return self._library.timerhub_now(self._hub)

    def fd(self):
        return self._library.timerhub_loop_fd(self._loop)

    def turn(self):
        """Returns how many callbacks ran. Each asks asyncio to call a Python function soon."""
        return self._library.timerhub_loop_turn(self._loop)

    def post(self, callback, *arguments):
        """Calls `callback` on the loop's thread. Any thread may call post()."""
        number = next(self._numbers)
        self._posted[number] = callback, arguments  # before the call, as the event may come at once
        self._library.timerhub_call(self._queue, ctypes.c_uint64(0), self._event_fn,
                                    ctypes.c_void_p(number), None)

    def call_at(self, deadline_ns, callback, *arguments):
        """Calls `callback` at the deadline. Returns a timeout. Only the loop's thread may call."""
        timeout = Timeout()
        self._library.timerhub_timeout_add(self._loop, ctypes.byref(timeout), self._timeout_fn)
        self._set[ctypes.addressof(timeout)] = timeout, callback, arguments  # keeps its address
        self._library.timerhub_timeout_set_at(self._loop, ctypes.byref(timeout),
                                              ctypes.c_uint64(deadline_ns))
        return timeout

    def remove(self, timeout):
        self._library.timerhub_timeout_remove(self._loop, ctypes.byref(timeout))
        del self._set[ctypes.addressof(timeout)]

    def _event(self, event):
        callback, arguments = self._posted.pop(event.contents.data)
        asyncio.get_running_loop().call_soon(callback, *arguments)

    def _expire(self, _loop, at):
        timeout, callback, arguments = self._set[ctypes.addressof(at.contents)]
        self.remove(timeout)
        asyncio.get_running_loop().call_soon(callback, *arguments)


class Selector(selectors.DefaultSelector):
    """Calls timerhub_loop_turn() right before asyncio blocks."""

    def __init__(self, timeouts):
        super().__init__()
        self._timeouts = timeouts

    def select(self, timeout=None):
        # A callback schedules work that asyncio notices after select() returns. If a callback ran,
        # do not block.
        return super().select(0 if self._timeouts.turn() > 0 else timeout)


def read(path, timeouts, remind):
    """Reads a file, in a thread. Returns how many reminders it gave to the loop."""
    count = 0
    with open(path, encoding="utf-8") as file:
        for count, line in enumerate(file, 1):
            delay_ms, text = line.rstrip("\n").split(" ", 1)
            timeouts.post(remind, timeouts.now_ns() + int(delay_ms) * 1_000_000, text)
    return count


async def main(timeouts, paths):
    printed, changed = 0, asyncio.Event()

    def due(text):
        nonlocal printed
        print(text, flush=True)
        printed += 1
        changed.set()

    def remind(deadline_ns, text):
        timeouts.call_at(deadline_ns, due, text)

    # A readable fd only wakes the asyncio loop, and the next turn does the work.
    asyncio.get_running_loop().add_reader(timeouts.fd(), lambda: None)
    readers = [asyncio.to_thread(read, path, timeouts, remind) for path in paths or ["/dev/stdin"]]
    given = sum(await asyncio.gather(*readers))
    while printed < given:
        changed.clear()
        await changed.wait()


def run(main_of):
    timeouts = Timeouts()
    loop = asyncio.SelectorEventLoop(Selector(timeouts))
    try:
        result = loop.run_until_complete(main_of(timeouts))
    finally:
        loop.close()
    timeouts.close()  # not after an error: threads may still read, and use the hub
    return result


if __name__ == "__main__":
    run(lambda timeouts: main(timeouts, sys.argv[1:]))
