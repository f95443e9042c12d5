#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills a process at the k-th call of each kind that changes a disk, for every k, and looks what
the next one finds: everything that was acknowledged, and of the call in progress either. Then the
same with calls that fail instead.

Usage: kill_test.py VICTIM
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

CALLS = ("pwrite64", "fdatasync", "renameat", "ftruncate", "unlinkat", "fsync")
EIO = -5
SKIP = 77


def strace(options, command):
    return subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", *options, *command],
                          capture_output=True, text=True, check=False)


def replay(lines, live):
    """What must be there after these lines; and the tasks of calls that are in doubt."""
    doubts, pending = set(), None
    for line in lines:
        words = line.split()
        if words[0] == "?":
            pending = (words[1], int(words[2]))
            continue
        result, (call, task) = int(words[1]), pending
        pending = None
        if result == 0:
            (live.add if call == "put" else live.discard)(task)
        elif result == EIO:
            doubts.add(task)
    if pending:
        doubts.add(pending[1])
    return live, doubts


def show(victim, folder):
    result = subprocess.run([victim, "show", folder], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"does not open again: {result.stderr}")
    return {int(line.split()[0]) for line in result.stdout.splitlines()}


def check(victim, folder, before, output, what):
    live, doubts = replay(output.splitlines(), set(before))
    found = show(victim, folder)
    if found - doubts != live - doubts:
        raise AssertionError(f"{what}: found {sorted(found)}, wanted {sorted(live)}, "
                             f"in doubt {sorted(doubts)}")


def prepare_torn(victim, start):
    """A journal whose process was killed, and whose end is torn: recovery has to cut."""
    strace(["-e", "inject=fdatasync:signal=KILL:when=30"], [victim, "run", start])
    last = max(start.glob("*.seg"))
    with open(last, "ab") as file:
        file.write(b"torn" * 10)


def every_k(victim, start, before, call, fault):
    k = 0
    while True:
        k += 1
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(start, folder, dirs_exist_ok=True)
            result = strace(["-e", f"inject={call}:{fault}:when={k}"], [victim, "run", folder])
            killed = result.returncode in (-9, 137)
            check(victim, folder, before, result.stdout, f"{call} {fault} {k}")
            if fault.startswith("signal") and not killed:
                return k - 1
            if not fault.startswith("signal") and k >= 8:
                return k


def main(arguments):
    victim = arguments[1]
    if strace([], ["true"]).returncode != 0:
        print("strace cannot trace here")
        return SKIP
    with tempfile.TemporaryDirectory() as base:
        empty, torn = pathlib.Path(base, "empty"), pathlib.Path(base, "torn")
        empty.mkdir()
        torn.mkdir()
        prepare_torn(victim, torn)
        copy = pathlib.Path(base, "copy")
        shutil.copytree(torn, copy)
        before = show(victim, copy)
        for start, live in ((empty, set()), (torn, before)):
            for call in CALLS:
                kills = every_k(victim, start, live, call, "signal=KILL")
                print(f"{start.name}: killed at each of {kills} {call}")
                if kills == 0 and (call != "ftruncate" or start is torn):
                    raise AssertionError(f"{call} is never called")
        for call, error in (("fdatasync", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EIO"),
                            ("renameat", "ENOSPC"), ("unlinkat", "EIO"), ("fsync", "EIO")):
            print(f"{every_k(victim, empty, set(), call, 'error=' + error)} times {call}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
