#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the text of timerhub.lua, the library of Redis functions, as a C header.

The text is in three parts: between them a client writes the version that its names have.

Usage: embed.py TIMERHUB_LUA FUNCTIONS_H [next]

With "next", the version is one more than in the text, as a test needs it.
"""

import pathlib
import re
import sys

HEADER = """/* Made by embed.py of timerhub.lua. */
#ifndef RELAY_FUNCTIONS_H
#define RELAY_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#define FUNCTIONS_VERSION {version}
#define FUNCTIONS_OWN "{version}" /* names of this version's functions: timerhub{version}_put */

/* A client writes FUNCTIONS_OWN between the parts, or for the names of other languages nothing. */
static const char *const functions_parts[] = {{
{parts}
}};

#endif
"""


def c_string(text):
    lines = text.split("\n")
    return "\n".join(f'\t"{line}{end}"' for line, end in
                     zip(lines, ["\\n"] * (len(lines) - 1) + [""]))


def main(arguments):
    text = pathlib.Path(arguments[1]).read_text(encoding="ascii")
    if len(arguments) > 3:
        text = re.sub(r"(?m)^local VERSION = (\d+)",
                      lambda found: f"local VERSION = {int(found[1]) + 1}", text)
    version = re.search(r"^local VERSION = (\d+)", text, re.MULTILINE)[1]
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    form = r"(#!lua name=timerhub)(\n.*\nlocal PREFIX = 'timerhub)(_'\n.*)"
    first, middle, last = re.fullmatch(form, escaped, re.DOTALL).groups()
    parts = ",\n".join(c_string(part) for part in (first, middle, last))
    pathlib.Path(arguments[2]).write_text(HEADER.format(version=version, parts=parts),
                                          encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
