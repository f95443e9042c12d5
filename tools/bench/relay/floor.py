#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The floor: the least work of a scheduler on Redis. bench.py compares it with the relay.

Usage: floor.py sender PORT STREAM BEGIN_US STEP_US COUNT
       floor.py taker PORT STREAM COUNT [QUEUE]

sender  sleeps until each due time and adds one entry. Prints the lateness of each sleep.
taker   reads the stream with a blocking call, and acknowledges each entry. With QUEUE the taker
        reads the relay's stream, and finishes each task by timerhub_done. Prints the lateness of
        each task.

sender and taker print microseconds, as one line of JSON.
"""

import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent.parent / "tests/relay"))
from queue_client import Queue  # pylint: disable=wrong-import-position
from redis_server import Client  # pylint: disable=wrong-import-position

GROUP = "timerhub"


def now_us():
    return time.time_ns() // 1000


def send(redis, stream, begin_us, step_us, count):
    late = []
    for number in range(count):
        due_us = begin_us + number * step_us
        time.sleep(max(0, due_us - now_us()) / 1e6)
        late.append(now_us() - due_us)
        redis("XADD", stream, "*", "id", number, "due", due_us, "n", 1, "data", "")
    return late


def take(redis, stream, count, queue):
    late = []
    while len(late) < count:
        reply = redis("XREADGROUP", "GROUP", GROUP, "taker", "COUNT", 16, "BLOCK", 0, "STREAMS",
                      stream, ">")
        for entry, fields in reply[0][1]:
            late.append(now_us() - int(fields[3]))
            if queue:
                queue.call("done", fields[1], entry)
            else:
                redis("XACK", stream, GROUP, entry)
                redis("XDEL", stream, entry)
    return late


def main(arguments):
    role, port, stream, *rest = arguments
    redis = Client(("127.0.0.1", int(port)), 120)
    if role == "sender":
        late = send(redis, stream, *(int(word) for word in rest))
    else:
        queue = Queue(redis, rest[1]) if len(rest) > 1 else None
        late = take(redis, stream, int(rest[0]), queue)
    print(json.dumps(late))


if __name__ == "__main__":
    main(sys.argv[1:])
