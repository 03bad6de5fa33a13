"""Hardware counters against a CUPTI that misbehaves (tests/fakes): every value that is recorded is the one that the fake gave,
whatever fails; the program does alone and recorded the same; what could not be counted is said."""
import concurrent.futures
import json
import math
import sys
import unittest

from cupti_test import CUPTI, FAKES, GpuCase
from oracle import BATCH, SHIM

PROGRAM = str(FAKES / "counter_victim")
TIME = "gpu__time_duration.sum"
LIGHT = (TIME, "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "sm__cycles_active.avg",
         "sm__warps_active.avg.pct_of_peak_sustained_active")
SASS = ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum")
# 17 of the hardware, eight a pass, and the instrumented ones: four passes
FULL = LIGHT + tuple(f"lts__t_sectors_op_{i}.sum" for i in range(11)) + SASS
# What the kernels of a range or a kernel take in all (counter_victim.cpp): 4 kernels by turns, 40, a graph of 5.
STEP_NS, PREFILL_NS, GRAPH_NS = 2 * 2000 + 2 * 500, 20 * 2000 + 20 * 500, 4 * 300 + 900

# Errors that mean: not allowed, held by another, anything else.
FORBIDDEN, HELD, OTHER = 35, 26, (1, 7, 8, 15, 27, 999)
SAID = ("counters_failed", "counters_forbidden", "counters_held", "counters_skipped", "counter_unknown")
# Of what is thrown away anyway: nothing is missing when they fail.
OF_THE_END = ("cuptiRangeProfilerDisable", "cuptiProfilerHostDeinitialize", "cuptiPCSamplingDisable")
# Of what is tried in another way: metrics one by one, samples with CUPTI's own period.
TRIED_AGAIN = ("cuptiProfilerHostConfigAddMetrics", "cuptiPCSamplingSetConfigurationAttribute")
HOST_CALLS = ("cuptiDeviceGetChipName", "cuptiProfilerHostInitialize", "cuptiProfilerHostDeinitialize",
              "cuptiProfilerHostConfigAddMetrics", "cuptiProfilerHostGetConfigImageSize", "cuptiProfilerHostGetConfigImage",
              "cuptiProfilerHostGetNumOfPasses", "cuptiProfilerHostEvaluateToGpuValues")
RANGE_CALLS = ("cuptiProfilerInitialize", "cuptiRangeProfilerEnable", "cuptiRangeProfilerDisable", "cuptiRangeProfilerSetConfig",
               "cuptiRangeProfilerStart", "cuptiRangeProfilerStop", "cuptiRangeProfilerPushRange", "cuptiRangeProfilerPopRange",
               "cuptiRangeProfilerDecodeData", "cuptiRangeProfilerGetCounterDataSize",
               "cuptiRangeProfilerCounterDataImageInitialize", "cuptiRangeProfilerGetCounterDataInfo",
               "cuptiRangeProfilerCounterDataGetRangeInfo")
PC_CALLS = ("cuptiPCSamplingEnable", "cuptiPCSamplingDisable", "cuptiPCSamplingSetConfigurationAttribute",
            "cuptiPCSamplingStart", "cuptiPCSamplingStop", "cuptiPCSamplingGetData", "cuptiPCSamplingGetNumStallReasons",
            "cuptiPCSamplingGetStallReasons")

PM_CALLS = ("cuptiProfilerInitialize", "cuptiPmSamplingEnable", "cuptiPmSamplingSetConfig", "cuptiPmSamplingStart",
            "cuptiPmSamplingGetCounterDataSize", "cuptiPmSamplingCounterDataImageInitialize", "cuptiPmSamplingDecodeData",
            "cuptiPmSamplingGetCounterDataInfo", "cuptiPmSamplingCounterDataGetSampleInfo", "cuptiProfilerHostEvaluateToGpuValues")

VALUES = ("SELECT w.process_id AS process, w.id, w.scope, w.name, w.passes, c.metric, c.value FROM counter c "
          "JOIN counter_window w ON w.id = c.scope_id WHERE c.scope <> 'kernel'")
OF_KERNELS = ("SELECT t.process_id AS process, k.id, c.scope, k.name, c.passes, c.metric, c.value FROM counter c "
              "JOIN kernel k ON k.id = c.scope_id LEFT JOIN thread t ON t.id = k.thread_id WHERE c.scope = 'kernel'")
WINDOWS = ("SELECT w.process_id AS process, w.id, w.counter_window_id AS first, w.scope, w.name, w.pass, w.passes, "
           "count(r.id) AS ranges FROM counter_window w LEFT JOIN range r ON r.thread_id = w.thread_id AND r.name = w.name "
           "AND w.begin_ns <= r.end_ns AND w.end_ns >= r.begin_ns GROUP BY ALL")
STALLS = "SELECT process_id AS process, kernel, offset_bytes, reason, issued, sum(samples)::BIGINT AS n FROM stall GROUP BY ALL"


def weight(metric):
    """Of the fake's values (cupti_profiler.h)."""
    return 1 + sum(metric.encode()) % 97


def value_of(metric, ns):
    """What the fake gives over kernels that take `ns` in all."""
    if metric == TIME:
        return ns
    if "pct" in metric or ".ratio" in metric:
        return weight(metric)
    return weight(metric) * ns


def plan(method="range", metrics=LIGHT, stalls="off", replay=0, budget_ppm=0, kernels=("gemm*",)):
    lines = ["llmprof counters 1", f"method {method}", f"budget_ppm {budget_ppm}", f"stalls {stalls}", f"replay {replay}",
             "range prefill", "range decode_step", *(f"kernel {name}" for name in kernels),
             *(f"metric GH100 {name}" for name in metrics), "metric TU102 only_there__metric.sum"]
    return "\n".join(lines) + "\n"


class Counted:
    """What a run has of one process's counters, beside what GpuCase sees."""

    def __init__(self, seen, windows, values, stalls):
        self.seen, self.windows, self.values, self.stalls = seen, windows, values, stalls

    def said(self):
        return {name: count for name, count in self.seen.losses.items() if name in SAID}

    def measured(self, name):
        """Measurements of a range or kernel: metric to value, each."""
        found = {}
        for row in self.values:
            if row["name"] == name:
                found.setdefault(row["id"], {})[row["metric"]] = row["value"]
        return list(found.values())

    def __str__(self):
        return f"{len(self.windows)} windows, {len(self.values)} values, {len(self.stalls)} stalls, {self.seen}"


class CounterCase(GpuCase):
    text = plan()

    def child(self, label, scenario, *numbers, script="", **env):
        made = super().child(label, scenario, *numbers, script=script, LLMPROF_COUNTERS="1", **env)
        return dict(made, program=PROGRAM)

    def batch(self, children, at_once=2):
        path = self.folder / "plan.json"
        path.write_text(json.dumps({"victim": PROGRAM, "shim": SHIM, "at_once": at_once, "children": children,
                                    "files": {"counters.plan": self.text}}))
        return [sys.executable, BATCH, str(path)]

    def counted(self, children, text, name="run", at_once=6):
        """Runs the children alone and recorded with a plan. Returns label -> Counted."""
        self.text = text
        found, recording = self.seen(children, name, at_once)
        by_process = {}
        for kind, sql in (("windows", WINDOWS), ("values", VALUES), ("values", OF_KERNELS), ("stalls", STALLS)):
            for row in recording.query(sql):
                by_process.setdefault(row["process"], {}).setdefault(kind, []).append(row)
        ids = {recording.labels[i]: i for i, row in recording.processes.items() if row["log"]}
        counted = {}
        for label, seen in found.items():
            rows = by_process.get(ids.get(label, ids.get(None)), {})
            counted[label] = Counted(seen, rows.get("windows", []), rows.get("values", []), rows.get("stalls", []))
            self.check_always(seen, label)
        self.recording = recording
        return counted

    def check_values(self, counted, label, expected):
        """Every measurement there is has the fake's values. `expected`: name -> ns of its kernels."""
        for name in {row["name"] for row in counted.values}:
            self.assertIn(name, expected, f"{label}: {counted}")
        for name, ns in expected.items():
            for values in counted.measured(name):
                for metric, value in values.items():
                    self.assertTrue(math.isclose(value, value_of(metric, ns)), f"{label}: {name}: {metric} {value}, {ns} ns")

    def check_failed(self, counted, label, function, error):
        """Where a call failed it is said, by what the error means; or nothing is missing."""
        if counted.seen.made.failed_calls == 0 or function in OF_THE_END:
            return
        wanted = {FORBIDDEN: "counters_forbidden", HELD: "counters_held"}.get(error, "counters_failed")
        if wanted in counted.said():
            return
        self.assertIn(function, TRIED_AGAIN, f"{label}: not said: {counted}")
        self.assertTrue("counter_unknown" in counted.said() or counted.values or counted.stalls, f"{label}: {counted}")

    def series(self, functions, scenario, *numbers, times=(1, 2, 3), **env):
        """One child for every function, for its N-th call, and for all from the first on."""
        children, told = [], {}
        for i, function in enumerate(functions):
            for k, at in enumerate([*(str(n) for n in times), "1+"]):
                error = (FORBIDDEN, HELD, *OTHER)[(i + k) % (2 + len(OTHER))]
                label = f"{function}@{at}"
                told[label] = function, error
                children.append(self.child(label, scenario, *numbers, script=f"fail={function}@{at}:{error}", **env))
        return children, told


class Works(CounterCase):
    def test_ranges(self):
        """Every window has the values of its own kernels, in one pass and in four; those of graphs, too, but for
        instrumented metrics."""
        for name, metrics, passes in (("light", LIGHT, 1), ("full", FULL, 4)):
            found = self.counted([self.child("eager", "eager", 40, 4), self.child("graph", "graph", 40, 5)],
                                 plan(metrics=metrics), name)
            for label, counted in found.items():
                with self.subTest(name + label):
                    self.assertLessEqual(set(counted.said()), {"counters_skipped"} if passes > 1 else set(), counted)
                    step_ns = STEP_NS if label == "eager" else GRAPH_NS
                    self.check_values(counted, label, {"prefill": PREFILL_NS, "decode_step": step_ns})
                    steps = counted.measured("decode_step")
                    self.assertGreaterEqual(len(steps), 20 // passes, counted)
                    wanted = {name for name in metrics if label == "eager" or "__sass_" not in name}
                    self.assertEqual({frozenset(step) for step in steps}, {frozenset(wanted)}, counted)
                    self.assertEqual({row["passes"] for row in counted.windows}, {passes})
                    self.assertEqual({row["ranges"] for row in counted.windows}, {1}, "a window beside its range")
                    self.check_complete(counted.seen, label)

    def test_unknown_metrics(self):
        found = self.counted([self.child("unknown", "eager")], plan(metrics=(*LIGHT, "no_such__metric.sum")))
        counted = found["unknown"]
        self.assertEqual(counted.said(), {"counter_unknown": 1})
        self.check_values(counted, "unknown", {"prefill": PREFILL_NS, "decode_step": STEP_NS})
        self.assertGreater(len(counted.measured("decode_step")), 5, counted)
        found = self.counted([self.child("none", "eager")], plan(metrics=("no_such__metric.sum",)), "none")
        self.assertIn("counter_unknown", found["none"].said())
        self.assertEqual(found["none"].values, [])

    def test_kernels(self):
        """Launches of the kernels that were asked for, one by one; no other; graphs are left alone."""
        found = self.counted([self.child("kernels", "kernels", 40)], plan("kernel"))
        counted = found["kernels"]
        self.assertEqual(counted.said(), {}, counted)
        self.check_values(counted, "kernels", {"gemm:2000": 2000})
        measured = counted.measured("gemm:2000")
        self.assertGreater(len(measured), 20, counted)
        self.assertEqual({len(values) for values in measured}, {len(LIGHT)}, counted)
        self.assertEqual(counted.seen.launches, 40)
        self.check_complete(counted.seen, "kernels")

    def test_replayed_kernels(self):
        """All passes of each launch at once. CUPTI gives no times of these: they are counted, and the values are theirs."""
        found = self.counted([self.child("replayed", "kernels", 20)], plan("kernel", FULL, replay=1))
        seen = found["replayed"].seen
        self.assertEqual(found["replayed"].said(), {})
        self.assertEqual((seen.loss("zero_times"), seen.made.zero_records), (60, 60))
        rows = self.recording.query("SELECT k.name, c.metric, c.value FROM counter c JOIN counted_kernel k ON k.id = c.scope_id")
        self.assertEqual(len(rows), 60 * len(FULL))
        for row in rows:
            self.assertEqual(row["name"], "gemm:2000")
            self.assertTrue(math.isclose(row["value"], value_of(row["metric"], 2000)), row)

    def test_set_up_is_not_of_the_budget(self):
        """What CUPTI sets up only at the first start takes longer than a short program's budget allows: kernels are measured all
        the same, in several passes, and the set-up is said."""
        found = self.counted([self.child("hot", "kernels", 40, script="first_ms=600")], plan("kernel", FULL, budget_ppm=40000))
        counted = found["hot"]
        self.assertGreater(len(counted.measured("gemm:2000")), 1, counted)
        notes = [row["text"] for row in self.recording.query("SELECT text FROM note WHERE subject = 'counters'")]
        set_up, = (note for note in notes if note.startswith("setting up"))
        self.assertGreaterEqual(int(set_up.split(" took ")[1].split()[0]), 600)

    def test_budget_that_was_spent(self):
        """Each window takes 60 ms and more: the second measurement of four passes is not completed, and the reason is said."""
        found = self.counted([self.child("slow", "kernels", 40, script="slow_ms=30")], plan("kernel", FULL, budget_ppm=1))
        counted = found["slow"]
        self.assertEqual(len(counted.measured("gemm:2000")), 1, counted)
        reasons = [row["detail"] for row in self.recording.query("SELECT detail FROM loss WHERE name = 'counters_skipped'")]
        self.assertTrue(any("--counters-budget" in reason for reason in reasons), reasons)
        self.assertFalse(any("often enough" in reason or "occurrences" in reason for reason in reasons), reasons)

    def test_stalls(self):
        """Every sample that was taken is in the run. A kernel of 2,000 ns is seen 20 times at 0x100, waiting for memory, in
        half of them with nothing issued, and 10 times at 0x200, waiting (cupti_pc.cpp)."""
        found = self.counted([self.child("stalls", "eager", 60, 4, 25000)], plan("none", stalls="with"))
        counted = found["stalls"]
        self.assertEqual(counted.said(), {}, counted)
        rows = {(row["kernel"], row["offset_bytes"], row["reason"], row["issued"]): row["n"] for row in counted.stalls}
        self.assertEqual(sum(rows.values()), counted.seen.made.pc_samples)
        self.assertGreater(counted.seen.made.pc_samples, 500)
        for kernel, samples in (("gemm:2000", 20), ("norm:500", 5)):
            waits = rows[kernel, 0x100, "long_scoreboard", True] + rows[kernel, 0x100, "long_scoreboard", False]
            times = waits // samples
            self.assertEqual(waits, times * samples, rows)
            self.assertEqual(rows[kernel, 0x100, "long_scoreboard", False], times * (samples // 2), rows)
            self.assertEqual(rows[kernel, 0x200, "wait", True], times * (samples // 2), rows)
        self.check_complete(counted.seen, "stalls")


class Fails(CounterCase):
    def test_ranges(self):
        """Every function that ranges need, at its first, second and third call, and from the first on."""
        children, told = self.series([name for name in HOST_CALLS + RANGE_CALLS if name != OF_THE_END[0]], "eager", 40, 4)
        children += [self.child(f"{OF_THE_END[0]}@{n}", "destroy_in_range", script=f"fail={OF_THE_END[0]}@{n}:999")
                     for n in ("1", "1+")]
        children += [self.child(f"any@{n}", "eager", 40, 4, script=f"fail=*@{n}:999") for n in range(20, 140, 5)]
        found = self.counted(children, plan(metrics=(*FULL, "no_such__metric.sum")))
        for label, counted in found.items():
            with self.subTest(label):
                self.check_values(counted, label, {"prefill": PREFILL_NS, "decode_step": STEP_NS})
                self.check_failed(counted, label, *told.get(label, ("cuptiRangeProfilerDisable", 0)))
                self.check_said(counted.seen, label)
        used = {label.split("@")[0] for label, counted in found.items() if counted.seen.made.failed_calls}
        self.assertEqual(set(HOST_CALLS + RANGE_CALLS) - used, set(), "never called: the series is empty there")

    def test_kernels(self):
        functions = [name for name in HOST_CALLS + RANGE_CALLS if "PushRange" not in name and "PopRange" not in name]
        children, told = self.series(functions, "kernels", 20)
        found = self.counted(children, plan("kernel", FULL))
        for label, counted in found.items():
            with self.subTest(label):
                self.check_values(counted, label, {"gemm:2000": 2000})
                self.check_failed(counted, label, *told[label])
                self.check_said(counted.seen, label)

    def test_stalls(self):
        children, told = self.series(PC_CALLS, "eager", 25, 4, 40000)
        found = self.counted(children, plan("none", stalls="with"), at_once=16)
        for label, counted in found.items():
            with self.subTest(label):
                self.assertLessEqual(sum(row["n"] for row in counted.stalls), counted.seen.made.pc_samples)
                self.check_failed(counted, label, *told[label])
                self.check_said(counted.seen, label)

    def test_not_allowed_or_held(self):
        """No permission, or another client has the counters: it is said once a process, by its own name, and with the
        setting that decides; everything else is recorded."""
        for name, text, scenario in (("ranges", plan(), ("eager", 12, 4)), ("kernels", plan("kernel"), ("kernels", 6)),
                                     ("stalls", plan("none", stalls="with"), ("eager", 25, 4, 40000))):
            found = self.counted([self.child("forbidden", *scenario, script="forbidden=1"),
                                  self.child("busy", *scenario, script="busy=1")], text, name)
            with self.subTest(name):
                self.assertEqual(found["forbidden"].said(), {"counters_forbidden": 1}, found["forbidden"])
                self.assertEqual(found["busy"].said(), {"counters_held": 1}, found["busy"])
                for label, counted in found.items():
                    self.assertEqual((counted.values, counted.stalls), ([], []))
                    self.check_complete(counted.seen, label)
                rows = self.recording.query("SELECT detail FROM loss WHERE name = 'counters_forbidden'")
                details = {row["detail"] for row in rows}
                self.assertTrue(all("RestrictProfilingToAdminUsers" in detail for detail in details), details)

    def test_no_plan(self):
        """Counters are asked for, and what to count is missing or unreadable: it is said, and nothing is counted."""
        for name, text in (("garbage", "\x7fELF\n\n"), ("empty", "")):
            counted = self.counted([self.child("a", "eager")], text, name)["a"]
            self.assertEqual(counted.said(), {"counters_skipped": 1}, counted)
            self.assertEqual(counted.seen.made.profiler_calls, 0)
            self.check_complete(counted.seen, "a")


class Situations(CounterCase):
    """What a program may do while something is measured. `captures` prints how many calls of its captures failed: none."""
    ENDINGS = ("exit_in_range", "leave_in_range", "abort_in_range", "return_in_range", "exit_in_thread", "destroy_in_range",
               "lose_in_range", "fork_in_range", "odd_ranges")

    def children(self, **env):
        made = [self.child(way, way, **env) for way in (*self.ENDINGS, "captures", "contexts", "threads")]
        made += [self.child(f"slow-{way}", way, script="slow_ms=3", **env)
                 for way in ("captures", "threads", "exit_in_range", "exit_in_thread", "destroy_in_range", "fork_in_range")]
        # No captures: a call from outside a callback that meets one there is beyond any client's control (cupti_script.h).
        made += [self.child(f"locked-{way}", way, script="lock=1", **env) for way in ("threads", "contexts")]
        return made

    def run_all(self, text, name="run", at_once=6, recorded=True, **env):
        found = self.counted(self.children(**env), text, name, at_once)
        for label, counted in found.items():
            with self.subTest(label):
                way = label.split("-")[-1]
                if recorded and way not in ("leave_in_range", "abort_in_range"):  # what was not yet written may be missing
                    self.check_said(counted.seen, label)
        return found

    def test_ranges(self):
        """Two contexts on one device: a step of the other one takes 2,500 ns, and is not measured as one of nothing."""
        for name, metrics in (("light", LIGHT), ("full", FULL)):
            found = self.run_all(plan(metrics=metrics), name)
            for label, counted in found.items():
                with self.subTest(name + label):
                    times = {row["value"] for row in counted.values if row["metric"] == TIME}
                    if label.split("-")[-1] in ("captures", "threads", "odd_ranges"):
                        continue  # other threads work in the same range, or ranges are of several kinds
                    self.assertLessEqual(times, {STEP_NS, PREFILL_NS, 2500}, f"{label}: {counted}")

    def test_kernels(self):
        for label, counted in self.run_all(plan("kernel")).items():
            with self.subTest(label):
                self.check_values(counted, label, {"gemm:2000": 2000})

    def test_captures_beside_calls(self):
        """A capture begins while another thread's launch is being measured, whose end may need a lock of CUPTI's that the
        capture's callback holds; while a call waits long for the device; while what has failed is cleaned up."""
        ways = {"kernel": {"open": "launch_ms=5", "locked": "launch_ms=5 lock=1", "long": "slow_ms=300"},
                "range": {"long": "slow_ms=300", "failing": "slow_ms=100 fail=cuptiRangeProfilerPushRange@2:8"}}
        for method, scripts in ways.items():
            children = [self.child(label, "captures_beside", script=script) for label, script in scripts.items()]
            for label, counted in self.counted(children, plan(method), method).items():
                with self.subTest(method + label):
                    self.assertGreater(counted.seen.made.profiler_starts, 0, counted)

    def test_capture_that_is_not_kept_waiting(self):
        """A capture waits 5 s for who waits for the device, which works for 7; then it goes on, and nobody calls a profiler
        until it has ended."""
        for method in ("range", "kernel"):
            found = self.counted([self.child("long", "capture_beside_long")], plan(method), method)
            self.assertGreater(found["long"].seen.made.profiler_starts, 0, found["long"])

    def test_stalls(self):
        """Alone, and while ranges are measured. Sampling begins after half a second."""
        for name, text in (("only", plan("none", stalls="only")), ("ranges", plan("range", stalls="with"))):
            found = self.run_all(text, name, 21, name != "only", VICTIM_PAUSE_MS="700")
            for label, counted in found.items():
                with self.subTest(name + label):
                    self.assertEqual(counted.seen.made.profiler_starts > 0, True, counted)
                    self.assertLessEqual(sum(row["n"] for row in counted.stalls), counted.seen.made.pc_samples)


class Sampled(CounterCase):
    """PM sampling is done by a process of llmprof's: the program has no part in it, whatever fails."""

    def sample(self, label, script):
        """The losses and the samples of a recording."""
        environment = dict(self.environment, FAKE_CUDA=str(FAKES / "libcuda.so.1"), LLMPROF_CUPTI=str(CUPTI), FAKE_CUPTI=script,
                           LD_LIBRARY_PATH=str(FAKES))
        done = self.llmprof("record", "-o", label, "--no-peaks", "--json", "--counters", ",".join(LIGHT), "--counters-period",
                            "1ms", "--", PROGRAM, "eager", "a", "20", "4", "20000", env=environment)
        self.assertEqual(done.stdout, "a begins\na ends\n")
        losses = {row["name"]: row["n"] for row in self.query(label, "SELECT name, sum(count) AS n FROM loss GROUP BY name")}
        rows = self.query(label, "SELECT c.metric, c.value, w.end_ns - w.begin_ns AS ns FROM counter c JOIN counter_window w "
                          "ON w.id = c.scope_id WHERE w.scope = 'sample' LIMIT 200000")
        return {name: n for name, n in losses.items() if name in SAID}, rows

    def test_samples(self):
        """A sample a millisecond, for 0.4 s, of each device; every value is the fake's of a millisecond."""
        said, rows = self.sample("all", "")
        self.assertEqual(said, {})
        self.assertGreater(len(rows), 100 * len(LIGHT))
        for row in rows:
            expected = weight(row["metric"]) * (1 if "pct" in row["metric"] else 1e6 / 1000)
            self.assertTrue(math.isclose(row["value"], expected), row)

    def test_failures(self):
        scripts = {"forbidden": ("forbidden=1", "counters_forbidden"), "busy": ("busy=1", "counters_held"),
                   "overflow": ("pm_overflow=1", None)}
        for i, function in enumerate(PM_CALLS):
            scripts[function] = (f"fail={function}@{'2+' if i >= 6 else '1+'}:{OTHER[i % len(OTHER)]}", None)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = pool.map(lambda label: (label, *self.sample(label, scripts[label][0])), scripts)
            for label, said, rows in answers:
                with self.subTest(label):
                    wanted = {scripts[label][1]} if scripts[label][1] else set(SAID)
                    self.assertTrue(set(said) & wanted, f"{scripts[label]}: {said}, {len(rows)} rows")


if __name__ == "__main__":
    unittest.main()
