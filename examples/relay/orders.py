#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Delayed tasks in Redis from Python, with redis-py and without timerhub's library.

The program calls the functions of the queue in Redis, which timerhub-relay(5) documents.

Usage: orders.py
The server is $REDIS_URL. A relay must run: timerhub-relay run orders

Three orders are cancelled if they are not paid. Nobody pays the first and the third, and the task
of the third is retried once. The second is paid in time.
"""

import os

import redis

QUEUE, READY = "{orders}", "timerhub:{orders}:ready"
SECOND = 1_000_000


def call(server, function, *arguments):
    """Calls a function of the queue. The answer begins with 0 or a negative errno."""
    return server.fcall("timerhub_" + function, 1, QUEUE, *arguments)


def put(server, order, delay_us, data):
    """Puts a task. If the connection was lost, repeat the put with the same id. The answer -17
    (EEXIST) means that the first put has arrived."""
    answer = call(server, "put", order, delay_us, "", data)
    if answer[0] not in (0, -17, -114):
        raise RuntimeError(f"put {order}: {answer[0]}")


def worker(server, count):
    """Takes tasks until `count` orders are finished."""
    while count > 0:
        try:
            reply = server.xreadgroup("timerhub", "worker-1", {READY: ">"}, count=1,
                                      block=30_000)
        except redis.ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            call(server, "create")  # the data of Redis was deleted
            continue
        for entry, task in reply[0][1] if reply else []:
            order, attempt = task[b"id"].decode(), int(task[b"n"])
            print(f"{order}: {task[b'data'].decode()}, attempt {attempt}")
            if order == "order:3" and attempt == 1:
                call(server, "retry", order, 1000, entry)
                continue
            call(server, "done", order, entry)
            count -= 1


def main():
    # The socket timeout is longer than BLOCK, so that the program detects a dead connection.
    server = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1"),
                                  socket_timeout=35)
    call(server, "create")
    put(server, "order:1", SECOND // 20, "cancel unless paid")
    put(server, "order:2", 1800 * SECOND, "cancel unless paid")
    put(server, "order:3", SECOND // 10, "cancel unless paid")
    if call(server, "cancel", "order:2")[0] == 0:
        print("order:2: paid in time")
    worker(server, 2)


if __name__ == "__main__":
    main()
