#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that timerhub-journal does what its manual page says, on journals that the program of
killed_program.c (VICTIM) has written.

Usage: tool_test.py TOOL VICTIM
"""

import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from terminal import ESCAPE, check_colour, check_progress  # pylint: disable=wrong-import-position


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def expect(condition, *what):
    if not condition:
        raise AssertionError(*what)


def shown(victim, folder):
    result = run(victim, "show", folder)
    return set(result.stdout.split("\n")[:-1]) if result.returncode == 0 else None


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def check_whole(tool, folder, lines_more=0):
    result = run(tool, "check", folder)
    expect(result.returncode == 0 and result.stdout.startswith("whole: "), result)
    result = run(tool, "stat", folder)
    numbers = dict(line.split() for line in result.stdout.splitlines())
    dump = run(tool, "dump", folder).stdout.splitlines()
    expect(len(dump) == int(numbers["records"]) + lines_more, "dump and stat differ")
    sizes = sum(file.stat().st_size for file in pathlib.Path(folder).glob("*.seg"))
    expect(sizes == int(numbers["disk"]), "stat does not know the size")
    return numbers


def check_ahead(tool, victim, folder):
    """Checks a journal whose process was killed. Its last segment ends with zeros behind the last
    record."""
    before = shown(victim, folder)
    with open(max(pathlib.Path(folder).glob("*.seg")), "ab") as file:
        file.write(bytes(1000))
    numbers = check_whole(tool, folder, 1)
    expect(numbers["ahead"] == "1000" and numbers["torn"] == "0", numbers)
    expect("torn" not in run(tool, "check", folder).stdout, "zeros are called torn")
    expect("1000 bytes are zeros" in run(tool, "dump", folder).stdout, "dump hides zeros")
    result = run(tool, "repair", folder)
    expect(result.returncode == 0 and "0 torn bytes cut" in result.stdout, result)
    expect(check_whole(tool, folder)["ahead"] == "0", "repair keeps zeros")
    expect(shown(victim, folder) == before, "repair of what ends with zeros")


def check_torn(tool, victim, folder):
    before = shown(victim, folder)
    last = max(pathlib.Path(folder).glob("*.seg"))
    with open(last, "ab") as file:
        file.write(b"torn")
    result = run(tool, "check", folder)
    expect(result.returncode == 0 and "torn: 4 bytes" in result.stdout, result)
    expect("4 bytes are no good record" in run(tool, "dump", folder).stdout, "dump hides it")
    result = run(tool, "repair", folder)
    expect(result.returncode == 0 and "4 torn bytes cut" in result.stdout, result)
    expect(shown(victim, folder) == before, "repair of a torn end")


def check_damage(tool, victim, folder, offset):
    before = shown(victim, folder)
    first = min(pathlib.Path(folder).glob("*.seg"))
    flip(first, offset)
    expect(shown(victim, folder) is None, f"damage at {offset} was not noticed")
    if offset == 500:
        check_colour(expect, tool, "check", folder, word="damaged")
    for command in ("check", "stat"):
        result = run(tool, command, folder)
        expect(result.returncode == 1 and first.name in result.stdout, result)
        expect(ESCAPE not in result.stdout, "a colour in a file")
    with tempfile.TemporaryDirectory() as empty:
        for command in (("list", folder), ("cancel", folder, "1"), ("move", folder, "1", "5s"),
                        ("revive", folder, "1", "5s"), ("backup", folder, empty)):
            result = run(tool, *command)
            expect(result.returncode == 1 and
                   result.stderr == f"timerhub-journal: {folder} is damaged; see check\n", result)
    result = run(tool, "repair", folder)
    expect(result.returncode == 0 and result.stdout.startswith("repaired: "), result)
    expect(list(pathlib.Path(folder).glob("*.bad")), "nothing was set aside")
    after = shown(victim, folder)
    check_whole(tool, folder)
    return before, after


def check_none_left(tool, victim, folder):
    for file in pathlib.Path(folder).glob("*.seg"):
        file.unlink()
    expect(shown(victim, folder) is None, "a journal without segments was taken for a new one")
    result = run(tool, "check", folder)
    expect(result.returncode == 1 and "all segments are missing" in result.stdout, result)
    expect(run(tool, "dump", folder).stdout == "", "dump of nothing")
    result = run(tool, "repair", folder)
    expect(result.returncode == 0 and result.stdout.startswith("repaired: 0 tasks"), result)
    expect(shown(victim, folder) == set(), "repair of nothing")


def listed(tool, folder):
    """Returns the output of the command list as id -> words of the task's line, in the order of the
    lines."""
    result = run(tool, "list", folder)
    expect(result.returncode == 0, result)
    return {line.split()[0]: line.split() for line in result.stdout.splitlines()}


def check_wrong_use(result, named):
    """Checks that the tool prints at most three lines of usage, and then the reason, which names
    the wrong argument."""
    *usage, reason = result.stderr.splitlines()
    expect(result.returncode == 2 and not result.stdout, result)
    expect(0 < len(usage) <= 3 and usage[0].startswith("usage: "), result)
    expect(reason.startswith("timerhub-journal: ") and f"{named}" in reason, result)


def check_tasks(tool, victim, folder, base):
    tasks = listed(tool, folder)
    expect({f"{task} {words[6]}" for task, words in tasks.items()} ==
           {" ".join(line.split()[:2]) for line in shown(victim, folder)}, tasks)
    keys = {task: words[-1] for task, words in tasks.items() if words[-1].startswith("=")}
    expect(keys, "victim puts keys")
    with_key, key = next(iter(keys.items()))
    other = next(task for task in tasks if task not in keys)
    result = run(tool, "show", folder, other)
    expect(result.returncode == 0 and len(result.stdout) == int(tasks[other][6]), result)
    expect(run(tool, "move", folder, key, "@5").returncode == 0, "move by key")
    expect(next(iter(listed(tool, folder))) == with_key, "it is the first now")
    expect(listed(tool, folder)[with_key][2] == "1970-01-01T00:00:05Z", "at that time")
    expect(run(tool, "cancel", folder, key).returncode == 0, "cancel by key")
    for gone in (("cancel", folder, key), ("show", folder, key), ("move", folder, key, "+1"),
                 ("revive", folder, other, "+1")):
        result = run(tool, *gone)
        expect(result.returncode == 1 and "no such task" in result.stderr, result)
    expect(set(listed(tool, folder)) == set(tasks) - {with_key}, "what is left")
    for wrong in (("move", folder, other, "soon"), ("cancel", folder, "seven"),
                  ("cancel", folder, "="), ("show", folder), ("cancel", folder, "=a\\xg0")):
        check_wrong_use(run(tool, *wrong), wrong[-1] if len(wrong) > 2 else wrong[0])
    copy = pathlib.Path(base, "copy")
    for source, target, named in ((folder, copy, copy), (copy, folder, copy)):
        result = run(tool, "backup", source, target)
        expect(result.returncode == 3 and f": {named}: No such" in result.stderr, result)
    copy.mkdir()
    expect(run(tool, "backup", folder, copy).returncode == 0, "backup")
    expect(listed(tool, copy) == listed(tool, folder), "the copy differs")
    result = run(tool, "backup", folder, copy)
    expect(result.returncode == 3 and f": {copy}: " in result.stderr, "backup over another")


def check_times(tool, folder):
    task = next(iter(listed(tool, folder)))

    def moved(when, *option):
        """The time that the command list prints after a move."""
        result = run(tool, "move", folder, task, when)
        expect(result.returncode == 0, result)
        return re.search(rf"^{task} due (\S+)", run(tool, "list", *option, folder).stdout, re.M)[1]

    for when, date in (
            ("@0", "1970-01-01T00:00:00Z"), ("@1700000000.50", "2023-11-14T22:13:20.5Z"),
            ("@9223372036.854775807", "2262-04-11T23:47:16.854775807Z"),
            ("2028-02-29T23:59:59.001Z", "2028-02-29T23:59:59.001Z"),
            ("2027-12-31T22:30:00-05:30", "2028-01-01T04:00:00Z"),
            ("2028-01-01T01:00:00.00000001+02:00", "2027-12-31T23:00:00.00000001Z"),
            ("never", "never")):
        expect(moved(when) == date, when, date)
    for when, delay_ns in (("90s", 90e9), ("1.5h", 5400e9), ("0.25ms", 25e4), ("2d", 172800e9),
                           ("99999999999us", 99999999999e3), ("1m", 60e9), ("+1.5", 15e8)):
        from_ns = time.time_ns()
        due_ns = int(moved(when, "--ns")) - int(delay_ns)
        expect(from_ns <= due_ns <= time.time_ns(), when)
    before = listed(tool, folder)
    for wrong in ("", "5", "+-1", "1.s", "1.5.5s", "1y", "213504d", "18446744073709551617us", "@",
                  "@1s", "@9223372036.854775808", "2027-01-31T12:00:00", "2027-02-29T12:00:00Z",
                  "2027-01-31T12:00:60Z", "2027-01-31T12:00:00+24:00", "2027-01-31T12:00:00+01:60",
                  "2027-01-31T12:00:00+01:00 ", "1970-01-01T00:59:59+01:00",
                  "2262-04-12T00:00:00Z"):
        result = run(tool, "move", folder, task, wrong)
        check_wrong_use(result, f"or never, not {wrong}")
    expect(listed(tool, folder) == before, "a wrong time has moved a task")


def check_left_lock(tool, folder):
    """The process that took the lock has ended. Another has its open file, and another lock."""
    file = os.open(folder, os.O_RDONLY)
    taker = os.fork()
    if taker == 0:
        fcntl.flock(file, fcntl.LOCK_EX)
        os._exit(0)
    os.waitpid(taker, 0)
    with tempfile.TemporaryFile() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        result = run(tool, "repair", folder)
    expect(result.stderr == f"timerhub-journal: {folder} is in use\n", result)
    os.close(file)


def check_in_use(tool, victim, base):
    """While another process has the journal open, commands that read must work, and commands that
    write must be refused."""
    folder, copy = pathlib.Path(base, "used"), pathlib.Path(base, "copy-of-used")
    folder.mkdir()
    copy.mkdir()
    with subprocess.Popen([victim, "hold", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as holder:
        expect(holder.stdout.readline() == "ready\n", "it is not open")
        tasks = listed(tool, folder)
        expect(list(tasks) == ["2", "3", "4", "1"], f"not by time, what is parked last: {tasks}")
        expect(tasks["1"][3:5] == ["parked", "8"], tasks)
        expect(tasks["3"][-1] == "=a\\x20key", tasks)
        expect(tasks["4"][3:5] == ["interval", "3600s"], tasks)
        expect(run(tool, "show", folder, "=a\\x20key").stdout == "later", "show by key")
        result = run(tool, "check", folder)
        expect(result.returncode == 0 and "4 tasks live" in result.stdout, result)
        result = run(tool, "stat", folder)
        expect(result.returncode == 0 and "tasks       4\n" in result.stdout, result)
        expect(run(tool, "backup", folder, copy).returncode == 0, "backup of a journal in use")
        expect(set(listed(tool, copy)) == set(tasks), "the copy lacks tasks")
        # some containers have no such file, or an empty one
        locks = pathlib.Path("/proc/locks")
        seen = locks.exists() and f" {holder.pid} " in locks.read_text(encoding="utf-8")
        by_whom = f" by process {holder.pid}" if seen else ""
        for command in (("cancel", folder, "2"), ("move", folder, "2", "+1"),
                        ("revive", folder, "1", "+1"), ("repair", folder)):
            result = run(tool, *command)
            expect(result.returncode == 3 and
                   result.stderr == f"timerhub-journal: {folder} is in use{by_whom}\n", result)
        holder.communicate("")
    check_left_lock(tool, folder)
    dump = run(tool, "dump", folder).stdout
    for name in ("put", "take", "park", "renew", "move"):
        expect(re.search(rf" {name} +id \d", dump), f"no {name} in {dump}")
    for words in (" reason 8", " key a\\x20key", " interval 3600s", " due 1970-01-01T00:00:00Z"):
        expect(words in dump, dump)
    dump = run(tool, "--ns", "dump", folder).stdout
    expect(" due 0 data" in dump and " interval 3600000000000\n" in dump, dump)
    result = run(tool, "move", folder, "1", "@5")
    expect(result.returncode == 1 and "1: parked" in result.stderr, result)
    expect(run(tool, "revive", folder, "1", "@5").returncode == 0, "revive")
    expect(next(iter(listed(tool, folder))) == "2", "in order of time again")
    task = listed(tool, folder)["1"]
    expect(task[2:4] == ["1970-01-01T00:00:05Z", "attempts"], task)


def check_long_work(tool, whole, base):
    """check, repair and backup must show their progress."""
    folder, copy = pathlib.Path(base, "damaged"), pathlib.Path(base, "empty")

    def damaged():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        flip(min(folder.glob("*.seg")), 500)
        return (tool, "repair", folder)

    def to_empty():
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        return (tool, "backup", whole, copy)

    for command in (lambda: (tool, "check", whole), damaged, to_empty):
        check_progress(expect, command, f"timerhub-journal {command()[1]}", "pread64:when=1",
                       "-P", min(pathlib.Path(command()[2]).glob("*.seg")))


def check_no_journal(tool, base):
    folder = pathlib.Path(base, "no-journal")
    folder.mkdir()
    for command in ("check", "stat", "dump", "list", "repair"):
        result = run(tool, command, folder)
        expect(result.returncode == 3 and "not a journal" in result.stderr, result)
    expect(not list(folder.iterdir()), "something was made in it")


def main(arguments):
    tool, victim = arguments[1:]
    check_wrong_use(run(tool), "the command is missing")
    check_wrong_use(run(tool, "chekc", "."), "there is no command named chekc")
    check_wrong_use(run(tool, "check"), "wrong number of arguments for check")
    for command in ("check", "stat", "list"):
        expect(run(tool, command, "/nonexistent").returncode == 3, "no directory")
    with tempfile.TemporaryDirectory() as base:
        whole = str(pathlib.Path(base, "whole"))
        pathlib.Path(whole).mkdir()
        run(victim, "run", whole)
        numbers = check_whole(tool, whole)
        expect(len(shown(victim, whole)) == int(numbers["tasks"]), "stat counts other tasks")
        check_tasks(tool, victim, shutil.copytree(whole, str(pathlib.Path(base, "tasks"))), base)
        check_times(tool, pathlib.Path(base, "tasks"))
        check_in_use(tool, victim, base)
        check_no_journal(tool, base)
        check_long_work(tool, whole, base)
        ahead = shutil.copytree(whole, str(pathlib.Path(base, "ahead")))
        check_ahead(tool, victim, ahead)
        torn = shutil.copytree(whole, str(pathlib.Path(base, "torn")))
        check_torn(tool, victim, torn)
        check_none_left(tool, victim, shutil.copytree(whole, str(pathlib.Path(base, "none"))))
        # If a record is damaged, at most one task is lost or delivered again. If a segment's header
        # is damaged, no task is lost.
        for offset in (64 + 20, 64 + 60, 500, 1500):
            folder = shutil.copytree(whole, str(pathlib.Path(base, str(offset))))
            before, after = check_damage(tool, victim, folder, offset)
            expect(len(before ^ after) <= 1, f"{offset}: {before ^ after}")
        folder = shutil.copytree(whole, str(pathlib.Path(base, "header")))
        before, after = check_damage(tool, victim, folder, 20)
        expect(after == before, f"header: {before ^ after}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
