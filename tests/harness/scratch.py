# SPDX-License-Identifier: MIT
"""Where tests make their temporary folders: TMPDIR or /tmp, if these are good for it."""

import os
import tempfile

# A path of a socket has at most 107 characters. Tests append fewer than 60.
SOCKET_FOLDER_MAX = 45


def for_sockets():
    folder = tempfile.gettempdir()
    return folder if len(folder) <= SOCKET_FOLDER_MAX else "/tmp"


def for_programs():
    """Returns a folder for programs: that of the build, if the temporary one is mounted noexec."""
    folder = tempfile.gettempdir()
    return os.getcwd() if os.statvfs(folder).f_flag & os.ST_NOEXEC else folder
