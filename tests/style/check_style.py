#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the rules of CONTRIBUTING.md that a program can check.

Usage: check_style.py ROOT [LIBRARY...]

Prints one line per complaint, "path:line: complaint", and exits with status 1 if there is any.
Which folder of lib/ may include which is read from the table in lib/README.md. The symbols of a
library are looked at if it is named.
"""

import graphlib
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = ("lib", "include", "examples", "tools", "tests", ".ci")
COLUMNS = 100
FUNCTION_LINES = 70
CLANG_FORMAT = 14

# For each header of another library or of the system: the files of lib/ that may include it.
HOMES = {
    "hiredis/hiredis.h": {"relay/wire.c"},
    "liburing.h": {"owner/sleeper_uring.c"},
    "linux/futex.h": {"base/futex.c"},
    "netdb.h": {"relay/wire.c"},
    "openssl/err.h": {"relay/tls.c"},
    "openssl/ssl.h": {"relay/tls.c"},
    "openssl/x509v3.h": {"relay/tls.c"},
    "pthread.h": {"board/counter_board.c", "base/cancellation.h", "base/lock.h", "base/thread.h",
                  "owner/owner.h", "owner/owner_thread.c"},
    "sched.h": {"base/cpu.c", "owner/owner_thread.c"},
    "stdatomic.h": {"base/atomic.h", "base/eventcount.h"},
    "sys/eventfd.h": {"base/bell.c"},
    "sys/mman.h": {"base/memory.c", "base/fork_check.c"},
    "sys/sdt.h": {"base/probe.h"},
    "sys/socket.h": {"relay/wire.c"},
    "sqlite3.h": {"store/sql.h"},
    "sys/timerfd.h": {"base/deadline_fd.c"},
    "time.h": {"base/clock.h"},
    "timerhub.h": {"board/counter_board.h", "board/slow_table.h", "board/thread_cell.h",
                   "base/clock.c", "base/histogram.h", "hub/hub.h", "loop/wake.h",
                   "metrics/stats_text.h", "relay/sleeper.c"},
    "timerhub_loop.h": {"base/thread_self.h", "loop/loop.h", "loop/timeout_table.h"},
    "timerhub_store.h": {"store/store.h"},
    "timerhub_relay.h": {"relay/check.h", "relay/delivery_table.h", "relay/shared.h"},
}

# The exceptions to FORBIDDEN_IN_LIB. Each file may contain one forbidden word.
ALLOWED = {"lib/base/lock.h": "pthread_mutex"}
LOCK, LOCKING = "base/lock.h", ("relay", "store")  # the core takes no lock

FORBIDDEN_IN_LIB = {
    r"\batomic_thread_fence\b": "a free-standing fence: ThreadSanitizer does not see it",
    r"\bpthread_(mutex|cond|rwlock|spin|barrier)": "a lock",
    r"\b(mtx|cnd)_": "a lock",
    r"\b(printf|fprintf|perror|puts)\(": "the library never prints",
    r"\b(exit|_exit|abort)\(": "the library never ends the process by itself",
}

# Calls that make a descriptor, and the macros in which they must stand. io_uring_queue_init()
# returns no descriptor, and is at home in owner/sleeper_uring.c alone.
MAKES_DESCRIPTOR = re.compile(
    r"(?<![\w>.])(?:open|openat|openat2|creat|eventfd|timerfd_create|memfd_create|memfd_secret|"
    r"socket|socketpair|accept4?|pipe2?|dup[23]?|epoll_create1?|inotify_init1?|signalfd|pidfd_open|"
    r"fopen|fdopen|opendir|mkstemp|mkostemp|tmpfile|popen)\(")
DESCRIPTOR_MACROS = re.compile(r"\bDESCRIPTOR(?:_ABOVE_STDIO|_BEHIND|S_FILL)\(")

# The file name of a test program. The folder's meson.build may list the whole name, or only the
# part in parentheses.
TEST_PROGRAM = re.compile(r"(?:test|fuzz)_(\w+)\.(?:c|cc|py|sh)|\w+_test\.(?:py|sh)")

LABEL = re.compile(r"(?<![\w)\]])\[[a-z][a-z-]*\]")  # not an index
CHANGES = r"(?:cas|exchange|fetch_(?:add|or))"
RELEASES = re.compile(rf"_(store|{CHANGES})_(release|acq_rel|seq_cst)\(")
ACQUIRES = re.compile(rf"_(load|{CHANGES})_(acquire|acq_rel|seq_cst)\(")
PUBLIC = re.compile(r"^TIMERHUB_API\b[^(]*?\b(timerhub_\w+)\(", re.MULTILINE)


class Library:
    def __init__(self, folder, *names):
        self.headers = [f"include/{name}.h" for name in names]
        self.map = f"{folder}/{names[0]}.map"


LIBRARIES = (Library("lib", "timerhub", "timerhub_loop"),
             Library("lib/store", "timerhub_store"),
             Library("lib/relay", "timerhub_relay"))


class Source:
    def __init__(self, root, path):
        self.path = path
        self.name = path.name
        self.lines = (root / path).read_text(encoding="utf-8").splitlines()

    def at(self, index, what):
        return f"{self.path}:{index + 1}: {what}"

    @property
    def is_c(self):
        return self.path.suffix in (".c", ".h", ".cc", ".hpp")


def is_source(path):
    if path.suffix in (".c", ".h", ".cc", ".hpp", ".py", ".sh"):
        return True
    if path.name == "meson.build":
        return True
    if path.suffix or path.name.startswith("."):
        return False
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def read_sources(root):
    paths = [root / "meson.build"]
    for folder in FOLDERS:
        paths += sorted((root / folder).rglob("*"))
    return [Source(root, path.relative_to(root)) for path in paths
            if path.is_file() and "__pycache__" not in path.parts and is_source(path)]


def in_lib(sources):
    return [source for source in sources if source.path.parts[0] == "lib" and source.is_c]


# ---- includes ----


def read_folders(root):
    """The table of lib/README.md: folder of lib/ -> the folders that it may include."""
    readme = root / "lib/README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    rows = re.findall(r"^\| `(\w+)/` \|([^|]*)\|", text, re.MULTILINE)
    return {folder: {folder, *re.findall(r"`(\w+)/`", uses)} for folder, uses in rows}


def includes_of(source):
    """(index, form, name) of each include: form is < or a quotation mark."""
    for index, line in enumerate(source.lines):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield index, match[1], match[2]


def check_include(source, index, name, folders):
    folder, mine = name.partition("/")[0], source.path.parent.name
    if folder in folders.get(mine, ()) and (name != LOCK or mine in LOCKING):
        return []
    return [source.at(index, f"includes {name}: {mine}/ may not, by lib/README.md")]


def check_includes(root, sources):
    """A folder includes only folders that lib/README.md permits. Each foreign header has its
    home."""
    folders = read_folders(root)
    complaints = [] if folders else ["lib/README.md: no table of folders"]
    for source in in_lib(sources):
        path = source.path.relative_to("lib").as_posix()
        for index, form, name in includes_of(source):
            if form == '"':
                complaints += check_include(source, index, name, folders)
            elif path not in HOMES.get(name, {path}):
                homes = ", ".join(sorted(HOMES[name]))
                complaints.append(source.at(index, f"{name} is at home in {homes}"))
    return complaints


def check_circles(sources):
    """Modules, a .c file and its .h, include each other in no circle."""
    modules = {}
    for source in in_lib(sources):
        module = source.path.relative_to("lib").with_suffix("").as_posix()
        used = {name[:-2] for _, form, name in includes_of(source) if form == '"'}
        modules.setdefault(module, set()).update(used - {module})
    try:
        graphlib.TopologicalSorter(modules).prepare()
    except graphlib.CycleError as error:
        return ["lib: a circle of includes: " + " -> ".join(reversed(error.args[1]))]
    return []


# ---- the interface ----


def header_functions(root, library):
    return [name for header in library.headers
            for name in PUBLIC.findall((root / header).read_text(encoding="utf-8"))]


def map_symbols(root, library):
    """Returns the symbols of the library's version script. Each release has a node in it."""
    text = (root / library.map).read_text(encoding="utf-8")
    nodes = re.findall(r"global:(.*?)(?:local:|\})", text, re.DOTALL)
    return [name for node in nodes for name in re.findall(r"(\w+);", node)]


def library_symbols(library):
    """Returns the symbols that can clash with a program's: in an archive also the hidden ones."""
    which = "-g" if library.endswith(".a") else "-D"
    output = subprocess.run(["nm", which, "--defined-only", library], check=True,
                            capture_output=True, text=True).stdout
    words = [line.split() for line in output.splitlines()]
    # A is the version itself, V and W are weak names that the compiler and sys/sdt.h make.
    return [line[2].split("@")[0] for line in words if len(line) == 3 and line[1] not in "AVW"]


def compare(what, names, wanted, header="include/timerhub.h"):
    complaints = [f"{what}: {name} is missing" for name in sorted(set(wanted) - set(names))]
    complaints += [f"{what}: {name} is not in {header}"
                   for name in sorted(set(names) - set(wanted))]
    return complaints


def check_symbols(root, library, built_libraries):
    """The header declares, the map lists, and the library exports the same functions."""
    wanted = header_functions(root, library)
    complaints = compare(library.map, map_symbols(root, library), wanted, library.headers[0])
    stem = "lib" + pathlib.Path(library.map).stem.replace("_", "-")
    for built in built_libraries:
        name = pathlib.Path(built).name
        if name.startswith((f"{stem}.so", f"{stem}.a")):
            complaints += compare(name, library_symbols(built), wanted, library.headers[0])
    return complaints


# ---- memory order ----


def comments_of(source):
    """Returns (index, text) of every comment line: those of the file's overview, and all others."""
    overview, rest, inside = [], [], False
    code_begins = next((i for i, line in enumerate(source.lines) if line.startswith("#")), 0)
    for index, line in enumerate(source.lines):
        text = ""
        while line:
            if inside:
                end = line.find("*/")
                text += line if end < 0 else line[:end]
                line, inside = ("", True) if end < 0 else (line[end + 2:], False)
            else:
                begin = line.find("/*")
                line, inside = ("", False) if begin < 0 else (line[begin + 2:], True)
        (overview if index < code_begins else rest).append((index, text))
    return overview, rest


def listed_labels(overview):
    """The labels that stand first on a line from "Labels:" on."""
    labels, listing = set(), False
    for _, text in overview:
        listing |= "Labels:" in text
        match = re.match(r"[\s*]*(?:Labels:)?\s*(\[[a-z][a-z-]*\])", text)
        if listing and match:
            labels.add(match[1])
    return labels


def ends_at(source, index):
    """Returns two numbers, 0 or 1: whether a release, and whether an acquire, follows a label."""
    window = source.lines[index:index + 4]
    for line in window:
        release, acquire = RELEASES.search(line), ACQUIRES.search(line)
        if release or acquire:
            return (1 if release else 0), (1 if acquire else 0)
    return 0, 0


def check_labels(sources):
    """A label names one edge: both its ends are marked, and an overview lists it."""
    listed, seen = {}, {}
    for source in in_lib(sources):
        overview, rest = comments_of(source)
        for label in listed_labels(overview):
            listed.setdefault(label, source)
        for index, text in rest:
            for label in LABEL.findall(text):
                seen.setdefault(label, []).append((source, index))
    complaints = []
    for label, places in sorted(seen.items()):
        source, index = places[0]
        if label not in listed:
            complaints.append(source.at(index, f"{label} is in no overview's list of labels"))
        ends = [ends_at(*place) for place in places]
        if len(places) < 2 or not any(end[0] for end in ends) or not any(end[1] for end in ends):
            complaints.append(source.at(index, f"{label} has only one end"))
    for label in sorted(set(listed) - set(seen)):
        complaints.append(listed[label].at(0, f"{label} is listed, and used nowhere"))
    return complaints


def check_forbidden(sources):
    complaints = []
    for source in in_lib(sources):
        comments = dict(comments_of(source)[0] + comments_of(source)[1])
        for index, line in enumerate(source.lines):
            for pattern, why in FORBIDDEN_IN_LIB.items():
                match = re.search(pattern, line)
                if match and match[0] == ALLOWED.get(source.path.as_posix()):
                    continue
                if match and match[0] not in comments[index]:
                    complaints.append(source.at(index, f"{match[0]}: {why}"))
    return complaints


def without_comments(source):
    return re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"),
                  "\n".join(source.lines), flags=re.DOTALL)


def inside_parentheses(text, begin):
    """`begin` is the index behind a "(". Returns the index behind the ")" that closes it."""
    depth = 1
    while depth > 0:
        depth += {"(": 1, ")": -1}.get(text[begin], 0)
        begin += 1
    return begin


def check_descriptors(sources):
    """No descriptor of the libraries is 0, 1 or 2."""
    complaints = []
    for source in in_lib(sources):
        text = without_comments(source)
        inside = [range(macro.end(), inside_parentheses(text, macro.end()))
                  for macro in DESCRIPTOR_MACROS.finditer(text)]
        for call in MAKES_DESCRIPTOR.finditer(text):
            if not any(call.start() in arguments for arguments in inside):
                complaints.append(source.at(text.count("\n", 0, call.start()),
                                            f"{call[0]}) may return 0, 1 or 2: see "
                                            "base/descriptor.h"))
    return complaints


# ---- tests ----


def check_programs_built(sources):
    """Each test program is in the meson.build of its folder, or in another if its folder has none.
    The entry is the file, or the particular part of its name."""
    builds = {source.path.parent: "\n".join(source.lines) for source in sources
              if source.name == "meson.build"}
    complaints = []
    for source in sources:
        match = TEST_PROGRAM.fullmatch(source.name)
        if not match or source.path.parts[0] != "tests":
            continue
        build = builds.get(source.path.parent, "\n".join(builds.values()))
        names = "|".join(map(re.escape, filter(None, (source.name, match[1]))))
        if not re.search(rf"['/](?:{names})'", build):
            complaints.append(source.at(0, "is in no meson.build"))
    return complaints


def check_invariants(root, sources):
    """lib/README.md names each line of hub_check()."""
    readme = root / "lib/README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    return [source.at(index, f"{match[1]} is not in lib/README.md")
            for source in sources if re.fullmatch(r"\w+_check\.c", source.name)
            for index, line in enumerate(source.lines)
            if (match := re.match(r"\s*LINE\((\w+)", line)) and f"`{match[1]}`" not in text]


# ---- shape ----


def is_scope(line):
    """Does this line head a class or a namespace, which may be as long as it needs?"""
    line = re.sub(r"^template <.*?> (?=class|struct|union)", "", line.strip())
    return re.match(r"(class|struct|union|enum|namespace)\b[^()]*$", line) is not None


def check_functions(sources):
    """A function begins with a brace on a line of its own and ends with another below it."""
    complaints = []
    for source in sources:
        begins = {}  # by indentation: in C++ functions are inside classes
        for index, line in enumerate(source.lines if source.is_c else []):
            indent = line[:len(line) - len(line.lstrip())]
            begin = begins.get(indent)
            if line.strip() == "{" and not is_scope(source.lines[index - 1]):
                begins[indent] = index
            elif line[len(indent):].startswith("}") and begin is not None:
                # The line with the function's name counts as a line of the function too.
                if index - begin + 2 >= FUNCTION_LINES:
                    complaints.append(source.at(begin, f"a function of {index - begin + 2} lines"))
                begins[indent] = None
    return complaints


def check_lines(sources):
    # The pattern matches marks of unfinished work. Each mark is written in two halves, so that this
    # file does not contain the mark.
    unfinished = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    complaints = []
    for source in sources:
        for index, line in enumerate(source.lines):
            columns = len(line.expandtabs(8))
            if columns > COLUMNS:
                complaints.append(source.at(index, f"{columns} columns"))
            if line != line.rstrip():
                complaints.append(source.at(index, "blanks at the end"))
            if unfinished.search(line):
                complaints.append(source.at(index, "unfinished"))
    return complaints


def check_licence(sources):
    complaints = []
    for source in sources:
        first = source.lines[0] if source.lines else ""
        if first.startswith("#!"):
            first = source.lines[1] if len(source.lines) > 1 else ""
        if not re.search(r"SPDX-License-Identifier: MIT( \*/| -->)?$", first.strip()):
            complaints.append(source.at(0, "does not begin with an SPDX line"))
    return complaints


def clang_format():
    for name in (f"clang-format-{CLANG_FORMAT}", "clang-format"):
        path = shutil.which(name)
        if path:
            output = subprocess.run([path, "--version"], capture_output=True, text=True,
                                    check=True).stdout
            if f"version {CLANG_FORMAT}." in output:
                return path
    return None


def check_format(root, sources, program):
    paths = [str(source.path) for source in sources if source.is_c]
    if not program or not paths:
        return []
    output = subprocess.run([program, "--dry-run", "--ferror-limit=1", *paths], cwd=root,
                            capture_output=True, text=True, check=False).stderr
    complaints = re.findall(r"^(\S+?:\d+):\d+: \w+: (code should be clang-formatted)", output,
                            re.MULTILINE)
    return [f"{place}: {what}" for place, what in complaints]


def check_all(root, sources, built_libraries=()):
    complaints = []
    for library in LIBRARIES:
        complaints += check_symbols(root, library, built_libraries)
    complaints += check_includes(root, sources)
    complaints += check_circles(sources)
    complaints += check_labels(sources)
    complaints += check_invariants(root, sources)
    complaints += check_forbidden(sources)
    complaints += check_descriptors(sources)
    complaints += check_programs_built(sources)
    complaints += check_functions(sources)
    complaints += check_lines(sources)
    complaints += check_licence(sources)
    return complaints


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[1])
    sources = read_sources(root)
    complaints = check_all(root, sources, arguments[2:])
    complaints += check_format(root, sources, clang_format())
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
