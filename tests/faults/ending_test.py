"""Death and exit: whatever ends a program, its status is its own and its events are there."""
import os
import random
import signal
import subprocess
import time
import unittest

from oracle import COLLECT, LLMPROF, SOAK, SYSTEM_PYTHON, FaultCase, Recording

# name of the way in endings.cpp, whether exit handlers of the collector run (then nothing at all may be missing; None:
# chance decides)
WAYS = (
    ("exit", True), ("_exit", False), ("quick_exit", False), ("abort", False), ("throw", False), ("noexcept", False),
    ("thread_throw", False), ("segv", False), ("segv_handler", False), ("segv_altstack", False),
    ("stack_overflow", False), ("stack_overflow_altstack", False), ("fpe", False), ("ill", False), ("bus", False),
    ("pipe", False), ("sigterm", False), ("sigterm_handled", True), ("sigterm_ignored", True), ("sigkill", False),
    ("exit_in_atexit", False), ("exit_in_thread", True), ("exit_in_two_threads", None), ("exit_in_handler", False),
    ("busy_exit", True), ("events_in_atexit", True), ("main_thread_exits", True),
)


class Ending(FaultCase):
    def test_every_way_to_end(self):
        """C02, C05-C09: 100 events, 400 ms for them to reach the log, then the end."""
        children = [{"label": f"end-{way}", "scenario": "end_by", "arguments": [100, 400, way]} for way, _ in WAYS]
        recording = self.both(self.batch(children, at_once=8), host=True)
        self.check(recording, expect=("abnormal_end",), allow=("reentered", "after_exit"), late=("end-busy_exit",))
        for way, in_order in WAYS:
            with self.subTest(way):
                self.assertGreaterEqual(recording.recovered(f"end-{way}")[0], 100)
                if in_order is not None:
                    self.assertEqual("abnormal_end" not in recording.of_label(f"end-{way}"), in_order)

    def test_every_way_to_end_at_once(self):
        """The same without time to write: status and output still have to be right, and the accounts of those that
        end in order."""
        children = [{"label": f"now-{way}", "scenario": "end_by", "arguments": [50, 0, way]} for way, _ in WAYS]
        recording = self.both(self.batch(children, at_once=4))
        self.check(recording, allow=("reentered", "after_exit", "log_unreadable"), late=("now-busy_exit",),
                   killed=[f"now-{way}" for way, in_order in WAYS if not in_order])

    def test_status_of_the_command_itself(self):
        """The same as the program that was asked for, not as its child."""
        for way, status in (("abort", 128 + signal.SIGABRT), ("segv", 128 + signal.SIGSEGV), ("sigkill", 137), ("_exit", 5)):
            with self.subTest(way):
                recording = self.both(self.victim("end_by", way, 20, 300, way), name=f"status-{way}")
                self.assertEqual(recording.tally["exit_status"], status)
                self.check(recording, expect=("abnormal_end",))

    def test_sigkill_at_random_moments(self):
        """C01: 200 kills between the first instruction and 600 ms later; three threads each."""
        chance = random.Random(3)
        children = [{"label": f"kill-{i}", "scenario": "until_killed", "arguments": [1 + i % 3, 300],
                     "kill_ms": chance.choice((chance.uniform(0, 60), chance.uniform(0, 600)))}
                    for i in range(1000 if SOAK else 200)]
        recording = self.both(self.batch(children, at_once=8), host=True)
        # A log that was cut off inside its first 64 bytes cannot be opened; that is said, and nothing is taken from it.
        self.check(recording, expect=("abnormal_end",), allow=("torn_tail", "log_unreadable"),
                   killed=[child["label"] for child in children])
        self.assertGreater(sum(row["n"] for row in recording.streams), 1000)
        killed = sum("abnormal_end" in recording.of_label(child["label"]) for child in children)
        self.assertGreater(killed, len(children) // 2)

    def test_sigkill_of_the_whole_group(self):
        """C03: eight workers write; their group is killed."""
        recording = self.both(self.victim("kill_group", "group", 8, 900))
        self.check(recording, expect=("abnormal_end",), allow=("torn_tail",))
        self.assertEqual(len([p for p in recording.processes.values() if p["log"]]), 8)
        for i in range(8):
            self.assertGreater(recording.recovered(f"group.w{i}")[0], 100)

    def report_once_all_are_gone(self, run):
        """The recorder was waited for, its killed grandchildren cannot be: on a busy machine they take a moment to end."""
        end = time.monotonic() + 60
        while True:
            done = subprocess.run([LLMPROF, "report", run], cwd=self.folder, env=self.environment, capture_output=True,
                                  text=True)
            if done.returncode == 0:
                return
            self.assertIn("is still running", done.stderr)
            self.assertLess(time.monotonic(), end, done.stderr)
            time.sleep(0.1)

    def test_sigkill_of_llmprof_too(self):
        """C03: the group of the recorder and eight workers is killed. The next verb reads what is there."""
        (self.folder / "ledger").mkdir()
        words = self.victim("until_killed", "everybody", 8, 300)
        process = subprocess.Popen([LLMPROF, "record", "--no-peaks", "-o", "run", "--", *words], cwd=self.folder,
                                   env=dict(self.environment, FAULT_LEDGER=str(self.folder / "ledger")),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        capture = self.folder / "run.llmprof/capture"
        while not any(log.stat().st_size > 20000 for log in capture.glob("*.log")):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.report_once_all_are_gone("run")
        recording = Recording(self, "run", self.folder / "ledger")
        self.check(recording, expect=("abnormal_end",), allow=("torn_tail",))

    def test_jump_out_of_an_event(self):
        """C11: a signal handler leaves the middle of an event by siglongjmp. The thread is not recorded from then on;
        every event of it is counted, but for the one that was left."""
        jumps = 50
        recording = self.both(self.victim("jump_from_handler", "jump", jumps))
        ledger = recording.ledgers["jump"]
        found = sum(recording.recovered("jump").values())
        counted = sum(recording.of_label("jump").get(name, 0) for name in ("reentered", "buffer_full"))
        self.assertGreaterEqual(ledger.attempted[0], found + counted)
        self.assertLessEqual(ledger.attempted[0], found + counted + jumps)
        self.check_shown(recording)

    def test_leaving_a_hooked_call_sideways(self):
        """C11: a BLAS that throws or jumps. The calls that return are recorded, those that did not are not."""
        words = [str(COLLECT / "collect_client_dl"), "leave", str(COLLECT / "libcollect_plugin_a.so"),
                 str(COLLECT / "libcollect_fake_a.so")]
        recording = self.both(words)
        self.assertEqual(recording.query("SELECT m FROM gemm ORDER BY begin_ns"), [{"m": 3}, {"m": 4}, {"m": 6}])
        self.check(recording)

    def test_python(self):
        """Tracebacks, os._exit and sys.exit of an interpreter whose BLAS is hooked."""
        head = "import numpy as np, os, sys, time\na = np.ones((8, 8))\nfor i in range(5): a @ a\ntime.sleep(0.4)\n"
        for name, tail, ended in (("raise", "raise RuntimeError('nobody catches this')", True),
                                  ("os_exit", "os._exit(3)", True), ("sys_exit", "sys.exit('a message')", True),
                                  ("abort", "os.abort()", False), ("recursion", "f = lambda: f()\nf()", True)):
            with self.subTest(name):
                script = self.write(f"{name}.py", head + tail + "\n")
                recording = self.both([SYSTEM_PYTHON, script], name=f"python-{name}")
                self.assertEqual(recording.query("SELECT count(*) AS n FROM gemm"), [{"n": 5}])
                self.check(recording, expect=() if ended else ("abnormal_end",))

    def test_python_ends_at_once(self):
        """No product is missing, and the report counts as many as there are: of workers, which end by os._exit; of a program
        that Ctrl-C ends, which kills itself after its last word."""
        head = "import multiprocessing, os, signal, numpy as np\na = np.ones((8, 8))\ndef work(n):\n  for i in range(n): a @ a\n"
        workers = ("all = [multiprocessing.get_context('fork').Process(target=work, args=(40,)) for i in range(3)]\n"
                   "for one in all: one.start()\nfor one in all: one.join()\nprint([one.exitcode for one in all])\n")
        interrupted = "signal.signal(signal.SIGINT, signal.default_int_handler)\nwork(800)\nos.kill(os.getpid(), signal.SIGINT)\n"
        for name, tail, products, said in (("workers", workers, 120, ()), ("interrupted", interrupted, 800, ("abnormal_end",))):
            with self.subTest(name):
                script = self.write(f"{name}.py", head + tail)
                recording = self.both([SYSTEM_PYTHON, script], name=f"python-{name}")
                self.assertEqual(recording.query("SELECT count(*) AS n FROM gemm"), [{"n": products}])
                self.assertEqual(recording.query("SELECT sum(n)::BIGINT AS n FROM (SELECT max(gemm_events) AS n FROM collector_cost "
                                                 "GROUP BY process_id)"), [{"n": products}])
                self.check(recording, expect=said)


if __name__ == "__main__":
    unittest.main()
