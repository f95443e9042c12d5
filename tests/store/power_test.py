#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Simulates a loss of power: of what a worker has written since the last sync of a file, any subset
of the sectors is on the disk. What was acknowledged before must be there, and the rest whole.

Usage: power_test.py WORKER RECORDER CRASHES [SEED]
"""

import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import book

SECTOR = 512
CHANGES = 20  # at least, so that the crashes mean something
RECORD = struct.Struct("=cc2xIQ")


def records(trace):
    data, at = trace.read_bytes(), 0
    while at < len(data):
        kind, file, count, position = RECORD.unpack_from(data, at)
        at += RECORD.size
        content = bytes(count) if kind == b"0" else b""
        if kind in b"WB":
            content = data[at:at + count]
            at += count
        yield chr(kind[0]), chr(file[0]), position, content


class Disk:
    """A file on a disk that may lose what is not synced."""

    def __init__(self):
        self.stable = bytearray()
        self.pending = []

    @staticmethod
    def apply(content, kind, position, data):
        if kind == "T":
            del content[position:]
            content.extend(bytes(position - len(content)))
            return
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position:position + len(data)] = data

    def sync(self):
        for change in self.pending:
            self.apply(self.stable, *change)
        self.pending = []

    def crash(self, dice):
        content, how = bytearray(self.stable), dice.random()
        for kind, position, data in self.pending:
            if kind == "T":
                if dice.random() < how:
                    self.apply(content, kind, position, data)
                continue
            for at in range(0, len(data), SECTOR):
                if dice.random() < how:
                    self.apply(content, kind, position + at, data[at:at + SECTOR])
        return content


def crash(folder, number, disks, lines, dice):
    place = folder / f"crash-{number}"
    place.mkdir()
    for file, name in (("D", "t.db"), ("W", "t.db-wal")):
        (place / name).write_bytes(disks[file].crash(dice))
    # nothing was acknowledged before the tables were made
    if not any(line.startswith("A ") for line in lines):
        return []
    complaints = book.check(lines, place / "t.db")
    for path in place.iterdir():
        path.unlink()
    return complaints


def is_success(line):
    return line.startswith(b"A") and line.split()[-1] == b"0"


def trace_of(worker, recorder, folder, seed, limit_ms):
    folder.mkdir()
    subprocess.run([worker, folder / "t.db", folder / "book-1", "w", str(seed), str(limit_ms)],
                   check=True, env={**os.environ, "LD_PRELOAD": recorder,
                                    "RECORDER_TRACE": str(folder / "trace")})
    return list(records(folder / "trace"))


def main(worker, recorder, crashes, seed=None):
    seed, crashes = int(seed) if seed else random.getrandbits(32), int(crashes)
    print(f"power_test.py {worker} {recorder} {crashes} {seed}", flush=True)
    dice, complaints = random.Random(seed), []
    with tempfile.TemporaryDirectory(prefix="store-power-") as name:
        folder = pathlib.Path(name)
        for limit_ms in (700, 5000, 40000):  # a loaded machine needs longer for some changes
            trace = trace_of(worker, recorder, folder / str(limit_ms), seed, limit_ms)
            if sum(is_success(data) for kind, _, _, data in trace if kind == "B") >= CHANGES:
                break
        points = set(dice.sample(range(len(trace)), min(crashes, len(trace))))
        disks, lines = {"D": Disk(), "W": Disk()}, []
        for number, (kind, file, position, data) in enumerate(trace):
            if kind == "B":
                lines.append(data.decode())
            elif kind == "S":
                disks[file].sync()
            else:
                disks[file].pending.append((kind, position, data))
            if number in points:
                found = crash(folder, number, disks, lines, dice)
                complaints += [f"after {number} records: {complaint}" for complaint in found[:3]]
    print(f"{len(points)} crashes among {len(trace)} records of {limit_ms} ms")
    if sum(is_success(line.encode()) for line in lines) < CHANGES:
        complaints.append("hardly anything was changed")
    return book.report(complaints)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
