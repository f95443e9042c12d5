#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the bars of the front page from the table in README.md of this folder.

Usage: bars.py > server_message.svg

A bar is the CPU time of one server's message with 10^5 connections. The test of README.md draws
the picture again and compares, so it cannot fall behind the table.
"""

import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().parent / "README.md"
ROW_NAME = "server, 100000 timers, 1 thread: CPU ns"
# Column of the table, and what the picture calls it.
BARS = (("timerhub-loop-alone", "timerhub, one loop"),
        ("heap-loop", "a heap of your own"),
        ("timerhub", "timerhub, hub"),
        ("libevent", "libevent"),
        ("libev", "libev"),
        ("libuv", "libuv"))
LEFT, WIDTH, ROW, TOP = 190, 430, 26, 34


def values():
    """The row of 10^5 connections, as timerhub-bench prints it, by the names of the columns."""
    found = re.search(rf"^\| \|(.*)\n(?:\|.*\n)*?\| {re.escape(ROW_NAME)} \|(.*)$",
                      TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise SystemExit(f"{TABLE}: no row {ROW_NAME}")
    head, row = ([cell.strip() for cell in line.split("|")] for line in found.groups())
    return dict(zip(head, row))


def picture(value):
    longest = max(float(value[name]) for name, _ in BARS)
    height = TOP + ROW * len(BARS) + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {height}" '
           'font-family="sans-serif" font-size="13">',
           "<title>CPU time of a server's message, in nanoseconds</title>",
           f'<rect width="700" height="{height}" rx="6" fill="#ffffff"/>',
           '<text x="12" y="21" font-weight="bold" fill="#222222">A server\'s message: CPU time '
           'in ns, with 100,000 connections</text>']
    for i, (name, label) in enumerate(BARS):
        number = float(value[name])
        y = TOP + ROW * i
        color = "#1a7f5a" if name.startswith("timerhub") else "#9aa3ab"
        out += [f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end" fill="#222222">{label}'
                "</text>",
                f'<rect x="{LEFT}" y="{y + 3}" width="{max(1, round(number * WIDTH / longest))}" '
                f'height="{ROW - 9}" fill="{color}"/>',
                f'<text x="{LEFT + round(number * WIDTH / longest) + 6}" y="{y + 15}" '
                f'fill="#222222">'
                f"{value[name]}</text>"]
    return "\n".join(out + ["</svg>"])


if __name__ == "__main__":
    print(picture(values()))
