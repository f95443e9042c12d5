#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills a process with a journal at the k-th system call of each kind that changes a disk, for
every k, and checks the journal that the next process finds. The journal must have all acknowledged
changes. It may have the change of the call in progress or not. Any end of the written records that
are not acknowledged may be missing, as if the kill had cut the write short. The other tests make
system calls fail, and kill a process with commits in flight, a process with many threads, and a
repair. The last test checks the system calls on files between two syncs.

Usage: kill_test.py STRIDE VICTIM [TOOL]

With STRIDE 1 the test tries every k. With a larger STRIDE, for slow builds with a sanitizer, it
tries every STRIDE-th k.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing

CALLS = ("pwrite64", "fdatasync", "renameat", "ftruncate", "unlinkat", "fsync")
ERRORS = (("fdatasync", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EIO"),
          ("renameat", "ENOSPC"), ("unlinkat", "EIO"), ("fsync", "EIO"))
SHM_BYTES = 16 << 20  # many times the space that all concurrent runs need
THREADS = 4
FLYING_KILLS = {"fdatasync": range(3, 11), "pwrite64": range(4, 18), "renameat": (2, 3)}
FLYING_ERRORS = (("fdatasync", "EIO", 5), ("pwrite64", "EIO", 9), ("pwrite64", "ENOSPC", 8),
                 ("pwrite64", "ENOSPC", 9))
THREADED_KILLS = {"fdatasync": (3, 4, 6, 13, 26), "pwrite64": (3, 4, 10, 30)}
TORN = b"torn" * 10
EIO = -5
ATTEMPTS_MAX = 2  # largest number of attempts in the victim's journal
HEADER_BYTES, RECORD_BYTES, ALIGN = 64, 56, 8
SKIP = 77
STRIDE = int(sys.argv[1])
EACH = "each" if STRIDE == 1 else f"every {STRIDE}th"


class Wrong(Exception):
    """The journal has wrong contents. The text says which contents."""


def strace(options, command):
    # LeakSanitizer must trace the process, and cannot if strace traces the process already.
    return subprocess.run(["strace", "-f", "-qq", *options, *command], capture_output=True,
                          text=True, check=False,
                          env=os.environ | {"LSAN_OPTIONS": "detect_leaks=0"})


def inject(call, fault, k, command):
    """Runs the command with a fault at its k-th system call `call`. Returns whether the process was
    killed, and its lines of output."""
    done = strace(["-o", os.devnull, "-e", f"trace={call}",
                   "-e", f"inject={call}:{fault}:when={k}"], command)
    return done.returncode in (-9, 137), done.stdout.splitlines()


def count_calls(call, command):
    with tempfile.NamedTemporaryFile("r") as log:
        strace(["-o", log.name, "-e", f"trace={call}"], command)
        return len(re.findall(rf"\b{call}\(", log.read()))


class Task(typing.NamedTuple):
    """The known state of a task. `attempts` is the largest possible number of attempts."""
    state: str
    due: int
    reason: int
    attempts: int


def show(victim, folder):
    """Returns the tasks that a new process finds in the journal, as id -> task."""
    done = subprocess.run([victim, "show", folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"does not open again: {done.stderr}")
    lines = (line.split() for line in done.stdout.splitlines())
    return {int(words[0]): Task(words[2], *map(int, words[3:])) for words in lines}


# ---- what a victim says: every call is known ----


def parse(words, live):
    """Returns the states after a call as {id: task}. The value is None if the call ends the
    task."""
    changed = {}
    for word in words:
        task, state, due, reason = word.split(":")
        before = live.get(int(task))
        attempts = before.attempts if before else 0
        if before and before.state == "parked":
            attempts = 0  # the call revives the task
        changed[int(task)] = (None if state == "gone" else
                              Task(state, int(due), int(reason), attempts))
    return changed


def apply(live, changed):
    for task, state in changed.items():
        if state:
            live[task] = state
        else:
            live.pop(task, None)


def replay(lines, live, flying=False):
    """Returns the tasks that must be in the journal after these lines, and the changes of the calls
    in doubt."""
    doubts, asked = [], {}
    for line in lines:
        sign, number, *words = line.split()
        if sign == "t":
            task = live[int(number)]
            live[int(number)] = task._replace(attempts=task.attempts + 1)
        elif sign == "?":
            asked[number] = words
        else:
            changed = parse(asked.pop(number), live)
            if sign == "=" and words[0] == "0":
                apply(live, changed)
            # Only the first failed change or batch is in doubt, because the journal writes nothing
            # after a failure.
            elif sign == "=" and int(words[0]) == EIO and (flying or not doubts):
                doubts.append(changed)
    return live, doubts + [parse(words, live) for words in asked.values()]


def is_like(found, wanted):
    if not found or not wanted:
        return found == wanted
    # The acknowledgement of a task's last delivery may be lost. The task has then used up its
    # attempts and is parked.
    if (found.state, found.reason) == ("parked", 0) and wanted.state == "pending":
        return found.due == wanted.due and found.attempts == wanted.attempts >= ATTEMPTS_MAX
    return found[:3] == wanted[:3] and (found.attempts <= wanted.attempts if
                                        wanted.state == "pending" else
                                        found.attempts == wanted.attempts)


def check(what, found, live, doubts):
    """Checks that each call in doubt has made all of its changes or none, and that all other tasks
    are unchanged."""
    known = set()
    for changed in doubts:
        known |= set(changed)
        if not any(all(is_like(found.get(task), outcome.get(task)) for task in changed)
                   for outcome in (live, changed)):
            raise Wrong(f"{what}: of a call that makes {changed} there is "
                        f"{ {task: found.get(task) for task in changed} }")
    for task in (set(found) | set(live)) - known:
        if not is_like(found.get(task), live.get(task)):
            raise Wrong(f"{what}: task {task} is {found.get(task)}, not {live.get(task)}")


def cuts(folder):
    """Returns the last segment, and the sizes that it may have if the kill cut the last write
    short. The sizes are before and inside each record behind the watermark."""
    path = max(pathlib.Path(folder).glob("*.seg"))
    data = path.read_bytes()
    marked = int.from_bytes(pathlib.Path(folder, "begun").read_bytes()[8:16], "little")
    at, places = HEADER_BYTES, []
    while at + RECORD_BYTES <= len(data) and data[at + 12] != 0:
        body = (int.from_bytes(data[at + 8:at + 12], "little") + data[at + 13] +
                (8 if data[at + 14] & 4 else 0))
        if int.from_bytes(data[at + 16:at + 24], "little") > marked:
            places += [at, at + RECORD_BYTES // 2]
        at += RECORD_BYTES + -(-body // ALIGN) * ALIGN
    return path, places


def check_ended(what, victim, folder, lines, before, flying=False):
    """Checks the tasks that a new process finds, also if the last write was cut short. Returns the
    number of calls in doubt."""
    live, doubts = replay(lines, dict(before), flying)
    path, places = cuts(folder) if doubts else (None, [])
    for place in places:
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            data = path.read_bytes()
            pathlib.Path(copy, path.name).write_bytes(data[:place] + bytes(len(data) - place))
            check(f"{what}, cut at {place}", show(victim, copy), live, doubts)
    check(what, show(victim, folder), live, doubts)
    return len(doubts)


def try_once(victim, mode, start, before, call, fault, k):
    """Makes one run on a copy of the journal `start`, which has the tasks `before`. Returns whether
    the process was killed."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(start, folder, dirs_exist_ok=True)
        killed, lines = inject(call, fault, k, [victim, mode, folder])
        what = f"{mode} {start.name}, {call} {fault} {k}"
        check_ended(what, victim, folder, lines, before)
        return killed


def prepare_torn(victim, start):
    """Makes a journal whose process was killed and which ends with torn bytes. Recovery must cut
    off these bytes. Returns the journal's tasks."""
    inject("fdatasync", "signal=KILL", 30, [victim, "run", start])
    with open(max(start.glob("*.seg")), "ab") as file:
        file.write(TORN)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(start, copy, dirs_exist_ok=True)
        return show(victim, copy)


def every_k(pool, victim, mode, start, before, call, fault):
    """Tries every k. Returns the number of system calls `call` that the victim makes. With a kill,
    exactly the runs with a k up to this number must be killed."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(start, folder, dirs_exist_ok=True)
        count = count_calls(call, [victim, mode, folder])
    list_of_k = range(1, count + 2, STRIDE)
    runs = [pool.submit(try_once, victim, mode, start, before, call, fault, k) for k in list_of_k]
    killed = [run.result() for run in runs]
    if "KILL" in fault and killed != [k <= count for k in list_of_k]:
        raise Wrong(f"{mode} {start.name}, {call}: {count} calls, killed at {sum(killed)}")
    return count


def test_sequence(pool, victim, mode, base):
    empty, torn = base / f"{mode}-empty", base / f"{mode}-torn"
    empty.mkdir()
    torn.mkdir()
    starts = [(empty, {})]
    if mode == "run":
        starts.append((torn, prepare_torn(victim, torn)))
    for start, live in starts:
        for call in CALLS:
            count = every_k(pool, victim, mode, start, live, call, "signal=KILL")
            print(f"{start.name}: killed at {EACH} of {count} {call}")
            if count == 0 and (call != "ftruncate" or start is torn):
                raise Wrong(f"{call} is never called")
    for call, error in ERRORS:
        count = every_k(pool, victim, mode, empty, {}, call, f"error={error}")
        print(f"{empty.name}: {error} from {EACH} of {count} {call}")


# ---- commits in flight: what completed is there, of the others all or nothing ----


def try_flying(victim, call, fault, k):
    """Makes one run with commits in flight. Returns the number of commits in doubt."""
    with tempfile.TemporaryDirectory() as folder:
        _, lines = inject(call, fault, k, [victim, "submit", folder])
        return check_ended(f"submit, {call} {fault} {k}", victim, folder, lines, {}, True)


def test_flying(pool, victim):
    faults = [(call, "signal=KILL", k) for call, list_of_k in FLYING_KILLS.items()
              for k in list_of_k]
    faults += [(call, f"error={error}", k) for call, error, k in FLYING_ERRORS]
    doubts = list(pool.map(lambda fault: try_flying(victim, *fault), faults))
    print(f"submit: {len(faults)} faults, {sum(doubts)} commits in doubt")
    if max(doubts) < 2:
        raise Wrong("there are never several commits in flight")


# ---- many threads: what is known is what each of them said ----


def try_threads(victim, call, k):
    with tempfile.TemporaryDirectory() as folder:
        _, lines = inject(call, "signal=KILL", k, [victim, "threads", folder])
        said = {sign: {int(line[2:]) for line in lines if line[0] == sign} for sign in "+?-"}
        found = set(show(victim, folder))
    if not said["+"] - said["?"] <= found:
        raise Wrong(f"threads, {call} {k}: lost {said['+'] - said['?'] - found}")
    if found & said["-"]:
        raise Wrong(f"threads, {call} {k}: back again {found & said['-']}")
    # The last put of each thread may be in the journal although the thread has not printed it.
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
            raise Wrong(f"repair, {call} {k}: found {found}, not {wanted}")
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


# ---- names that cannot be read ----


def test_names(victim):
    """If the kernel fails to list the names of a directory, open must fail, and must not treat the
    names as missing."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([victim, "run", folder], capture_output=True, check=True)
        for k in (1, 2):
            done = strace(["-o", os.devnull, "-e", f"inject=getdents64:error=EIO:when={k}"],
                          [victim, "show", folder])
            if done.returncode == 0:
                raise Wrong(f"opened though getdents64 {k} failed")
    print("a directory whose names are not told is not opened")


# ---- what a sync brings to the disk ----


def test_times(victim):
    """
    Checks that the journal does not ask for the times of a file that it writes. After such a
    question some file systems store the exact time of the next write, and must sync this time too.
    Each record would then cost as much as a record that makes the file grow. Only the open of a
    file may ask.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("r") as log:
        strace(["-o", log.name, "-e", "trace=openat,/stat"], [victim, "run", folder])
        lines = log.read().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        older = strace(["-o", os.devnull, "-e", "inject=statx:error=ENOSYS"],
                       [victim, "run", folder])
    if older.returncode != 0:
        raise Wrong(f"without statx: {older.stderr}")
    asked = [line for before, line in zip(lines, lines[1:])
             if re.search(r"stat\w*\(", line) and "openat(" not in before]
    times = [line for line in asked if ", STATX_NLINK, " not in line]
    if times or not asked:
        raise Wrong(f"{len(asked)} looks at files that are written, these at times: {times[:3]}")
    print(f"{len(asked)} looks at files that are written, none at times")


def main(arguments):
    victim, tool = arguments[2], arguments[3] if len(arguments) > 3 else None
    if strace(["-o", os.devnull], ["true"]).returncode != 0:
        print("strace cannot trace here")
        return SKIP
    # This test only kills processes, and test_crash.c covers data that a disk loses. Therefore the
    # test uses a file system in memory. A container may have a tiny /dev/shm.
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > SHM_BYTES:
        tempfile.tempdir = "/dev/shm"
    with tempfile.TemporaryDirectory() as base, \
            concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        test_sequence(pool, victim, "run", pathlib.Path(base))
        test_sequence(pool, victim, "park", pathlib.Path(base))
        test_flying(pool, victim)
        test_threads(pool, victim)
        test_names(victim)
        test_times(victim)
        if tool:
            test_repair(pool, victim, tool, pathlib.Path(base))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
