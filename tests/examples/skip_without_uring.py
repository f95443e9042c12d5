# SPDX-License-Identifier: MIT
"""Has the kernel refused io_uring to a program that needs it? The program's last message decides.
"""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from verdict import Skipped  # pylint: disable=wrong-import-position


def check_uring(status, said):
    if status == 1 and re.search("io_uring: (Operation not permitted|Function not implemented|"
                                 "Permission denied|Cannot allocate memory)", said):
        raise Skipped(said)
