#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every library can be loaded by dlopen(), also where a C library has no room for static TLS.

Usage: test_dlopen.py LIBRARY...

musl loads no library with thread-local memory of the initial-exec or local-exec model, and glibc
only while its spare room lasts. A shared library says in its dynamic flags that it has some, an
archive in its relocations. Exit status 1 if one does.
"""

import re
import sys

from libraries import check, printed

# R_X86_64_GOTTPOFF and R_X86_64_TPOFF32; on AArch64 R_AARCH64_TLSIE_... and R_AARCH64_TLSLE_...
STATIC_TLS = re.compile(r"\bR_\w+?_(?:GOTTPOFF|TPOFF|TLSIE|TLSLE)\w*")


def complaints_of(library):
    if library.endswith(".a"):
        found = sorted(set(STATIC_TLS.findall(printed("readelf", "--relocs", "--wide", library))))
        return [f"{library}: {name}" for name in found]
    flags = printed("readelf", "--dynamic", library)
    return [f"{library} has the flag STATIC_TLS"] if "STATIC_TLS" in flags else []


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:], complaints_of))
