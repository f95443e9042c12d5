#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at each page of the web site in a browser, wide and narrow.

Usage: check_site.py ROOT

No element may end below the top of the next one, no page may be wider than the screen, and no name
of a call or an error may be broken into two lines where there is room. Exit status 77, with the
reason, if no Chromium, mandoc or cmark-gfm is here.
"""

import functools
import http.server
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
sys.dont_write_bytecode = True  # the sources may be read-only, or a fresh copy
from verdict import Skipped, Wrong, need, verdict  # pylint: disable=wrong-import-position

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (1280, 390)
HANG_S = 240          # "for ever"
REPORT = "/report"

# Runs in the browser, which shows each page in a frame and sends what is wrong to REPORT.
SCRIPT = """
<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><body style="margin:0"><script>
const clips = element => getComputedStyle(element).overflowX !== "visible";
// How far down the contents go, including what hangs out of the element's own box.
const depth = element => {
	let lowest = element.getBoundingClientRect().bottom;
	if (!clips(element))
		for (const child of element.children)
			lowest = Math.max(lowest, depth(child));
	return lowest;
};
const says = element => element.tagName + " " +
	element.textContent.trim().replace(/\\s+/g, " ").slice(0, 50);
const look = page => {
	const wrong = [], root = page.documentElement;
	if (root.scrollWidth > root.clientWidth)
		wrong.push("the page is " + root.scrollWidth + " wide on " + root.clientWidth);
	for (const one of page.querySelectorAll("body, body *")) {
		const style = getComputedStyle(one);
		if (style.display === "inline" || style.display.startsWith("table"))
			continue;
		const next = one.nextElementSibling;
		if (!next || getComputedStyle(next).display !== "block")
			continue;
		const box = one.getBoundingClientRect(), its = next.getBoundingClientRect();
		if (box.left < its.right && its.left < box.right && depth(one) > its.top + 1)
			wrong.push("[" + says(one) + "] lies under [" + says(next) + "]");
	}
	const names = ".Er, .wide td code" + (page.body.clientWidth > 640 ? ", .Fn" : "");
	for (const name of page.querySelectorAll(names))
		if (!/\\s/.test(name.textContent) && name.getClientRects().length > 1)
			wrong.push("broken: " + name.textContent);
	return wrong;
};
const frame = document.body.appendChild(document.createElement("iframe"));
frame.style = "border:0;height:900px";
(async () => {
	const found = [];
	for (const [path, width] of JOBS) {
		frame.style.width = width + "px";
		await new Promise(done => { frame.onload = done; frame.src = "/" + path; });
		for (const what of look(frame.contentDocument))
			found.push(path + ", " + width + " wide: " + what);
	}
	await fetch("REPORT", { method: "POST", body: JSON.stringify([JOBS.length, found]) });
})();
</script>
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and puts the browser's report into the queue `reports`."""

    def __init__(self, jobs, reports, *arguments, **named):
        self.script = SCRIPT.replace("JOBS", json.dumps(jobs), 1).replace("JOBS.length", str(
            len(jobs))).replace("REPORT", REPORT)
        self.reports = reports
        super().__init__(*arguments, **named)

    def do_GET(self):  # pylint: disable=invalid-name # the base class names it
        if self.path != REPORT:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.script.encode())

    def do_POST(self):  # pylint: disable=invalid-name
        self.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


def browse(browser, folder, jobs):
    """Returns what is wrong on the pages, by one start of the browser."""
    reports = queue.Queue()
    handler = functools.partial(Handler, jobs, reports, directory=str(folder / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                   f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0",
                   f"http://127.0.0.1:{server.server_port}{REPORT}"]
        with open(folder / "browser", "w+", encoding="utf-8") as log, \
                subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                count, found = reports.get(timeout=HANG_S)
            except queue.Empty as error:
                log.seek(0)
                raise Wrong(f"no report from {browser}: {log.read()[-2000:]}") from error
            finally:
                process.terminate()
                process.wait()
        server.shutdown()
    if count != len(jobs):
        raise Wrong(f"the browser saw {count} of {len(jobs)} pages")
    return found


def test_site(root, folder):
    need("mandoc", "cmark-gfm")
    browser = next(filter(shutil.which, BROWSERS), None)
    if browser is None:
        raise Skipped(f"no browser looks at the web site: there is no {', '.join(BROWSERS)} here")
    done = subprocess.run([root / "tools/build-site", folder / "site"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise Wrong(done.stderr)
    pages = sorted(str(path.relative_to(folder / "site"))
                   for path in (folder / "site").rglob("*.html"))
    found = browse(browser, folder, [(page, width) for page in pages for width in WIDTHS])
    if found:
        raise Wrong("\n".join([*found, f"{len(found)} mistakes on {len(pages)} pages"]))
    print(f"{len(pages)} pages, {' and '.join(map(str, WIDTHS))} wide: nothing overlaps")


if __name__ == "__main__":
    sys.exit(verdict(test_site, pathlib.Path(sys.argv[1]).resolve()))
