"""Recordings that are started and stopped while the program runs."""
import json
import os
import stat
import subprocess
import time
import unittest

from harness import BIN, LLMPROF, Case

PROGRAM = str(BIN.parent / "tests/long_program")
STEP_MS = 5


class Control(Case):
    def start(self, name, *options, steps=100000, children=0):
        """Starts a recording and returns when the first step of the program is done."""
        ready = self.folder / (name + ".ready")
        words = [str(steps), str(STEP_MS), "1", "1", str(children), str(ready)]
        process = subprocess.Popen([LLMPROF, "record", "-o", name, "--no-peaks", "--no-host", *options, "--", PROGRAM, *words],
                                   cwd=self.folder, env=self.environment, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(3000):
            if ready.exists():
                return process
            time.sleep(0.02)
        self.fail("the first step did not come")

    def end(self, name, process):
        (self.folder / (name + ".ready.stop")).touch()
        out, errors = process.communicate(timeout=600)
        self.assertEqual((process.returncode, out), (0, "done\n"), errors)
        return errors

    def control(self, command, status=0):
        done = self.llmprof("control", "socket", command, "--json", status=status)
        return json.loads(done.stdout)

    def test_only_what_overlaps_a_stretch_is_recorded(self):
        process = self.start("run", "--control", "socket", "--start-stopped", "--keep-capture")
        self.assertEqual(stat.S_IMODE(os.stat(self.folder / "socket").st_mode), 0o600)
        self.assertFalse(self.control("status")["recording"])
        time.sleep(0.3)
        for _ in range(2):
            self.assertTrue(self.control("start")["recording"])
            time.sleep(0.3)
            answer = self.control("stop")
            self.assertFalse(answer["recording"])
            time.sleep(0.3)
        self.assertEqual(answer["stretches"], 2)
        self.assertGreaterEqual(answer["recorded_seconds"], 0.6)
        self.assertFalse(self.control("stop", status=1)["ok"])
        errors = self.end("run", process)
        self.assertFalse((self.folder / "socket").exists())
        self.assertNotIn("log_unreadable", errors)

        # The times that the collector was told: on the clock of the run.
        lines = (self.folder / "run.llmprof/capture/control").read_text().splitlines()
        self.assertEqual([line.split()[1] for line in lines], ["on", "off", "on", "off"])
        times = [int(line.split()[0]) for line in lines]
        steps = self.query("run", "SELECT (payload >> 40) - 1 AS step, begin_ns, end_ns FROM range WHERE name = 'decode' "
                                  "ORDER BY begin_ns")
        self.assertGreater(steps[0]["step"], 0)
        seen = 0
        for on, off in (times[:2], times[2:]):
            # Steps follow each other closely, on a busy machine less so: those at the edges overlap them, and none is
            # missing between.
            inside = [row for row in steps if row["begin_ns"] < off and row["end_ns"] >= on]
            numbers = [row["step"] for row in inside]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
            self.assertLess(inside[0]["begin_ns"], off - 0.1e9)
            self.assertGreater(inside[-1]["end_ns"], on + 0.1e9)
            seen += len(inside)
        self.assertEqual(seen, len(steps))
        # The range around all of them is there once, with its true begin.
        outer = self.query("run", "SELECT begin_ns, end_ns FROM range WHERE name = 'outer'")
        self.assertEqual(len(outer), 1)
        self.assertLess(outer[0]["begin_ns"], times[0])
        self.assertGreater(outer[0]["end_ns"], times[3])
        self.assertIn("switched on 2 times", self.report("run")["run"]["window"])
        gaps = self.query("run", "SELECT begin_ns, end_ns, why FROM gap ORDER BY begin_ns")
        self.assertEqual([gap["why"] for gap in gaps], ["recording was switched off"] * 3)
        self.assertEqual([gaps[0]["end_ns"], gaps[1]["begin_ns"], gaps[1]["end_ns"], gaps[2]["begin_ns"]], times)

    def test_all_processes_obey_and_a_dump_holds_what_is_there(self):
        process = self.start("run", "--control", "socket", steps=600, children=1)  # 3 s, also of the child
        self.assertTrue(self.control("status")["recording"])
        time.sleep(0.5)
        self.control("stop")
        time.sleep(0.5)  # the last 200 ms may be in the memory of the program
        dumped = self.control("dump")["run"]
        steps = "SELECT process_id, count(*) AS n FROM range WHERE name = 'decode' GROUP BY 1 ORDER BY 1"
        counts = self.query(dumped, steps)
        self.assertEqual(len(counts), 2)
        self.assertTrue(all(row["n"] > 1 for row in counts), counts)
        self.end("run", process)
        self.assertEqual([row["n"] for row in self.query("run", steps)], [row["n"] for row in counts])

    def test_a_socket_that_cannot_be_made_starts_nothing(self):
        for path, words in (("no/such/folder/socket", "the control socket cannot be made"), ("x" * 120, "107 bytes"),
                            (self.write("file", "keep"), "is not a socket")):
            refused = self.record("run", "touch", "started", options=("--no-peaks", "--control", path), status=125)
            self.assertIn(words, refused.stderr)
            self.assertIn("hint:", refused.stderr)
        self.assertFalse((self.folder / "started").exists())
        self.assertFalse((self.folder / "run.llmprof").exists())
        self.assertEqual((self.folder / "file").read_text(), "keep")

    def test_options_that_contradict(self):
        for options in (("--start-stopped",), ("--control", "s", "--last", "5s"), ("--control", "s", "--profiler-api"),
                        ("--no-gpu", "--graphs", "all"), ("--graphs", "some"), ("--gpu", "kernels,watts"),
                        ("--stacks", "python", "--no-stacks")):
            refused = self.record("run", "true", options=("--no-peaks", *options), status=None)
            self.assertNotEqual(refused.returncode, 0, options)
            self.assertIn("llmprof:", refused.stderr)

    def test_settings_reach_the_program(self):
        def environment(*options):
            out = self.record("run", "env", options=("--no-peaks", "--no-host", "-f", *options)).stdout
            return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

        plain = environment()
        self.assertIn("CUDA_INJECTION64_PATH", plain)
        self.assertNotIn("LLMPROF_GRAPHS", plain)
        asked = environment("--graphs", "all", "--gpu", "memory,waits", "--stacks", "python,native")
        self.assertEqual((asked["LLMPROF_GRAPHS"], asked["LLMPROF_GPU"], asked["LLMPROF_STACKS"]), ("2", "7", "3"))
        self.assertNotIn("CUDA_INJECTION64_PATH", environment("--no-gpu"))
        self.assertEqual(environment("--profiler-api")["LLMPROF_PROFILER_API"], "1")


if __name__ == "__main__":
    unittest.main()
