#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that timerhub-store does what its manual page says.

Usage: tool_test.py TOOL
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import openmetrics  # pylint: disable=wrong-import-position

TOOL = sys.argv[1]


class Tool(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = os.path.join(self.folder, "shop.db")

    def run_tool(self, *words, status=0, given=b"", **how):
        """Returns what the tool printed: if it failed, to standard error."""
        done = subprocess.run([TOOL, *words], input=given, capture_output=True, timeout=60,
                              check=False, **how)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        self.assertTrue(status or not done.stderr, done.stderr)
        return (done.stderr or done.stdout).decode()

    def on(self, command, *words, **how):
        return self.run_tool(command, self.file, *words, **how)

    def put(self, *words, **how):
        return int(self.on("put", *words, **how))

    def rows(self):
        return json.loads(self.on("list", "--json"))

    def sql(self, text, *values):
        with contextlib.closing(sqlite3.connect(self.file, timeout=60)) as db, db:
            return db.execute(text, values).fetchall()

    def test_put_takes_times_data_key_and_interval(self):
        now_us = time.time_ns() // 1000
        self.assertEqual(self.put("90s", "later"), 1)
        self.put("2027-01-31T13:00:00.5+01:00", "-", given=b"a\0b")
        self.put("@1801396800")
        self.put("never", "--key", "order 17", "--interval", "1.5h")
        rows = {row["id"]: row for row in self.rows()}
        self.assertAlmostEqual(rows[1]["due_us"], now_us + 90_000_000, delta=60_000_000)
        times = [1801396800500000, 1801396800000000, None]
        self.assertEqual([rows[i]["due_us"] for i in (2, 3, 4)], times)
        self.assertEqual((rows[4]["key"], rows[4]["interval_us"]), ("order 17", 5400_000_000))
        self.assertEqual([rows[i]["bytes"] for i in (1, 2, 3)], [5, 3, 0])
        self.assertEqual(self.on("show", "2"), "a\0b")
        self.assertEqual(json.loads(self.on("put", "--json", "1s")), {"id": 5})

    def test_key_is_refused_or_replaced(self):
        first = self.put("1h", "old", "--key", "k")
        self.assertIn("this key", self.on("put", "1h", "--key", "k", status=1))
        self.assertEqual(self.put("2h", "new", "--key", "k", "--replace"), first)
        self.assertEqual(self.on("show", "=k"), "new")
        self.assertNotEqual(self.put("1h", "--key", "k", "--queue", "other"), first)

    def test_task_is_cancelled_moved_and_revived(self):
        task = str(self.put("1h", "--key", "k"))
        self.on("move", "=k", "2027-01-31T12:00:00Z")
        self.assertEqual(self.rows()[0]["due_us"], 1801396800000000)
        self.sql("UPDATE timerhub_tasks SET lease=?, reason=7", -10**18)
        self.assertEqual((self.rows()[0]["state"], self.rows()[0]["reason"]), ("parked", 7))
        self.on("revive", task)
        self.assertEqual(self.rows()[0]["state"], "due")
        self.on("cancel", task)
        self.assertEqual(self.rows(), [])
        for words in ["cancel", "=k"], ["move", "=k", "1s"], ["revive", task], ["show", task]:
            self.assertIn("no such task", self.on(*words, status=1))

    def test_other_queue_is_only_changed_by_name(self):
        task = str(self.put("1h", "x", "--queue", "mail"))
        self.assertIn("no such task", self.on("cancel", task, status=1))
        self.assertEqual(self.on("show", task, "--queue", "mail"), "x")
        self.on("cancel", task, "--queue", "mail")

    def test_taken_task_is_refused(self):
        task = str(self.put("0s"))
        lease = 10**18 + time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000 + 3600_000_000
        self.sql("UPDATE timerhub_tasks SET lease=?, claim=claim+1048577", lease)  # as a take
        row = self.rows()[0]
        self.assertEqual((row["state"], row["attempts"]), ("taken", 1))
        self.assertGreater(row["leased_until_us"], row["due_us"])
        for command, *words in (["cancel"], ["move", "1s"], ["revive"]):
            self.assertIn("a worker has", self.on(command, task, *words, status=1))

    def test_what_cannot_be_stored_is_refused(self):
        for words in ["@999999999"], ["1s", "--key", ""], ["1s", "--key", "k" * 256]:
            self.on("put", *words, status=1)
        self.on("put", "1s", "-", status=1, given=b"x" * ((1 << 20) + 1))
        self.assertEqual(self.put("1s", "-", given=b"x" * (1 << 20)), 1)

    def test_list_is_text_in_order(self):
        self.put("2027-01-31T12:00:00Z", "xyz", "--key", "a b")
        self.put("@1801396799", "--interval", "90s", "--queue", "mail")
        lines = ["2 waiting due 2027-01-31T11:59:59Z attempts 0 interval 90s bytes 0 queue mail\n",
                 "1 waiting due 2027-01-31T12:00:00Z attempts 0 bytes 3 =a\\x20b\n"]
        self.assertEqual(self.on("list"), "".join(lines))
        self.assertEqual(self.on("list", "1"), lines[0])
        self.assertEqual(self.on("list", "--queue", ""), lines[1])
        self.assertIn(" due 1801396800000000000 ", self.on("list", "--ns"))

    def test_stat_counts_by_queue(self):
        _ = [self.put(when) for when in ("0s", "1h", "2h")]
        self.put("never", "--queue", 'mail "1"')
        text = self.on("stat")
        self.assertRegex(text, r"^waiting  3\ndue      1\ntaken    0\nparked   0\noldest   due 2")
        self.assertIn("queue mail\\x20\"1\"\nwaiting  1\n", text)
        first, second = json.loads(self.on("stat", "--json"))
        self.assertEqual((first["queue"], first["waiting"], second["oldest_due_us"]), ("", 3, None))
        metrics = self.on("stat", "--metrics")
        try:
            samples = openmetrics.parse(metrics)["timerhub_store_tasks"]["samples"]
        except openmetrics.NoParser as why:
            self.skipTest(why)
        counts = {tuple(labels.values()): value for _, labels, value in samples if value}
        self.assertEqual(counts, {("", "waiting"): 3, ("", "due"): 1, ('mail "1"', "waiting"): 1})

    def test_looks_need_no_permission_to_write(self):
        self.put("1h", "x")
        how = {"user": 65534} if os.geteuid() == 0 else {}
        os.chmod(self.file, 0o444)
        with contextlib.closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as db:
            db.execute("SELECT * FROM timerhub_list").fetchall()  # makes -shm
            os.chmod(self.folder, 0o555)
            for words in ["list"], ["stat"], ["check"], ["show", "1"]:
                self.on(*words, **how)
            self.on("cancel", "1", status=3, **how)
        os.chmod(self.folder, 0o755)
        os.remove(self.file + "-shm")
        os.chmod(self.folder, 0o555)
        self.on("list", status=3, **how)  # nobody has it open, and -shm cannot be made
        os.chmod(self.folder, 0o755)

    def test_file_that_is_no_store(self):
        for words in ["list"], ["cancel", "1"], ["check"], ["stat"]:
            self.assertIn("No such file", self.on(*words, status=3))
        self.assertFalse(os.path.exists(self.file))
        self.sql("CREATE TABLE mine(x)")
        for words in ["list"], ["stat"], ["check"], ["show", "1"]:
            self.assertIn("no tables of a store", self.on(*words, status=3))
        self.assertEqual(self.put("1s"), 1)

    def test_busy_database_is_waited_for_and_then_refused(self):
        self.put("1h")
        with contextlib.closing(sqlite3.connect(self.file)) as db:
            db.execute("BEGIN IMMEDIATE")
            self.assertEqual(len(self.rows()), 1)
            began = time.monotonic()
            self.assertIn("shop.db: ", self.on("put", "1s", status=3))
            self.assertGreater(time.monotonic() - began, 4)

    def test_wrong_use(self):
        for words in ([], ["list"], ["list", self.file, "x"], ["lost", self.file],
                      ["put", self.file, "90"], ["put", self.file, "1s", "--replace"],
                      ["put", self.file, "1s", "--interval", "x"], ["show", self.file, "="],
                      ["move", self.file, "1", "soon"], ["--key"], ["--no", "list", self.file]):
            self.assertIn("usage:", self.run_tool(*words, status=2))

    def test_each_kind_of_damage_is_found(self):
        self.put("1h", "x" * 20000)
        self.assertEqual(self.on("check"), "whole: no damage found\n")
        good = pathlib.Path(self.file).read_bytes()
        for word, damage in (
                ("state", "timerhub_tasks SET lease=7"), ("parked", "timerhub_tasks SET reason=1"),
                ("delivery", "timerhub_tasks SET claim=0"), ("id", "sqlite_sequence SET seq=0"),
                ("attempts", "timerhub_tasks SET lease=1<<61"),
                ("version", "timerhub_about SET version=0")):
            self.sql(f"UPDATE {damage}")
            self.assertIn(f"damaged: {word}: ", self.on("check", status=1))
            pathlib.Path(self.file).write_bytes(good)

    def test_damaged_file(self):
        self.put("1h", "x" * 20000)
        with open(self.file, "r+b") as file:
            file.seek(-4096, os.SEEK_END)
            file.write(b"\xff" * 4096)
        self.assertIn("damaged: tables: ", self.on("check", status=1))
        pathlib.Path(self.file).write_bytes(b"no database, but long enough to be one" * 200)
        for words in ["list"], ["check"], ["show", "1"]:
            self.assertIn("not a database", self.on(*words, status=1))
        self.on("put", "1s", status=3)


unittest.main(argv=sys.argv[:1])
