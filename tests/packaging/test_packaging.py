#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds tiny programs with timerhub as its users do, and runs them.

Usage: test_packaging.py TEST SOURCE-ROOT

installed     installs what a plain `meson setup` builds, not optimized, into a prefix of its own,
              and checks what is there; then compiles client.c, client.cc, and the same of the
              store, against it through pkg-config, and through CMake's find_package(), each
              shared and static; and a program by each command and file of timerhub-building(7).
wrap          the meson project and the wrap file of timerhub-building(7), with a repository of the
              sources: only libtimerhub is built, static as the project is.
no-io-uring   the libraries without liburing, the clients, the example, and some tests of the laws.
musl          libtimerhub by musl-gcc: the C client against it, static, and a program that loads the
              shared one by dlopen(). The store is compiled only: Debian has no SQLite for musl.
machine       a machine other than x86-64 and AArch64 is refused when the build is set up.
amalgamation  the single file by gcc and musl-gcc, with io_uring and without, and a program with it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from verdict import Wrong, chosen_verdict, expect  # pylint: disable=wrong-import-position

COMPILERS = {"c": ["gcc", "-std=c11"], "cc": ["g++", "-std=c++17"]}
# For each client program: the pkg-config package that it uses.
CLIENTS = {"client": "timerhub", "store_client": "timerhub-store"}
MAPS = ["lib/timerhub.map", "lib/store/timerhub_store.map",
        "lib/relay/timerhub_relay.map"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
OWN_WARNINGS = ["-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes"]
PARTS = ("tests", "examples", "tools")
BUILDING = "man/timerhub-building.7"


def run(*command, env=None, **options):
    plain = {name: value for name, value in os.environ.items()
             if name in ("PATH", "HOME", "TMPDIR", "LANG", "USER", "TIMERHUB_TEST_SEED")}
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True, env=plain | (env or {}), **options)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise Wrong(f"{words}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def project_version(root):
    return re.search(r"version: '([\d.]+)'", (root / "meson.build").read_text(encoding="utf-8"))[1]


def soname(package, version):
    """Before 1.0 a minor version may change the ABI."""
    return f"lib{package}.so.{'.'.join(version.split('.')[:2])}"


def pages(root):
    """
    The manual pages of section 3: one for each function, or a link, and one for the loop. The
    functions whose names end in _checked are called by macros only.
    """
    text = "".join((root / name).read_text(encoding="utf-8") for name in MAPS)
    functions = re.findall(r"^\t\t(\w+);", text, re.MULTILINE)
    return [name for name in functions if not name.endswith("_checked")] + [
        "timerhub_loop", "timerhub_uring", "timerhub_uring_prep", "timerhub_uring_ended"]


def examples(root):
    return {path.relative_to(root).as_posix() for path in (root / "examples").rglob("*.*")
            if path.is_file() and path.name != "meson.build" and path.parent.name != "__pycache__"}


def check_parts(printed):
    """meson's summary says which parts are off, and the option that turns each of them on."""
    for part in PARTS:
        expect(re.search(rf"^ +{part} *: no: .*-D{part}=true$", printed, re.MULTILINE),
               f"the summary does not say that {part} is off, and why:\n{printed}")


def client_programs():
    return {f"{client}_{language}": package for client, package in CLIENTS.items()
            for language in COMPILERS}


def needed(program):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", program))


def check_client(program, package, version, static, env=None, on_uring=False):
    libraries = needed(program)
    if static:
        expect(not [name for name in libraries if "timerhub" in name],
               f"{program} is linked with {libraries}")
    else:
        expect(soname(package, version) in libraries, f"{program} is linked with {libraries}")
        if package == "timerhub-store":  # it takes constants alone from timerhub.h
            expect(soname("timerhub", version) not in libraries,
                   f"{program} is linked with {libraries}")
        expect(("liburing.so.2" in libraries) == on_uring, f"{program} is linked with {libraries}")
    # The program runs in a directory of its own, because the store's client writes files into the
    # current directory.
    with tempfile.TemporaryDirectory() as folder:
        printed = run(program, env=env, timeout=60, cwd=folder).strip()
    wanted = version if package == "timerhub" else "good"
    # Only the last line of the program's output is compared. If the kernel refuses io_uring, the
    # client with io_uring prints the reason before its last line.
    expect(printed.split("\n")[-1] == wanted, f"{program} printed {printed}, not {wanted}")


def commands_of_page(root):
    text = (root / BUILDING).read_text(encoding="utf-8")
    text = re.sub(r'\\e\n\.Dl "? *(.*?)"?$', r"\1", text, flags=re.MULTILINE)  # on two lines
    return re.findall(r"^\.Dl (cc .*)$", text, re.MULTILINE)


def files_of_page(root):
    text = (root / BUILDING).read_text(encoding="utf-8")
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.MULTILINE | re.DOTALL)
    return {re.match(r"\[?[\w-]+", block)[0]: block for block in blocks}


# ---- installed ----


def library_folder(prefix):
    return next(prefix.rglob("timerhub.pc")).parent.parent


def check_tree(prefix, root, version):
    """The files that an installation consists of, and no others."""
    files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}
    libraries = library_folder(prefix).relative_to(prefix).as_posix()
    wanted = {"share/timerhub/timerhub.lua", "share/man/man7/timerhub_hpp.7",
              "share/man/man5/timerhub-store.5", "share/man/man5/timerhub-relay.5"}
    for package in ("timerhub", "timerhub-store", "timerhub-relay"):
        wanted |= {f"{libraries}/pkgconfig/{package}.pc", f"{libraries}/{soname(package, version)}",
                   f"share/man/man7/{package}.7",
                   *(f"{libraries}/lib{package}.{end}" for end in ("a", "so", f"so.{version}"))}
    wanted |= {f"share/man/man7/timerhub-{name}.7"
               for name in ("building", "debugging", "ffi", "free", "late", "loops", "platforms",
                            "porting")}
    wanted |= {f"share/man/man3/{name}.3" for name in pages(root)}
    wanted |= {f"{libraries}/cmake/timerhub/timerhubConfig{name}.cmake" for name in ("", "Version")}
    wanted |= {f"include/{path.name}" for path in (root / "include").iterdir()}
    wanted |= {f"share/doc/timerhub/{name}" for name in examples(root)}
    expect(wanted <= files, f"not installed: {sorted(wanted - files)}")
    expect(files <= wanted, f"installed too: {sorted(files - wanted)}")
    for name in wanted:
        expect((prefix / name).exists(), f"{name} leads nowhere")


def check_shared_library(prefix, version):
    for package in CLIENTS.values():
        dynamic = run("readelf", "--dynamic", library_folder(prefix) / f"lib{package}.so")
        expect(f"[{soname(package, version)}]" in dynamic, f"another soname:\n{dynamic}")
        expect("RPATH" not in dynamic and "RUNPATH" not in dynamic,
               f"a path is built in:\n{dynamic}")


def check_pkg_config(env):
    for package in CLIENTS.values():
        shared = run("pkg-config", "--libs", package, env=env).split()
        static = run("pkg-config", "--static", "--libs", package, env=env).split()
        has_hubs = package != "timerhub-store"  # of timerhub.h it has constants only
        expect(f"-l{package}" in shared, f"not all in {shared}")
        expect(("-ltimerhub" in shared) == has_hubs, f"{package} is linked with {shared}")
        expect("-luring" not in shared, "liburing is for static programs only")
        expect(("-luring" in static) == has_hubs, f"a static {package} is linked with {static}")


def build_client(directory, source, language, packages, version, env):
    """Compiles and runs a client by hand, shared and static, as the README says."""
    name = {"c": "c", "cc": "c++"}[language]
    for static in (False, True):
        options = ["--cflags", "--libs"] + (["--static"] if static else [])
        flags = run("pkg-config", *options, *packages, env=env).split()
        program = directory / f"{source.stem}_{language}{'_static' if static else ''}"
        run(*COMPILERS[language], *WARNINGS, "-x", name, source, "-x", "none", "-o", program,
            *(["-static"] if static else []), *flags)
        check_client(program, packages[0], version, static, env, "liburing" in packages)


def build_with_cmake(directory, source, version, env):
    """Builds and checks the clients in C and C++, and the relay's client in C."""
    # CMake must use ninja, which is installed because meson needs it. CMake's default is make,
    # which Debian's cmake package does not install.
    run("cmake", "-G", "Ninja", "-S", source, "-B", directory, env=env)
    run("cmake", "--build", directory, env=env)
    for name, package in [*client_programs().items(), ("relay_client_c", "timerhub-relay")]:
        check_client(directory / name, package, version, False, env)
        check_client(directory / f"{name}_static", package, version, True, env)


def build_by_page(root, directory, version, env):
    """The commands and the CMake file of timerhub-building(7) make the promised programs."""
    directory.mkdir()
    shutil.copy(root / "tests/packaging/client.c", directory / "program.c")
    run(root / "tools/amalgamate", directory / "amalgamation")
    commands = commands_of_page(root)
    expect(len(commands) == 5, f"{BUILDING} has the commands {commands}")
    for command, kind in zip(commands, ("shared", "static", "archive", "shared", "one file")):
        run("sh", "-c", command, env=env, cwd=directory)
        check_client(directory / "a.out", "timerhub", version, kind != "shared", env)
        expect(bool(needed(directory / "a.out")) == (kind != "static"),
               f"{command}: needs {needed(directory / 'a.out')}")
    cmake = files_of_page(root)["cmake_minimum_required"]
    (directory / "CMakeLists.txt").write_text(cmake, encoding="utf-8")
    run("cmake", "-G", "Ninja", "-S", directory, "-B", directory / "build", env=env)
    run("cmake", "--build", directory / "build", env=env)
    check_client(directory / "build/program", "timerhub", version, False, env)


def test_installed(root, directory):
    here, version, prefix = root / "tests/packaging", project_version(root), directory / "prefix"
    printed = run("meson", "setup", directory / "build", root, f"--prefix={prefix}",
                  "-Dbuildtype=debug", "-Drelay=enabled")
    check_parts(printed)
    # pkg-config and the loader find the prefix by what the summary says, and by nothing else.
    env = dict(re.findall(r"(PKG_CONFIG_PATH|LD_LIBRARY_PATH)=([^\s,]+)", printed))
    expect(len(env) == 2, printed)
    run("meson", "install", "-C", directory / "build", "--quiet")
    check_tree(prefix, root, version)
    check_shared_library(prefix, version)
    check_pkg_config(env)
    for language in COMPILERS:
        for client, package in CLIENTS.items():
            build_client(directory, here / f"{client}.{language}", language, [package], version,
                         env)
        # these two are C that is C++ too
        for client, packages in (("relay_client.c", ["timerhub-relay"]),
                                 ("uring_client.c", ["timerhub", "liburing"])):
            build_client(directory, here / client, language, packages, version, env)
    build_by_page(root, directory / "page", version, env | {"CMAKE_PREFIX_PATH": str(prefix)})
    # The path that CMake writes into a program is enough, also if the linker drops a library that
    # only another library calls.
    build_with_cmake(directory / "cmake_package", here / "cmake_package", version,
                     {"CMAKE_PREFIX_PATH": str(prefix), "LDFLAGS": "-Wl,--as-needed"})
    # Into a staging directory, as a packager does.
    stage = directory / "stage"
    run("meson", "install", "-C", directory / "build", "--quiet", "--no-rebuild",
        env={"DESTDIR": str(stage)})
    check_tree(stage / prefix.relative_to("/"), root, version)

# ---- wrap ----


def copy_sources(root, target):
    def builds(folder, names):
        return [name for name in names
                if name.startswith(".") or (pathlib.Path(folder) / name / "meson-info").is_dir()
                or name.startswith("build-")]

    shutil.copytree(root, target, ignore=builds, symlinks=True)


def built_libraries(folder):
    names = [path.name for path in folder.rglob("lib*") if path.is_file()]
    return {name for name in names if re.fullmatch(r"libtimerhub[a-z-]*\.(so[\d.]*|a)", name)}


def check_libraries(build, wanted):
    """What a build of everything, and its installation, have made."""
    stage = build / "stage"
    run("ninja", "-C", build)
    run("meson", "install", "-C", build, "--quiet", "--no-rebuild", env={"DESTDIR": str(stage)})
    expect(built_libraries(stage) == wanted, f"installed: {built_libraries(stage)}")
    expect(not list(stage.rglob("man")), "a subproject installs the manual")
    expect(not list(stage.rglob("examples")), "a subproject installs the examples")
    shutil.rmtree(stage)
    expect(built_libraries(build) == wanted, f"built: {built_libraries(build)}")


def make_repository(root, target, tag):
    copy_sources(root, target)
    someone = {f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER")
               for what in ("NAME", "EMAIL")} | {"GIT_CONFIG_GLOBAL": os.devnull}
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "sources"],
                    ["tag", tag]):
        run("git", *command, cwd=target, env=someone)


def test_wrap(root, directory):
    """As on a machine where no timerhub is installed."""
    version, project, files = project_version(root), directory / "project", files_of_page(root)
    make_repository(root, directory / "repository", f"v{version}")
    (project / "subprojects").mkdir(parents=True)
    (project / "meson.build").write_text(files["project"], encoding="utf-8")
    (project / "subprojects/timerhub.wrap").write_text(
        files["[wrap-git"].replace("ADDRESS", f"file://{directory / 'repository'}")
        .replace("REVISION", f"v{version}"),
        encoding="utf-8")
    shutil.copy(root / "tests/packaging/client.c", project / "program.c")
    # The parent alone sets default_library; timerhub must follow it.
    printed = run("meson", "setup", project / "build", project, "-Dbuildtype=debug",
                  "-Ddefault_library=static", "--force-fallback-for=timerhub")
    check_libraries(project / "build", {"libtimerhub.a"})
    check_client(project / "build/program", "timerhub", version, True)
    hints = re.findall(r"ask with (-D\S+)", printed)
    expect("-Dtimerhub:store=enabled" in hints, f"the summary's hints: {hints}")
    ask = re.search(r"^ +to ask *: (meson configure \S+) -D\.\.\.$", printed, re.MULTILINE)
    expect(ask, printed)
    run(*ask[1].split(), *hints)  # fails if there is no such option


# ---- no-io-uring ----


def test_no_io_uring(root, directory):
    """Nothing includes liburing.h: here the header would not compile."""
    version, build, forbidden = project_version(root), directory / "build", directory / "forbidden"
    forbidden.mkdir()
    (forbidden / "liburing.h").write_text("#error not to be included\n", encoding="utf-8")
    printed = run("meson", "setup", build, root, "-Dio_uring=disabled", "-Dbuildtype=debug",
                  "-Dprobes=disabled", f"-Dc_args=-I{forbidden}", "-Dtests=true", "-Dexamples=true")
    expect(re.search(r"^ +io_uring *: no: -Dio_uring=disabled", printed, re.MULTILINE),
           f"the summary does not say that io_uring is off:\n{printed}")
    tests = ["misuse (poll)", "lifecycle (poll)", "denied (poll)", "store calls"]
    programs = ["examples/hello_timer", "examples/delay_queue", "tests/store/test_store_calls"]
    programs += [f"tests/service/test_service_{name.split()[0]}" for name in tests if "(" in name]
    libraries = [f"lib/libtimerhub.so.{version}", "lib/libtimerhub.a",
                 f"lib/store/libtimerhub-store.so.{version}"]
    run("ninja", "-C", build, *programs, *libraries)
    for library in libraries:
        symbols = run("nm", *(["-D"] if ".so" in library else []), build / library)
        expect("io_uring" not in symbols,
               f"{library} has to do with liburing:\n{symbols}")
    run(root / "tests/packaging/test_probes.py", "no", build / libraries[0], os.devnull)
    run(build / "examples/hello_timer", timeout=60)
    run("meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs",
        "--timeout-multiplier=5", *tests)
    # If liburing is missing, the setup must fail and name the option -Dio_uring=disabled.
    try:
        run("meson", "setup", directory / "none", root, env={"PKG_CONFIG_LIBDIR": str(forbidden)})
    except Wrong as wrong:
        expect("-Dio_uring=disabled builds without it" in str(wrong), f"{wrong}")
    else:
        raise Wrong("without liburing it is built all the same")


# ---- musl ----


def test_musl(root, directory):
    """The libraries and a client build with musl-gcc. The system's headers of kernel and liburing
    are searched after musl's. Only the static liburing is used, because the shared one depends on
    glibc."""
    version, prefix = project_version(root), directory / "prefix"
    triplet = run("gcc", "-print-multiarch").strip()
    headers = ["-idirafter/usr/include", f"-idirafter/usr/include/{triplet}"]
    options = ["-Dbuildtype=debug", "-Dprefer_static=true", "-Dwerror=true", "-Drelay=disabled",
               f"-Dc_args={' '.join(headers)}"]
    run("meson", "setup", directory / "store", root, *options, "-Dstore=enabled",
        env={"CC": "musl-gcc"})
    run("ninja", "-C", directory / "store", "lib/store/libtimerhub-store.a")
    run("meson", "setup", directory / "build", root, f"--prefix={prefix}", *options,
        "-Dstore=disabled", env={"CC": "musl-gcc"})
    run("meson", "install", "-C", directory / "build", "--quiet")
    uring = run("gcc", "-print-file-name=liburing.a").strip()
    program = directory / "client"
    run("musl-gcc", "-std=c11", *WARNINGS, "-static", f"-I{prefix / 'include'}",
        root / "tests/packaging/client.c", library_folder(prefix) / "libtimerhub.a", uring,
        "-o", program)
    check_client(program, "timerhub", version, static=True)
    run("musl-gcc", "-std=c11", *WARNINGS, f"-I{prefix / 'include'}",
        root / "tests/service/test_unload.c", "-o", directory / "unload")
    run(directory / "unload", library_folder(prefix) / "libtimerhub.so", timeout=60)


# ---- machine ----


def test_machine(root, directory):
    """The compiler is that of this machine, since none is asked to compile for another."""
    (directory / "machine.ini").write_text(
        "[binaries]\nc = 'gcc'\n[host_machine]\nsystem = 'linux'\ncpu_family = 'riscv64'\n"
        "cpu = 'riscv64'\nendian = 'little'\n", encoding="utf-8")
    try:
        run("meson", "setup", directory / "build", root,
            f"--cross-file={directory / 'machine.ini'}")
    except Wrong as wrong:
        expect("builds for x86-64 and little-endian AArch64 only" in str(wrong), str(wrong))
    else:
        raise Wrong("a build for riscv64 is not refused")


# ---- amalgamation ----


def public_functions(header):
    return set(re.findall(r"^TIMERHUB_API\b[^(;]*?\b(\w+)\(", header.read_text(encoding="utf-8"),
                          re.MULTILINE))


def compile_one_file(root, folder, compiler, more):
    """Every source in one file: no name twice, no warning, no global name that is not public."""
    uring = [run("gcc", "-print-file-name=liburing.a").strip()] if "-DTIMERHUB_WITH_URING" in more \
        else []
    run(compiler, "-O2", *WARNINGS, *OWN_WARNINGS, *more, "-c", folder / "timerhub.c", "-o",
        folder / "timerhub.o")
    names = [line.split() for line in run("nm", folder / "timerhub.o").splitlines()]
    defined = {words[2] for words in names if len(words) == 3 and words[1].isupper()}
    wanted = public_functions(folder / "timerhub.h")
    expect(defined == wanted, f"public, or defined, but not both: {sorted(defined ^ wanted)}")
    for source in ("tests/packaging/client.c", "examples/idle_server.c"):
        run(compiler, *WARNINGS, *more, f"-I{folder}", root / source, folder / "timerhub.o",
            "-static", "-pthread", *uring, "-o", folder / pathlib.Path(source).stem)
    check_client(folder / "client", "timerhub", project_version(root), True)


def test_amalgamation(root, folder):
    run(root / "tools/amalgamate", folder)
    compile_one_file(root, folder, "gcc", ["-DTIMERHUB_WITH_URING"])
    if shutil.which("musl-gcc"):
        triplet = run("gcc", "-print-multiarch").strip()
        compile_one_file(root, folder, "musl-gcc", ["-idirafter/usr/include",
                                                    f"-idirafter/usr/include/{triplet}"])
    else:
        compile_one_file(root, folder, "gcc", [])


TESTS = {"installed": test_installed, "wrap": test_wrap, "no-io-uring": test_no_io_uring,
         "musl": test_musl, "machine": test_machine, "amalgamation": test_amalgamation}


if __name__ == "__main__":
    sys.exit(chosen_verdict(TESTS, __doc__, sys.argv[1:]))
