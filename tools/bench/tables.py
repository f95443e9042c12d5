#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the tables of README.md from the output of timerhub-bench --json FILE. With several files,
the results of a later file replace those of an earlier file.

Usage: tables.py FILE...
"""

import json
import sys


SUBJECTS = ("floor", "timerhub", "timerhub-many", "timerhub-huge", "heap", "libev", "libuv",
            "libevent", "asio", "timerfd", "go")
WALL, CPU, CALLER = "ns_per_op", "cpu_ns_per_op", "caller_ns"

# The rows of a table. A row has a title, a workload, a number of timers, a number of threads, and
# the name of the value.
MAIN = (
    ("**a server's message, CPU**", "server", 100000, 1, CPU),
    ("2 event loops, CPU", "server", 100000, 2, CPU),
    ("re-arm, 10^4 timers", "refresh", 10**4, 1, WALL),
    ("10^5", "refresh", 10**5, 1, WALL),
    ("10^6", "refresh", 10**6, 1, WALL),
    ("10^7", "refresh", 10**7, 1, WALL),
    ("10^6, 2 threads", "refresh", 10**6, 2, WALL),
    ("beside others' timers", "neighbours", 10**6, 2, WALL),
    ("32 at once, 10^6, the caller's part", "batch-rearm", 10**6, 1, CALLER),
    ("cancel and arm, 10^4, CPU", "churn", 10**4, 1, CPU),
    ("10^5, CPU", "churn", 10**5, 1, CPU),
    ("10^6, CPU", "churn", 10**6, 1, CPU),
    ("10^6, the caller's part", "churn", 10**6, 1, CALLER),
    ("10^7, CPU", "churn", 10**7, 1, CPU),
    ("32 at once, 10^6, CPU", "batch-churn", 10**6, 1, CPU),
    ("a timeout for each request", "request", 10**4, 1, WALL),
    ("2 threads", "request", 10**4, 2, WALL),
    ("deliver 10^6 within 1 ms, CPU", "burst", 10**6, 1, CPU),
    ("10^7, CPU", "burst", 10**7, 1, CPU),
    ("deliver 10^6 over 1 s, CPU", "stream", 10**6, 1, CPU),
    ("10^7, CPU", "stream", 10**7, 1, CPU),
    ("push and take 10^6", "push-and-take", 10**6, 1, WALL),
    ("cross: arm and cancel, 2 threads", "cross", 10**6, 2, WALL),
    ("owner expiring, 2 threads", "cross-busy", 4 * 10**6, 2, WALL),
    ("p99.9 of an arm, 2 threads", "tail", 4 * 10**6, 2, "p99.9_ns"),
    ("bytes a timer, 10", "memory", 10, 1, "bytes"),
    ("10^3", "memory", 10**3, 1, "bytes"),
    ("10^6", "memory", 10**6, 1, "bytes"),
    ("10^7", "memory", 10**7, 1, "bytes"),
)
LATE = ("hop", "timerhub", "timerhub-spin", "timerhub-fifo", "timerhub-loop", "timerhub-loop-alone",
        "timerfd-loop", "timerfd-loop-fifo", "timerfd", "heap", "libev", "libuv", "libevent",
        "asio", "go")
LATENESS = tuple((name, "lateness", 10**4, 1, name) for name in
                 ("p50_us", "p99_us", "p99.9_us", "early"))
RESTING = ("timerhub", "heap", "libev", "libuv")
REST = tuple((f"{title}: {value}", workload, timers, 1, value)
             for title, workload, timers in (
                 ("beat, 10^3", "beat", 10**3), ("10^4", "beat", 10**4), ("10^5", "beat", 10**5),
                 ("beat-cancel", "beat-cancel", 10**4))
             for value in ("wakeups_per_s", "owner_cpu_us", "ns_per_op"))
REST += tuple((f"beat-late: {value}", "beat-late", 10**5, 1, value)
              for value in ("p50_us", "p99_us", "p99.9_us"))
LOOPS = ("touch", "timerhub-loop-alone", "timerhub-loop", "timerhub", "timerhub-many", "heap-loop",
         "libev", "libuv", "libevent", "asio", "timerfd-loop", "go")
LOOP = (
    ("server's message, 10^3 connections", "server", 10**3, 1, CPU),
    ("10^5", "server", 10**5, 1, CPU),
    ("one message in a turn", "one-message", 10**3, 1, CPU),
    ("refresh, 10^4", "loop-refresh", 10**4, 1, CPU),
    ("10^6", "loop-refresh", 10**6, 1, CPU),
    ("request that ends in its turn", "loop-request", 10**4, 1, CPU),
    ("in the next turn", "loop-request-later", 10**4, 1, CPU),
    ("one of 10^6 expiries within a millisecond", "loop-expire", 10**6, 1, CPU),
    ("wakes in 3 s, 10^4 timeouts of 3 s that move", "loop-beat", 10**4, 1, "wakes_per_length"),
)


# The rows of the table of threads: a title, a workload and a number of timers.
THREADED = (
    ("re-arm, 10^4", "refresh", 10**4),
    ("a timeout for each request", "request", 10**4),
    ("a server's message, 10^5", "server", 10**5),
    ("arm, cancel half", "cross", 10**6),
    ("the same while the others expire", "cross-busy", 4 * 10**6),
)


def read_results(paths):
    """Returns the results in the files as {(workload, subject, timers, threads): result}. A result
    is one line of JSON."""
    results = []
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            results += [json.loads(line) for line in lines]
    return {(r["workload"], r["subject"], r["timers"], r["threads"]): r for r in results}


def shown(value):
    """Returns a number as text with two or three digits that are not 0, such as 5.2, 62, 378, 1,370
    or 58,100."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}" if value >= 100 else f"{value:.2g}"


def print_table(head, rows, subjects, results):
    print(f"| {head} | " + " | ".join(subjects) + " |")
    print("|---" * (len(subjects) + 1) + "|")
    for title, workload, timers, threads, value in rows:
        cells = [results.get((workload, subject, timers, threads), {}).get(value)
                 for subject in subjects]
        print(f"| {title} | " + " | ".join(map(shown, cells)) + " |")
    print()


def print_threads(results):
    """Prints wall time, and CPU time in brackets, for each number of threads."""
    counts = sorted({threads for _, _, _, threads in results})
    print("| ns, by threads | | " + " | ".join(map(str, counts)) + " |")
    print("|---" * (len(counts) + 2) + "|")
    for title, workload, timers in THREADED:
        for subject in SUBJECTS:
            cells = [results.get((workload, subject, timers, threads)) for threads in counts]
            if any(cells[1:]):
                print(f"| {title} | {subject} | " + " | ".join(
                    f"{shown(cell[WALL])} ({shown(cell[CPU])})" if cell else ""
                    for cell in cells) + " |")
    print()


def main():
    files = sys.argv[1:]
    if not files or files[0].startswith("--"):
        sys.exit(__doc__)
    results = read_results(files)
    print_table("ns", MAIN, SUBJECTS, results)
    print_threads(results)
    print_table("lateness, us", LATENESS, LATE, results)
    print_table("owner's wake-ups; CPU in us; both a second", REST, RESTING, results)
    print_table("in the loop's own thread; CPU, ns", LOOP, LOOPS, results)


if __name__ == "__main__":
    main()
