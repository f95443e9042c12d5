# SPDX-License-Identifier: MIT
"""Puts COUNT tasks of RQ at RATE a second. RQ's workers import task() from this file.

Usage: peer_rq.py PORT RATE COUNT MIN_MS SPAN_MS
"""

import datetime
import random
import sys
import time

import redis
import rq


def task(port, due):
    redis.Redis(port=port).rpush("late", round((time.time() - due) * 1e6))


def main(arguments):
    port, rate, count, min_ms, span_ms = map(int, arguments[1:])
    queue = rq.Queue(connection=redis.Redis(port=port))
    for _ in range(count):
        delay = (min_ms + random.randrange(span_ms)) / 1000
        due = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=delay)
        queue.enqueue_at(due, "peer_rq.task", port, due.timestamp())
        time.sleep(1 / rate)


if __name__ == "__main__":
    main(sys.argv)
