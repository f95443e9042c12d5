# SPDX-License-Identifier: MIT
"""Has the kernel refused io_uring to a program that needs it? The program's last message decides.
"""

import re

SKIP = 77  # the exit status of a skipped test


class Refused(Exception):
    """What the program said."""


def check_uring(status, said):
    if status == 1 and re.search("io_uring: (Operation not permitted|Function not implemented|"
                                 "Permission denied|Cannot allocate memory)", said):
        raise Refused(said)
