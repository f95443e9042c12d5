#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the Debian packages, and uses them where nothing else of timerhub is.

Usage: test_deb.py SOURCE-ROOT

Runs tools/build-deb --lintian; the optimizer is left out, since no file comes or goes with it. Then
makes a root of its own in a temporary folder: the essential packages of this machine, its C
compiler, pkg-config, and what the new packages depend on by their own words, with a dpkg database
of these and no others. In there dpkg installs the packages, the programs of README.md are compiled
as it says, shared and static, and run; so are those of timerhub-journal(7) and timerhub-relay(7),
and the alarm clock as its unit starts it, on a Redis server of this machine; then dpkg removes all.
Exit status 77, and the reason, if this machine lacks a package, or does not permit another root.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / "relay"), str(TESTS / "man"), str(TESTS / "harness")]
from check_man import program_and_output  # pylint: disable=wrong-import-position
from check_readme import check_server, excerpts, programs  # pylint: disable=wrong-import-position
from redis_server import Server  # pylint: disable=wrong-import-position
from verdict import Skipped, Wrong, need, verdict  # pylint: disable=wrong-import-position

WANTED = {"libtimerhub0", "libtimerhub-dev", "libtimerhub-journal0", "libtimerhub-journal-dev",
          "libtimerhub-relay0", "libtimerhub-relay-dev", "timerhub-relay", "timerhub-tools"}
USERS = ["gcc", "libc6-dev", "pkg-config"]
DPKG = pathlib.Path("/var/lib/dpkg")
# Files of packages that the test does not copy into its root directory.
UNWANTED = re.compile(r"/usr/share/(doc|info|locale|man|lintian)/")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise Wrong(f"{words}: status {done.returncode}\n{done.stdout}")
    return done.stdout


# ---- what must be there ----


def check_machine(root):
    """build-deb would install what is missing; a test must not."""
    need("dpkg-query", "unshare", "chroot")
    script = f'. {shlex.quote(str(root / "tools/install_packages.sh"))}; ' \
             'packages_missing "${packages_build[@]}" "${packages_deb[@]}" ' \
             '"${packages_relay[@]}" lintian'
    missing = run("bash", "-c", script).split()
    if missing:
        raise Skipped(f"not installed: {' '.join(missing)}")


def in_new_root(root, command):
    """A shell in that root, as its superuser; this machine's root is out of its reach."""
    mine = [] if os.geteuid() == 0 else ["--map-root-user"]
    mounts = "".join(f"mount --rbind /{name} {shlex.quote(str(root / name))} && "
                     for name in ("dev", "proc"))
    return run("unshare", *mine, "--mount", "sh", "-c",
               f'{mounts} exec chroot {shlex.quote(str(root))} sh -c "$1"', "sh", command,
               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})


# ---- Debian's packages ----


def stanzas(text):
    """The fields of each stanza, by lower-case names; "text" is the whole."""
    for stanza in re.split(r"\n\n+", text.strip()):
        fields = re.findall(r"^([\w-]+): *(.*(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        yield {name.lower(): value for name, value in fields} | {"text": stanza}


class Installed:
    """The packages of this machine, by name and by what they provide."""

    def __init__(self):
        self.packages, self.provided = {}, {}
        for package in stanzas((DPKG / "status").read_text(encoding="utf-8")):
            if package["status"] != "install ok installed":
                continue
            self.packages.setdefault(package["package"], package)
            for name in re.findall(r"([\w.+-]+)(?: \(.*?\))?(?:,|$)", package.get("provides", "")):
                self.provided.setdefault(name, package["package"])

    def find(self, alternatives):
        """The first of "a (>= 1) | b" that is installed; none if a new package is to be it."""
        names = [re.match(r"\s*([\w.+-]+)", alternative)[1]
                 for alternative in alternatives.split("|")]
        for name in names:
            if name in self.packages or name in self.provided:
                return name if name in self.packages else self.provided[name]
        if not any(name.startswith(tuple(WANTED)) for name in names):
            raise Skipped(f"not installed: {alternatives}")
        return None

    def closure(self, names):
        """These, and all that they depend on."""
        found, open_names = set(), list(names)
        while open_names:
            name = open_names.pop()
            if name in found:
                continue
            found.add(name)
            open_names += self.depends(self.packages[name])
        return found

    def depends(self, package):
        fields = ", ".join(package[field] for field in ("pre-depends", "depends")
                           if field in package)
        return [name for name in map(self.find, filter(None, fields.split(","))) if name]


def info_files(package):
    """Its files in dpkg's database; those of Multi-Arch: same are named by architecture too."""
    for stem in (package["package"], f"{package['package']}:{package['architecture']}"):
        yield from (DPKG / "info").glob(f"{stem}.*")


def copy_file(path, root):
    """To the same place, which is where the links of this machine lead to."""
    if UNWANTED.match(path) or not os.path.lexists(path):
        return
    target = pathlib.Path(f"{root}{os.path.realpath(os.path.dirname(path))}") / \
        os.path.basename(path)
    if os.path.isdir(path) and not os.path.islink(path):
        target.mkdir(parents=True, exist_ok=True)
    elif not os.path.lexists(target) and (os.path.islink(path) or os.access(path, os.R_OK)):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


def make_root(root, installed, names):
    for link in pathlib.Path("/").iterdir():
        if link.is_symlink() and not os.readlink(link).startswith("/"):
            (root / link.name).symlink_to(os.readlink(link))
    database = root / str(DPKG)[1:]
    for folder in ("dev", "proc", "tmp", "root"):
        (root / folder).mkdir()
    for folder in ("info", "updates", "triggers"):
        (database / folder).mkdir(parents=True)
    for name in names:
        for info in info_files(installed.packages[name]):
            shutil.copy(info, database / "info")
            if info.suffix == ".list":
                for path in info.read_text(encoding="utf-8").splitlines()[1:]:
                    copy_file(path, root)
    status = "\n\n".join(installed.packages[name]["text"] for name in sorted(names))
    (database / "status").write_text(status + "\n", encoding="utf-8")
    for path in (DPKG / "triggers").iterdir():
        if path.name != "Lock":
            shutil.copy(path, database / "triggers")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")
    (root / "etc/group").write_text("root:x:0:\n", encoding="utf-8")
    # In this root directory the packages' configuration scripts do not run, so the test runs their
    # commands.
    in_new_root(root, "ldconfig && "
                "update-alternatives --quiet --install /usr/bin/cc cc /usr/bin/gcc 20")


# ---- what the packages are for ----


def files_of_timerhub(root):
    return sorted(str(path) for path in root.rglob("*timerhub*")
                  if DPKG.name not in path.parts and "tmp" not in path.relative_to(root).parts)


def check_packages(debs):
    names = {path.name.split("_")[0] for path in debs}
    if names != WANTED:
        raise Wrong(f"build-deb made {sorted(names)}")
    # The relay's packages must depend on libtimerhub0.4, the package with the library's soname. A
    # package with the next soname must not satisfy this dependency. The journal's package must not
    # depend on the library's package.
    for name, needs in (("libtimerhub-journal0", False), ("libtimerhub-relay0", True),
                        ("timerhub-relay", True)):
        package = next(path for path in debs if path.name.startswith(f"{name}_"))
        depends = run("dpkg-deb", "--field", package, "Depends")
        if ("libtimerhub0.4 (" in depends) != needs:
            raise Wrong(f"{package.name} depends on {depends}")


def use_relay(new_root):
    """The command of the unit promotes a task, and ends when it is told to."""
    unit = (new_root / "usr/lib/systemd/system/timerhub-relay@.service").read_text("utf-8")
    command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1].replace("%i", "orders")
    with Server(parent=new_root / "tmp") as server:
        in_new_root(new_root, f"""
            export REDIS_URL=unix:{server.address.removeprefix(str(new_root))}
            timerhub-relay create orders && timerhub-relay put orders order:1 100ms || exit
            {command} &
            for _ in $(seq 400); do
                timerhub-relay peek orders order:1 | grep -q undelivered && break
                sleep 0.05
            done
            kill $! && wait $! && timerhub-relay peek orders order:1 | grep undelivered""")


def use_program(new_root, source, command, wanted, before=""):
    """Compiles a program in the new root and runs it; returns it, if there is no wanted output."""
    path = new_root / "root" / re.search(r"[\w/]+\.c", command)[0]
    path.parent.mkdir(exist_ok=True)
    path.write_text(source, encoding="utf-8")
    if wanted is None:
        in_new_root(new_root, f"cd /root && {command}")
        return new_root / "root/a.out"
    printed = in_new_root(new_root, f"cd /root && {command} && {before} ./a.out")
    if printed != wanted:
        raise Wrong(f"{command}: it printed\n{printed}")
    return None


def use_readme(root, new_root):
    """The server serves: linked statically, it runs on this machine too."""
    text = (root / "README.md").read_text(encoding="utf-8")
    examples = [((root / example).read_text(encoding="utf-8"), command, None)
                for example, command, _ in excerpts(text)]
    for source, command, printed in [*programs(text).values(), *examples]:
        static = command.replace(" $(", " -static $(").replace("-config", "-config --static")
        for way in (command, static):
            server = use_program(new_root, source, way, printed)
        complaints = check_server(server) if server else []
        if complaints:
            raise Wrong("\n".join(complaints))


def use_pages(root, new_root):
    with Server(parent=new_root / "tmp") as server:
        url = f"REDIS_URL=unix:{server.address.removeprefix(str(new_root))}"
        for name in ("journal", "relay"):
            source, printed = program_and_output(root / f"man/timerhub-{name}.7")
            use_program(new_root, source, f"cc -pthread {name}.c "
                        f"$(pkg-config --cflags --libs timerhub-{name})", printed, url)


def use_packages(root, new_root, debs):
    for path in debs:
        shutil.copy(path, new_root / "tmp")
    in_new_root(new_root, "dpkg --install /tmp/*.deb && dpkg --audit")
    use_readme(root, new_root)
    use_pages(root, new_root)
    in_new_root(new_root, "timerhub-top --help && timerhub-journal --help")
    use_relay(new_root)
    if not files_of_timerhub(new_root):
        raise Wrong("nothing was installed")
    in_new_root(new_root, f"dpkg --purge {' '.join(sorted(WANTED))}")
    left = files_of_timerhub(new_root)
    if left:
        raise Wrong(f"left behind: {left}")


def test_deb(root, scratch):
    check_machine(root)
    debs, new_root = scratch / "debs", scratch / "root"
    print(run(root / "tools/build-deb", "--lintian", debs,
              env=os.environ | {"DEB_BUILD_OPTIONS": "noautodbgsym noopt"}))
    debs = sorted(debs.glob("*.deb"))
    check_packages(debs)
    new_root.mkdir()
    try:
        run("unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount",
            "chroot", "/", "true")
    except Wrong as wrong:
        raise Skipped(f"another root is not permitted here: {wrong}") from wrong
    installed = Installed()
    names = [name for name, package in installed.packages.items()
             if package.get("essential") == "yes"] + USERS
    for path in debs:
        names += installed.depends(next(stanzas(run("dpkg-deb", "--field", path))))
    make_root(new_root, installed, installed.closure(names))
    use_packages(root, new_root, debs)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    return verdict(test_deb, pathlib.Path(arguments[0]).resolve())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
