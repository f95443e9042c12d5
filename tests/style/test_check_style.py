#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A check that cannot fail is a defect: for each check of check_style.py, a tree with one fault."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import check_style

SPDX = "/* SPDX-License-Identifier: MIT */\n"

# A small source tree without a fault. Each test changes the tree and expects one complaint.
GOOD = {
    ".clang-format": "DisableFormat: true\nSortIncludes: Never\n",
    "meson.build": "# SPDX-License-Identifier: MIT\n",
    "lib/README.md": """
| folder | may include | |
|---|---|---|
| `base/` | | the ground |
| `schedule/` | `base/` | pure |
| `owner/` | `base/` `schedule/` | |
| `hub/` | `base/` `schedule/` `owner/` | |
| `loop/` | `base/` `schedule/` | |
| `journal/` | `base/` | |
| `relay/` | `base/` `journal/` | |
""",
    "lib/timerhub.map": "T_0 {\n\tglobal:\n\t\ttimerhub_open;\n\tlocal:\n\t\t*;\n};\n"
                        "T_1 {\n\tglobal:\n\t\ttimerhub_loop_open;\n} T_0;\n",
    "lib/hub/open.c": SPDX + '#include "hub/hub.h"\n',
    "lib/hub/hub.h": SPDX + '#include <timerhub.h>\n\n#include "schedule/wheel.h"\n',
    "lib/schedule/wheel.h": SPDX + '#include "base/atomic.h"\n\n/* bitmap[w] is not a label */\n',
    "lib/schedule/wheel.c": SPDX + '/*\n * Wheel.\n *\n * Labels: [ready] put to take.\n */\n'
                          '#include "schedule/wheel.h"\n\n#include "base/clock.h"\n\n'
                          'int put(void)\n{\n\tu64_store_release(&word, 1); /* [ready] */\n}\n\n'
                          'int take(void)\n{\n\t/* [ready] then what it carries */\n'
                          '\treturn u64_load_acquire(&word);\n}\n',
    "lib/loop/timeout_table.h": SPDX + '#include <timerhub_loop.h>\n\n'
                                         '#include "schedule/wheel.h"\n',
    "lib/schedule/heap.h": SPDX,
    "lib/owner/notifier.h": SPDX,
    "lib/owner/sleeper.h": SPDX,
    "lib/owner/sleeper_poll.c": SPDX + '#include "owner/sleeper.h"\n',
    "lib/base/clock.h": SPDX,
    "lib/base/clock.c": SPDX + '#include "base/clock.h"\n\n#include <time.h>\n',
    "lib/base/atomic.h": SPDX + "#include <stdatomic.h>\n",
    "include/timerhub.h": SPDX + "\n/* Open. */\nTIMERHUB_API int timerhub_open(void);\n",
    "include/timerhub_loop.h": SPDX + "\n/* Open. */\nTIMERHUB_API int timerhub_loop_open(void);\n",
    "include/timerhub_journal.h": SPDX + "\n/* Put. */\nTIMERHUB_API int timerhub_journal_put();\n",
    "lib/journal/timerhub_journal.map":
        "T_0 {\n\tglobal:\n\t\ttimerhub_journal_put;\n\tlocal:\n\t\t*;\n};\n",
    "lib/journal/state.h": SPDX + '#include <timerhub_journal.h>\n\n#include "base/lock.h"\n',
    "lib/journal/writer.c": SPDX + '#include "journal/state.h"\n',
    "lib/journal/log.h": SPDX,
    "lib/base/lock.h": SPDX + "#include <pthread.h>\n\nvoid f(void)\n{\n"
                              "\tpthread_mutex_lock(&mutex);\n}\n",
    "include/timerhub_relay.h": SPDX + "\n/* Put. */\nTIMERHUB_API int timerhub_relay_put();\n",
    "lib/relay/timerhub_relay.map":
        "T_0 {\n\tglobal:\n\t\ttimerhub_relay_put;\n\tlocal:\n\t\t*;\n};\n",
    "lib/relay/shared.h": SPDX + '#include <timerhub_relay.h>\n\n#include "base/lock.h"\n',
    "lib/relay/wake_takers.c": SPDX + '#include "relay/shared.h"\n',
    "lib/relay/look_timing.h": SPDX,
    "tools/run": "#!/bin/sh\n# SPDX-License-Identifier: MIT\n",
    "examples/meson.build": "# SPDX-License-Identifier: MIT\n"
                            "test('loop', files('../tests/examples/test_loop.py'),\n"
                            "  suite: 'examples')\n",
    "tests/examples/test_loop.py": "# SPDX-License-Identifier: MIT\n",
    "tests/unit/meson.build": "# SPDX-License-Identifier: MIT\nunit_tests = ['heap']\n"
                              "test(name, suite: 'unit')\n",
    "tests/unit/test_heap.c": SPDX + "\nSTART_TEST(heap_is_sorted)\n{\n}\nEND_TEST\n\n"
                                     "void f(void)\n{\n\ttests_add(heap_is_sorted, 20);\n}\n",
}


def complaints_of(changes, format_program=None):
    """Returns the complaints about the good tree with these files added, or removed if None."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**GOOD, **changes}.items():
            if text is None:
                continue
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_style.check_all(root, format_program=format_program)


class Planted(unittest.TestCase):
    def fault(self, changes, expected, **options):
        """Exactly one kind of complaint, the expected one."""
        complaints = complaints_of(changes, **options)
        self.assertTrue(complaints, "not noticed")
        for complaint in complaints:
            self.assertIn(expected, complaint)

    def fine(self, changes):
        self.assertEqual(complaints_of(changes), [])

    def test_good_tree_is_fine(self):
        self.fine({})

    def test_invariant_without_its_name(self):
        table = SPDX + "static int lines[] = {\n\tLINE(heap_is_ordered, 1),\n};\n"
        self.fault({"tests/harness/heap_check.c": table},
                   "tests/harness/heap_check.c:3: heap_is_ordered is not in lib/README.md")
        self.assertNotIn("heap_is_ordered", "".join(complaints_of(
            {"tests/harness/heap_check.c": table,
             "lib/README.md": GOOD["lib/README.md"] + "`heap_is_ordered`\n"})))

    # ---- includes ----

    def test_include_upwards(self):
        self.fault({"lib/base/clock.h": SPDX + '#include "schedule/heap.h"\n'},
                   "lib/base/clock.h:2: includes schedule/heap.h: base/ may not")
        self.fault({"lib/owner/sleeper.h": SPDX + '#include "hub/hub.h"\n'}, "owner/ may not")

    def test_include_without_its_folder(self):
        self.fault({"lib/schedule/heap.h": SPDX + '#include "wheel.h"\n'}, "schedule/ may not")

    def test_folder_in_no_table(self):
        self.fault({"lib/util/a.c": SPDX + '#include "base/clock.h"\n'}, "util/ may not")
        for text in ("nothing\n", None):
            self.assertIn("lib/README.md: no table of folders",
                          complaints_of({"lib/README.md": text}))

    def test_circle_of_modules(self):
        self.fault({"lib/schedule/heap.h": SPDX + '#include "schedule/wheel.h"\n',
                    "lib/schedule/wheel.c": GOOD["lib/schedule/wheel.c"].replace(
                        '#include "base/clock.h"', '#include "schedule/heap.h"')},
                   "lib: a circle of includes: schedule/")
        self.fault({"lib/schedule/heap.h": SPDX + '#include "schedule/run.h"\n',
                    "lib/schedule/run.h": SPDX + '#include "schedule/pile.h"\n',
                    "lib/schedule/pile.h": SPDX + '#include "schedule/heap.h"\n'},
                   "lib: a circle of includes: schedule/")

    def test_foreign_header_away_from_home(self):
        for header in sorted(check_style.HOMES):
            for name in ("schedule/heap.h", "journal/log.h", "relay/look_timing.h"):
                self.fault({f"lib/{name}": SPDX + f"#include <{header}>\n"},
                           f"{header} is at home in")

    def test_libraries_do_not_look_into_each_other(self):
        self.fault({"lib/schedule/heap.h": SPDX + '#include "base/lock.h"\n'},
                   "schedule/ may not")
        self.fault({"lib/journal/log.h": SPDX + '#include "relay/shared.h"\n'},
                   "journal/ may not")

    def test_second_header_of_a_library(self):
        self.fault({"include/timerhub_loop.h": SPDX}, "timerhub_loop_open is not in")

    # ---- interface ----

    def test_function_missing_in_the_map(self):
        more = GOOD["include/timerhub.h"] + "\n/* Close. */\nTIMERHUB_API void timerhub_close();\n"
        self.fault({"include/timerhub.h": more}, "lib/timerhub.map: timerhub_close is missing")

    def test_symbol_missing_in_the_header(self):
        more = GOOD["lib/timerhub.map"].replace("open;", "open;\n\t\ttimerhub_close;")
        self.fault({"lib/timerhub.map": more}, "timerhub_close is not in include/timerhub.h")

    def test_every_node_of_a_map_is_read(self):
        more = GOOD["lib/timerhub.map"] + "\nT_1 {\n\tglobal:\n\t\ttimerhub_close;\n} T_0;\n"
        self.fault({"lib/timerhub.map": more}, "timerhub_close is not in include/timerhub.h")

    def test_maps_are_held_to_their_own_header(self):
        more = GOOD["lib/timerhub.map"].replace("open;", "open;\n\t\ttimerhub_journal_put;")
        self.fault({"lib/timerhub.map": more}, "is not in include/timerhub.h")
        none = GOOD["lib/journal/timerhub_journal.map"].replace("timerhub_journal_put;", "")
        self.fault({"lib/journal/timerhub_journal.map": none}, "timerhub_journal_put is missing")

    def test_exports_of_the_library(self):
        names = ["timerhub_open", "timerhub_inner"]
        self.assertEqual(check_style.compare("so", names, ["timerhub_open", "timerhub_close"]),
                         ["so: timerhub_close is missing",
                          "so: timerhub_inner is not in include/timerhub.h"])

    def test_public_function_without_comment(self):
        bare = SPDX + "\nTIMERHUB_API int timerhub_open(void);\n"
        self.fault({"include/timerhub.h": bare}, "without a comment")
        bare = bare.replace("open(void)", "journal_put()")
        self.fault({"include/timerhub_journal.h": bare}, "without a comment")

    def test_two_functions_may_share_a_comment(self):
        pair = GOOD["include/timerhub.h"] + "TIMERHUB_API int timerhub_close(void);\n"
        both = GOOD["lib/timerhub.map"].replace("open;", "open;\n\t\ttimerhub_close;")
        self.fine({"include/timerhub.h": pair, "lib/timerhub.map": both})

    # ---- memory order ----

    def wheel(self, old, new):
        self.assertIn(old, GOOD["lib/schedule/wheel.c"])
        return {"lib/schedule/wheel.c": GOOD["lib/schedule/wheel.c"].replace(old, new)}

    def test_label_used_once(self):
        self.fault(self.wheel(" /* [ready] */", ""), "[ready] has only one end")

    def test_label_with_two_releases(self):
        self.fault(self.wheel("u64_load_acquire(&word)", "u64_store_release(&word, 2)"),
                   "[ready] has only one end")

    def test_label_with_two_acquires(self):
        self.fault(self.wheel("u64_store_release(&word, 1)", "u64_load_acquire(&word)"),
                   "[ready] has only one end")

    def test_label_not_listed(self):
        self.fault(self.wheel(" * Labels: [ready] put to take.\n", ""), "no overview's list")

    def test_label_listed_and_not_used(self):
        more = self.wheel("to take.\n", "to take.\n *         [gone] nowhere.\n")
        self.fault(more, "[gone] is listed, and used nowhere")

    # ---- forbidden in lib ----

    def test_forbidden_in_lib(self):
        for bad in ("atomic_thread_fence(order)", "pthread_mutex_lock(&m)", "pthread_cond_wait(&c)",
                    "mtx_lock(&m)", "printf(text)", "exit(1)"):
            text = SPDX + f"\nvoid f(void)\n{{\n\t{bad};\n}}\n"
            self.fault({"lib/schedule/heap.h": text}, "lib/schedule/heap.h:5: ")
            self.fault({"lib/journal/log.h": text}, "lib/journal/log.h:5: ")

    def test_lock_is_at_home_in_one_file(self):
        self.fault({"lib/base/lock.h": SPDX + "\nvoid f(void)\n{\n\tpthread_cond_wait();\n}\n"},
                   "lib/base/lock.h:5: pthread_cond: a lock")

    def test_forbidden_words_may_be_talked_of(self):
        self.fine({"lib/schedule/heap.h": SPDX + "/* pthread_mutex_lock() is not for us. */\n"})

    # ---- prose ----

    def test_headless_subject(self):
        for word in ("who", "Whoever", "somebody", "nobody", "he", "his"):
            self.fault({"lib/schedule/heap.h": SPDX + f"/* The ring of\n * {word} posts. */\n"},
                       f'lib/schedule/heap.h:3: "{word}": name the actor')

    def test_where_prose_is(self):
        for name in ("lib/journal/log.h", "tests/models/timer.pml", "tests/a.c", "tools/demo/a.h",
                     "examples/a.c"):
            self.fault({name: SPDX + "/* Who posts. */\n"}, f"{name}:2: ")
        for name in ("README.md", "tests/README.md", "CHANGELOG.md", "man/timerhub.7"):
            self.fault({name: "Who posts.\n"}, f"{name}:1: ")

    def test_missing_noun(self):
        for comment in ("What waits.", "Files it. What waits is told.", "Here:\n * What waits.",
                        "Whatever waits."):
            self.fault({"lib/schedule/heap.h": SPDX + f"/* {comment} */\n"}, "say the noun")
        self.fine({"lib/schedule/heap.h": SPDX + "/* What is filed? */\n",
                   "README.md": "## What it is\n| What | how |\n"})

    def test_missing_verb(self):
        for words in ("is to be filed", "are to be filed", "is yet to come"):
            self.fault({"lib/schedule/heap.h": SPDX + f"/* It {words}. */\n"}, "say the verb")

    def test_missing_number(self):
        for words in ("so many", "so much", "so late"):
            self.fault({"tests/a.c": SPDX + f"/* It takes {words}. */\n"}, "say the number")
        self.fine({"README.md": "So many threads share a sync.\n"})

    def test_archaism(self):
        for word in ("anew", "Lest", "but for", "hence", "thereby", "meanwhile", "Besides",
                     "all the same", "first of all", "afresh", "sent away"):
            self.fault({"include/timerhub_relay.h": GOOD["include/timerhub_relay.h"] +
                        f"\n/* Filed {word} it. */\n"}, f'"{word}": condition, then result')

    def test_prose_is_not_code(self):
        self.fine({"lib/schedule/heap.h": SPDX + "int he(int nobody);\n",
                   "README.md": "## Who may free when\n",
                   "man/timerhub.7": ".Nm who\n"})

    # ---- tests ----

    def unit(self, old, new):
        text = GOOD["tests/unit/test_heap.c"]
        self.assertIn(old, text)
        return {"tests/unit/test_heap.c": text.replace(old, new)}

    def test_test_that_is_not_added(self):
        self.fault(self.unit("\ttests_add(heap_is_sorted, 20);\n", ""),
                   "tests/unit/test_heap.c:3: heap_is_sorted is never added")
        self.fault(self.unit("add(heap_is_sorted,", "add(heap_is_sorted_too,"), "is never added")
        self.fine(self.unit("add(heap_is_sorted, 20)", "add_loop(heap_is_sorted, 20, 3)"))

    def test_program_that_is_not_built(self):
        for name in ("test_wheel.c", "stress_wheel.c", "test_wheel.cc", "wheel_test.py"):
            spdx = SPDX if ".c" in name else "# SPDX-License-Identifier: MIT\n"
            self.fault({f"tests/unit/{name}": spdx}, f"tests/unit/{name}:1: is in no meson.build")
        self.fault({"tests/examples/test_heap.py": "# SPDX-License-Identifier: MIT\n",
                    "tests/unit/meson.build": None, "tests/unit/test_heap.c": None},
                   "tests/examples/test_heap.py:1: is in no meson.build")
        self.fine({"tests/unit/wheel_test.py": "# SPDX-License-Identifier: MIT\n",
                   "tests/unit/meson.build": GOOD["tests/unit/meson.build"] +
                   "test('wheel', files('wheel_test.py'), suite: 'unit')\n"})

    def test_suite_called_otherwise(self):
        spdx = "# SPDX-License-Identifier: MIT\n"
        for folder, suite in (("tests/unit", "unit"), ("examples", "examples"),
                              ("tools/demo", "tools")):
            text = GOOD.get(f"{folder}/meson.build", spdx) + "test(name, suite: 'service')\n"
            self.fault({f"{folder}/meson.build": text}, f"the suite is {suite}")

    # ---- shape ----

    def function(self, body_lines):
        return SPDX + "\nint f(void)\n{\n" + "\tg();\n" * body_lines + "}\n"

    def test_long_function(self):
        self.fine({"tests/a.c": self.function(66)})  # 69 lines with name and braces
        for folder in ("lib", "include", "examples", "tools", "tests"):
            name = "heap.h" if folder == "lib" else "a.h"
            self.fault({f"{folder}/{name}": self.function(67)}, "a function of 70 lines")

    def method(self, body_lines):
        return (SPDX + "namespace a\n{\ntemplate <class T> class B\n{\n\ttemplate <class U>\n"
                "\tvoid f()\n\t{\n" + "\t\tg();\n" * body_lines + "\t}\n};\n} // namespace a\n")

    def test_long_method(self):
        for name in ("include/a.hpp", "tests/a.cc"):
            self.fine({name: self.method(66)})  # a class or namespace may be longer
            self.fault({name: self.method(67)}, "a function of 70 lines")

    def test_long_line(self):
        for folder in ("lib", "include", "examples", "tools", "tests"):
            name = "heap.h" if folder == "lib" else "a.h"
            line = "/* " + "x" * 94 + " */"
            self.assertEqual(len(line), 100)
            self.fine({f"{folder}/{name}": SPDX + line + "\n"})
            self.fault({f"{folder}/{name}": SPDX + line.replace("x ", "xx ") + "\n"},
                       "101 columns")

    def test_tab_counts_as_eight_columns(self):
        text = GOOD["tools/run"] + "\t# " + "x" * 91 + "\n"
        self.fault({"tools/run": text}, "101 columns")

    def test_blanks_at_the_end(self):
        self.fault({"tools/run": GOOD["tools/run"] + "true \n"}, "blanks at the end")

    def test_unfinished(self):
        for word in ("TO" "DO", "FIX" "ME"):
            self.fault({"examples/a.h": SPDX + f"/* {word}: later */\n"}, "unfinished")

    def test_licence(self):
        for name, text in (("lib/schedule/heap.h", "/* Mine. */\n"), ("tools/meson.build", "\n"),
                           ("tools/a.py", "#!/usr/bin/env python3\npass\n"),
                           ("tools/a.sh", "true\n"), ("tools/run", "#!/bin/sh\ntrue\n"),
                           ("tests/a.c", "")):
            self.fault({name: text}, "SPDX")

    @unittest.skipUnless(check_style.clang_format(), "no clang-format of the right version")
    def test_format(self):
        self.fault({".clang-format": "BasedOnStyle: LLVM\n",
                    "tests/a.c": SPDX + "int  f( void ) ;\n"},
                   "code should be clang-formatted", format_program=check_style.clang_format())

    def test_an_spdx_line_has_only_the_license(self):
        self.fault({"tools/run": "#!/bin/sh\n# SPDX-License-Identifier: MIT Runs the tests.\n"},
                   "does not begin with an SPDX line")


class Program(unittest.TestCase):
    """The program itself: its output and exit status."""

    def run_on(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**GOOD, **changes}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            program = os.path.join(os.path.dirname(__file__), "check_style.py")
            return subprocess.run([program, folder], capture_output=True, text=True, check=False)

    def test_exit_status(self):
        self.assertEqual(self.run_on({}).returncode, 0)
        bad = self.run_on({"tools/run": "#!/bin/sh\n"})
        self.assertEqual(bad.returncode, 1)
        self.assertEqual(bad.stdout, "tools/run:1: does not begin with an SPDX line\n")


if __name__ == "__main__":
    unittest.main()
