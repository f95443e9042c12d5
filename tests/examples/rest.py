# SPDX-License-Identifier: MIT
"""Does a process do nothing at all? Told by the kernel's counts of its threads: no time is measured
but the one for which it is looked at, so a busy machine changes nothing.
"""

import pathlib
import re
import time


def moves(pid):
    """How often each thread gave up its processor, or lost it; None if one of them runs."""
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
    """Until all of its threads sleep for so long, without a break; False: they never do."""
    until = time.monotonic() + hang_s
    while time.monotonic() < until:
        before = moves(pid)
        time.sleep(rest_s)
        if before and before == moves(pid):
            return True
    return False
