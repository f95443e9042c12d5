#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads journals only by the description of their bytes in timerhub-journal(5).

Usage: format_page_test.py PAGE SCRIBE

PAGE is the manual page. SCRIBE is the program of sample_journals.c, which writes journals and
prints their records. The tables of the page have the offset of each field, and must leave no byte
out. The records that the test reads must be equal to the records that the program prints.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HEADER_BYTES, RECORD_BYTES, MARK_BYTES, ALIGN = 64, 56, 24, 8
MORE, PARKED, PERIODIC = 1, 2, 4


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def read_table(text, columns):
    """Returns the fields of one table as field -> (offset, bytes). Each byte must belong to one
    field."""
    fields = {name: (int(offset), int(count)) for offset, count, name in
              re.findall(r"^\.It (\d+) Ta (\d+) Ta (\w+) Ta ", text, re.MULTILINE)}
    at = 0
    for name, (offset, count) in fields.items():
        expect(offset == at, f"{name} is at {offset}, not {at}")
        at += count
    expect(at == columns, f"the table ends at {at}, not {columns}")
    return fields


def read_page(path):
    text = path.read_text(encoding="utf-8")
    parts = dict(re.findall(r"^\.Ss ([^\n]*)\n(.*?)(?=^\.S[sh] )", text,
                            re.MULTILINE | re.DOTALL))
    records = parts["Records"]
    types = re.findall(r"^\.It (\d+) Ta ([a-z]+) Ta ([a-z, ]*?) ?Ta ", records, re.MULTILINE)
    expect([int(number) for number, _, _ in types] == list(range(1, 12)), f"types {types}")
    return (read_table(parts["Header of a segment"], HEADER_BYTES),
            read_table(records, RECORD_BYTES), read_table(parts["Mark"], MARK_BYTES),
            {int(number): (name, set(re.split(", ", has)) - {""}) for number, name, has in types})


def crc32c(crc, data):
    crc ^= 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)  # the reflected polynomial of CRC-32C
    return crc ^ 0xffffffff


def decode(data, fields):
    return {name: int.from_bytes(data[offset:offset + count], "little")
            for name, (offset, count) in fields.items()}


def read_header(data, fields, path):
    header = decode(data, fields)
    expect(data[:8] == b"thubjnl\n", "magic")
    expect(header["crc"] == crc32c(crc32c(0, data[:8]), data[12:64]), "crc of a header")
    expect(header["version"] == 2 and header["unused"] == 0, header)
    expect(f"{header['number']:016x}.seg" == path.name, header)
    return header


def read_record(data, page, salt):
    """Returns the record at the beginning of data, with the name of its type, and the record's
    length."""
    _, fields, _, types = page
    record = decode(data, fields)
    flags = record["flags"]
    key_at = RECORD_BYTES + (8 if flags & PERIODIC else 0)
    data_at = key_at + record["key_len"]
    end = data_at + record["data_len"]
    length = -(-end // ALIGN) * ALIGN
    expect(len(data) >= length, "a record goes beyond its file")
    expect(record["crc"] == crc32c(salt, data[4:RECORD_BYTES]), "crc of a record")
    expect(record["body_crc"] == crc32c(0, data[RECORD_BYTES:end]), "crc of a body")
    expect(record["unused"] == 0 and flags < 8, record)
    record["interval"] = int.from_bytes(data[RECORD_BYTES:key_at], "little")
    record["key"] = data[key_at:data_at].decode() or "-"
    record["more"] = flags & MORE
    expect(not any(data[end:length]), "not padded with zeros")
    expect(record["stable"] < record["sequence"], record)
    record["name"], has = types[record["type"]]
    named = {"id": "id" in has, "due": "due" in has, "attempts": "attempts" in has,
             "reason": "reason" in has, "key_len": "key" in has, "interval": "interval" in has,
             "data_len": "data" in has}
    expect(record["name"] == "copy" or not flags & PARKED, record)
    for field, may in named.items():
        expect(may or record[field] == 0, f"{record['name']} has {field}: {record}")
    return record, length


def read_journal(folder, page):
    """Returns all records of the journal in order, and the number of zeros ahead."""
    records, ids, ahead = [], 0, 0
    paths = sorted(pathlib.Path(folder).glob("*.seg"))
    for path in paths:
        data = path.read_bytes()
        header = read_header(data[:HEADER_BYTES], page[0], path)
        expect(header["oldest"] <= header["number"] and header["next_id"] > ids, header)
        at, sequence = HEADER_BYTES, header["first_sequence"]
        expect(not records or sequence == records[-1]["sequence"] + 1, "sequence of segments")
        while at < len(data) and (any(data[at:]) or path != paths[-1]):
            record, length = read_record(data[at:], page, header["salt"])
            expect(record["sequence"] == sequence, "sequence of records")
            records.append(record)
            sequence, at = sequence + 1, at + length
            if record["name"] != "drop":
                ids = max(ids, record["id"])
        ahead = len(data) - at
    return records, ahead


def read_mark(folder, page):
    data = pathlib.Path(folder, "begun").read_bytes()
    expect(len(data) == MARK_BYTES, f"a mark of {len(data)} bytes")
    mark = decode(data, page[2])
    expect(data[:8] == b"thubmark" and mark["crc"] == crc32c(0, data[:16]), mark)
    expect(mark["unused"] == 0, mark)
    return mark["sequence"]


def said(record):
    return " ".join(str(record[field]) for field in ("name", "id", "due", "attempts", "data_len",
                                                     "reason", "interval", "key", "more"))


def main(arguments):
    page = read_page(pathlib.Path(arguments[1]))
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        done = subprocess.run([arguments[2], first, second], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=100)
        lines = done.stdout.splitlines()
        end = lines.index("close 0 0 0 0 0 0 - 0") + 1
        records, ahead = read_journal(first, page)
        expect(ahead == 0, f"closed with {ahead} bytes at its end")
        expect([said(record) for record in records] == lines[:end],
               f"{[said(record) for record in records]} is not {lines[:end]}")
        expect(read_mark(first, page) == records[-1]["sequence"], "the mark of a closed journal")
        expect({record["type"] for record in records} == set(range(1, 12)) - {7, 9}, "types")
        expect(records[0]["sequence"] == 1 and records[0]["id"] == 1, records[0])
        records, ahead = read_journal(second, page)
        expect(ahead > 0, "open without zeros ahead")
        expect(lines[-1].startswith("copy ") and lines[-1] in map(said, records),
               f"{lines[-1]} is not there")
        dropped = max(record["id"] for record in records if record["name"] == "drop")
        expect(dropped == int(min(pathlib.Path(second).glob("*.seg")).stem, 16), dropped)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
