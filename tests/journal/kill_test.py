#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills a process at the k-th call of each kind that changes a disk, for every k, and looks what
the next one finds: everything that was acknowledged, and of the call in progress either. Then the
same with calls that fail instead; with many threads; and with a repair.

Usage: kill_test.py STRIDE VICTIM [TOOL]

STRIDE 1 is every k; what a sanitizer slows down tries every so many.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CALLS = ("pwrite64", "fdatasync", "renameat", "ftruncate", "unlinkat", "fsync")
ERRORS = (("fdatasync", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EIO"),
          ("renameat", "ENOSPC"), ("unlinkat", "EIO"), ("fsync", "EIO"))
SHM_BYTES = 16 << 20  # many times what all runs at a time need
THREADS = 4
THREADED_KILLS = {"fdatasync": (3, 4, 6, 13, 26), "pwrite64": (3, 4, 10, 30)}
TORN = b"torn" * 10
EIO = -5
SKIP = 77
STRIDE = int(sys.argv[1])
EACH = "each" if STRIDE == 1 else f"every {STRIDE}th"


class Wrong(Exception):
    """What was found, and ought not to be."""


def strace(options, command):
    return subprocess.run(["strace", "-f", "-qq", *options, *command], capture_output=True,
                          text=True, check=False)


def inject(call, fault, k, command):
    """Runs the command with a fault at its k-th such call; returns how it ended, and its output."""
    done = strace(["-o", os.devnull, "-e", f"trace={call}",
                   "-e", f"inject={call}:{fault}:when={k}"], command)
    return done.returncode in (-9, 137), done.stdout.splitlines()


def count_calls(call, command):
    with tempfile.NamedTemporaryFile("r") as log:
        strace(["-o", log.name, "-e", f"trace={call}"], command)
        return len(re.findall(rf"\b{call}\(", log.read()))


def show(victim, folder):
    """The tasks that a fresh open finds."""
    done = subprocess.run([victim, "show", folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"does not open again: {done.stderr}")
    return {int(line.split()[0]) for line in done.stdout.splitlines()}


# ---- one thread: every call is known ----


def replay(lines, live):
    """What must be there after these lines; and the tasks of calls that are in doubt."""
    doubts, pending = [], None
    for line in lines:
        words = line.split()
        if words[0] == "?":
            pending = (words[1], int(words[2]))
            continue
        result, (call, task) = int(words[1]), pending
        pending = None
        if result == 0:
            change(live, call, task)
        elif result == EIO and not doubts:  # the first one only: nothing is written after it
            doubts.append((call, task))
    if pending:
        doubts.append(pending)
    return live, doubts


def change(live, call, task):
    """What a call that was done makes of the tasks; replace puts the next id."""
    (live.add if call == "put" else live.discard)(task)
    if call == "replace":
        live.add(task + 1)


def outcomes(live, doubts):
    """What may be there: each call in doubt was done or not, a replace wholly or not at all."""
    states = [set(live)]
    for call, task in doubts:
        done = [set(state) for state in states]
        for state in done:
            change(state, call, task)
        states += done
    return states


def try_once(victim, mode, start, before, call, fault, k):
    """One run on a copy of `start`, where the tasks `before` are; was it killed?"""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(start, folder, dirs_exist_ok=True)
        killed, lines = inject(call, fault, k, [victim, mode, folder])
        live, doubts = replay(lines, set(before))
        found = show(victim, folder)
        if found not in outcomes(live, doubts):
            raise Wrong(f"{mode} {start.name}, {call} {fault} {k}: found {sorted(found)}, wanted "
                        f"{sorted(live)}, in doubt {sorted(doubts)}")
        return killed


def prepare_torn(victim, start):
    """A journal whose process was killed, and whose end is torn: recovery has to cut."""
    inject("fdatasync", "signal=KILL", 30, [victim, "run", start])
    with open(max(start.glob("*.seg")), "ab") as file:
        file.write(TORN)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(start, copy, dirs_exist_ok=True)
        return show(victim, copy)


def every_k(pool, victim, mode, start, before, call, fault):
    """Returns how many calls there are; just so many runs must be killed."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(start, folder, dirs_exist_ok=True)
        count = count_calls(call, [victim, mode, folder])
    list_of_k = range(1, count + 2, STRIDE)
    runs = [pool.submit(try_once, victim, mode, start, before, call, fault, k) for k in list_of_k]
    killed = [run.result() for run in runs]
    if "KILL" in fault and killed != [k <= count for k in list_of_k]:
        raise Wrong(f"{mode} {start.name}, {call}: {count} calls, killed at {sum(killed)}")
    return count


def test_sequence(pool, victim, base):
    empty, torn = base / "empty", base / "torn"
    empty.mkdir()
    torn.mkdir()
    before = prepare_torn(victim, torn)
    for start, live in ((empty, set()), (torn, before)):
        for call in CALLS:
            count = every_k(pool, victim, "run", start, live, call, "signal=KILL")
            print(f"{start.name}: killed at {EACH} of {count} {call}")
            if count == 0 and (call != "ftruncate" or start is torn):
                raise Wrong(f"{call} is never called")
    for call, error in ERRORS:
        count = every_k(pool, victim, "run", empty, set(), call, f"error={error}")
        print(f"empty: {error} from {EACH} of {count} {call}")


# ---- many threads: what is known is what each of them said ----


def try_threads(victim, call, k):
    with tempfile.TemporaryDirectory() as folder:
        _, lines = inject(call, "signal=KILL", k, [victim, "threads", folder])
        said = {sign: {int(line[2:]) for line in lines if line[0] == sign} for sign in "+?-"}
        found = show(victim, folder)
    if not said["+"] - said["?"] <= found:
        raise Wrong(f"threads, {call} {k}: lost {said['+'] - said['?'] - found}")
    if found & said["-"]:
        raise Wrong(f"threads, {call} {k}: back again {found & said['-']}")
    # Of tasks never spoken of there is one for each thread at most: the one it was about to put.
    if len(found - said["+"]) > THREADS:
        raise Wrong(f"threads, {call} {k}: made up {found - said['+']}")


def test_threads(pool, victim):
    runs = [pool.submit(try_threads, victim, call, k)
            for call, list_of_k in THREADED_KILLS.items() for k in list_of_k]
    for run in runs:
        run.result()
    print(f"threads: killed {len(runs)} times")


# ---- repair ----


def prepare_damaged(victim, folder):
    folder.mkdir()
    subprocess.run([victim, "run", folder], stdout=subprocess.DEVNULL, check=True)
    first = min(folder.glob("*.seg"))
    data = bytearray(first.read_bytes())
    data[200] ^= 1
    first.write_bytes(data)
    return {file.name for file in folder.glob("*.seg")}


def repair_again(victim, tool, folder, names):
    done = subprocess.run([tool, "repair", folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"repair: {done.stdout}{done.stderr}")
    kept = {file.name[:-4] for file in pathlib.Path(folder).glob("*.bad")}
    if not names <= kept:
        raise Wrong(f"repair: {sorted(names - kept)} are not kept")
    return show(victim, folder)


def try_repair(victim, tool, start, names, wanted, call, k):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(start, folder, dirs_exist_ok=True)
        killed, _ = inject(call, "signal=KILL", k, [tool, "repair", folder])
        found = repair_again(victim, tool, folder, names)
        if found != wanted:
            raise Wrong(f"repair, {call} {k}: found {sorted(found)}, not {sorted(wanted)}")
        return killed


def test_repair(pool, victim, tool, base):
    start, whole = base / "damaged", base / "repaired"
    names = prepare_damaged(victim, start)
    shutil.copytree(start, whole)
    wanted = repair_again(victim, tool, whole, names)
    for call in ("openat", "pwrite64", "fdatasync", "renameat", "fsync"):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(start, folder, dirs_exist_ok=True)
            count = count_calls(call, [tool, "repair", folder])
        runs = [pool.submit(try_repair, victim, tool, start, names, wanted, call, k)
                for k in range(1, count + 1, STRIDE)]
        if not all(run.result() for run in runs) or not runs:
            raise Wrong(f"repair, {call}: {count} calls, and not killed at all of them")
        print(f"repair: killed at {EACH} of {count} {call}")


def main(arguments):
    victim, tool = arguments[2], arguments[3] if len(arguments) > 3 else None
    if strace(["-o", os.devnull], ["true"]).returncode != 0:
        print("strace cannot trace here")
        return SKIP
    # Only processes die here: what the disk itself forgets is crash's to test. This one is fast;
    # but a container may have a tiny one.
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > SHM_BYTES:
        tempfile.tempdir = "/dev/shm"
    with tempfile.TemporaryDirectory() as base, \
            concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        test_sequence(pool, victim, pathlib.Path(base))
        test_threads(pool, victim)
        if tool:
            test_repair(pool, victim, tool, pathlib.Path(base))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
