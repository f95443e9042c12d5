#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants faults in copies of the library: the tests must find each, and none in a copy without.

Usage: planted_test.py ROOT BUILD COMPILER
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIBRARY = "libtimerhub-store.so.0.5"
LIBRARY_IN_ONE = "timerhub_store.c"  # is made from the others
ROUNDS = 6  # a fault may need luck to be seen

# what, the file, its text, the fault, and the test that must find it
PLANTS = (
    ("no sync", "writer.c", "fdatasync(store->files.wal_fd) < 0", "false", "power"),
    ("the answer before the sync", "writer.c", "batch->is_durable |=", "batch->is_durable &=",
     "power"),
    ("the completion before the sync", "writer.c", "work->changes->op != STORE_TOUCH;",
     "work->changes->op != STORE_TOUCH && !work->is_submit;", "power"),
    ("a touch that lengthens no lease", "sql.c", '" SET lease=?7" IS_CURRENT',
     '" SET lease=lease" IS_CURRENT', "model"),
    ("the write lock is not asked for", "take.c", "if (!files_is_writing(&store->files)) {",
     "if (true) {", "notice"),
    ("no look after the queue was read", "take.c",
     "\tresult = take_once(store, taker);\n\tif (result",
     "\tresult = 0;\n\tif (result", "notice"),
    ("the delivery is not compared", "sql.c", "claim>>20=?8", "?8=?8", "model"),
    ("the lease is not checked by a take", "deliver.c",
     ".lease = LEASE_BASE_US + store_now_us(&store->since_boot),",
     ".lease = LEASE_BASE_US * 2,", "model"),
    ("the lease is not checked by a cancel", "sql.c",
     '(lease<0 OR lease<=?7)"', '(lease<0 OR ?7)"', "calls"),
    ("a done that ends nothing", "sql.c", '"DELETE FROM " TASKS IS_CURRENT',
     '"UPDATE " TASKS " SET reason=reason" IS_CURRENT', "model"),
    ("a take 50 ms early", "deliver.c",
     "int64_t now_us = store_now_us(&store->wall);\n\t/* relaxed",
     "int64_t now_us = store_now_us(&store->wall) + 50000;\n\t/* relaxed", "model"),
)


def build(root, compiler, folder, plant):
    _, name, text, fault, _ = plant
    shutil.rmtree(folder / "lib", ignore_errors=True)
    shutil.copytree(root / "lib", folder / "lib")
    path = folder / "lib/store" / name
    source = path.read_text(encoding="utf-8")
    if source.count(text) != 1:
        sys.exit(f"{name}: not once: {text}")
    path.write_text(source.replace(text, fault), encoding="utf-8")
    listed = re.findall(r"'([\w./]+\.c)'", (root / "lib/store/meson.build").read_text("utf-8"))
    sources = [folder / "lib/store" / source for source in listed if source != LIBRARY_IN_ONE]
    subprocess.run([*compiler, "-std=gnu11", "-O1", "-w", "-mcx16", "-shared", "-fPIC",
                    f"-Wl,-soname,{LIBRARY},-z,defs", "-I", folder / "lib", "-I", root / "include",
                    "-o", folder / LIBRARY, *sources, "-lsqlite3", "-lpthread"], check=True)


def finds(root, tests, folder, test, seed, limit_s):
    command = {
        "power": [sys.executable, root / "tests/store/power_test.py", tests / "store_worker",
                  tests / "libstore_recorder.so", "100", seed],
        "model": [sys.executable, root / "tests/store/model_test.py", tests / "store_worker",
                  "4", seed],
        "notice": [tests / "test_store_notice", seed],
        "calls": [tests / "test_store_calls", seed],
    }[test]
    run = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, start_new_session=True,
                           env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
    try:
        return run.wait(timeout=limit_s) != 0
    except subprocess.TimeoutExpired:  # a wake-up that does not come, or a task that never ends
        return True
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)  # its children too
            run.wait()


def main(root, tests, *compiler):
    root, tests, missed = pathlib.Path(root), pathlib.Path(tests).resolve(), []
    with tempfile.TemporaryDirectory(prefix="store-planted-") as name:
        folder = pathlib.Path(name)
        build(root, compiler, folder, ("no fault", "files.c", *2 * ["NEXT_TURN_BYTE ("], None))
        limits_s = {}
        for test in ("power", "model", "notice", "calls"):
            begin = time.monotonic()
            if finds(root, tests, folder, test, "1", 400):
                sys.exit(f"{test} finds a fault in a copy that has none")
            limits_s[test] = 40 + 4 * (time.monotonic() - begin)  # a loaded machine is slower
        for plant in PLANTS:
            build(root, compiler, folder, plant)
            found = next((round + 1 for round in range(ROUNDS)
                          if finds(root, tests, folder, plant[4], str(round + 1),
                                   limits_s[plant[4]])), 0)
            print(f"{plant[0]}: " + (f"found by {plant[4]}, round {found}" if found else "MISSED"),
                  flush=True)
            if not found:
                missed.append(plant[0])
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
