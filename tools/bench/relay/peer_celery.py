# SPDX-License-Identifier: MIT
"""Puts COUNT tasks of Celery at RATE a second. Celery's worker imports `app` from this file.

Usage: PEER_PORT=PORT peer_celery.py PORT RATE COUNT MIN_MS SPAN_MS
"""

import os
import random
import sys
import time

import celery
import redis

PORT = int(os.environ["PEER_PORT"])
app = celery.Celery("peer_celery", broker=f"redis://127.0.0.1:{PORT}/0")


@app.task(name="task")
def task(due):
    redis.Redis(port=PORT).rpush("late", round((time.time() - due) * 1e6))


def main(arguments):
    _, rate, count, min_ms, span_ms = map(int, arguments[1:])
    for _ in range(count):
        delay = (min_ms + random.randrange(span_ms)) / 1000
        app.send_task("task", (time.time() + delay,), countdown=delay)
        time.sleep(1 / rate)


if __name__ == "__main__":
    main(sys.argv)
