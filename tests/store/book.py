# SPDX-License-Identifier: MIT
"""What the workers' books and the database must have in common: the oracle of the store's tests."""

import collections
import sqlite3

ENDS = ("done", "cancel", "commit", "commit_in")


class Task:
    """All that the books say of one key."""

    def __init__(self):
        self.put_wanted = self.put = False
        self.end_wanted = self.ended = None  # the op
        self.withdrawn = set()  # deliveries whose worker wanted to give the task back
        self.moved = False
        self.takes = []     # (delivery, time, end of the lease)
        self.touched = {}   # a delivery's later end of the lease
        self.answers = []   # (delivery, time of the wish), of answers that were accepted
        self.last = False   # taken when all were ended


def read(lines):
    """Returns the tasks by key, and complaints."""
    tasks, complaints, open_wishes = collections.defaultdict(Task), [], {}
    for line in lines:
        kind, *words = line.split()
        if kind == "T":
            tasks[words[0]].takes.append(tuple(map(int, words[1:])))
        elif kind == "L":
            tasks[words[0]].touched[int(words[1])] = int(words[2])
        elif kind == "Z":
            if tasks[words[0]].last:
                complaints.append(f"{words[0]} was ended twice at the end")
            tasks[words[0]].last = True
        elif kind == "E":
            complaints.append(f"early: {line.strip()}")
        elif kind == "I":
            wish(tasks, *words)
            open_wishes[words[1]] = words
        elif kind == "A":
            result(tasks, open_wishes.pop(words[1], words), *words)
    return tasks, complaints


def wish(tasks, op, key, *rest):
    task = tasks[key]
    if op == "put":
        task.put_wanted = True
    if op in ENDS:
        task.end_wanted = op
    if op in ("retry", "park"):
        task.withdrawn.add(int(rest[0]))
    if op == "move":
        task.moved = True
    if op in ("commit", "commit_in"):
        tasks[rest[2]].put_wanted = True


def result(tasks, wanted, op, key, number):
    task, rest = tasks[key], wanted[2:]
    if number != "0":
        return
    if op == "put":
        task.put = True
    if op in ENDS:
        task.ended = op
    if op in ("done", "retry", "park", "commit", "commit_in"):
        task.answers.append((int(rest[0]), int(rest[1])))
    if op in ("commit", "commit_in"):
        tasks[rest[2]].put = True


def deliveries(key, task):
    """No two workers have it within a lease, and no answer of an older delivery is accepted."""
    complaints, takes = [], sorted(task.takes)
    for (first, _, lease_end), (second, time, _) in zip(takes, takes[1:]):
        lease_end = task.touched.get(first, lease_end)
        if first == second:
            complaints.append(f"{key}: delivery {first} twice")
        if time < lease_end and first not in task.withdrawn and not task.moved:
            complaints.append(f"{key}: deliveries {first} and {second} overlap by "
                              f"{lease_end - time} ns")
    for delivery, time in task.answers:
        if any(later > delivery and taken < time for later, taken, _ in takes):
            complaints.append(f"{key}: an answer of the old delivery {delivery} was accepted")
    return complaints


def check(lines, database, all_are_ended=False):
    """Compares the books' lines with the database. Returns complaints."""
    tasks, complaints = read(lines)
    connection = sqlite3.connect(database)
    whole = connection.execute("PRAGMA integrity_check").fetchall()
    if whole != [("ok",)]:
        complaints.append(f"integrity_check: {whole}")
    present = {key for key, in connection.execute("SELECT key FROM timerhub_tasks")}
    effects = collections.Counter()
    followers = {}
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name='effects'").fetchall():
        for key, follower in connection.execute("SELECT key,follower FROM effects"):
            effects[key] += 1
            followers[key] = follower
    connection.close()
    for key in present - {key for key, task in tasks.items() if task.put_wanted}:
        complaints.append(f"{key} is there, and nobody wanted it")
    for key, count in effects.items():
        if count > 1:
            complaints.append(f"{key} had {count} effects")
        if key in present:
            complaints.append(f"{key} had its effect and is still there")
    for key, task in tasks.items():
        complaints += deliveries(key, task)
        if task.put and key not in present and not task.end_wanted and not task.last:
            complaints.append(f"{key} was put and is gone")
        if task.ended and (key in present or task.last):
            complaints.append(f"{key} was ended by {task.ended} and is there again")
        if task.ended == "commit_in" and effects[key] != 1:
            complaints.append(f"{key} was ended with its effect, of which there are {effects[key]}")
        if key in present and all_are_ended:
            complaints.append(f"{key} never came")
    return complaints


def report(complaints):
    """Prints the first complaints. Returns a test's exit status."""
    print("\n".join(complaints[:20]))
    return 1 if complaints else 0
