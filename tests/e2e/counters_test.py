"""record --counters and --stalls, from the command line to rows of the run, with the driver and the CUPTI of tests/fakes. The
fake's values are known (tests/fakes/cupti_profiler.h); tests/faults/counters_test.py does the same with what fails."""
import json
import unittest

from harness import BIN, Case

FAKES = BIN.parent / "tests/fakes"
PROGRAM = str(FAKES / "counter_victim")
STEP_NS, PREFILL_NS = 2 * 2000 + 2 * 500, 20 * 2000 + 20 * 500  # kernels of 2,000 and 500 ns by turns: 4 and 40
TIME = "gpu__time_duration.sum"


def weight(metric):
    return 1 + sum(metric.encode()) % 97


def value_of(metric, ns):
    if metric == TIME:
        return ns
    return weight(metric) * (1 if "pct" in metric or "ratio" in metric else ns)


class CountersTest(Case):
    def setUp(self):
        super().setUp()
        self.environment.update(FAKE_CUDA=str(FAKES / "libcuda.so.1"), LLMPROF_CUPTI=str(FAKES / "libcupti.so.13"),
                                LD_LIBRARY_PATH=str(FAKES))

    def count(self, name, *options, program=("eager", "a", "30", "4"), script="", status=0):
        self.environment["FAKE_CUPTI"] = script
        return self.record(name, PROGRAM, *program, options=("--no-peaks", "--no-host", "--no-telemetry", *options),
                           status=status)

    def counters_of(self, name):
        return json.loads((self.folder / f"{name}.llmprof/run.json").read_text())["counters"]

    def plan_of(self, name):
        lines = (self.folder / f"{name}.llmprof/capture/counters.plan").read_text().splitlines()
        words = [line.split(" ", 1) for line in lines]
        return {word: [rest for key, rest in words if key == word] for word, _ in words}

    def losses_of(self, name, kind="counter%"):
        return self.query(name, f"SELECT name, count, detail, remedy FROM loss WHERE name LIKE '{kind}' ORDER BY ALL")

    def test_ranges(self):
        done = self.count("run", "--counters", "light", "--counters-budget", "0", "--json", "--keep-capture")
        told = "llmprof: counters: set light, range method: one window per step or stage, without a limit on its time"
        self.assertIn(told, done.stderr)
        asked = {"set": "light", "method": "range", "period_ns": None, "budget": 0, "replay": False, "stalls": None}
        self.assertEqual(self.counters_of("run"), asked)
        self.assertEqual(json.loads(done.stderr.splitlines()[-1])["counters"], asked)
        metrics = [line.split()[1] for line in self.plan_of("run")["metric"] if line.startswith("GH100 ")]
        self.assertIn(TIME, metrics)
        rows = self.query("run", "SELECT w.id, w.name, w.scope, c.metric, c.value, c.method, w.passes FROM counter c JOIN "
                          "counter_window w ON w.id = c.scope_id")
        steps = {row["id"] for row in rows if row["name"] == "decode_step"}
        self.assertGreaterEqual(len(steps), 20)
        self.assertEqual(len([row for row in rows if row["id"] in steps]), len(steps) * len(metrics))
        for row in rows:
            ns = {"decode_step": STEP_NS, "prefill": PREFILL_NS}[row["name"]]
            self.assertAlmostEqual(row["value"], value_of(row["metric"], ns), msg=row)
            self.assertEqual((row["scope"], row["method"], row["passes"]), ("range", "range", 1))
        # Each window contains its range, on the same thread.
        outside = self.query("run", "SELECT count(*) AS n FROM counter_window w WHERE NOT EXISTS (SELECT * FROM range r WHERE "
                             "r.thread_id = w.thread_id AND r.name = w.name AND w.begin_ns <= r.begin_ns AND w.end_ns >= r.end_ns)")
        self.assertEqual(outside[0]["n"], 0)
        self.assertEqual(self.losses_of("run"), [])
        self.assertEqual(self.llmprof("check", "run").returncode, 0)

    def test_named_ranges(self):
        self.count("run", "--counters", "dram_read_bytes,lts__t_sectors.sum", "--counters-range", "pre*,nothing",
                   "--counters-budget", "0", program=("eager", "a", "4", "4"))
        rows = self.query("run", "SELECT DISTINCT name FROM counter_window")
        self.assertEqual(rows, [{"name": "prefill"}])

    def test_kernels(self):
        self.count("run", "--counters", "light", "--counters-kernels", "gemm*", "--counters-budget", "0",
                   program=("kernels", "a", "20"))
        self.assertEqual(self.counters_of("run")["method"], "kernel")
        rows = self.query("run", "SELECT k.name, c.metric, c.value, k.end_ns - k.begin_ns AS ns FROM counter c JOIN kernel k "
                          "ON k.id = c.scope_id WHERE c.scope = 'kernel'")
        self.assertGreater(len(rows), 0)
        for row in rows:
            self.assertTrue(row["name"].startswith("gemm"), row)
            self.assertAlmostEqual(row["value"], value_of(row["metric"], 2000), msg=row)
        windows = self.query("run", "SELECT count(*) AS n, count(kernel_id) AS found FROM counter_window WHERE scope = 'kernel'")
        self.assertEqual(windows[0]["n"], windows[0]["found"])
        # A name may be spelled in several ways, of which a program has one.
        self.assertEqual(self.query("run", "SELECT text FROM note WHERE contains(text, 'no kernel')"), [])

    def test_replayed_kernels(self):
        """CUPTI gives no times of kernels that it executes again: values belong to them all the same, and their time is what the
        counter of time says, or unknown; never 0."""
        self.count("run", "--counters", "full", "--counters-kernels", "gemm*", "--replay", "--counters-budget", "0",
                   program=("kernels", "a", "20"))
        rows = self.query("run", "SELECT k.name, k.kernel_id, k.time_ns, k.time_source, c.metric, c.value FROM counter c JOIN "
                          "counted_kernel k ON k.id = c.scope_id WHERE c.scope = 'kernel'")
        self.assertEqual(len({row["metric"] for row in rows}), len(rows) / 60)
        self.assertGreater(len(rows) / 60, 20)
        for row in rows:
            self.assertEqual((row["name"], row["kernel_id"], row["time_ns"], row["time_source"]), ("gemm:2000", None, 2000, "counter"))
            self.assertAlmostEqual(row["value"], value_of(row["metric"], 2000), msg=row)
        self.assertEqual(self.losses_of("run"), [])
        lost = self.losses_of("run", "zero_times")
        self.assertEqual([row["count"] for row in lost], [60])
        self.assertIn("--replay", lost[0]["detail"])
        self.assertEqual(self.query("run", "SELECT count(*) AS n FROM kernel WHERE begin_ns = 0 OR starts_with(name, 'gemm')"), [{"n": 0}])
        report = self.report("run")
        kernels = [k for k in report["counters"] if k["name"].startswith("gemm")]
        self.assertEqual([(k["launches"], k["time_ns"]) for k in kernels], [(60, 60 * 2000)])
        self.assertTrue(any("60 launches" in note and "--replay" in note for note in report["hardware_counters"]["notes"]), report)
        out = self.folder / "roofs.csv"
        self.assertEqual(self.llmprof("export", "run", "-t", "roofline-csv", "-o", str(out)).returncode, 0)
        lines = [line.split(",") for line in out.read_text().splitlines() if "gemm:2000" in line]
        self.assertEqual([(line[0], line[3]) for line in lines], [("", "2000")] * 60)

    def test_replayed_kernels_without_a_time(self):
        self.count("run", "--counters", "dram__bytes_read.sum", "--counters-kernels", "gemm*", "--replay", "--counters-budget", "0",
                   program=("kernels", "a", "4"))
        self.assertEqual(self.query("run", "SELECT DISTINCT time_ns, time_source FROM counted_kernel"),
                         [{"time_ns": None, "time_source": None}])
        kernel, = self.report("run")["counters"]
        self.assertEqual((kernel["launches"], kernel["time_ns"], kernel["bytes_per_s"]), (12, None, None))
        text = self.llmprof("report", "run", "--full").stdout
        self.assertIn("times of 12 launches", " ".join(text.split()))

    def test_how_kernels_use_the_memory(self):
        self.count("run", "--counters", "access", "--counters-kernels", "gemm*", "--counters-budget", "0", program=("kernels", "a", "40"))
        kernels = [k for k in self.report("run")["counters"] if k["name"].startswith("gemm")]
        self.assertEqual(len(kernels), 1)
        loads, stores, local = (f"l1tex__t_{{}}_pipe_lsu_mem_{where}.sum" for where in ("global_op_ld", "global_op_st", "local_op_ld"))
        spilled = weight(local.format("sectors")) + weight(local.format("sectors").replace("_ld", "_st"))
        every = spilled + weight(loads.format("sectors")) + weight(stores.format("sectors"))
        wavefronts = weight("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")
        conflicts = weight("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")
        for key, value in (("sectors_per_load", weight(loads.format("sectors")) / weight(loads.format("requests"))),
                           ("sectors_per_store", weight(stores.format("sectors")) / weight(stores.format("requests"))),
                           ("bank_conflicts", conflicts / wavefronts), ("local_share", spilled / every)):
            self.assertAlmostEqual(kernels[0][key], value, msg=key)
        self.assertAlmostEqual(kernels[0]["local_bytes"] / kernels[0]["launches"], 32 * spilled * 2000)
        self.assertIsNone(kernels[0]["bytes_per_load_sector"])  # not in the set: it needs instructions in the kernel

    def test_hot_kernels(self):
        self.count("first", program=("kernels", "a", "10"))
        self.assertIsNone(self.counters_of("first"))
        # 10 steps of 3 kernels of 2,000 ns: 60,000 ns; of 3 of 500 ns; 10 graphs of 4 of 300 and one of 900 ns.
        done = self.count("hot", "--counters", "light", "--counters-hot", "1", "--counters-from", "first",
                          "--counters-budget", "0", program=("kernels", "a", "20"))
        self.assertIn("kernel method: launches of gemm", done.stderr)
        rows = self.query("hot", "SELECT DISTINCT k.name FROM counter c JOIN kernel k ON k.id = c.scope_id")
        self.assertEqual(len(rows), 1)
        self.assertTrue(rows[0]["name"].startswith("gemm"), rows)

    def test_samples(self):
        self.count("run", "--counters", "light", "--counters-period", "2ms", program=("eager", "a", "20", "4", "20000"))
        self.assertEqual(self.counters_of("run"), {"set": "light", "method": "sampled", "period_ns": 2_000_000, "budget": None,
                                                   "replay": False, "stalls": None})
        rows = self.query("run", "SELECT c.metric, c.value, c.method, w.end_ns - w.begin_ns AS ns FROM counter c JOIN "
                          "counter_window w ON w.id = c.scope_id WHERE w.scope = 'sample' AND w.process_id IS NULL LIMIT 2000")
        self.assertGreater(len(rows), 50)
        for row in rows:
            self.assertAlmostEqual(row["value"], weight(row["metric"]) * (1 if "pct" in row["metric"] else 2000), msg=row)
            self.assertEqual(row["method"], "sampled")

    def test_stalls(self):
        for flag, mode in (("--stalls", "with"), ("--stalls-only", "only")):
            self.count(mode, flag, program=("eager", "a", "60", "4", "5000"))
            self.assertEqual(self.counters_of(mode)["stalls"], mode)
            rows = self.query(mode, "SELECT kernel, offset_bytes, reason, issued, count(*) AS n, sum(samples)::BIGINT AS samples "
                              "FROM stall GROUP BY ALL")
            self.assertEqual({row["n"] for row in rows}, {1}, "one row a place and reason")
            places = {(row["kernel"].split(":")[0], row["offset_bytes"], row["reason"]) for row in rows}
            self.assertEqual(places, {(kernel, *at) for kernel in ("gemm", "norm")
                                      for at in ((0x100, "long_scoreboard"), (0x200, "wait"))})
            kernels = self.query(mode, "SELECT count(*) AS n FROM kernel")[0]["n"]
            self.assertEqual(kernels, 40 + 60 * 4 if mode == "with" else 0)

    def test_forbidden(self):
        for name, options in (("range", ()), ("sampled", ("--counters-period", "1ms"))):
            done = self.count(name, "--counters", "light", *options, script="forbidden=1",
                              program=("eager", "a", "20", "4", "10000"))
            self.assertIn("counters_forbidden", done.stderr)
            losses = self.losses_of(name, "counters_forbidden")
            self.assertGreaterEqual(len(losses), 1)
            self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", losses[0]["remedy"])
            self.assertEqual(self.query(name, "SELECT * FROM counter"), [])
            self.assertEqual(self.query(name, "SELECT count(*) AS n FROM kernel")[0]["n"], 40 + 20 * 4)

    def test_unknown_metric(self):
        self.count("run", "--counters", "dram_read_bytes,no_such__metric.sum", "--counters-budget", "0")
        self.assertEqual([(row["name"], row["detail"]) for row in self.losses_of("run", "counter_unknown")],
                         [("counter_unknown", "no_such__metric.sum")])
        self.assertGreater(len(self.query("run", "SELECT * FROM counter")), 10)

    def test_what_contradicts_is_refused(self):
        for options, words in (
                (("--counters", "lights"), "did you mean light?"),
                (("--counters", "dram__bytes_read"), ".sum"),
                (("--counters-budget", "3"), "add --counters SET"),
                (("--replay",), "add --counters SET"),
                (("--counters", "light", "--replay"), "--counters-kernels"),
                (("--counters", "light", "--counters-method", "often"), "one of auto, range, sampled, kernel"),
                (("--counters", "light", "--counters-method", "kernel"), "--counters-kernels PATTERNS"),
                (("--counters", "light", "--counters-method", "range", "--counters-kernels", "*"), "--counters-method kernel"),
                (("--counters", "light", "--counters-period", "50us"), "100us"),
                (("--counters", "light", "--counters-period", "1ms", "--counters-budget", "3"), "--counters-period"),
                (("--counters", "light", "--counters-method", "range", "--counters-period", "1ms"), "--counters-method sampled"),
                (("--counters", "light", "--counters-hot", "3"), "--counters-from RUN"),
                (("--counters", "light", "--counters-hot", "3", "--counters-from", "nothing"), "nothing"),
                (("--counters", "light", "--counters-budget", "101"), "from 0 to 100"),
                (("--counters", "light", "--stalls"), "record twice"),
                (("--stalls", "--stalls-only"), "leave out one"),
                (("--counters", "light", "--no-gpu"), "leave out --counters")):
            with self.subTest(options):
                done = self.count("refused", *options, status=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "", "the program was not started")
                self.assertFalse((self.folder / "refused.llmprof").exists())


if __name__ == "__main__":
    unittest.main()
