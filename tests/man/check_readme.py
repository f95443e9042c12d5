#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares README.md with the tree, and its programs with their description.

Usage: check_readme.py text ROOT                  its links, and the names in it
       check_readme.py program README NAME FILE   writes a program of it, built by cc NAME.c
       check_readme.py run README NAME PROGRAM    does the program print what README shows?
       check_readme.py parts README FILE          writes the parts of its server
       check_readme.py small SOURCE FILE          writes examples/idle_server.c with a small array
       check_readme.py server PROGRAM             does it echo, and close only silent connections?
       check_readme.py stopped PROGRAM            and nobody after it was stopped?

Prints complaints, and exits with status 1 if there are any; with 77 if the kernel refuses
io_uring to a program.
"""

import os
import pathlib
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the sources may be read-only, or be copied just now
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "examples"))
from skip_without_uring import check_uring  # pylint: disable=wrong-import-position
from check_man import run_command  # pylint: disable=wrong-import-position

# Matches the name of a call or a constant, but not the name of a manual page.
NAME = r"\b(?:timerhub|TIMERHUB)_\w+\b(?!\(\d\)|\.\d)"
SILENT = 2  # seconds of silence after which the server hangs up
ARRIVES = 60  # seconds within which what must come at all has come


def programs(text):
    """name -> (program, the command that builds it, its output or None), of whole programs."""
    found = re.findall(r"^```c\n((?:(?!```).*\n)+)```\n+"
                       r"Built by `(cc [^`]*?(\w+)\.c [^`]*)`[^`]*?\n"
                       r"(?:\n?```\n((?:(?!```).*\n)+)```\n)?", text, re.MULTILINE)
    return {name: (program, command, printed or None)
            for program, command, name, printed in found}


def parts(text):
    """Returns the parts of the README's server: all blocks of the chapter, in order."""
    chapter = re.search(r"^## One event loop\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^```c\n(.*?)^```\n", chapter, re.MULTILINE | re.DOTALL)


def program_of(readme, name):
    return programs(readme.read_text(encoding="utf-8"))[name]


def emulated(program):
    return [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), str(program.resolve())]


# ---- text ----


def check_text(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    complaints = [f"README.md: {target} leads nowhere"
                  for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
                  if not (root / target).exists()]
    if len(programs(text)) + len(parts(text)) != text.count("```c\n"):
        complaints.append(f"README.md: programs {sorted(programs(text))}, {len(parts(text))} parts "
                          "of the server, and others with no name")
    headers = "".join(path.read_text(encoding="utf-8") for path in (root / "include").iterdir())
    complaints += [f"README.md: {name} is in no header"
                   for name in sorted(set(re.findall(NAME, text)))
                   if not re.search(rf"\b{name}\b", headers) and
                   not list((root / "include").glob(f"{name}.h*"))]
    drawn = subprocess.run([sys.executable, root / "tools/bench/bars.py"], check=True,
                           capture_output=True, text=True).stdout
    picture = root / "tools/bench/server_message.svg"
    if drawn != picture.read_text(encoding="utf-8"):
        complaints.append(f"{picture}: the table has changed: tools/bench/bars.py > {picture.name}")
    return complaints


# ---- program, parts, small, run ----


def write_program(readme, name, target):
    target.write_text(program_of(readme, name.name)[0], encoding="utf-8")
    return []


def write_parts(readme, target):
    target.write_text("\n".join(parts(readme.read_text(encoding="utf-8"))), encoding="utf-8")
    return []


def write_small(source, target):
    """Makes the server's array so small that 64 arrays do not hold the clients of stop()."""
    text = source.read_text(encoding="utf-8")
    target.write_text(text.replace("BATCH = 64 ", "BATCH = 2 "), encoding="utf-8")
    return [] if "BATCH = 64 " in text else [f"{source}: no array of 64 events"]


def check_run(readme, name, program):
    wanted = program_of(readme, name.name)[2]
    done = subprocess.run(emulated(program), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=ARRIVES, check=False)
    check_uring(done.returncode, done.stderr)
    if done.returncode != 0 or done.stdout != wanted:
        return [f"{name} ended with {done.returncode} and printed", done.stdout, "not", wanted,
                done.stderr]
    return []


# ---- server, stopped ----


def exchange(client, message):
    """The server's reply; empty if it has closed the connection."""
    try:
        client.sendall(message)
        return client.recv(100)
    except ConnectionError:
        return b""


def talk(port, messages):
    """Sends the messages, a second apart, and waits for the end. Returns complaints."""
    heard = time.monotonic()  # no later than by the server's clock
    with socket.create_connection(("127.0.0.1", port), timeout=ARRIVES) as client:
        for message in messages:
            sent = time.monotonic()
            echo = exchange(client, message)
            if not echo:
                break
            if echo != message:
                return [f"{message} came back as {echo}"]
            heard = sent
            time.sleep(1)
        else:
            rest = client.recv(100)
            if rest:
                return [f"{rest} came from nowhere"]
        silent = time.monotonic() - heard
    return [] if silent >= SILENT else [f"it hung up after {silent:.3f} s of silence"]


def answer(client):
    try:
        return client.recv(3)
    except ConnectionResetError:  # the server left data unread
        return b"reset"


def stop(server, port):
    """Data comes, and every timeout passes, while the server is stopped: it serves the data."""
    clients = [socket.create_connection(("127.0.0.1", port), timeout=ARRIVES)
               for _ in range(200)]
    for client in clients:
        exchange(client, b"one")
    stat = pathlib.Path(f"/proc/{server.pid}/stat")
    while stat.read_text("utf-8").rsplit(") ", 1)[1][0] != "S":  # until it waits
        time.sleep(0.001)
    os.kill(server.pid, signal.SIGSTOP)
    closed, _, _ = select.select(clients, [], [], 0)  # before the stop, if this process was slow
    clients = [client for client in clients if client not in closed]
    for client in clients:
        client.sendall(b"two")
    time.sleep(SILENT + 0.1)
    os.kill(server.pid, signal.SIGCONT)
    wrong = [said for said in map(answer, clients) if said != b"two"]
    if wrong or not clients:
        return [f"after a stop, {len(wrong)} of {len(clients)} clients were told {wrong[:1]}"]
    return []


def check_server(program, is_stopped=False):
    """The server keeps a connection that was silent for one second, and closes it after SILENT
    seconds. This is tested with two clients; with `is_stopped`, the second is 200 at once."""
    with subprocess.Popen(emulated(program), stderr=subprocess.PIPE, text=True) as server:
        try:
            line = server.stderr.readline()
            port = re.fullmatch(r"try: nc localhost (\d+) \(Debian: netcat-openbsd\)\n", line)
            if not port:
                return [f"it says {line}"]
            complaints = talk(int(port[1]), [b"one", b"two"])
            complaints += stop(server, int(port[1])) if is_stopped else \
                talk(int(port[1]), [b"three"])
            if server.poll() is not None:
                complaints.append(f"it has ended with {server.returncode}")
        finally:
            server.kill()
    return complaints


COMMANDS = {"text": (1, check_text), "program": (3, write_program), "run": (3, check_run),
            "parts": (2, write_parts), "small": (2, write_small), "server": (1, check_server),
            "stopped": (1, lambda program: check_server(program, True))}


if __name__ == "__main__":
    sys.exit(run_command(COMMANDS, __doc__, sys.argv[1:]))
