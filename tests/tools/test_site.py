#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lays out each page of the web site in a browser, wide and narrow: no box may lie on another.

Usage: test_site.py BUILD_SITE CHROMIUM

Exits with 77 if the browser does not start, as in some containers.
"""

import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# The browser loads each page into a frame, and writes its faults into its own title.
DRIVER = """<!DOCTYPE html><title>not done</title><iframe id="frame" height="900"></iframe><script>
const pages = %s, widths = [1280, 420], faults = [];
const frame = document.getElementById("frame");

function name(box) {
	return box.tagName + " '" + box.textContent.trim().slice(0, 30) + "'";
}

function look(page) {
	const inside = frame.contentDocument, view = frame.contentWindow;
	function isBlock(box) {
		const style = view.getComputedStyle(box), at = box.getBoundingClientRect();
		return at.width > 0 && at.height > 0 && style.display != "inline";
	}
	for (const box of inside.body.querySelectorAll("*")) {
		const boxes = [...box.children].filter(isBlock);
		boxes.slice(1).forEach((next, i) => {
			const a = boxes[i].getBoundingClientRect();
			const b = next.getBoundingClientRect();
			const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
			const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
			if (wide > 1 && high > 1)
				faults.push([page, `${name(boxes[i])} lies on ${name(next)}`]);
		});
		if (isBlock(box) && view.getComputedStyle(box).overflowY == "visible" &&
		    box.scrollHeight > box.clientHeight + 2)
			faults.push([page, name(box) + " leaves its box"]);
	}
	if (inside.documentElement.scrollWidth > inside.documentElement.clientWidth + 1)
		faults.push([page, "is wider than the screen"]);
}

async function run() {
	for (const width of widths)
		for (const page of pages) {
			frame.width = width;
			await new Promise(loaded => { frame.onload = loaded; frame.src = page; });
			look(page + ", width " + width);
		}
	document.title = "done " + JSON.stringify(faults);
}
run();
</script>"""


def main(build_site, chromium):
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder) / "site"
        subprocess.run([build_site, site], check=True, stdout=subprocess.DEVNULL)
        pages = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
        driver = site / "driver.html"
        driver.write_text(DRIVER % json.dumps(pages), "utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--allow-file-access-from-files",
                   "--virtual-time-budget=600000", f"--user-data-dir={folder}/profile",
                   "--dump-dom"]
        done = subprocess.run([*command, "data:text/html,starts"], check=False,
                              capture_output=True, text=True)
        if "starts" not in done.stdout:
            print(f"skipped: {chromium} does not start here:\n{done.stderr[-1000:]}")
            return 77
        done = subprocess.run([*command, driver.as_uri()], check=True, capture_output=True,
                              text=True)
    found = re.search(r"<title>done (.*?)</title>", done.stdout)
    if not found:
        print(f"the browser did not finish:\n{done.stdout[:1000]}\n{done.stderr[-1000:]}")
        return 1
    faults = json.loads(html.unescape(found[1]))
    for page, fault in faults:
        print(f"{page}: {fault}")
    print(f"{len(pages)} pages")
    return 1 if faults or len(pages) < 50 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
