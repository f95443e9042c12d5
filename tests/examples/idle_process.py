# SPDX-License-Identifier: MIT
"""Does a process do nothing at all? Told by the kernel's counts of its threads: no time is measured
but the one for which it is looked at, so a busy machine changes nothing.
"""

import pathlib
import re
import time


def moves(pid):
    """Context switches of each thread; None if a thread is running."""
    threads = {}
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            text = status.read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            return None
        if not re.search(r"^State:\tS", text, re.MULTILINE):
            return None
        threads[status.parent.name] = re.findall(r"^\w*voluntary_ctxt_switches:\t(\d+)", text,
                                                 re.MULTILINE)
    return threads


def rests(pid, rest_s, hang_s):
    """Waits until all threads sleep for this long without a wake-up. False if they do not."""
    until = time.monotonic() + hang_s
    while time.monotonic() < until:
        before = moves(pid)
        time.sleep(rest_s)
        if before and before == moves(pid):
            return True
    return False
