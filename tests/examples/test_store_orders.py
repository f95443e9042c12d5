#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An order and its timeout commit together: store_orders is killed again and again while it takes
orders, and goes on each time. In the end each order is paid or dropped once, and no task is left.

Usage: test_store_orders.py STORE_ORDERS
"""
import contextlib
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

ORDERS = 600
KILLED_AFTER = (40, 41, 200, 350, 590)  # orders in the table


def numbers(database, text):
    with contextlib.closing(sqlite3.connect(database, timeout=30)) as db:
        return [row[0] for row in db.execute(text)]


def orders_taken(database):
    try:
        return numbers(database, "SELECT count(*) FROM orders")[0]
    except sqlite3.OperationalError:  # the table is not there yet
        return 0


def kill_after(command, database, count):
    with subprocess.Popen(command) as shop:
        while orders_taken(database) < count:
            if shop.poll() is not None:
                sys.exit(f"ended with {shop.returncode} before order {count}")
            time.sleep(0.001)
        shop.kill()


def main():
    with tempfile.TemporaryDirectory() as folder:
        database = pathlib.Path(folder) / "shop.db"
        command = [sys.argv[1], database, str(ORDERS)]
        for count in KILLED_AFTER:
            kill_after(command, database, count)
        subprocess.run(command, check=True)
        assert numbers(database, "SELECT id FROM orders ORDER BY id") == list(range(ORDERS))
        assert numbers(database, "SELECT count(*) FROM orders WHERE state = 'open'") == [0]
        assert numbers(database, "SELECT count(*) FROM timerhub_tasks") == [0]
        assert numbers(database, "PRAGMA integrity_check") == ["ok"]


main()
