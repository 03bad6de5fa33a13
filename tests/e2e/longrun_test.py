"""Recording a part of a program's run: windows, the flight recorder, dumps, and reading while the job runs."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from harness import BIN, LLMPROF, WORKLOAD, Case

PROGRAM = str(BIN.parent / "tests/long_program")
STEPS = "SELECT DISTINCT (payload >> 40) - 1 AS step FROM range WHERE name = 'decode' ORDER BY 1"


class Long(Case):
    def steps(self, run):
        return [row["step"] for row in self.query(run, STEPS)]

    def losses(self, run):
        expected = ("no_peaks", "no_stack_samples")  # by the options, or on this machine
        return {row["name"]: row["count"] for row in self.report(run)["losses"] if row["name"] not in expected}

    def window(self, name, *options, program=(20, 5, 3)):
        """Records the program with these options and returns what the report says about the window."""
        words = [str(word) for word in program]
        done = self.record(name, PROGRAM, *words, options=("--no-peaks", "--no-host", *options))
        self.assertEqual(done.stdout, "done\n")
        return self.report(name)["run"]["window"]

    def start(self, name, *options, program, environment=None):
        """Starts a recording and returns when the first step of the program is done."""
        ready = self.folder / (name + ".ready")
        words = [str(word) for word in program] + ["1", "0", str(ready)]
        process = subprocess.Popen([LLMPROF, "record", "-o", name, "--no-peaks", "--json", *options, "--", PROGRAM, *words],
                                   cwd=self.folder, env={**self.environment, **(environment or {})}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(lambda: ready.exists(), "the first step")
        return process

    def wait_for(self, condition, what, seconds=60):
        for _ in range(seconds * 50):
            if condition():
                return
            time.sleep(0.02)
        self.fail(f"{what} did not come")

    def end(self, process):
        out, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(out, "done\n")
        return json.loads(errors.splitlines()[-1])

    def root_pid(self, name):
        return json.loads((self.folder / f"{name}.llmprof/capture/record.json").read_text())["root_pid"]

    def logs(self, name):
        return sorted((self.folder / f"{name}.llmprof/capture").glob("*-*.log"))

    def written(self, name):
        return sum(log.stat().st_size for log in self.logs(name))


class Windows(Long):
    def test_steps(self):
        self.assertEqual(self.window("a", "--steps", "3:6"), "steps 3 to 5 of each process")
        self.assertEqual(self.steps("a"), [3, 4, 5])
        # Kept whole: the range around the steps, begun before and ended after them, and the model declared before.
        rows = self.query("a", "SELECT name, closed FROM range WHERE name = 'outer' OR kind = 'mark' ORDER BY 1")
        self.assertEqual(rows, [{"name": "outer", "closed": True}, {"name": '{"model_type": "toy"}', "closed": True}])
        # 20 steps of a push, 3 modules and a pop are 160 events, 3 in 20 of them inside.
        self.assertEqual(self.losses("a"), {"outside_window": 17 * 8})
        self.assertIn("Only a part of the run was recorded: steps 3 to 5", self.llmprof("report", "a", "--full").stdout)

    def test_steps_open_at_one_end(self):
        self.window("from", "--steps", "17:")
        self.assertEqual(self.steps("from"), [17, 18, 19])
        self.window("to", "--steps", ":2")
        self.assertEqual(self.steps("to"), [0, 1])

    def test_steps_by_name(self):
        self.window("named", "--steps", "4:5", "--step-range", "layers.*")
        # Three modules a step: the fifth is in step 1.
        self.assertEqual(self.steps("named"), [1])
        self.assertEqual(self.query("named", "SELECT count(*) AS n FROM range WHERE name = 'layers.0.mlp'"), [{"n": 1}])

    def test_steps_of_models(self):
        count = "SELECT name, count(*) AS n FROM range WHERE name IN ({}) AND category = '{}' GROUP BY 1"
        self.record("infer", WORKLOAD, "infer", "--preset", "tiny-llama", options=("--no-peaks", "--steps", "1:3"))
        # Step 0 is the prefill. The stage around the decode steps is none itself.
        self.assertEqual(self.query("infer", count.format("'prefill', 'decode'", "step")), [{"name": "decode", "n": 2}])
        self.record("train", WORKLOAD, "train", "--preset", "tiny", "--steps", "5",
                    options=("--no-peaks", "--steps", "2:4"))
        self.assertEqual(self.query("train", count.format("'train_step'", "stage")), [{"name": "train_step", "n": 2}])
        self.assertEqual(self.query("train", count.format("'backward'", "step")), [{"name": "backward", "n": 2}])

    def test_steps_are_counted_in_every_process(self):
        self.window("many", "--steps", "1:3", program=(5, 5, 1, 1, 2))
        rows = self.query("many", "SELECT process_id, list(DISTINCT (payload >> 40) - 1 ORDER BY (payload >> 40) - 1) "
                                  "AS steps FROM range WHERE name = 'decode' GROUP BY 1")
        self.assertEqual([row["steps"] for row in rows], ["[1, 2]"] * 3)

    def test_delay_and_duration(self):
        self.assertEqual(self.window("a", "--delay", "300ms", "--duration", "200ms", program=(200, 5, 1)),
                         "200 ms from 300 ms after the start on")
        # On a slow machine steps take longer, but none outside the window is there.
        clock = json.loads((self.folder / "a.llmprof/run.json").read_text())["clock"]
        self.assertEqual(clock, "CLOCK_MONOTONIC_RAW")
        rows = self.query("a", "SELECT min(end_ns) AS first_end, max(begin_ns) AS last_begin, (SELECT min(ts_ns) FROM "
                               "clock_sync WHERE process_id IS NULL) AS start FROM range WHERE name = 'decode'")[0]
        self.assertGreaterEqual(rows["first_end"], rows["start"] + 300_000_000)
        self.assertLess(rows["last_begin"], rows["start"] + 500_000_000)
        self.assertGreater(self.losses("a")["outside_window"], 0)

    def test_start_range(self):
        self.window("a", "--start-range", "deco*", "--duration", "1ms", program=(10, 20, 0))
        self.assertEqual(self.steps("a"), [0])
        self.window("b", "--start-range", "nothing of this name")
        self.assertEqual(self.steps("b"), [])
        self.window("c", "--start-range", "decode", "--delay", "1ms")
        steps = self.steps("c")
        self.assertEqual(steps, list(range(steps[0], 20)))

    def test_everything_is_no_window(self):
        self.assertIsNone(self.window("a"))
        self.assertEqual(self.steps("a"), list(range(20)))
        self.assertEqual(self.losses("a"), {})

    def test_usage(self):
        for words in (("--delay", "5"), ("--duration", "-1s"), ("--last", "0s"), ("--steps", "5"), ("--steps", "3:3"),
                      ("--last", "1s", "--delay", "1s"), ("--last", "1s", "--steps", "1:2"),
                      ("--steps", "1:2", "--duration", "1s"), ("--step-range", "x")):
            done = self.llmprof("record", "-o", "x", *words, "--", "true", status=1)
            self.assertIn("hint:", done.stderr, words)
            self.assertFalse((self.folder / "x.llmprof").exists())


class FlightRecorder(Long):
    def test_keeps_the_end_and_little_more(self):
        process = self.start("a", "--last", "400ms", program=(300, 5, 2))
        most_logs = most_bytes = 0
        while process.poll() is None:
            sizes = []
            for log in self.logs("a"):
                try:
                    sizes.append(log.stat().st_size)
                except FileNotFoundError:
                    pass
            most_logs, most_bytes = max(most_logs, len(sizes)), max(most_bytes, sum(sizes))
            time.sleep(0.02)
        tally = self.end(process)
        steps = self.steps("a")
        self.assertEqual(steps, list(range(steps[0], 300)))
        self.assertGreater(steps[0], 0)
        rows = self.query("a", "SELECT min(r.end_ns) >= max(p.end_ns) - 500000000 AS recent FROM range AS r, process AS p "
                               "WHERE r.kind = 'push_pop'")
        self.assertEqual(rows, [{"recent": True}])
        self.assertEqual(self.query("a", "SELECT name, closed FROM range WHERE name = 'outer'"),
                         [{"name": "outer", "closed": True}])
        self.assertEqual(self.query("a", "SELECT count(*) AS n FROM range WHERE kind = 'mark'"), [{"n": 1}])
        self.assertGreater({loss["name"]: loss["count"] for loss in tally["losses"]}["segments_dropped"], 0)
        # 400 ms in logs of 100 ms: four, the one being written, one not yet deleted; more when the writer came late.
        self.assertLess(most_logs, 20)
        self.assertLess(most_bytes, 200_000)
        self.assertEqual(self.report("a")["run"]["window"], "the last 400 ms")

    def test_max_size_bounds_the_ring(self):
        limit = 400_000
        process = self.start("a", "--last", "1h", "--max-size", str(limit), program=(150, 10, 2000))
        most = 0
        while process.poll() is None:
            sizes = []
            for log in self.logs("a"):
                try:
                    sizes.append(log.stat().st_size)
                except FileNotFoundError:
                    pass
            most = max(most, sum(sizes))
            time.sleep(0.01)
        tally = self.end(process)
        # What one drain brings is written before old logs are deleted.
        self.assertLess(most, 3 * limit)
        self.assertNotIn("size_limit", {loss["name"] for loss in tally["losses"]})
        steps = self.steps("a")
        self.assertEqual(steps[-1], 149)
        self.assertGreater(steps[0], 0)

    def test_killed_program(self):
        process = self.start("a", "--last", "300ms", program=(100000, 5, 2))
        self.wait_for(lambda: any(".5.log" in log.name for log in self.logs("a")), "the fifth log")
        os.kill(self.root_pid("a"), signal.SIGKILL)
        process.communicate(timeout=600)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        steps = self.steps("a")
        self.assertGreater(len(steps), 0)
        self.assertEqual(steps, list(range(steps[0], steps[-1] + 1)))
        self.assertEqual(self.query("a", "SELECT name, closed FROM range WHERE name = 'outer'"),
                         [{"name": "outer", "closed": False}])
        self.llmprof("check", "a")

    def test_killed_recorder(self):
        process = self.start("a", "--last", "300ms", program=(200, 5, 2))
        root = self.root_pid("a")
        process.kill()
        process.communicate(timeout=600)
        most = 0
        while os.path.exists(f"/proc/{root}"):  # goes on, and goes on deleting
            most = max(most, len(self.logs("a")))
            time.sleep(0.02)
        self.assertLess(most, 20)
        steps = self.steps("a")
        self.assertEqual(steps, list(range(steps[0], 200)))
        self.assertGreater(steps[0], 0)
        self.assertGreater(self.losses("a")["segments_dropped"], 0)


class Dumps(Long):
    def dump(self, *words):
        return json.loads(self.llmprof("record", "--json", "--dump", *words).stderr.splitlines()[-1])

    def test_two_dumps_of_a_running_program(self):
        process = self.start("a", "--last", "10m", program=(100000, 10, 2))
        first = self.dump("a", "-o", "one")
        self.assertEqual(first["run"]["path"], str(self.folder / "one.llmprof"))
        written = self.written("a")
        self.wait_for(lambda: self.written("a") > written, "more of the log")
        second = self.dump(str(self.root_pid("a")))  # by the pid of the program
        self.assertEqual(second["run"]["path"], str(self.folder / "a-dump-1.llmprof"))
        third = self.dump(str(process.pid), "-o", "three")  # by the pid of the recorder
        self.assertEqual(third["exit_status"], 0)
        (self.folder / "a.ready.stop").touch()
        self.end(process)
        steps = [self.steps(name) for name in ("one", "a-dump-1", "three", "a")]
        for some in steps:
            self.assertEqual(some, list(range(len(some))))
        self.assertLess(len(steps[0]), len(steps[1]))
        self.assertLessEqual(len(steps[1]), len(steps[2]))
        self.assertLessEqual(len(steps[2]), len(steps[3]))
        self.assertEqual(self.losses("one")["still_running"], 1)
        self.assertFalse((self.folder / "one.llmprof/capture").exists())

    def test_signal(self):
        process = self.start("a", program=(100000, 10, 2))  # also without --last
        os.kill(process.pid, signal.SIGRTMIN + 1)
        self.wait_for(lambda: (self.folder / "a-dump-1.llmprof/run.json").exists(), "the dump")
        (self.folder / "a.ready.stop").touch()
        self.end(process)
        steps, dumped = self.steps("a"), self.steps("a-dump-1")
        self.assertEqual(steps, list(range(len(steps))))
        self.assertEqual(dumped, list(range(len(dumped))))
        self.assertLess(len(dumped), len(steps))

    def test_usage(self):
        self.record("a", "true", options=("--no-peaks",))
        for words in (("a",), ("nobody",), ("999999999",), ("a", "--", "true")):
            done = self.llmprof("record", "--dump", *words, status=None)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn("hint:", done.stderr)


class WhileItRuns(Long):
    def is_reading(self, pid):
        names = [task.read_text() for task in pathlib.Path(f"/proc/{pid}/task").glob("*/comm")]
        return "llmprof-ingest\n" in names

    def test_little_is_left_to_read_at_the_end(self):
        environment = {"LLMPROF_LIVE_INGEST_BYTES": "100000"}
        process = self.start("a", program=(100000, 10, 1000), environment=environment)
        self.wait_for(lambda: self.is_reading(process.pid), "the thread that reads")
        time.sleep(2)  # the more it reads meanwhile the better, but it has to share the machine with all other tests
        (self.folder / "a.ready.stop").touch()
        tally = self.end(process)
        self.assertGreater(tally["followed_bytes"], 0)
        self.assertLess(tally["followed_bytes"], tally["log_bytes"])
        steps = len(self.steps("a"))
        self.assertEqual(self.losses("a"), {})
        self.assertEqual(self.query("a", "SELECT count(*) AS n, bool_and(closed) AS closed FROM range"),
                         [{"n": steps * 1001 + 2, "closed": True}])
        self.llmprof("check", "a")

    def test_children_that_end_meanwhile(self):
        self.record("a", PROGRAM, "60", "10", "200", "2", "3", options=("--no-peaks", "--json"),
                    env={**self.environment, "LLMPROF_LIVE_INGEST_BYTES": "20000"})
        rows = self.query("a", "SELECT process_id, count(*) AS n FROM range WHERE kind = 'push_pop' GROUP BY 1")
        self.assertEqual([row["n"] for row in rows], [2 * (60 * 201 + 1)] * 4)
        self.assertEqual(self.losses("a"), {})

    def test_killed_recorder_loses_nothing(self):
        process = self.start("a", program=(100000, 10, 500), environment={"LLMPROF_LIVE_INGEST_BYTES": "20000"})
        self.wait_for(lambda: self.is_reading(process.pid), "the thread that reads")
        root = self.root_pid("a")
        process.kill()
        (self.folder / "a.ready.stop").touch()
        process.communicate(timeout=600)
        self.wait_for(lambda: not os.path.exists(f"/proc/{root}"), "the end of the program")
        steps = self.steps("a")
        self.assertEqual(steps, list(range(len(steps))))
        self.assertEqual(self.query("a", "SELECT count(*) AS n, bool_and(closed) AS closed FROM range"),
                         [{"n": len(steps) * 501 + 2, "closed": True}])
        self.llmprof("check", "a")

    def test_short_runs_do_not_pay(self):
        done = self.record("a", PROGRAM, "20", "5", "3", options=("--no-peaks", "--json"))
        self.assertEqual(json.loads(done.stderr.splitlines()[-1])["followed_bytes"], 0)

    def test_max_size_holds_for_all_processes_together(self):
        limit = 300_000
        done = self.record("a", PROGRAM, "100", "10", "1000", "1", "3",
                           options=("--no-peaks", "--no-host", "--json", "--max-size", str(limit)))
        tally = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual(done.stdout, "done\n")
        # The recorder looks every 200 ms; four processes write about 50 kB in that time, more when it comes late.
        self.assertLess(tally["log_bytes"], 4 * limit)
        self.assertIn("size_limit", {loss["name"] for loss in tally["losses"]})


class Accountability(Long):
    def test_every_event_is_counted(self):
        self.record("a", PROGRAM, "50", "2", "400", options=("--no-host",))  # measures what an event costs
        report = self.report("a")
        cost = report["recording_cost"]
        # 50 steps of 401 ranges, the range around them, and the mark.
        self.assertEqual(cost["range_events"], 2 * (50 * 401 + 1) + 1)
        self.assertGreater(cost["log_bytes"], 0)
        self.assertGreater(cost["writer_cpu_ns"], 0)
        self.assertGreater(cost["recorder_cpu_ns"], 0)
        self.assertGreater(cost["range_event_ns"], 1)
        self.assertAlmostEqual(cost["delay_ns"], cost["range_events"] * cost["range_event_ns"], delta=1)
        stage = cost["stages"][0]
        self.assertEqual((stage["name"], stage["range_events"]), ("decode", 2 * 50 * 401))
        self.assertEqual(stage["flagged"], stage["share"] > 0.01)
        self.assertIn("Recording cost: 40103 events and 0 BLAS calls", self.llmprof("report", "a", "--full").stdout.replace("\n  ", " "))

    def test_events_outside_the_window_cost_too(self):
        self.window("a", "--steps", "3:6")
        self.assertEqual(self.report("a")["recording_cost"]["range_events"], 2 * (20 * 4 + 1) + 1)

    def test_unknown_costs_are_said(self):
        self.window("a")
        self.assertIsNone(self.report("a")["recording_cost"]["delay_ns"])
        self.assertIn("was not measured", self.report("a")["recording_cost"]["why"])


if __name__ == "__main__":
    unittest.main()
