#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the text of timerhub.lua as a C file, which defines the names of functions.h.

Usage: embed.py TIMERHUB_LUA FILE
"""

import pathlib
import re
import sys

HEAD = """/* Made by embed.py of timerhub.lua. */
#include "relay/functions.h"

const uint64_t functions_version = {version};
const char functions_text[] =
{lines};
const size_t functions_text_len = sizeof(functions_text) - 1;
"""


def main(arguments):
    text = pathlib.Path(arguments[1]).read_text(encoding="ascii")
    version = re.search(r"^local VERSION = (\d+)", text, re.MULTILINE)[1]
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    lines = "\n".join(f'\t"{line}\\n"' for line in escaped.splitlines())
    pathlib.Path(arguments[2]).write_text(HEAD.format(version=version, lines=lines),
                                          encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
