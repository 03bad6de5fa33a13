"""Processes and memory seen from outside: what a program did is what the report says."""
import unittest

from harness import BIN, SYSTEM_PYTHON, Case

PROGRAM = str(BIN.parent / "tests" / "host_program")
MB = 1_000_000
# The kernel counts resident pages per CPU and adds them up lazily: some hundred pages may be missing at a reading.
SLACK = 4 * MB


class Host(Case):
    def test_memory_and_processes(self):
        self.record("run", PROGRAM)
        report = self.report("run")
        host = report["host"]
        self.assertIsNone(host["why"])
        self.assertGreater(host["readings_per_s"], 5)

        gains = {gain["range"]: gain["gained_bytes"] for gain in host["gains"]}
        self.assertAlmostEqual(gains["weights"], 200 * MB, delta=SLACK)
        self.assertAlmostEqual(gains["release"], -200 * MB, delta=SLACK)
        self.assertAlmostEqual(gains.get("scratch", 0), 0, delta=SLACK)  # took 50 MB and gave them back
        self.assertAlmostEqual(gains.get("load", 0), 0, delta=SLACK)  # what is left without the ranges inside it

        peak = host["peak"]
        self.assertGreaterEqual(peak["rss_bytes"], 220 * MB)
        self.assertEqual([open_["names"] for open_ in peak["open_ranges"]], [["load", "weights"]])
        self.assertEqual(max(point["rss_bytes"] for point in host["memory"]), peak["rss_bytes"])
        self.assertLessEqual(len(host["memory"]), 120)

        self.assertEqual(len(host["processes"]), 2)
        parent, child = host["processes"]
        self.assertGreaterEqual(parent["peak_rss_bytes"], 220 * MB)
        self.assertGreater(parent["user_ns"] + parent["system_ns"], 0)
        self.assertGreaterEqual(child["user_ns"] + child["system_ns"], 200_000_000)  # 300 ms, in ticks of 10 ms
        self.assertGreater(parent["minor_faults"], 100)
        self.assertGreater(parent["voluntary_switches"], 8)  # it slept so often
        self.assertEqual(parent["most_threads"], 2)  # its own and the collector's
        rows = self.query("run", "SELECT pid, injected, log IS NOT NULL AS has_log FROM process ORDER BY begin_ns")
        self.assertEqual([(row["pid"], row["injected"], row["has_log"]) for row in rows],
                         [(parent["pid"], True, True), (child["pid"], False, False)])

        text = self.llmprof("report", "run", "--full").stdout
        self.assertIn("open then: load › weights.", text)
        self.assertIn("+200 MB", text)

    def test_a_python_tree(self):
        script = self.write("tree.py", "import multiprocessing, time\n"
                                       "def work():\n  end = time.process_time() + 0.3\n"
                                       "  while time.process_time() < end: pass\n"
                                       "if __name__ == '__main__':\n"
                                       "  many = [multiprocessing.get_context('spawn').Process(target=work) for _ in range(2)]\n"
                                       "  [p.start() for p in many]\n  [p.join() for p in many]\n")
        self.record("run", SYSTEM_PYTHON, script)
        busy = [p for p in self.report("run")["host"]["processes"] if p["user_ns"] + p["system_ns"] >= 200_000_000]
        self.assertGreaterEqual(len(busy), 2)

    def life(self, name):
        report = self.report(name)
        life = report["life"]
        self.assertEqual(sum(phase["time_ns"] for phase in life["phases"]), life["time_ns"])
        self.assertTrue(life["ended"])
        return report["coverage"]["wall_ns"], life, {phase["name"]: phase["time_ns"] for phase in life["phases"]}

    def test_a_life_goes_from_exec_to_exit(self):
        self.record("run", "sleep", "0.3")  # a program without a single event
        wall, life, phases = self.life("run")
        self.assertEqual(wall, life["time_ns"])
        self.assertGreaterEqual(phases["idle"], 250_000_000)
        self.assertTrue(life["root"])

        # The main thread computes, waits for its child, and sleeps in an exit handler of its own.
        script = self.write("life.py", "import atexit, subprocess, sys, time\n"
                                       "atexit.register(time.sleep, 0.2)\n"
                                       "def compute(seconds):\n  end = time.process_time() + seconds\n"
                                       "  while time.process_time() < end: pass\n"
                                       "compute(0.4)\n"
                                       "subprocess.run(['sleep', '0.3'])\n")
        self.record("python", "sh", "-c", f"{SYSTEM_PYTHON} {script}; true")
        wall, life, phases = self.life("python")
        self.assertIn("life.py", life["arguments"])  # the shell only waits
        self.assertFalse(life["root"])
        self.assertLessEqual(life["time_ns"], wall)
        self.assertGreaterEqual(life["time_ns"], 900_000_000)
        self.assertLessEqual({"sh", "sleep"}, {other["name"].replace("dash", "sh").replace("bash", "sh") for other in life["concurrent"]})
        if life["sampled"]:
            self.assertGreaterEqual(phases["host_work"], 200_000_000)
            self.assertIn("compute", next(phase["evidence"] for phase in life["phases"] if phase["name"] == "host_work"))

    def test_a_life_that_nobody_watched(self):
        self.record("run", "sleep", "0.2", options=("--no-peaks", "--no-host"))
        wall, life, phases = self.life("run")
        self.assertEqual(list(phases), ["unknown"])
        self.assertGreaterEqual(wall, 200_000_000)
        self.assertFalse(life["sampled"])

    def test_can_be_left_out(self):
        self.record("run", SYSTEM_PYTHON, "-c", "import time; time.sleep(0.2)", options=("--no-peaks", "--no-host"))
        report = self.report("run")
        self.assertEqual(report["host"]["processes"], [])
        self.assertIn("--no-host", report["host"]["why"])
        self.assertEqual(report["coverage"]["processes"], 1)
        self.assertEqual(self.query("run", "SELECT count(*) AS n FROM process_usage")[0]["n"], 0)

    def test_rates_are_numbers(self):
        for flag in ("--usage-hz", "--sample-hz"):
            for value in ("0", "-1", "fast", "1e3", "100000"):
                self.llmprof("record", flag, value, "--", "true", status=1)

    def test_a_short_program_is_no_problem(self):
        for i in range(5):
            self.record(f"run{i}", "true")
            self.assertEqual(self.report(f"run{i}")["coverage"]["processes"], 1)

    def test_check_knows_the_recorders_log(self):
        self.record("run", "sleep", "0.2", options=("--no-peaks", "--keep-capture"))
        log = self.folder / "run.llmprof/capture/recorder.log"
        self.assertIn("usage", self.llmprof("check", str(log)).stdout)
        log.write_bytes(log.read_bytes()[:-5])
        self.assertIn("torn", self.llmprof("check", str(log), status=None).stdout)


if __name__ == "__main__":
    unittest.main()
