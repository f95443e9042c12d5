# SPDX-License-Identifier: MIT
"""timerhub-top --watch names the thread and the function of planted stalls, and nothing else.

Usage: test_stalls.py TIMERHUB_TOP WATCHED COUNT [LOAD SERVER SECONDS]

WATCHED stalls as it is told (watched.c). COUNT stalls are planted. With LOAD and SERVER, a server
under load must not be blamed for SECONDS, unless it gets no CPU.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

import openmetrics
from tmux import Terminal, eventually
from watched import Watched

TOP, Watched.program = sys.argv[1:3]
COUNT = int(sys.argv[3])
SERVER = sys.argv[4:7]
MANUAL, OBSERVABLE = 1, 2
STALL_MS, THRESHOLD_MS = 700, 150
KINDS = [("callback_computes", "queue"), ("callback_blocks", "loop"), ("handler_computes", "both"),
         ("no_consumer", "-"), ("no_cpu", "queue"), ("handler_blocks", "loop"),
         ("callback_computes", "loop"), ("callback_blocks", "both"), ("handler_computes", "loop"),
         ("no_cpu", "both"), ("callback_blocks", "queue"), ("handler_blocks", "queue"),
         ("callback_computes", "both"), ("handler_computes", "queue"), ("handler_blocks", "both")]


def leave_idle():
    """Exits with 0 if a thread may leave SCHED_IDLE, which needs CAP_SYS_NICE."""
    try:
        for policy in (os.SCHED_IDLE, os.SCHED_OTHER):
            os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        os._exit(1)
    os._exit(0)


if (child := os.fork()) == 0:
    leave_idle()
if os.waitpid(child, 0)[1] != 0:
    print("no thread may be kept from its CPU for a while here, so no_cpu is left out")
    KINDS = [(kind, where) for kind, where in KINDS if kind != "no_cpu"]


class Watch:
    def __init__(self, pid, *options):
        self.tool = subprocess.Popen([TOP, "-j", "--watch", f"{THRESHOLD_MS}ms", *options,
                                      str(pid)], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.tool.stdout:
            self.lines.append(json.loads(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tool.terminate()
        self.reader.join()
        self.tool.communicate()

    def ended(self):
        self.reader.join(60)
        return self.tool.wait(60), self.tool.stderr.read()


def pairs(lines):
    """Each stall's two lines; those that have not ended have one."""
    stalls = []
    for line in lines:
        key = (line.get("hub"), line.get("queue"), line.get("loop"))
        if line["stall"] == "begins":
            stalls.append((key, [line]))
        else:
            next(stall for stall in reversed(stalls) if stall[0] == key)[1].append(line)
    return [stall[1] for stall in stalls]


class Planted(unittest.TestCase):
    def test_each_stall_is_named(self):
        with Watched("places") as program, Watch(program.pid) as watch:
            for kind, where in itertools.islice(itertools.cycle(KINDS), COUNT):
                with self.subTest(kind=kind, where=where):
                    self.plant(program, watch, kind, where)

    def plant(self, program, watch, kind, where):
        before = len(watch.lines)
        cpu_ns = int(program.stall(f"{kind} {STALL_MS} {where}", lambda: watch.lines[before:]))
        found = eventually(lambda: self.complete(watch.lines[before:]))
        for begin, end in found:
            self.assertGreaterEqual(begin["for_ns"], THRESHOLD_MS * 10**6)
            self.assertGreaterEqual(end["for_ns"], begin["for_ns"])
            self.check(kind, where, begin, cpu_ns)
            self.check(kind, where, end, cpu_ns)
        if kind != "no_cpu":  # the thread gets its CPU now and then
            # What waits may become due only after the thread began to stand still.
            longest_ns = max(end["for_ns"] for begin, end in found)
            self.assertGreaterEqual(longest_ns, STALL_MS * 10**6 // 2)

    def complete(self, lines):
        found = pairs(lines)
        return found if found and all(len(pair) == 2 for pair in found) else None

    def check(self, kind, where, line, cpu_ns):
        self.assertEqual("loop" in line, where == "loop", line)
        if kind == "no_consumer":
            self.assertNotIn("thread", line)
            return
        thread = line["thread"]
        self.assertEqual(thread["name"], where)
        if kind == "no_cpu":
            self.assertEqual(thread["does"], "waiting for a CPU", line)
            return
        if kind.startswith("callback"):
            self.assertEqual(thread["where"], "callback", line)
            self.assertEqual(thread["function"],
                             kind.replace("callback", "timeout") if where == "loop" else kind)
        else:
            self.assertEqual(thread["where"], "away", line)
            self.assertNotIn("function", thread)
        if kind.endswith("blocks"):
            self.assertEqual(thread["does"], "blocked", line)
            self.assertIn(thread["syscall"], ("clock_nanosleep", ""))
        else:
            self.check_computes(line, cpu_ns)

    def check_computes(self, line, cpu_ns):
        """ran_ns is what the thread itself has measured. A busy machine lets it wait for a CPU."""
        thread = line["thread"]
        ran_ns, observed_ns = thread["ran_ns"], thread["observed_ns"]
        self.assertLess(ran_ns, cpu_ns + 20 * 10**6, line)
        if line["stall"] == "ends":
            unseen_ns = line["for_ns"] - observed_ns
            self.assertGreater(ran_ns, cpu_ns - unseen_ns - 100 * 10**6, line)
        self.assertEqual(thread["does"], "computing" if ran_ns >= observed_ns // 2
                         else "waiting for a CPU", line)

    def test_text(self):
        with Watched("places") as program:
            tool = subprocess.Popen([TOP, "-w", f"{THRESHOLD_MS}ms", str(program.pid)], text=True,
                                    stdout=subprocess.PIPE)
            begun = []
            program.stall(f"callback_blocks {STALL_MS} queue",
                          lambda: begun.append(tool.stdout.readline()) or begun)
            begin, end = begun[0], tool.stdout.readline()
            name = r'thread \d+ "queue" in callback_blocks \(timer [0-9a-f]+\), blocked'
            when = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z stall"
            self.assertRegex(begin, rf'{when} begins after .*: queue 1 of hub 0 "owner", \d+ wait; '
                                    + name)
            self.assertRegex(end, rf"{when} ends after .*{name}")
            tool.terminate()
            tool.communicate()


class Who(unittest.TestCase):
    """The page "who", and the same as JSON and OpenMetrics, while a callback blocks."""

    def told(self, program, *arguments):
        result = subprocess.run([TOP, "-1", *arguments, str(program.pid)], capture_output=True,
                                text=True, check=False, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_text_json_and_metrics(self):
        with Watched("places") as program:
            program.do("callback_blocks 30 queue")  # so that there is a slow callback
            program.process.stdin.write("callback_blocks 60000 queue\n")
            said = eventually(lambda: self.stalled(program))
            thread = next(row for row in said["threads"] if row["name"] == "queue")
            self.assertEqual((thread["where"], thread["function"], thread["state"]),
                             ("callback", "callback_blocks", "S"))
            hub, = said["hubs"]
            self.assertEqual([(slow["function"], slow["count"]) for slow in hub["slow"]],
                             [("callback_blocks", 1)])
            self.assertGreaterEqual(hub["slow"][0]["longest_ns"], 30 * 10**6)
            self.assertEqual(len(hub["blame"]), 1)
            self.assertRegex(hub["blame"][0], r'^queue 1 of hub 0: 1 wait, none taken for .*: '
                                              r'thread \d+ "queue" in callback_blocks for')
            self.check_text(program)
            self.check_metrics(program, thread["tid"])

    def stalled(self, program):
        said = json.loads(self.told(program, "-j"))
        waiting = [queue for queue in said["hubs"][0]["queues"] if queue["untaken_ns"] > 10**7]
        return said if waiting else None

    def check_text(self, program):
        page = self.told(program, "-i", "0.1")
        self.assertTrue(all(len(line) <= 80 for line in page.splitlines()), page)
        self.assertRegex(page, r'\n\d+ "queue" +in callback_blocks +\d+.* 0 % +\d+ ms S ')
        self.assertRegex(page, r"\ncallback_blocks +1 +[\d.]+ ms")
        self.assertRegex(page, r"callback_blocks\s+for .*,\s+blocked")

    def check_metrics(self, program, tid):
        try:
            families = openmetrics.parse(self.told(program, "-m"))
        except openmetrics.NoParser as none:
            self.skipTest(str(none))
        untaken = {sample[1]["queue"]: sample[2]
                   for sample in families["timerhub_queue_untaken_seconds"]["samples"]}
        self.assertGreater(untaken["1"], 0.01)
        self.assertEqual(untaken["0"], 0)
        inside = families["timerhub_thread_in_callback_seconds"]["samples"]
        self.assertEqual([sample[1] for sample in inside if sample[2] > 0],
                         [{"tid": str(tid), "name": "queue", "function": "callback_blocks"}])
        slow = families["timerhub_slow_function_calls"]["samples"]
        self.assertEqual([(sample[1]["function"], sample[2]) for sample in slow],
                         [("callback_blocks", 1)])

    def test_what_came_late_is_blamed_on_what_is_known(self):
        """A slow callback is blamed. The program's own handler is not: no library call runs it."""
        for kind, blamed in (("callback_blocks", r".*: callback_blocks was slow once, \d+ ms"),
                             ("handler_blocks", r"taken late \(p99 below .*\): "
                                                r'(not known why|thread \d+ "\w+" waited)')):
            with self.subTest(kind=kind), Watched("places") as program:
                tool = subprocess.Popen([TOP, "-j", "-i", "0.05", str(program.pid)], text=True,
                                        stdout=subprocess.PIPE)
                self.addCleanup(tool.communicate)
                self.addCleanup(tool.kill)
                tool.stdout.readline()
                program.do(f"{kind} {STALL_MS} queue")
                told = [sentence for line in itertools.islice(tool.stdout, 60)
                        for sentence in json.loads(line)["hubs"][0]["blame"]]
                self.assertTrue([sentence for sentence in told
                                 if re.search(f'^hub 0 "owner" {blamed}', sentence)], told)
                self.assertEqual([sentence for sentence in told if "was slow" in sentence] == [],
                                 kind == "handler_blocks", told)

    @unittest.skipUnless(shutil.which("tmux"), "no tmux")
    def test_the_page_in_a_terminal(self):
        """All of it is on the smallest screen, and the longest callback is the first row."""
        for columns, lines in ((80, 24), (200, 60)):
            with Watched("places") as program:
                program.process.stdin.write("callback_blocks 60000 both\n")
                with Terminal(TOP, columns, lines, "-i", "0.1", program.pid) as terminal:
                    terminal.shows("q quit  w who")
                    terminal.press("w")
                    shown = terminal.shows("in callback_blocks", "none taken for", "blocked")
                    self.assertTrue(all(len(line) <= columns for line in shown))
                    self.assertRegex(shown[2], r'^\d+ "both" +in callback_blocks')
                    terminal.press("w")
                    terminal.shows("hub 0 (1 of 3)")


class Lives(unittest.TestCase):
    def test_a_process_that_dies_in_a_stall(self):
        with Watched("places") as program, Watch(program.pid) as watch:
            program.process.stdin.write("callback_blocks 60000 queue\n")
            eventually(lambda: watch.lines)
            program.process.kill()
            program.process.wait()
            self.assertEqual(watch.ended(), (0, ""))
            self.assertEqual([line["stall"] for line in watch.lines], ["begins", "ends"])

    def test_exec_in_the_same_process(self):
        with Watched("places") as program, Watch(program.pid) as watch:
            program.stall(f"callback_blocks {STALL_MS} queue", lambda: watch.lines)
            eventually(lambda: len(watch.lines) == 2)
            self.assertEqual(program.do("exec 0"), "ready")
            program.stall(f"callback_blocks {STALL_MS} queue", lambda: watch.lines[2:])
            names = eventually(lambda: [line["thread"]["function"] for line in watch.lines[:]]
                               if len(watch.lines) == 4 else None)
            self.assertEqual(names, ["callback_blocks"] * 4)

    def test_clocks_of_another_time_namespace(self):
        """The process's clock is ahead of the tool's, or behind, by half the time since boot."""
        half_s = int(time.monotonic() / 2)
        for seconds in (half_s, -half_s):
            # The inner command is there because a process enters its new namespace at exec(2).
            before = ["unshare", "-T", "--monotonic", str(seconds), "--boottime", str(seconds)]
            if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
                self.skipTest("no time namespace may be made here")
            with self.subTest(seconds=seconds):
                began = time.monotonic()
                with Watched("places", before=before) as program, Watch(program.pid) as watch:
                    program.stall(f"callback_blocks {STALL_MS} queue", lambda: watch.lines)
                    eventually(lambda: len(watch.lines) == 2)
                    told = subprocess.run([TOP, "-1", "-j", str(program.pid)], check=True,
                                          capture_output=True, text=True, timeout=60)
                    most_ns = (time.monotonic() - began) * 10**9
                    open_ns = json.loads(told.stdout)["hubs"][0]["open_ns"]
                    self.assertGreater(open_ns, 0)
                    self.assertLess(open_ns, most_ns)
                    for line in watch.lines:
                        self.assertLess(line["for_ns"], most_ns)
                        self.assertEqual(line["thread"]["function"], "callback_blocks")

    def test_hubs_that_come_and_go(self):
        with Watched() as watched:
            watched.do(f"hub m {OBSERVABLE} 10")
            watched.do("queue 0")
            with Watch(watched.pid) as watch:
                watched.do("arm 0 0 1 1")
                eventually(lambda: len(watch.lines) == 1)
                watched.do("close 0")
                eventually(lambda: len(watch.lines) == 2)
                self.assertEqual(watched.do(f"hub n {OBSERVABLE} 10"), "ok")
                watched.do("queue 1")
                watched.do("arm 1 0 1 1")
                eventually(lambda: len(watch.lines) == 3)
                self.assertEqual(watch.lines[2]["hub"], 1)
                watched.do(f"hub manual {MANUAL | OBSERVABLE} 10")
                watched.do("queue 2")
                watched.fork(2, 0)
                watched.do("drain 1 0 100")
                eventually(lambda: len(watch.lines) == 4)
                watched.process.kill()
                watched.process.wait()
                self.assertEqual(watch.ended(), (0, ""))

    def test_a_manual_hub_has_no_time_of_its_own(self):
        with Watched() as watched:
            watched.do(f"hub m {MANUAL | OBSERVABLE} 10")
            watched.do("queue 0")
            watched.do("arm 0 0 1 1")
            watched.do("advance 0 100")
            with Watch(watched.pid) as watch:
                time.sleep(4 * THRESHOLD_MS / 1000)
                self.assertEqual(watch.lines, [])


@unittest.skipUnless(SERVER, "only with --all")
class Healthy(unittest.TestCase):
    def test_a_server_under_load_is_not_blamed(self):
        load, server, seconds = SERVER
        command = [load, "-n", "5000", "-d", seconds, "-w", TOP, server]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            hint = next(line for line in process.stdout if line.startswith("to see"))
            with Watch(int(hint.split()[-1])) as watch:
                process.communicate()
                self.assertEqual(watch.ended(), (0, ""))
        self.assertEqual(process.returncode, 0)
        for line in watch.lines:
            self.assertEqual(line["thread"]["does"], "waiting for a CPU", line)
        print(f"{len(watch.lines)} lines, each of a thread that waited for a CPU")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
