#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A check that cannot fail is a defect: for each check of check_models.py, a model with a fault."""

import os
import pathlib
import subprocess
import tempfile
import unittest

BOTH = ["true", "true -DMORE=1"]
LIB = "/* Model: tests/models/small.pml. */\nstatic int step(int by)\n{\n\treturn by;\n}\n"

# A small model without a fault: two threads each add one to a sum.
GOOD = """/* SPDX-License-Identifier: MIT */
/*
 * Adding.
 *
 * Models:
 *   lib/small.c step()
 *
 * Laws:
 *   none_lost  both are
 *              counted
 *
 *   true
 *   true -DMORE=1
 *   bug IN_TWO_STEPS none_lost read, then written
 *   bug IN_TWO_STEPS none_lost -DMORE=1 the same,
 *                              with one more
 */
#ifndef MORE
#define MORE 0
#endif

byte sum, done;
bool none_lost = true;

proctype adder()
{
	byte seen;

#ifdef IN_TWO_STEPS
	seen = sum;
	sum = seen + 1;
#else
	atomic { seen = sum; sum = seen + 1 }
#endif
#if MORE
	seen = 0;
#endif
	done++
}

init {
	run adder();
	run adder();
	done == 2;
	none_lost = (sum == 2);
	assert(none_lost)
}
"""


LUA = "-- Model: tests/models/small.pml.\nlocal function step(by)\n    return by\nend\n"


def run_on(model, words=(), lib=LIB, other="", lua=""):
    """The runner's exit status, and its output, on this model and this library."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "lib").mkdir()
        (root / "lib" / "small.c").write_text(lib, encoding="utf-8")
        (root / "lib" / "other.c").write_text(other, encoding="utf-8")
        (root / "lib" / "relay").mkdir()
        (root / "lib" / "relay" / "small.lua").write_text(lua, encoding="utf-8")
        path = root / "small.pml"
        path.write_text(model, encoding="utf-8")
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_models.py")
        done = subprocess.run([program, root, path, *words], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr


class Planted(unittest.TestCase):
    def fault(self, old, new, where, complaint, words=("NOTHING",)):
        """Replaces `old` by `new`. Only the expected check may fail."""
        self.assertIn(old, GOOD)
        self.failed(where, complaint, *run_on(GOOD.replace(old, new), words))

    def failed(self, where, complaint, status, output):
        self.assertEqual(status, 1, output)
        failed = [line.split(" - ")[1] for line in output.splitlines() if line.startswith("not ok")]
        self.assertEqual(failed, where if isinstance(where, list) else [where], output)
        self.assertIn(complaint, output)

    def test_good_model_is_fine(self):
        status, output = run_on(GOOD)
        self.assertEqual(status, 0, output)
        names = [line.split(" - ")[1].split(":")[0] for line in output.splitlines()[1:]]
        self.assertEqual(names, ["header", "true", "true -DMORE=1", "bug -DIN_TWO_STEPS",
                                 "bug -DIN_TWO_STEPS -DMORE=1", "every line is reached"])
        self.assertEqual(output.splitlines()[0], "1..6")

    # ---- the header ----

    def header(self, old, new, complaint):
        self.fault(old, new, "header", complaint)

    def test_no_header(self):
        self.header(" */\n#ifndef MORE", "\n#ifndef MORE", "no header")

    def test_line_that_is_not_understood(self):
        self.header("bug IN_TWO_STEPS none_lost -DMORE=1", "bug IN_TWO_STEPS none_lost -DMORE+",
                    "what is this")
        self.header("true -DMORE=1", "true MORE=1", "what is this")
        self.header("*   lib/small.c step()", "*   small.c step()", "what is this")

    def test_function_that_is_not_there(self):
        self.header("step()", "step() leap()", "has no function leap()")

    def test_file_that_is_not_there(self):
        self.header("lib/small.c", "lib/large.c", "lib/large.c is not there")

    def test_code_that_does_not_name_its_model(self):
        self.failed("header", "lib/small.c does not name this model",
                    *run_on(GOOD, ["NOTHING"], lib=LIB.replace("small.pml", "large.pml")))

    def test_lua_is_read_too(self):
        listed = GOOD.replace("step()\n", "step()\n *   lib/relay/small.lua step()\n")
        self.assertEqual(run_on(listed, ["NOTHING"], lua=LUA)[0], 0)
        self.failed("header", "lib/relay/small.lua has no function step()",
                    *run_on(listed, ["NOTHING"], lua=LUA.replace("local function", "function")))
        self.failed("header", "lib/relay/small.lua names this model, and is not modelled",
                    *run_on(GOOD, ["NOTHING"], lua=LUA))

    def test_code_that_is_not_modelled(self):
        self.failed("header", "lib/other.c names this model, and is not modelled",
                    *run_on(GOOD, ["NOTHING"], other=LIB))

    def test_law_not_asserted(self):
        self.header("assert(none_lost)", "assert(true)", "law none_lost is not asserted")

    def test_law_that_no_bug_breaks(self):
        self.header("*   none_lost", "*   one_lost", "no bug breaks law one_lost")

    def test_law_not_listed(self):
        self.header("IN_TWO_STEPS none_lost read", "IN_TWO_STEPS one_lost read",
                    "law one_lost is not listed")

    def test_bug_not_listed(self):
        self.header("#ifdef IN_TWO_STEPS", "#if defined(IN_TWO_STEPS) || defined(IN_THREE)",
                    "IN_THREE is listed nowhere")

    def test_bug_not_planted(self):
        self.header("#ifdef IN_TWO_STEPS", "#if 0", "IN_TWO_STEPS is listed, and not in the model")

    def test_bug_listed_twice(self):
        self.header("none_lost -DMORE=1 the", "none_lost the",
                    "bug -DIN_TWO_STEPS is listed twice")

    def test_no_true_configuration(self):
        self.header(" *   true\n *   true -DMORE=1\n", "", "no true configuration")

    # ---- what Spin finds ----

    def test_true_model_that_is_wrong(self):
        self.fault("atomic {", "{", BOTH, "assertion violated none_lost", ["true"])

    def test_true_model_that_hangs(self):
        self.fault("done == 2", "done == MORE + 2", "true -DMORE=1", "invalid end state", ["true"])

    def test_bug_not_found(self):
        self.fault("#ifdef IN_TWO_STEPS\n", "#if defined(IN_TWO_STEPS) && MORE\n",
                   "bug -DIN_TWO_STEPS", "not found", ["IN_TWO"])

    def test_bug_found_as_something_else(self):
        self.fault("#if MORE\n", "#if MORE\n\tassert(sum == 2);\n", "bug -DIN_TWO_STEPS -DMORE=1",
                   "found as: assertion violated (sum==2)", ["IN_TWO"])

    def test_search_that_does_not_end(self):
        self.fault("done++\n", "done++;\n\tint i;\n\tdo\n\t:: i < 300000 -> i++\n\t:: else -> "
                   "break\n\tod\n", BOTH, "max search depth too small", ["true"])

    def test_model_that_is_not_promela(self):
        self.fault("done == 2", "done = = 2", BOTH, "spin failed", ["true"])

    def test_line_never_reached(self):
        self.fault("\tdone == 2;\n", "\tdone == 2;\n\tif\n\t:: sum > 2 ->\n\t\tsum = 0\n"
                   "\t:: else\n\tfi;\n", "every line is reached", "small.pml:47 is never reached",
                   [])


if __name__ == "__main__":
    unittest.main()
