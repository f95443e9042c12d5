#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the libraries, shared and static, must not have to do with.

Usage: test_libraries.py LIBRARY...

libatomic: its compare-and-swap of 16 bytes may take a lock.
Thread-local memory of the initial-exec or local-exec model: musl loads no such library by dlopen(),
and glibc only while its spare room lasts. A shared library says in its dynamic flags that it has
some, an archive in its relocations.
"""

import re
import subprocess
import sys

# R_X86_64_GOTTPOFF and R_X86_64_TPOFF32; on AArch64 R_AARCH64_TLSIE_... and R_AARCH64_TLSLE_...
STATIC_TLS = re.compile(r"\bR_\w+?_(?:GOTTPOFF|TPOFF|TLSIE|TLSLE)\w*")


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def found_in(library):
    dynamic = printed("readelf", "--dynamic", library)
    found = re.findall(r" U (__(?:atomic|sync)_\w+)", printed("nm", library))
    found += [word for word in ("libatomic", "STATIC_TLS") if word in dynamic]
    if library.endswith(".a"):
        found += STATIC_TLS.findall(printed("readelf", "--relocs", "--wide", library))
    return sorted(set(found))


def main(libraries):
    complaints = [f"{library} has {name}" for library in libraries for name in found_in(library)]
    print("\n".join(complaints), end="")
    return 1 if complaints or not libraries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
