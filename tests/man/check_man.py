#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the manual pages to the library.

Usage: check_man.py pages SOURCE-ROOT          symbols and constants have pages, these their parts
       check_man.py lint FOLDER                mandoc has nothing to warn of
       check_man.py program PAGE FILE          writes the program of a page's EXAMPLES into FILE
       check_man.py run PAGE PROGRAM           runs that program: does it print what the page says?
       check_man.py run-again PROGRAM          and a second time, with its id refused for a minute?
       check_man.py run-watched PAGE PROGRAM TOOL  does timerhub-top show of it what the page says?
       check_man.py orders PAGE FILE          writes the functions of timerhub_loop_settle(3)
       check_man.py second-program, second-run the same for the second program of timerhub_hpp(7)
       check_man.py run-python, run-rust, run-go PAGE LIBRARY  compiles and runs that program of
                                               timerhub-ffi(7) with the built library
       check_man.py declarations PAGE          its command prints what parsers of C understand

Prints complaints, and exits with status 1 if there are any; with 77 if the kernel refuses
io_uring to the program of a page.
"""

import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "examples"))
from skip_without_uring import check_uring  # pylint: disable=wrong-import-position
from verdict import SKIPPED, Skipped  # pylint: disable=wrong-import-position

# The sections of a call's page, in their order. NOTES may stand between them.
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUES", "EXAMPLES", "ERRORS",
            "ATTRIBUTES", "SEE ALSO"]
MT_SAFETY, AS_SAFETY = "MT-Safe|MT-Unsafe", "AS-Safe|AS-Unsafe|as the"
# For each overview page: the sections that it must have, the section with its numbered list, and
# the number of entries in that list.
OVERVIEWS = {
    "timerhub.7": (["DESCRIPTION", "MODEL", "LAWS", "THREADS", "SIGNALS", "FORK", "LIMITS",
                    "MEMORY", "CONTAINERS", "ERROR CODES"], "LAWS", 13),
    "timerhub-relay.7": (["DESCRIPTION", "PROMISES", "GUARANTEES", "THREADS", "FORK", "MEMORY",
                          "NETWORK"], "PROMISES", 7),
    "timerhub-platforms.7": (["PLATFORMS", "VERSIONS", "STABLE PARTS", "DEPRECATION",
                              "THE ROAD TO 1.0"], "DEPRECATION", 3),
}
COLUMNS, COMMAND_COLUMNS = 80, 67  # a command stands behind the indents of its page and of itself
MAIN = r"(?m)int main\(|^(async def|fn|func) main\("
# The page about debugging tools and error numbers, and the sections that the page must have.
DEBUGGING = "timerhub-debugging.7"
DEBUGGING_TOPICS = ["VALGRIND", "THREADSANITIZER", "GDB", "TIMERHUB-TOP", "PROBES", "ERRNO"]
# The header for C++, and the manual page that describes it.
CPP_HEADER, CPP_PAGE = "include/timerhub.hpp", "timerhub_hpp.7"
CPP_CLASSES = "hub|queue|timer|loop|timeout_base|timeout"
# The page with a program each in other languages: which one, its file, and how it is run.
FFI_PAGE = "timerhub-ffi.7"
# Runs the program in Python again with all timers due at once, where the first call raises.
FFI_RAISES = r"""
program = open("program.py").read()
program = program.replace("    timers.", "    timers.after(0, lambda: 1 / 0)\n    timers.", 1)
exec(program.replace("    await done", "    __import__('time').sleep(0.05)\n    await done"))
"""
FFI_PROGRAMS = {
    "python": (0, "program.py", [[sys.executable, "program.py"],
                                 [sys.executable, "-c", FFI_RAISES]]),
    "rust": (1, "program.rs", [["rustc", "--edition", "2021", "-D", "warnings", "program.rs"],
                               ["./program"]]),
    "go": (2, "program.go", [["go", "build", "program.go"], ["./program"]]),
}
# The programs of a page, if it has more than one.
PROGRAMS = {CPP_PAGE: 2, FFI_PAGE: 3}
CPP_SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "METHODS", "WHO MAY FREE WHEN", "THREADS",
                "EXAMPLES", "ERROR CODES", "SEE ALSO"]
# The pages with the errors that the calls of a library share.
COMMON_ERRORS = ["timerhub.7", "timerhub-relay.7", "timerhub-store.7"]
MAPS = ["lib/timerhub.map", "lib/relay/timerhub_relay.map",
        "lib/store/timerhub_store.map"]
HEADERS = ["include/timerhub.h", "include/timerhub_loop.h",
           "include/timerhub_relay.h", "include/timerhub_store.h"]
# The header for io_uring. No linker's map lists its functions, because they are inline.
INLINE_HEADER = "include/timerhub_uring.h"
# Structs that give their name to a page, because the page describes several calls on the struct.
STRUCTS = ["timerhub_loop"]


def section(text, name):
    match = re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def titles_of(text):
    return re.findall(r"^\.Nm (\w+)", section(text, "NAME"), re.MULTILINE)


def names_of(text):
    return [name for name in titles_of(text) if name not in STRUCTS]


def plain(text):
    for escape, character in ((r"\-", "-"), (r"\(aq", "'"), (r"\&", ""), (r"\e", "\\")):
        text = text.replace(escape, character)
    return text


def literal_blocks(text):
    """Returns the blocks of EXAMPLES: programs, each with what it prints (a .Dl if that is one
    line), and perhaps other commands."""
    blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed|^The program prints:?\n\.Dl ([^\n]*\n)",
                        section(text, "EXAMPLES"), re.MULTILINE | re.DOTALL)
    return [plain(block or line) for block, line in blocks]


def program_and_output(path, number=0):
    """Returns a program of a page and what it prints. A page has one program, or as many as
    PROGRAMS says. Only commands for a shell may follow."""
    wanted = 2 * PROGRAMS.get(path.name, 1)
    blocks = literal_blocks(path.read_text(encoding="utf-8"))
    pairs = list(zip(blocks[:wanted:2], blocks[1:wanted:2]))
    if len(blocks) < wanted or any(re.search(MAIN, block) for block in blocks[wanted:]) or not all(
            re.search(MAIN, program) and not re.search(MAIN, output) for program, output in pairs):
        raise ValueError(f"{path.name}: EXAMPLES is not one program and what it prints")
    return pairs[number]


# ---- pages ----


def inline_prototypes(root):
    text = (root / INLINE_HEADER).read_text(encoding="utf-8")
    return dict(re.findall(r"^static inline [^(;]*?(\w+)\(([^)]*)\)\n\{", text, re.MULTILINE))


def exported(root):
    """The functions that a program can call. Those that only macros call have no page."""
    text = "".join((root / name).read_text(encoding="utf-8") for name in MAPS)
    return ([name for name in re.findall(r"^\t\t(\w+);", text, re.MULTILINE)
             if not name.endswith("_checked")] + list(inline_prototypes(root)))


def prototypes(root):
    text = "".join((root / name).read_text(encoding="utf-8") for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.findall(r"^TIMERHUB_API\b[^(;]*?\b(\w+)\(([^)]*)\)", text, re.MULTILINE)
    found += inline_prototypes(root).items()
    return {name: [re.sub(r"\s+", " ", part).strip() for part in parameters.split(",")]
            for name, parameters in found}


def constants(root):
    text = (root / "include/timerhub.h").read_text(encoding="utf-8")
    return re.findall(r"^(?:#define |\t)(TIMERHUB_\w+)(?: = | \(|  *[0-9U])", text, re.MULTILINE)


def check_synopsis(page, text, header):
    """The page shows the header's prototypes: a short one on one line, a long one in a list."""
    complaints = []
    synopsis = section(text, "SYNOPSIS")
    calls = re.findall(r"^\.Fo (\w+)\n((?:\.Fa .*\n)*)\.Fc", synopsis, re.MULTILINE)
    shown = {name: re.findall(r'^\.Fa "(.*)"$', arguments, re.MULTILINE)
             for name, arguments in calls}
    shown |= {name: re.findall(r'"([^"]*)"', arguments) for name, arguments in
              re.findall(r'^\.Fn (\w+)((?: "[^"]*")+)$', synopsis, re.MULTILINE)}
    for name in names_of(text):
        if shown.get(name) != header.get(name):
            complaints.append(f"{page}: {name}({shown.get(name)}) is {name}({header.get(name)})")
    return complaints


def check_safety(page, text):
    """The page says of each call whether threads and signal handlers may make it, in a sentence
    about all its calls or in a table, and that no call is a cancellation point
    (tests/service/test_cancellation.c holds the core to it)."""
    attributes, names = section(text, "ATTRIBUTES"), names_of(text)
    every = re.match(rf"(?:The call is|No call on this page is a cancellation point, and all are) "
                     rf"(?:{MT_SAFETY}) and (?:{AS_SAFETY})(, and no cancellation point)?\.\n",
                     attributes)
    if every:
        return [] if bool(every[1]) == (len(names) == 1) else [f"{page}: how many calls has it?"]
    complaints = [f"{page}: ATTRIBUTES does not say that no call is a cancellation point"] \
        if "No call on this page is a cancellation point" not in attributes else []
    return complaints + [
        f"{page}: ATTRIBUTES has no safety of {name}" for name in names
        if not re.search(rf"^\.It Fn {name} Ta (?:{MT_SAFETY})(?: race:\w+)? Ta (?:{AS_SAFETY})",
                         attributes, re.MULTILINE)]


def check_sections_named(path):
    """Finds each .Sx for a section of another page, because it would be a link to nothing."""
    text = path.read_text(encoding="utf-8")
    there = set(re.findall(r"^\.S[hs] (.*)$", text, re.MULTILINE))
    named = re.findall(r"^\.Sx (.*?)(?: [.,;:)]+)*$", text, re.MULTILINE)
    return [f"{path.name}: .Sx {name}: it has no such section" for name in named
            if name.strip('"') not in there]


def check_page(path, header):
    text = path.read_text(encoding="utf-8")
    sections = re.findall(r"^\.Sh (.*)$", text, re.MULTILINE)
    complaints = []
    if [name for name in sections if name != "NOTES"] != SECTIONS:
        complaints.append(f"{path.name}: its sections are {sections}")
    if not names_of(text) or not titles_of(text)[0].startswith(path.stem):
        complaints.append(f"{path.name}: its first name is not {path.stem}")
    complaints += check_synopsis(path.name, text, header) + check_safety(path.name, text)
    try:
        program_and_output(path)
    except ValueError as wrong:
        complaints.append(str(wrong))
    return complaints


def check_overview(path, topics, listing, wanted):
    text = path.read_text(encoding="utf-8")
    complaints = [f"{path.name}: no section {topic}" for topic in topics
                  if not section(text, topic)]
    laws = len(re.findall(r"^\.It$", section(text, listing), re.MULTILINE))
    if laws != wanted:
        complaints.append(f"{path.name}: {laws} {listing}, not {wanted}")
    return complaints


def errors_of(listing):
    items = re.findall(r"^\.It Er (.*)$", listing, re.MULTILINE)
    return set(re.findall(r"\bE[A-Z0-9]+\b", " ".join(items)))


def check_debugging(root, pages):
    """The page has all its topics, and explains exactly the error numbers of the other pages."""
    text = (root / "man" / DEBUGGING).read_text(encoding="utf-8")
    complaints = [f"{DEBUGGING}: no section {topic}" for topic in DEBUGGING_TOPICS
                  if not section(text, topic)]
    told = errors_of(section(text, "ERRNO"))
    returned = set().union(*(errors_of(section(path.read_text(encoding="utf-8"), "ERRORS"))
                             for path in pages),
                           *(errors_of(section((root / "man" / name).read_text(encoding="utf-8"),
                                               "ERROR CODES")) for name in COMMON_ERRORS))
    complaints += [f"{DEBUGGING}: nothing about {name}" for name in sorted(returned - told)]
    complaints += [f"{DEBUGGING}: {name}, which no call returns"
                   for name in sorted(told - returned)]
    return complaints


def methods(root):
    text = (root / CPP_HEADER).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {}
    # The class timeout inherits some methods from timeout_base, and has a second form.
    for name, body in re.findall(rf"^(?:template [^\n]*)?class ({CPP_CLASSES})\b[^\n;]*"
                                 r"\n\{(.*?)^ +(?:private|protected):", text,
                                 re.MULTILINE | re.DOTALL):
        declared = re.findall(r"^\t((?:template <[^>]*>\s+)?(?:[\w:\[\]]+ )+[*&]*\w+\([^;]*?\)"
                              r"(?: const)?)(?: noexcept)?\n\t\{", body, re.MULTILINE)
        plain = [re.sub(r"template <[^>]*> |\[\[nodiscard\]\] |timerhub_cpp::", "",
                        " ".join(one.split())) for one in declared]
        found.setdefault(name.removesuffix("_base"), set()).update(
            one.replace("From &&", "Callable &&") for one in plain)
    return found


def check_cpp(root):
    """The page of the header for C++ declares and describes exactly the public methods."""
    text = (root / "man" / CPP_PAGE).read_text(encoding="utf-8")
    sections, wanted = re.findall(r"^\.Sh (.*)$", text, re.MULTILINE), methods(root)
    names = {name + "::" + re.search(r"(\w+)\(", method)[1]
             for name, declared in wanted.items() for method in declared}
    named = set(re.findall(rf"^\.Fn ((?:{CPP_CLASSES})::\w+)", text, re.MULTILINE))
    complaints = [f"{CPP_PAGE}: {name} is missing" for name in sorted(names - named)]
    complaints += [f"{CPP_PAGE}: there is no {name}" for name in sorted(named - names)]
    shown = {name: {" ".join(one.split()) for one in block.split(";") if one.strip()}
             for name, block in re.findall(r"^\.Ss timerhub::(\w+)\S*\n\.Bd -literal\n(.*?)\n\.Ed",
                                           section(text, "METHODS"), re.MULTILINE | re.DOTALL)}
    for name in sorted(wanted.keys() | shown.keys()):
        here, there = wanted.get(name, set()), shown.get(name, set())
        complaints += [f"{CPP_PAGE}: METHODS lacks {name}: {one}" for one in sorted(here - there)]
        complaints += [f"{CPP_PAGE}: no such method in {name}: {one}"
                       for one in sorted(there - here)]
    if sections != CPP_SECTIONS:
        complaints.append(f"{CPP_PAGE}: its sections are {sections}")
    if not wanted:
        complaints.append(f"{CPP_HEADER}: no methods were found")
    return complaints


def check_guides(folder, listed):
    """Each page of section 7 with a program is listed, so that the program is run."""
    pages = {path.stem for path in folder.glob("timerhub-*.7") if "int main(" in
             section(path.read_text(encoding="utf-8"), "EXAMPLES")}
    lists = re.findall(r"^ *man_guides \+?= (.*)$", listed, re.MULTILINE)
    named = set(re.findall(r"'(timerhub-\w+)'", " ".join(lists)))
    return [f"man/meson.build: guides {sorted(named)}, and {sorted(pages)} have a program"] \
        if named != pages else []


def check_pages(root):
    folder, header = root / "man", prototypes(root)
    pages = {path: names_of(path.read_text(encoding="utf-8"))
             for path in sorted(folder.glob("timerhub_*.3"))}
    named = [name for names in pages.values() for name in names]
    complaints = [f"{name} has no page" for name in sorted(set(exported(root)) - set(named))]
    complaints += [f"{name} has a page, and is not exported"
                   for name in sorted(set(named) - set(exported(root)))]
    complaints += [f"{name} has {named.count(name)} pages" for name in sorted(set(named))
                   if named.count(name) > 1]
    texts = " ".join(path.read_text(encoding="utf-8") for path in pages)
    complaints += [f"{name} is in no page" for name in constants(root)
                   if not re.search(rf"\b{name}\b", texts)]
    for path in pages:
        complaints += check_page(path, header)
    for path in sorted(folder.glob("*.[1-8]")):
        complaints += check_sections_named(path)
    for name, wanted in OVERVIEWS.items():
        complaints += check_overview(folder / name, *wanted)
    complaints += check_debugging(root, pages)
    complaints += check_cpp(root)
    # man/meson.build must list each page with its aliases. An alias is the name of a call that the
    # page describes, and is installed as a link to the page.
    listed = (folder / "meson.build").read_text(encoding="utf-8")
    complaints += check_guides(folder, listed)
    for path, names in pages.items():
        aliases = ", ".join(f"'{name}'" for name in names if name != path.stem)
        if f"  '{path.stem}': [{aliases}],\n" not in listed:
            complaints.append(f"man/meson.build: not '{path.stem}': [{aliases}]")
    return complaints


# ---- lint, program, run ----


def check_lint(folder):
    pages = [str(path) for path in sorted(folder.glob("*.[1-8]"))]
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    complaints = done.stdout.splitlines()
    return (complaints or ([f"mandoc: status {done.returncode}"] if done.returncode else []) +
            [complaint for page in pages for complaint in wide_lines(page)])


def wide_lines(page):
    """Finds lines, commands and tables that are too wide for a terminal. A command that wraps would
    be pasted as two. Only groff, not mandoc, reports such tables."""
    if shutil.which("groff"):
        command = ["groff", "-mandoc", "-Tutf8", "-ww", f"-rLL={COLUMNS - 2}n", "-P-cbou", page]
    else:
        command = ["mandoc", "-Tutf8", f"-Owidth={COLUMNS - 2}", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shown = [re.sub(".\b", "", line) for line in done.stdout.splitlines()]
    commands = re.findall(r"^\.Dl (.*)$", pathlib.Path(page).read_text(encoding="utf-8"),
                          re.MULTILINE)
    return [f"{page}: {len(line)} columns: {line}" for line in shown if len(line) > COLUMNS] + \
        [f"{page}: longer than {COMMAND_COLUMNS} columns, end it with a backslash: {pasted}"
         for pasted in commands if len(plain(pasted).strip('"')) > COMMAND_COLUMNS] + \
        [line for line in done.stderr.splitlines() if "can't break line" in line] + \
        ([] if shown else [f"{page}: {command[0]} printed nothing"])


def write_program(page, target, number=0):
    target.write_text(program_and_output(page, number)[0], encoding="utf-8")
    return []


def write_orders(page, target):
    blocks = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed",
                        section(page.read_text(encoding="utf-8"), "DESCRIPTION"),
                        re.MULTILINE | re.DOTALL)
    functions = [f"static void {name}(struct timerhub_loop *loop)\n{{\n{plain(block)}}}\n"
                 for name, block in zip(("expire_before", "expire_after"), blocks)]
    functions += [plain(block) for block in blocks[2:]]  # run_until()
    target.write_text("".join(functions), encoding="utf-8")
    return []


def run_program(program):
    """Each program runs in a directory of its own, because some write files into the current
    one."""
    emulator = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))  # set if cross-compiled
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*emulator, str(program.resolve())], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                              cwd=folder)


def check_run(page, program, number=0):
    wanted, done = program_and_output(page, number)[1], run_program(program)
    check_uring(done.returncode, done.stderr)
    if done.returncode != 0 or done.stdout != wanted:
        return [f"{page.name}: its program ended with {done.returncode} and printed",
                done.stdout, "not", wanted, done.stderr]
    return []


def check_run_again(program):
    """A second run fails: its id is taken for a minute. After a longer delay, it passes."""
    began = time.monotonic()
    run_program(program)
    printed = run_program(program).stdout
    is_right = printed == "put: Operation already in progress\n"
    return [] if is_right or time.monotonic() - began > 60 else [f"it printed {printed!r}"]


def check_watched(page, program, tool):
    """The tool shows each line of the page. A second column may follow on the same line."""
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as watched:
        pid = re.fullmatch(r"timerhub-top (\d+)\n", watched.stdout.readline())
        shown = subprocess.run([tool, "-1", pid[1]], stdout=subprocess.PIPE, text=True,
                               check=True).stdout if pid else ""
        watched.kill()
    return [f"not shown: {line}" for line in program_and_output(page)[1].splitlines()
            if not re.search(rf"^{re.escape(line)}( |$)", shown, re.MULTILINE)]


def check_declarations(page):
    """The command that prints the headers for a parser: plain C, and functions in place of the
    macros."""
    text = page.read_text(encoding="utf-8")
    command = plain(re.search(r'^\.Dl (cc -E .*)\n\.Dl "(.*)"$', text, re.MULTILINE).expand(
        r"\1\n\2"))
    include = page.resolve().parent.parent / "include"
    command = command.replace("$(pkg-config --cflags timerhub)", f"-I{shlex.quote(str(include))}")
    printed = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True,
                             check=True).stdout.partition("struct timerhub;")[2]
    wrong = re.findall(r"__\w+|\binline\b|\basm\b", printed)
    return [f"{page.name}: {command} prints {set(wrong)}"] * bool(wrong) + \
        [f"{page.name}: {command} does not print {name}" for name in
         ("timerhub_arm", "timerhub_timeout_set", "timerhub_loop_turn")
         if f" {name}(" not in printed]


def check_ffi_run(language, page, library):
    """The shared library is found as an installed one is, by its soname and its folder."""
    number, name, commands = FFI_PROGRAMS[language]
    program, wanted = program_and_output(page, number)
    folder, include = library.resolve().parent, page.resolve().parent.parent / "include"
    env = os.environ | {"LD_LIBRARY_PATH": str(folder), "LIBRARY_PATH": str(folder),
                        "CGO_CFLAGS": f"-I{include}"}
    printed = set()
    with tempfile.TemporaryDirectory() as scratch:
        pathlib.Path(scratch, name).write_text(program, encoding="utf-8")
        for command in commands:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=100, check=False, cwd=scratch, env=env)
            if done.returncode != 0:
                return [f"{page.name}: {command} ended with {done.returncode}", done.stdout,
                        done.stderr]
            printed.add(done.stdout)
    return [] if printed - {""} == {wanted} else [f"{page.name}: {language} printed", *printed,
                                                  "not", wanted, done.stderr]


COMMANDS = {"pages": (1, check_pages), "lint": (1, check_lint), "program": (2, write_program),
            "run": (2, check_run), "run-again": (1, check_run_again),
            "run-watched": (3, check_watched),
            "second-program": (2, lambda *paths: write_program(*paths, 1)),
            "orders": (2, write_orders),
            "second-run": (2, lambda *paths: check_run(*paths, 1)),
            "declarations": (1, check_declarations),
            **{f"run-{language}": (2, functools.partial(check_ffi_run, language))
               for language in FFI_PROGRAMS}}


def run_command(commands, usage, arguments):
    """Runs one of `commands`: name -> (number of paths, function). Returns the exit status."""
    count, function = commands.get(arguments[0] if arguments else "", (None, None))
    if len(arguments) - 1 != count:
        print(usage, file=sys.stderr)
        return 2
    try:
        complaints = function(*map(pathlib.Path, arguments[1:]))
    except Skipped as why:
        print(f"skipped: {why}")
        return SKIPPED
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(run_command(COMMANDS, __doc__, sys.argv[1:]))
