#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the web site, and checks it with a parser, and with a browser if one is installed.

Usage: test_site.py links|browser SOURCE-ROOT [FOLDER]

links    each link and picture of each page leads to a file of the site, and to a place in it; each
         name of the manual, and each document, is on the site; two builds are the same.
browser  in chromium no page must be scrolled sideways on a narrow screen. Writes pictures of three
         pages into FOLDER, if there is one: light and dark, 1280 and 390 pixels wide.

Exit status 77, and the reason, if this machine lacks a program.
"""

import base64
import contextlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from verdict import Skipped, Wrong, expect, need, verdict  # pylint: disable=wrong-import-position

BROWSERS = ("chromium", "chromium-headless-shell", "google-chrome", "chrome")
SHOWN = ("index.html", "man/index.html", "man/timerhub.7.html")
WIDTHS = {1280: 900, 390: 844}
SCHEMES = ("light", "dark")


def build(root, folder):
    need("mandoc", "cmark-gfm")
    done = subprocess.run([root / "tools/build-site", folder], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True)
    expect(done.returncode == 0, f"build-site: status {done.returncode}\n{done.stdout}")
    return folder


# ---- links ----


class Reader(html.parser.HTMLParser):
    """The links of a page, and its link targets."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places, self.tags, self.twice = [], set(), [], []
        self.open = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.links += [attrs[name] for name in ("href", "src") if name in attrs]
        if "id" in attrs:
            self.twice += [attrs["id"]] if attrs["id"] in self.places else []
            self.places.add(attrs["id"])
        if tag == "a" and "a" in self.open:
            self.twice.append("a link in a link")
        if tag == "a":
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag == "a":
            self.open.pop()


def check_page(path, reader, readers):
    complaints = [f"{path}: {name}" for name in reader.twice]
    for link in reader.links:
        address = urllib.parse.urlsplit(link)
        if address.scheme:
            if address.scheme not in ("https", "mailto"):
                complaints.append(f"{path}: {link}")
            continue
        target = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path \
            else path
        if not target.is_file():
            complaints.append(f"{path}: {link} leads nowhere")
        elif address.fragment and address.fragment not in readers[target].places:
            complaints.append(f"{path}: {link}: there is no such place")
    viewports = [attrs for tag, attrs in reader.tags
                 if tag == "meta" and attrs.get("name") == "viewport"]
    if len(viewports) != 1:
        complaints.append(f"{path}: {len(viewports)} viewports")
    return complaints


def linked_files(path, reader):
    return {(path.parent / link.partition("#")[0]).resolve() for link in reader.links
            if link.partition("#")[0] and "://" not in link}


def check_all_reached(folder, readers):
    """From the front page a reader gets to every file."""
    reached, waiting = set(), [folder / "index.html"]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += linked_files(path, readers[path]) if path in readers else []
    files = {path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."}
    expect(files == reached, f"not reached: {sorted(files - reached)}")


def check_manual(root, folder):
    index = (folder / "man/index.html").read_text(encoding="utf-8").replace("<wbr>", "")
    for page in sorted((root / "man").glob("*.[1-8]")):
        expect((folder / f"man/{page.name}.html").is_file(), f"{page.name} is not on the site")
        for name in re.findall(r"^\.Nm ([\w.-]+)$", page.read_text(encoding="utf-8"),
                               re.MULTILINE):
            expect(name in index or not name.startswith("timerhub"), f"{name} is in no index")


def digest(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
            if path.is_file()}


def test_links(root, _, scratch):
    folder = build(root, scratch / "site").resolve()
    readers = {path: Reader(path) for path in folder.rglob("*.html")}
    complaints = [complaint for path, reader in sorted(readers.items())
                  for complaint in check_page(path, reader, readers)]
    expect(not complaints, "\n".join(complaints))
    check_all_reached(folder, readers)
    check_manual(root, folder)
    before = digest(folder)
    expect(digest(build(root, folder)) == before, "two builds of a site differ")
    print(f"{len(readers)} pages, {sum(len(reader.links) for reader in readers.values())} links")


# ---- the browser ----


class Browser:
    """Chromium, told by its debugging protocol what to show."""

    def __init__(self, program, profile):
        ours, theirs = os.pipe(), os.pipe()
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{ours[1]}', "bash", program,
             "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--hide-scrollbars", f"--user-data-dir={profile}",
             "--remote-debugging-pipe"],
            pass_fds=(theirs[0], ours[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs[0])
        os.close(ours[1])
        self.commands = os.fdopen(theirs[1], "wb", buffering=0)
        self.answers = os.fdopen(ours[0], "rb", buffering=0)
        self.session, self.count, self.unread = None, 0, b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        self.call("Page.enable")

    def close(self):
        with contextlib.suppress(OSError, Wrong):
            self.session = None
            self.call("Browser.close")
        self.commands.close()
        self.answers.close()
        self.process.kill()
        self.process.wait()

    def read(self):
        while b"\0" not in self.unread:
            chunk = os.read(self.answers.fileno(), 1 << 20)
            if not chunk:
                raise Wrong("the browser has ended")
            self.unread += chunk
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        command = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        self.commands.write(json.dumps(command).encode() + b"\0")
        while (answer := self.read()).get("id") != self.count:
            pass
        expect("error" not in answer, f"{method}: {answer.get('error')}")
        return answer["result"]

    def show(self, path, width, height, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.as_uri())
        while self.read().get("method") != "Page.loadEventFired":
            pass

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def widths(self):
        """Of the screen in the page's pixels, and of the page."""
        result = self.call("Runtime.evaluate", expression="[document.documentElement.clientWidth,"
                           " document.documentElement.scrollWidth].join()")
        return tuple(map(int, result["result"]["value"].split(",")))


def check_narrow(browser, folder):
    """Each page fits. A wide element has its own scroll bar."""
    pages = sorted(folder.rglob("*.html"))
    complaints = []
    for page in pages:
        browser.show(page, 390, 844, "light")
        widths = browser.widths()
        if widths != (390, 390):
            complaints.append(f"{page.relative_to(folder)}: screen and page are {widths} wide")
    expect(not complaints, "\n".join(complaints))
    print(f"{len(pages)} pages fit a screen of 390 pixels")


def draw(browser, folder, pictures):
    pictures.mkdir(parents=True, exist_ok=True)
    for page in SHOWN:
        for width, height in WIDTHS.items():
            for scheme in SCHEMES:
                name = f"{page.replace('/', '-').removesuffix('.html')}-{width}-{scheme}.png"
                browser.show(folder / page, width, height, scheme)
                (pictures / name).write_bytes(browser.picture())


def test_browser(root, pictures, scratch):
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program:
        raise Skipped(f"there is none of {', '.join(BROWSERS)} here")
    folder = build(root, scratch / "site").resolve()
    try:
        browser = Browser(program, scratch / "profile")
    except (Wrong, OSError) as wrong:
        raise Skipped(f"{program} does not start: {wrong}") from wrong
    try:
        if pictures:
            draw(browser, folder, pictures)
        check_narrow(browser, folder)
    finally:
        browser.close()


TESTS = {"links": test_links, "browser": test_browser}


def main(arguments):
    if len(arguments) not in (2, 3) or arguments[0] not in TESTS:
        print(__doc__, file=sys.stderr)
        return 2
    root, *pictures = (pathlib.Path(argument).resolve() for argument in arguments[1:])
    return verdict(TESTS[arguments[0]], root, pictures[0] if pictures else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
