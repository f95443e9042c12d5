# SPDX-License-Identifier: MIT
"""Draws curves as an SVG file with gnuplot."""

import subprocess


def draw(path, curves, settings, style="linespoints", size="800,500"):
    """Draws the curves {title: [(x, y)]}. `settings` has commands of gnuplot, one a line."""
    lines = [f'set terminal svg size {size} dynamic background "white"', f'set output "{path}"',
             "set key outside right", "set grid", settings]
    for number, points in enumerate(curves.values()):
        lines += [f"$curve{number} << end", *(f"{x} {y}" for x, y in points), "end"]
    lines.append("plot " + ", ".join(
        f"$curve{number} with {style} lw {3 if title == 'timerhub' else 1} title '{title}'"
        for number, title in enumerate(curves)))
    subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=True)
