# SPDX-License-Identifier: MIT
"""timerhub-top from outside: it shows the values of timerhub_stats(), and survives bad data.

Usage: test_top.py TIMERHUB_TOP WATCHED [TEST]

The real tool observes a process that follows orders (watched.c). Nothing is timed. The test waits
up to a minute for the work of another thread. The live view runs in a terminal of tmux,
and is left out where there is none.
"""

import fcntl
import itertools
import json
import mmap
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from tmux import Terminal, eventually
from watched import Watched

TOP, WATCHED = sys.argv[1:3]
MANUAL, OBSERVABLE = 1, 2
HOUR = 3600 * 10**9
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 2, 4
F_GET_SEALS, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE = 1034, 1, 16
BOARD_NAME = "timerhub"
MAY_BIND = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps",
            "+net_bind_service", "--ambient-caps", "+net_bind_service"]
SEED = int(os.environ.get("TIMERHUB_TEST_SEED", "0"), 0) or random.getrandbits(32)

COUNTERS = ("armed", "refiled", "cancelled", "expired", "delivered", "overruns", "live", "live_max",
            "inbox_max", "owner_wakeups", "submit_wakes", "queue_signals", "cascaded",
            "clock_jumps", "slow_callbacks", "slow_sum_ns")


class Hubs(Watched):
    program = WATCHED

    def stats(self, hub):
        return json.loads(self.do(f"stats {hub}"))

    def boards(self):
        """The numbers of its fds that are boards."""
        return sorted(int(name) for name in os.listdir(f"/proc/{self.pid}/fd")
                      if os.path.realpath(f"/proc/{self.pid}/fd/{name}").startswith("/memfd:"))


def top(*arguments, **how):
    return subprocess.run([how.pop("program", TOP), *map(str, arguments)], capture_output=True,
                          text=True, check=False, timeout=60, **how)


def once(pid, *arguments):
    result = top("--once", "--json", *arguments, pid)
    assert result.returncode == 0 and result.stderr == "", result
    return json.loads(result.stdout)


def as_stats(hub):
    """Returns the tool's values, in the form of the process's own."""
    stats = {name: hub[name] for name in COUNTERS}
    stats["sleeper"] = {"none": 0, "io_uring": 1, "ppoll": 2}[hub["sleeper"]]
    for name in ("lateness", "delivery_lateness"):
        stats[name] = [0] * 64
        for below_ns, count in hub[name]["buckets"]:
            stats[name][63 if below_ns is None else below_ns.bit_length() - 2] = count
    return stats


class Json(unittest.TestCase):
    def test_counters_are_those_of_stats(self):
        with Hubs() as watched:
            watched.ok(f"hub m {MANUAL | OBSERVABLE} 1000", "queue 0", "queue 0",
                       "arm 0 0 100 300", "arm 0 1 10000 50", f"arm 0 0 {HOUR} 100", "advance 0 0")
            self.assertEqual(watched.do(f"rearm 0 {2 * HOUR} 10"), "10")
            self.assertEqual(watched.do("cancel 0 30"), "30")
            self.assertEqual(watched.do(f"rearm 0 {HOUR // 2} 20"), "20")
            self.check(watched, live=420, inbox=20, outbox=[0, 0])
            watched.ok("advance 0 2000")
            self.check(watched, live=420, inbox=0, outbox=[300, 0])
            self.assertEqual(watched.do("drain 0 0 120"), "120")
            self.check(watched, live=300, inbox=0, outbox=[180, 0])
            watched.ok(f"advance 0 {HOUR}")
            self.check(watched, live=300, inbox=0, outbox=[250, 50])
            # The first queue has 180 events from the first timerhub_advance() and 70 events from
            # the second.
            self.assertEqual(watched.do("drain 0 0 1000"), "250")
            self.assertEqual(watched.do("drain 0 1 1000"), "50")
            self.check(watched, live=0, inbox=0, outbox=[0, 0])
            self.assertGreater(watched.stats(0)["cascaded"], 0)
            self.assertEqual(watched.stats(0)["queue_signals"], 2)  # one to each queue
            self.assertEqual(once(watched.pid)["hubs"][0]["lateness"]["count"], 420)
            self.assertEqual(once(watched.pid)["hubs"][0]["delivery_lateness"]["count"], 420)

    def check(self, watched, live, inbox, outbox):
        hub = once(watched.pid)["hubs"][0]
        self.assertEqual(as_stats(hub), watched.stats(0))
        self.assertEqual((hub["live"], hub["inbox"], hub["outbox"]), (live, inbox, sum(outbox)))
        self.assertEqual([queue["outbox"] for queue in hub["queues"]], outbox)

    def test_what_lies_ahead(self):
        """The owner counts what falls due, at most once a second, before it sleeps."""
        with Hubs() as watched:
            watched.ok(f"hub t {OBSERVABLE} 500", "queue 0", f"arm 0 0 {30 * 10**9} 7",
                       f"arm 0 0 {2 * HOUR} 5", "arm 0 0 1100000000 1", "wait 0 0 1")
            hub = eventually(lambda: once(watched.pid)["hubs"][0].get("ahead", {}).get("within") ==
                             [[10**6, 0], [10**7, 0], [10**8, 0], [10**9, 0], [10**10, 0],
                              [6 * 10**10, 7], [6 * 10**11, 0], [HOUR, 0], [None, 5]])
            self.assertTrue(hub)

    def test_counters_of_a_hub_with_a_thread(self):
        with Hubs() as watched:
            watched.ok(f"hub t {OBSERVABLE} 5000", "queue 0")
            for delay_ns in (0, 1000, 300000, 1000000):
                watched.ok(f"arm 0 0 {delay_ns} 1000")
            watched.ok(f"arm 0 0 {HOUR} 500", "wait 0 0 4000")
            self.assertEqual(watched.do("cancel 0 200"), "200")
            delivered = 4000 + self.tries_until_woken(watched)
            # The owner may still be awake, so the two sets of numbers may differ at first.
            hub = eventually(lambda: self.agree(watched))
            self.assertEqual((hub["live"], hub["cancelled"], hub["delivered"], hub["expired"],
                              hub["lateness"]["count"]), (300, 200) + (delivered,) * 3)

    def tries_until_woken(self, watched):
        """Lets timers expire until the hub's thread has slept and been woken. Returns how many."""
        tries = 0
        while 0 in map(watched.stats(0).get, ("owner_wakeups", "submit_wakes")):
            self.assertLess(tries, 600)
            watched.ok("arm 0 0 10000000 1", "wait 0 0 1")
            tries += 1
        return tries

    def agree(self, watched):
        hub = once(watched.pid)["hubs"][0]
        return hub if as_stats(hub) == watched.stats(0) else None

    def test_hubs_are_told_apart(self):
        with Hubs() as watched:
            watched.ok(f"hub first {OBSERVABLE} 10", "hub hidden 0 20",
                       f'hub thi"r\\d {MANUAL | OBSERVABLE} 30', "queue 0", "queue 2", "queue 2",
                       f"arm 2 1 {HOUR} 3", f"arm 0 0 {HOUR} 1")
            said = once(watched.pid)
            self.assertEqual(said["pid"], watched.pid)
            hubs = said["hubs"]
            self.assertEqual([hub["thread"] for hub in hubs], ["first", 'thi"r\\d'])
            self.assertEqual([hub["clock"] for hub in hubs], ["monotonic", "manual"])
            self.assertEqual([hub["live"] for hub in hubs], [1, 3])
            self.assertEqual([hub["queue_count"] for hub in hubs], [1, 2])
            self.assertEqual([hub["timers_max"] for hub in hubs], [10, 30])
            fds = {os.readlink(f"/proc/{watched.pid}/fd/{queue['fd']}")
                   for hub in hubs for queue in hub["queues"]}
            self.assertEqual(fds, {"anon_inode:[eventfd]"})
            watched.ok("close 0")
            self.assertEqual([hub["thread"] for hub in once(watched.pid)["hubs"]], ['thi"r\\d'])

    def test_more_queues_than_are_listed(self):
        with Hubs() as watched:
            watched.ok(f"hub m {MANUAL | OBSERVABLE} 100", *["queue 0"] * 70, "arm 0 69 10 3",
                       "advance 0 20")
            hub = once(watched.pid)["hubs"][0]
            self.assertEqual((hub["queue_count"], len(hub["queues"]), hub["outbox"]), (70, 64, 3))

    def test_rates_with_an_interval(self):
        with Hubs() as watched:
            watched.ok(f"hub m {MANUAL | OBSERVABLE} 5000", "queue 0")
            self.assertNotIn("per_second", once(watched.pid)["hubs"][0])
            tool = subprocess.Popen([TOP, "-j", "-i", "0.1", str(watched.pid)], text=True,
                                    stdout=subprocess.PIPE)
            self.assertNotIn("per_second", json.loads(tool.stdout.readline())["hubs"][0])
            watched.ok("arm 0 0 100 1234")
            armed = 0
            for line in tool.stdout:
                hub = json.loads(line)["hubs"][0]
                armed += hub["per_second"]["armed"] * hub["elapsed_ns"] / 1e9
                if armed > 1233:
                    break
            self.assertAlmostEqual(armed, 1234, places=0)
            tool.terminate()
            tool.communicate()
            self.assertEqual(tool.returncode, 0)

    def test_text(self):
        with Hubs() as watched:
            watched.ok(f"hub m {MANUAL | OBSERVABLE} 5000", "queue 0", "arm 0 0 100 1234")
            result = top("-1", watched.pid)
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stdout, r"live timers +1,234 ")
            self.assertRegex(result.stdout, r"in the inbox +1,234 ")
            self.assertTrue(all(len(line) <= 80 for line in result.stdout.splitlines()))


class Listing(unittest.TestCase):
    def test_processes_that_can_be_watched(self):
        with Hubs() as watched, Hubs() as other:
            other.ok("hub m 0 10")
            watched.ok(f"hub m {OBSERVABLE} 10", f"hub n {OBSERVABLE} 10")
            self.assertEqual(watched.do("loop 1000 1"), "1")
            result = top()
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            lines = [line.split() for line in result.stdout.splitlines()]
            self.assertEqual(lines[0], ["PID", "COMMAND", "HUBS", "LOOPS"])
            self.assertIn([str(watched.pid), os.path.basename(WATCHED)[:15], "2", "1"], lines)
            self.assertNotIn(str(other.pid), [line[0] for line in lines])

    def test_overview(self):
        with Hubs() as watched:
            watched.ok(f"hub one {MANUAL | OBSERVABLE} 10", f"hub two {MANUAL | OBSERVABLE} 10",
                       "queue 1", "arm 1 0 10 3", "advance 1 20")
            self.assertEqual(watched.do("loop 1000 30"), "30")
            told = top("-1", watched.pid).stdout
            self.assertRegex(told, r"\n  1 one +0 +- +0 ")
            self.assertRegex(told, r"\n  2 two +3 +- +3 ")
            self.assertRegex(told, r"\n  3 a loop +30 ")


class Loops(unittest.TestCase):
    def test_a_loop_is_shown_beside_a_hub(self):
        with Hubs() as watched:
            self.assertEqual(watched.do("loop 1000 300"), "300")
            self.assertEqual(once(watched.pid)["hubs"], [])
            watched.ok(f"hub m {MANUAL | OBSERVABLE} 100")
            told = once(watched.pid)
            self.assertEqual(len(told["hubs"]), 1)
            loop, = told["loops"]
            for name, value in (("added", 300), ("turns", 4), ("callbacks", 300),
                                ("empty_wakes", 0), ("turn_max_ns", 0), ("refused", 2),
                                ("clock", "manual"), ("timeouts_max", 20000)):
                self.assertEqual(loop[name], value, name)
            self.assertEqual(loop["lateness"]["buckets"], [[1024, 300]])
            page = top("--once", watched.pid).stdout
            self.assertIn(", clock manual", page)
            self.assertRegex(page, r"callbacks +- +300")
            self.assertRegex(page, r"refused calls +- +2")
            self.assertIn("hub", page)
            text = top("--metrics", watched.pid).stdout
            for line in ('timerhub_loop_added{loop="0"} 300',
                         'timerhub_loop_callbacks_total{loop="0"} 300',
                         'timerhub_loop_turns_total{loop="0"} 4',
                         'timerhub_loop_refused_total{loop="0"} 2',
                         'timerhub_loop_lateness_seconds_bucket{loop="0",le="+Inf"} 300'):
                self.assertIn(line + "\n", text)

    def test_a_loop_with_its_own_flag_only(self):
        with Hubs() as watched:
            self.assertEqual(watched.boards(), [])
            self.assertEqual(watched.do("loop 1000 1"), "1")
            self.assertEqual(len(watched.boards()), 1)


class Metrics(unittest.TestCase):
    """Metrics of several hubs. unit/stats_metrics and test_stalls.py test their format."""

    def test_hubs_have_labels(self):
        with Hubs() as watched:
            watched.ok(f"hub o\"n\\e {MANUAL | OBSERVABLE} 1000", "hub hidden 0 20",
                       f"hub two {MANUAL | OBSERVABLE} 50", "queue 0", "arm 0 0 100 300",
                       f"arm 0 0 {HOUR} 40", "advance 0 0", "advance 0 2000", "arm 0 0 5 7")
            self.assertEqual(watched.do("drain 0 0 120"), "120")
            lines = top("--metrics", watched.pid).stdout.splitlines()
            self.assertEqual(lines[-1], "# EOF")
            comments = [line for line in lines if line.startswith("#")]
            self.assertEqual(len(comments), len(set(comments)))  # the hubs share each family
            told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
            for index, labels, room, inbox, outbox in (
                    (0, r'{hub="0",thread="o\"n\\e"}', "1000", "7", "180"),
                    (2, '{hub="2",thread="two"}', "50", "0", "0")):
                stats = watched.stats(index)
                self.assertEqual(told[f'timerhub_sleeper_info{labels[:-1]},sleeper="none"}}'], "1")
                stats["slow_callback_seconds"] = stats.pop("slow_sum_ns")
                for name in COUNTERS[:-1] + ("slow_callback_seconds",):
                    value = told.get(f"timerhub_{name}_total{labels}",
                                     told.get(f"timerhub_{name}{labels}"))
                    self.assertEqual(float(value), stats[name], name)
                for name in ("lateness", "delivery_lateness"):
                    every = f'timerhub_{name}_seconds_bucket{labels[:-1]},le="+Inf"}}'
                    self.assertEqual(told[every], str(sum(stats[name])))
                self.assertEqual([told[f"timerhub_{name}{labels}"]
                                  for name in ("timers_max", "inbox", "outbox")],
                                 [room, inbox, outbox])


class Process(unittest.TestCase):
    """The effects of TIMERHUB_OBSERVABLE on the process."""

    def test_the_board_is_read_only_and_keeps_its_size(self):
        with Hubs() as watched:
            watched.ok(f"hub m {OBSERVABLE} 100", "hub n 0 100")
            self.assertEqual(len(watched.boards()), 1)
            path = f"/proc/{watched.pid}/fd/{watched.boards()[0]}"
            with open(path.replace("/fd/", "/fdinfo/"), encoding="ascii") as info:
                flags = next(line for line in info if line.startswith("flags:"))
            self.assertTrue(int(flags.split()[1], 8) & os.O_CLOEXEC)
            fd = os.open(path, os.O_RDWR)
            seals = fcntl.fcntl(fd, F_GET_SEALS)
            wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
            self.assertEqual(seals & wanted, wanted)
            with self.assertRaises(OSError):
                os.ftruncate(fd, 0)
            if self.kernel_can_forbid_writing():
                with self.assertRaises(OSError):
                    os.pwrite(fd, b"x", 0)
                with self.assertRaises(OSError):
                    mmap.mmap(fd, 4096)
            os.close(fd)
            watched.ok("close 0")
            self.assertEqual(watched.boards(), [])

    def kernel_can_forbid_writing(self):
        with Fake(b"", 0) as fake:
            try:
                fcntl.fcntl(fake.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
            except OSError:
                return False
        return True

    def test_a_child_does_not_count_on_its_parents_board(self):
        with Hubs() as watched:
            watched.ok(f"hub m {MANUAL | OBSERVABLE} 100", "queue 0")
            child = watched.fork(0, 0)
            self.assertEqual(watched.stats(0)["delivered"], 3)
            self.assertEqual(once(watched.pid)["hubs"][0]["delivered"], 3)
            result = top("-1", child)
            self.assertEqual(result.returncode, 1)
            self.assertIn("forked", result.stderr)
            watched.ok("arm 0 0 1 10", "advance 0 10")
            self.assertEqual(as_stats(once(watched.pid)["hubs"][0]), watched.stats(0))

    def test_no_more_than_256_observable_hubs(self):
        with Hubs() as watched:
            for _ in range(256):
                watched.ok(f"hub m {MANUAL | OBSERVABLE} 1")
            self.assertEqual(len(once(watched.pid)["hubs"]), 256)
            fds = os.listdir(f"/proc/{watched.pid}/fd")
            self.assertEqual(watched.do(f"hub m {MANUAL | OBSERVABLE} 1"),
                             "No space left on device")
            self.assertEqual(os.listdir(f"/proc/{watched.pid}/fd"), fds)
            watched.ok("close 3", f"hub m {MANUAL | OBSERVABLE} 1")


class Refusals(unittest.TestCase):
    def refused(self, why, *arguments, **how):
        result = top(*arguments, **how)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn(why, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_no_such_process(self):
        with Hubs() as watched:
            watched.ok(f"hub m {OBSERVABLE} 100")
        self.refused(f"there is no process {watched.pid}", "-1", watched.pid)

    def test_no_observable_hub(self):
        with Hubs() as watched:
            watched.ok("hub m 0 100")
            self.refused("no hub opened with TIMERHUB_OBSERVABLE", "-1", watched.pid)
            watched.ok(f"hub m {OBSERVABLE} 100", "close 1")
            self.refused("no hub opened with TIMERHUB_OBSERVABLE", "-1", watched.pid)

    def test_a_process_that_lingers(self):
        process = subprocess.Popen(["true"])
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.refused(f"process {process.pid} has ended", "-1", process.pid)
        process.wait()

    def test_a_process_that_takes_its_time_to_end(self):
        """The tool says that a killed process has ended, even while it still closes many files."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        for _ in range(2):
            sockets = [end for _ in range(min(4000, limits[1] // 4)) for end in socket.socketpair()]
            with Hubs(fds=[end.fileno() for end in sockets]) as watched:
                for end in sockets:
                    end.close()
                watched.ok(f"hub m {OBSERVABLE} 100")
                tools = [subprocess.Popen([TOP, "-j", "-i", "0.05", str(watched.pid)], text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                         for _ in range(8)]
                for tool in tools:
                    tool.stdout.readline()
                watched.process.kill()
                for tool in tools:
                    self.assertIn(f"process {watched.pid} has ended", tool.communicate()[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def test_the_process_of_another_user(self):
        if os.geteuid() != 0:
            try:
                if os.stat("/proc/1").st_uid == os.geteuid():
                    self.skipTest("no process of another user is known")
            except FileNotFoundError:  # /proc is mounted with hidepid=invisible
                pass
            self.refused("may not be looked at", "-1", 1)
            return
        other = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
        try:
            subprocess.run(["true"], check=True, **other)
        except OSError as error:  # a namespace with one user refuses this
            self.skipTest(f"root may not become another user: {error}")
        with Hubs() as watched, tempfile.TemporaryDirectory() as folder:
            watched.ok(f"hub m {OBSERVABLE} 100")
            os.chmod(folder, 0o755)
            shutil.copy(TOP, folder)
            self.refused("may not be looked at", "-1", watched.pid,
                         program=os.path.join(folder, os.path.basename(TOP)), **other)
            # a process of the same user that may do more
            with Hubs(before=MAY_BIND) as watched:
                watched.ok(f"hub m {OBSERVABLE} 100")
                self.refused("may not be looked at", "-1", watched.pid,
                             program=os.path.join(folder, os.path.basename(TOP)), **other)

    def test_no_terminal(self):
        with Hubs() as watched:
            watched.ok(f"hub m {OBSERVABLE} 100")
            self.refused("this is no terminal", watched.pid, stdin=subprocess.DEVNULL)

    def test_usage(self):
        for arguments in (["-1"], ["x"], ["0"], ["-5"], ["1", "2"], ["99999999999999999999"],
                          ["1x"], ["-i", "0", "1"], ["-i", "nan", "1"], ["-i", "1e9", "1"],
                          ["-q", "1"], ["-m", "-j", "1"], ["-w", "0", "1"], ["-w", "5ms", "1"],
                          ["-w", "2h", "1"], ["-w", "1s"], ["-w", "never", "1"], ["-w", "@5", "1"],
                          ["-w", "1s", "-1", "1"], ["-w", "1s", "-i", "1", "1"],
                          ["-w", "1s", "-m", "1"]):
            result = top(*arguments)
            lines = result.stderr.splitlines()
            self.assertEqual((result.returncode, result.stdout, len(lines)), (2, "", 4), result)
            self.assertTrue(lines[0].startswith("usage: "), result)
            self.assertTrue(lines[3].startswith("timerhub-top: "), result)

    def test_memfds_that_are_no_boards(self):
        board, size = a_board(os.getpid())
        foreign, version = "not a hub's board", "another version"
        later = struct.pack("=I", struct.unpack_from("=I", board, 8)[0] + 1)
        for why, content, size_bytes, seals in (
                (foreign, b"", 0, F_SEAL_SHRINK),
                (foreign, b"x", 1, F_SEAL_SHRINK),
                (foreign, random.Random(SEED).randbytes(len(board)), size, F_SEAL_SHRINK),
                (foreign, board, size, 0),
                (foreign, board, size - 1, F_SEAL_SHRINK),
                (foreign, board[:40], 40, F_SEAL_SHRINK),
                (version, board[:8] + later + board[12:], size, F_SEAL_SHRINK),
                (version, board[:16] + struct.pack("=Q", size - 64) + board[24:], size,
                 F_SEAL_SHRINK),
                ("forked", a_board(1)[0], size, F_SEAL_SHRINK)):
            with Fake(content, size_bytes, seals):
                self.refused(why, "-1", os.getpid())
        with Fake(board, size):
            self.assertEqual(once(os.getpid())["hubs"][0]["thread"], "m")

    def test_garbage_does_no_harm(self):
        dice = random.Random(SEED)
        board, size = a_board(os.getpid())
        about_bytes = struct.unpack_from("=I", board, 12)[0]
        for run in range(40):
            content = bytearray(board)
            if run % 2 == 0:  # any byte of the header
                for _ in range(1 + run // 4):
                    content[dice.randrange(about_bytes)] = dice.randrange(256)
            else:  # all counters; names and numbers too
                content[28:about_bytes - 8] = dice.randbytes(about_bytes - 8 - 28)
                content[about_bytes:] = dice.randbytes(len(content) - about_bytes)
            with Fake(bytes(content), size):
                for arguments in (("-1",), ("-1", "-j"), ("-m",), ("-1", "-i", "0.05")):
                    result = top(*arguments, os.getpid())
                    self.assertIn(result.returncode, (0, 1) if run % 2 == 0 else (0,), SEED)
                    self.assertTrue(result.stdout.isascii() and result.stderr.isascii(), SEED)
                    if "-j" in arguments and result.returncode == 0:
                        json.loads(result.stdout)
                if run % 8 == 1:
                    self.watch_for_a_moment()

    def watch_for_a_moment(self):
        with subprocess.Popen([TOP, "-j", "-w", "10ms", str(os.getpid())], text=True,
                              stdout=subprocess.PIPE) as tool:
            status = pathlib.Path(f"/proc/{tool.pid}/status")
            eventually(lambda: int(re.search(r"SigCgt:\s(\w+)", status.read_text("ascii"))[1], 16)
                       & 1 << signal.SIGTERM - 1)  # before that, the signal would kill it
            time.sleep(0.2)
            tool.terminate()
            for line in tool.communicate()[0].splitlines():
                json.loads(line)
        self.assertEqual(tool.returncode, 0, SEED)


def a_board(pid):
    """Returns a real hub's counters with the pid changed to `pid`, and the size of their memfd."""
    with Hubs() as watched:
        watched.ok(f"hub m {MANUAL | OBSERVABLE} 100", "queue 0", "arm 0 0 1 10", "advance 0 5")
        with open(f"/proc/{watched.pid}/fd/{watched.boards()[0]}", "rb") as file:
            board = bytearray(file.read(65536))
            size = os.fstat(file.fileno()).st_size
    queues = size - 65535 * 192
    struct.pack_into("=I", board, 24, pid)
    return bytes(board[:queues]), size


class Fake:
    """A memfd of this process that has the name of a board, while the block lasts."""

    def __init__(self, content, size, seals=F_SEAL_SHRINK):
        self.fd = os.memfd_create(BOARD_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.pwrite(self.fd, content, 0)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, F_ADD_SEALS, seals)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class View(unittest.TestCase):
    def test_live_and_resized(self):
        with Hubs() as watched:
            watched.ok(f"hub m {MANUAL | OBSERVABLE} 5000", "queue 0", "arm 0 0 100 1234")
            with Terminal(TOP, 80, 30, "-i", "0.1", watched.pid) as terminal:
                terminal.shows('thread "m"', "1,234", "taken late", "q quit")
                watched.ok("arm 0 0 100 1111", "advance 0 300")
                terminal.shows("<   256 ns")
                eventually(lambda: any(line.startswith("live timers") and "2,345" in line
                                       for line in terminal.lines()))
                # tmux keeps the first 40 columns of the old screen's last line. The new screen's
                # last line has the same text, so the test also waits for a line above it.
                terminal.resize(40, 9)
                eventually(lambda: terminal.fits(40, 9, {3: "queue", -1: " q quit"}))
                terminal.resize(5, 2)
                eventually(lambda: terminal.fits(5, 2, {-1: " q q"}))
                terminal.resize(120, 50)
                terminal.shows("told late", "are not counted", "q quit  w who  a ahead  space")
                terminal.press("Space")
                terminal.shows("(paused)")
                watched.ok(f"arm 0 0 {HOUR} 1")
                terminal.press("Space")
                terminal.shows("2,346")
                terminal.press("q")
                terminal.shows("ended with 0")

    def test_what_matters_fits_a_small_screen(self):
        """The queues stand under the head, and the fullest first; the counters fit as well."""
        for columns, lines, fitting in ((80, 24, 3), (200, 60, 20)):
            with self.subTest(lines=lines), Hubs() as watched:
                watched.ok(f"hub m {MANUAL | OBSERVABLE} 5000", *["queue 0"] * 20,
                           "arm 0 3 100 7", "arm 0 9 100 20", "arm 0 12 100 1", "advance 0 200")
                with Terminal(TOP, columns, lines, "-i", "0.05", watched.pid) as terminal:
                    shown = terminal.shows("queue signals", "taken late")
                    self.assertTrue(all(len(line) <= columns for line in shown))
                    self.assertRegex(shown[2], r"^latest .{60}\|$")
                    self.assertRegex(shown[3], "^queue +fd")
                    self.assertEqual([int(line.split()[0]) for line in shown[4:7]], [9, 3, 12])
                    self.assertEqual("and 17 more in which less waits" in "\n".join(shown),
                                     fitting == 3)
                    self.assertIn("@ later", shown[4 + fitting + (fitting == 3)])

    def test_what_grows_is_marked(self):
        """With a colour, unless NO_COLOR forbids it."""
        for forbidden in (False, True):
            with self.subTest(forbidden=forbidden), Hubs() as watched:
                watched.ok(f"hub m {MANUAL | OBSERVABLE} 20000", "queue 0", "queue 0")
                with Terminal(TOP, 80, 24, "-i", "0.5", watched.pid,
                              environment="NO_COLOR=1" if forbidden else "") as terminal:
                    terminal.shows("queue signals")
                    times = itertools.count(1000, 1000)
                    line = eventually(lambda: self.grown(watched, terminal, next(times)))
                    self.assertRegex(line, r"^\[1m(\[31m)? +1 ")
                    self.assertEqual("[31m" in line, not forbidden)
                    terminal.press("q")

    def grown(self, watched, terminal, now_ns):
        """Makes another event wait. Returns the line marked as growing, with colours, or None."""
        watched.ok("arm 0 1 1 1", f"advance 0 {now_ns}")
        return next((line for line in terminal.coloured_lines() if line.endswith(" grows")), None)

    def test_several_hubs(self):
        with Hubs() as watched:
            watched.ok(f"hub one {MANUAL | OBSERVABLE} 10", f"hub two {MANUAL | OBSERVABLE} 10")
            with Terminal(TOP, 100, 30, "-i", "0.1", watched.pid) as terminal:
                terminal.shows("(1 of 2)", 'thread "one"', "tab next hub")
                terminal.press("o")
                terminal.shows("  1 one ", "  2 two ")
                terminal.press("o")
                terminal.press("Tab")
                terminal.shows("(2 of 2)", 'thread "two"')
                terminal.press("Tab")
                terminal.shows("(1 of 2)", 'thread "one"')
                watched.ok(f"hub three {MANUAL | OBSERVABLE} 10")
                terminal.shows("(1 of 3)")
                watched.ok("close 0")
                terminal.shows("(1 of 2)", 'thread "two"')
                watched.ok("close 1", "close 2")
                terminal.shows("no hub opened with TIMERHUB_OBSERVABLE", "ended with 1")

    def test_the_process_ends(self):
        with Hubs() as watched:
            watched.ok(f"hub m {OBSERVABLE} 10")
            with Terminal(TOP, 80, 24, "-i", "0.1", watched.pid) as terminal:
                terminal.shows('thread "m"')
                watched.process.kill()
                terminal.shows(f"process {watched.pid} has ended", "ended with 1")

    def test_interrupted(self):
        with Hubs() as watched:
            watched.ok(f"hub m {OBSERVABLE} 10")
            with Terminal(TOP, 80, 24, watched.pid) as terminal:
                terminal.shows('thread "m"')
                terminal.press("C-c")
                terminal.shows("ended with 0")


if __name__ == "__main__":
    print(f"top: seed {SEED}")
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
