#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the text of timerhub.lua, the library of Redis functions, as a C header.

Usage: embed.py TIMERHUB_LUA FUNCTIONS_H
"""

import pathlib
import re
import sys

HEADER = """/* Made by embed.py of timerhub.lua. */
#ifndef RELAY_FUNCTIONS_H
#define RELAY_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* A relay loads functions_text into a server whose library has an older version. */
static const uint64_t functions_version = {version};
static const char functions_text[] =
{lines};
static const size_t functions_text_len = sizeof(functions_text) - 1;

#endif
"""


def main(arguments):
    text = pathlib.Path(arguments[1]).read_text(encoding="ascii")
    version = re.search(r"^local VERSION = (\d+)", text, re.MULTILINE)[1]
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    lines = "\n".join(f'\t"{line}\\n"' for line in escaped.splitlines())
    pathlib.Path(arguments[2]).write_text(HEADER.format(version=version, lines=lines),
                                          encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
