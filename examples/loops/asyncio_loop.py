#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""timerhub in Python's asyncio, through ctypes: reminders.

Every FILE (standard input if there is none) is read by a thread of its own; a line "MS TEXT" arms a
timer from that thread; the loop prints TEXT when it comes. Ends when all is printed.
Usage: asyncio_loop.py [FILE...]
"""
import asyncio
import ctypes
import itertools
import os
import sys

BATCH = 64


class Event(ctypes.Structure):
    """struct timerhub_event"""
    _fields_ = [("data", ctypes.c_uint64), ("timer", ctypes.c_uint64),
                ("expires_ns", ctypes.c_uint64), ("count", ctypes.c_uint64),
                ("fn", ctypes.c_void_p), ("queue", ctypes.c_void_p)]


def checked(result, function, _arguments):
    """Makes OSError of a negative result."""
    if result < 0:
        raise OSError(-result, f"{function.__name__}: {os.strerror(-result)}")
    return result


class Hub:
    """A hub and one queue, whose callbacks run in the asyncio loop that it was made in."""

    def __init__(self):
        library = self._library = ctypes.CDLL("libtimerhub.so.0.3")
        for name in ("open", "queue_open", "queue_fd", "after", "cancel", "drain"):
            getattr(library, "timerhub_" + name).errcheck = checked
        self._hub, self._queue = ctypes.c_void_p(), ctypes.c_void_p()
        self._events = (Event * BATCH)()
        self._numbers, self._callbacks = itertools.count(1), {}
        library.timerhub_open(ctypes.byref(self._hub), None)
        library.timerhub_queue_open(self._hub, ctypes.byref(self._queue), None)
        self._fd = library.timerhub_queue_fd(self._queue)
        asyncio.get_running_loop().add_reader(self._fd, self._readable)

    def close(self):
        asyncio.get_running_loop().remove_reader(self._fd)
        self._library.timerhub_close(self._hub)

    def after(self, delay_ns, callback, *arguments):
        """Any thread. Returns what cancel() takes."""
        number, timer = next(self._numbers), ctypes.c_uint64()
        self._callbacks[number] = callback, arguments  # first: it may come at once
        try:
            self._library.timerhub_after(self._queue, ctypes.c_uint64(delay_ns),
                                         ctypes.c_uint64(number), ctypes.byref(timer))
        except OSError:
            del self._callbacks[number]
            raise
        return number, timer

    def cancel(self, number_and_timer):
        """Any thread. Raises FileNotFoundError (ENOENT) if it was delivered before."""
        number, timer = number_and_timer
        self._library.timerhub_cancel(self._hub, timer)
        del self._callbacks[number]

    def _readable(self):
        # At most BATCH: the rest keeps the fd readable, and other sources get their turn.
        count = self._library.timerhub_drain(self._queue, self._events, BATCH)
        for number in [event.data for event in self._events[:count]]:
            callback, arguments = self._callbacks.pop(number)
            callback(*arguments)


def read(path, hub, remind):
    """In a thread. Returns how many timers it armed."""
    count = 0
    with open(path, encoding="utf-8") as file:
        for count, line in enumerate(file, 1):
            delay_ms, text = line.rstrip("\n").split(" ", 1)
            hub.after(int(delay_ms) * 1_000_000, remind, text)
    return count


async def main(paths):
    hub = Hub()
    printed, changed = 0, asyncio.Event()

    def remind(text):
        nonlocal printed
        print(text, flush=True)
        printed += 1
        changed.set()

    readers = [asyncio.to_thread(read, path, hub, remind) for path in paths or ["/dev/stdin"]]
    armed = sum(await asyncio.gather(*readers))
    while printed < armed:
        changed.clear()
        await changed.wait()
    hub.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
