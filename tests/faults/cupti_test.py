"""GPU capture against a CUPTI that misbehaves: suites P, F10, T07, S08, C06-C08 on the fakes of tests/fakes. Every program
does alone and recorded the same; what it made is in the run, or counted, or lies in a gap that the run names."""
import os
import pathlib
import sys
import unittest

from oracle import FROM_OUTSIDE, ROOT, FaultCase

sys.path.insert(0, str(ROOT / "tests/fakes"))
import books

FAKES = pathlib.Path(os.environ.get("LLMPROF_FAKES", ROOT / "build/tests/fakes"))
PROGRAM = str(FAKES / "gpu_victim")
CUPTI = FAKES / "libcupti.so.13"
ERRORS = (39, 35, 26, 27, 33, 8)  # held, privileges, busy, not supported, virtual, no memory
# Losses that say: something of the GPU is missing here.
SAID = ("cupti_missing", "cupti_held", "cupti_error", "cupti_refused", "buffers_taken", "abnormal_end", "after_exit",
        "graph_unknown", "cupti_dropped", "forked_after_cuda", "launch_lost")
OPTIONAL = ("cuptiSubscribe_v2", "cuptiActivityRegisterTimestampCallback", "cuptiActivitySetAttribute",
            "cuptiActivityGetNumDroppedRecords", "cuptiGetDeviceId", "cuptiEnableDomain", "cuptiGetGraphId",
            "cuptiGetGraphExecId", "cuptiGetGraphNodeId")

KERNELS = ("SELECT t.process_id AS process, count(*) AS n, sum(k.end_ns - k.begin_ns)::BIGINT AS ns, "
           "count(*) FILTER (k.graph_launch_id IS NULL) AS eager, count(*) FILTER (k.end_ns < k.begin_ns) AS backwards "
           "FROM kernel k LEFT JOIN thread t ON t.id = k.thread_id GROUP BY ALL")
COPIES = "SELECT t.process_id AS process, count(*) AS n FROM copy c LEFT JOIN thread t ON t.id = c.thread_id GROUP BY ALL"
GRAPHS = ("SELECT t.process_id AS process, count(*) AS n, count(*) FILTER (NOT g.nodes_recorded) AS whole "
          "FROM graph_launch g LEFT JOIN thread t ON t.id = g.thread_id GROUP BY ALL")
GAPS = "SELECT process_id AS process, count(*) AS n, string_agg(why, '; ') AS why FROM gap GROUP BY ALL"


class Seen:
    """What a run has of one process, beside the books of the fake driver."""

    def __init__(self, made, losses, kernels, copies, graphs, gaps):
        self.made, self.losses = made, losses
        self.kernels, self.kernel_ns, self.eager = kernels.get("n", 0), kernels.get("ns", 0), kernels.get("eager", 0)
        self.backwards = kernels.get("backwards", 0)
        self.copies, self.launches, self.whole = copies.get("n", 0), graphs.get("n", 0), graphs.get("whole", 0)
        self.gaps, self.why = gaps.get("n", 0), gaps.get("why", "")

    def loss(self, name):
        return self.losses.get(name, 0)

    def recovered(self):
        return self.kernels + self.copies + self.whole

    def counted(self):
        """Records that came and could not be used."""
        return self.loss("zero_times") + self.loss("bad_time")

    def arrived(self):
        """Records that the client was given."""
        return self.made.delivered_records - self.made.unknown_records

    def __str__(self):
        return (f"kernels {self.kernels} (eager {self.eager}), copies {self.copies}, graph launches {self.launches} (whole "
                f"{self.whole}), gaps {self.gaps} {self.why}, losses {self.losses}, books { {k: v for k, v in self.made.items() if v} }")


class GpuCase(FaultCase):
    def child(self, label, scenario, *numbers, script="", **env):
        return {"program": PROGRAM, "label": label, "scenario": scenario, "arguments": list(numbers),
                "env": {"FAKE_CUDA": str(FAKES / "libcuda.so.1"), "LLMPROF_CUPTI": str(CUPTI), "FAKE_CUPTI": script, **env}}

    def seen(self, children, name="run", at_once=4):
        """Runs the children alone and recorded. Returns label -> Seen, and the recording."""
        recording = self.both(self.batch(children, at_once), name=name)
        made = books.of_folder(recording.ledger_folder)
        tables = [{row["process"]: row for row in recording.query(sql)} for sql in (KERNELS, COPIES, GRAPHS, GAPS)]
        found = {}
        for process_id, process in recording.processes.items():
            label = recording.labels[process_id]
            if process["pid"] in made and process["log"]:
                found[label] = Seen(made[process["pid"]], recording.of_label(label), *(t.get(process_id, {}) for t in tables))
        wanted = {child["label"] for child in children}
        nameless = wanted - set(found)
        if None in found and len(nameless) == 1:  # it left by _exit before its label was written: that is no wrong record
            found[nameless.pop()] = found.pop(None)
        self.assertEqual(set(found), wanted)
        return found, recording

    def check_always(self, seen, label):
        """Whatever happened: nothing that crashes or hangs the real CUPTI, no record made up, one clock."""
        where = f"{label}: {seen}"
        self.assertEqual(seen.made.forbidden(), {}, where)
        self.assertLessEqual(seen.made.timestamp_callbacks, 1, where)
        self.assertEqual(seen.backwards, 0, where)
        self.assertLessEqual(seen.recovered() + seen.counted(), seen.arrived(), where)

    def check_complete(self, seen, label):
        """Every record that came is in the run or counted; dropped ones are told; nothing else is missing but in gaps."""
        self.check_always(seen, label)
        where = f"{label}: {seen}"
        self.assertEqual(seen.recovered() + seen.counted(), seen.arrived(), where)
        self.assertEqual(seen.loss("cupti_dropped"), seen.made.dropped_records, where)
        self.assertEqual(seen.loss("unknown_activity"), seen.made.unknown_records, where)
        if seen.made.unrecorded:
            self.assertGreater(seen.gaps, 0, where)

    def check_said(self, seen, label):
        """If anything is missing, the run says so."""
        self.check_always(seen, label)
        made = seen.made.kernels + seen.made.copies + seen.made.memsets + seen.made.graph_launches
        recovered = seen.eager + seen.copies + seen.launches
        if recovered < made:
            said = sum(seen.loss(name) for name in SAID) + seen.counted() + seen.gaps
            self.assertGreater(said, 0, f"{label}: {made - recovered} are missing, and nobody says so: {seen}")


class SampledKernels(GpuCase):
    def test_all_are_counted_and_the_rest_is_estimated(self):
        """Kernels of constant duration: what is estimated from the same launches is exact. A program that makes graphs is
        recorded whole, however much it launched before; one whose kernels cannot be switched, too."""
        now = dict(LLMPROF_KERNELS_AFTER_MS="0")
        children = [self.child("plain", "run", 8000, **now), self.child("threads", "threads", 4, 2000, **now),
                    self.child("all", "run", 8000, LLMPROF_KERNELS="0", **now),
                    self.child("graph", "graph", 50, 40, LLMPROF_GRAPHS_AFTER_MS="0", **now)]
        found, recording = self.seen(children)
        estimated = {row["label"]: row for row in recording.query(
            "SELECT p.arguments AS label, count(*) FILTER (k.estimated) AS n, count(*) AS kernels FROM kernel k JOIN thread t ON "
            "t.id = k.thread_id JOIN process p ON p.id = t.process_id GROUP BY 1")}
        by = {label: next(row for text, row in estimated.items() if f" {label} " in f"{text} ") for label in found}
        for label in ("plain", "threads", "all"):
            seen = found[label]
            self.assertEqual((seen.eager, seen.copies), (seen.made.kernels, seen.made.copies + seen.made.memsets), seen)
            self.assertEqual(seen.kernel_ns, seen.made.kernel_ns, seen)
            self.assertEqual(seen.losses, {}, label)
        for label in ("plain", "threads"):
            self.assertGreater(by[label]["n"], 1000, label)
        self.assertEqual((by["all"]["n"], by["graph"]["n"]), (0, 0))
        self.check_complete(found["graph"], "graph")


class Whole(GpuCase):
    def test_nothing_is_missing(self):
        """800 kernels of 1500, 700 and 2100 ns by turns, with 300 copies and memsets; four threads; a program that loaded
        CUPTI itself; one that never uses CUDA."""
        children = [self.child("plain", "run", 800), self.child("threads", "threads", 4, 200),
                    self.child("loaded", "run", 80, FAKE_CUDA_LOADS=str(CUPTI), LLMPROF_CUPTI="/nonexistent"),
                    self.child("before", "fork_before_init", 24)]
        found, recording = self.seen(children)
        for label, seen in found.items():
            self.check_complete(seen, label)
            if seen.made.injected:
                self.assertEqual((seen.eager, seen.copies), (seen.made.kernels, seen.made.copies + seen.made.memsets), label)
                self.assertEqual(seen.kernel_ns, seen.made.kernel_ns)
                self.assertEqual(seen.made.timestamp_callbacks, 1)
        self.assertEqual(found["plain"].kernel_ns, 267 * 1500 + 267 * 700 + 266 * 2100)
        names = recording.query("SELECT name, count(*) AS n FROM kernel GROUP BY name ORDER BY name")
        self.assertEqual({row["name"] for row in names}, {"gemm:1500", "norm:700", "attention:2100"})
        device = recording.query("SELECT DISTINCT name, uuid FROM device WHERE name LIKE 'Fake%' ORDER BY uuid")
        self.assertEqual(device[0]["name"], "Fake H200")
        # every kernel lies in the range that was open when it was launched: 8 kernels a range
        inside = recording.query("SELECT count(*) AS n FROM kernel k JOIN range r ON r.thread_id = k.thread_id "
                                 "AND k.launch_begin_ns BETWEEN r.begin_ns AND r.end_ns WHERE r.name = 'eight'")
        self.assertEqual(inside[0]["n"], 800 + 800 + 80 + 24)
        self.assertEqual(recording.names() - set(FROM_OUTSIDE), set(), recording.losses)

    def test_no_cuda(self):
        """F10: the driver is there, and nobody uses it: no log, no word."""
        recording = self.both(self.batch([self.child("none", "none")]))
        self.assertEqual([row for row in recording.processes.values() if row["log"]], [])
        self.assertEqual(recording.names() - set(FROM_OUTSIDE), set())

    def test_graphs(self):
        """P06: 40 launches of 50 kernels, a copy and a memset; 8 launches of 20,000 kernels; nested, cloned, updated and
        repeated graphs; each as a whole, sampled and node by node."""
        children = []
        for mode, name in ((0, "launch"), (1, "sampled"), (2, "all")):
            for label, words in (("plain", ("graph", 50, 40)), ("large", ("graph", 20000, 8)), ("kinds", ("graph_kinds", 20))):
                children.append(self.child(f"{label}-{name}", words[0], *words[1:], LLMPROF_GRAPHS=str(mode), LLMPROF_GRAPHS_AFTER_MS="0"))
        found, recording = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_complete(seen, label)
                # a launch between a sampled one and the next is in no table: it has its gap
                self.assertIn(seen.made.graph_launches - seen.launches, range(seen.gaps + 1), seen)
                if label.endswith("launch"):
                    self.assertEqual((seen.kernels, seen.whole), (0, seen.launches))
                if label.endswith("all"):
                    self.assertEqual((seen.kernels, seen.whole), (seen.made.node_kernels, 0))
                if label.endswith("sampled"):
                    self.assertGreater(seen.kernels, 0)
                    self.assertGreater(seen.whole, 0)
        # what the nodes are, CUPTI does not say: it is told by the calls that were captured
        kinds = {row["kind"]: row["n"] for row in recording.query(
            "SELECT n.kind, count(*) AS n FROM graph_node n WHERE n.graph IN (SELECT graph FROM graph_launch g JOIN thread t "
            "ON t.id = g.thread_id JOIN process p ON p.id = t.process_id WHERE p.arguments LIKE '%plain-all%') GROUP BY n.kind")}
        self.assertEqual(kinds, {"kernel": 50, "memcpy": 1, "memset": 1})
        nodes = recording.query(
            "SELECT count(*) AS n, count(*) FILTER (graph_node_id IS NULL) AS unknown FROM kernel WHERE graph_launch_id IS NOT NULL")
        self.assertEqual(nodes[0]["unknown"], 0)
        # a sampled launch has all its nodes: 50, or 20,000
        short = recording.query(
            "SELECT count(*) AS n FROM (SELECT g.id, count(k.id) AS nodes FROM graph_launch g JOIN kernel k ON k.graph_launch_id = g.id "
            "GROUP BY g.id) WHERE nodes NOT IN (50, 20000, 20, 5)")
        self.assertEqual(short[0]["n"], 0)

    def test_graphs_of_every_origin(self):
        """Kernels that are added by hand have their names, whatever handle they were added with; launches in bursts, and of
        several threads that also make graphs, are sampled without a switch while a graph is in flight; where none is, a
        note says why."""
        children = [self.child("hand", "graph_by_hand", 40, 16), self.child("threads", "graph_threads", 3, 12),
                    self.child("threads-lock", "graph_threads", 3, 12, script="lock=1"),
                    self.child("short", "graph_by_hand", 2, 4),
                    self.child("busy", "graph_stream", 20, LLMPROF_GRAPHS_AFTER_MS="0")]
        found, recording = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_complete(seen, label)
                if label in ("short", "busy"):
                    self.assertEqual(seen.kernels, 0, seen)
                else:
                    self.assertGreater(seen.kernels, 0, seen)
                    self.assertGreater(seen.whole, 0, seen)
        nodes = recording.query(
            "SELECT n.name, count(*) AS n FROM graph_node n WHERE n.captured_node IS NULL AND n.thread_id IN (SELECT t.id "
            "FROM thread t JOIN process p ON p.id = t.process_id WHERE p.arguments LIKE '% hand %') GROUP BY n.name ORDER BY n.name")
        self.assertEqual({row["name"]: row["n"] for row in nodes}, {"any:500": 1, "cast:400": 1, "function:200": 1, "kernel:300": 1})
        notes = {recording.labels[row["process_id"]]: row["text"] for row in recording.query(
            "SELECT process_id, text FROM note WHERE subject = 'graphs'")}
        # where callbacks hold a lock of CUPTI's, a sample may stay open (test_graphs_beside_others)
        self.assertEqual(set(notes) - {"threads-lock"}, {"short", "busy"}, notes)
        self.assertIn("within the time", notes["short"])
        self.assertIn("always in flight", notes["busy"])

    def test_graphs_beside_others(self):
        """Kinds are switched only where nothing is in flight in any context of any device, and nothing is being
        instantiated: beside a graph of another context, whatever becomes of its stream; beside one that is in flight while
        another is made (60 ms: that is waited for; 500 ms: the sample stays open for good, and a note says so); beside
        instantiations that take 30 ms while another thread launches."""
        now = {"LLMPROF_GRAPHS_AFTER_MS": "0"}
        children = [self.child(f"contexts-{n}", "graph_contexts", n, **now) for n in (3, 5, 6)]
        children += [self.child("waits", "graph_made_beside", 60, **now), self.child("stays", "graph_made_beside", 500, 0, 6, **now),
                     self.child("slow", "graph_made_beside", 60, 30, 12, **now),
                     self.child("slow-lock", "graph_made_beside", 60, 30, 12, script="lock=1", **now),
                     self.child("slow-stays", "graph_made_beside", 300, 30, 6, **now)]
        found, recording = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_complete(seen, label)
                # a stream is destroyed under a graph before there was a sample, or a graph is always in flight: there is none
                if label not in ("contexts-3", "slow-stays"):
                    self.assertGreater(seen.kernels, 0, seen)
                # where callbacks hold a lock of CUPTI's, a launch beside may not end while an instantiation waits for it
                if "stays" not in label and "lock" not in label:
                    self.assertEqual(seen.made.untraced_execs, 0, seen)
                    self.assertGreater(seen.whole, 0, seen)
        self.assertGreater(found["stays"].made.untraced_execs, 0)
        notes = {recording.labels[row["process_id"]] for row in recording.query(
            "SELECT process_id, text FROM note WHERE subject = 'graphs' AND text LIKE '%every one was recorded node by node%'")}
        self.assertIn("stays", notes)
        self.assertLessEqual(notes, {"stays", "slow-stays", "slow-lock"})

    def test_rests_of_graphs(self):
        """Recording rests for 10 ms of every 20: kinds are switched while graphs are recorded as a whole, not while a sample
        is open; graphs go on being recorded, and what a rest took of other work lies in a gap."""
        rests = {"LLMPROF_REST_FROM_NS": "1", "LLMPROF_REST_EVERY_MS": "20", "LLMPROF_REST_MS": "10", "LLMPROF_GRAPHS_AFTER_MS": "0"}
        children = [self.child("one", "graph_then_kernels", 200, **rests), self.child("two", "graph_then_kernels", 200, 1, **rests),
                    self.child("threads", "graph_threads", 3, 12, **rests), self.child("made", "graph_made_beside", 60, 30, 12, **rests),
                    self.child("busy", "graph_stream", 60, **rests), self.child("contexts", "graph_contexts", 5, **rests)]
        found, recording = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_complete(seen, label)
                if label != "busy":  # it may have ended before the first
                    self.assertIn("rest", seen.why, seen)
        for label in ("one", "two"):
            seen = found[label]
            self.assertGreater(seen.launches, 0.95 * seen.made.graph_launches, seen)  # some are silent after a sample
            self.assertGreater(seen.eager, 40, seen)  # of 400
            self.assertLess(seen.eager, 360, seen)

    def test_captures_beside_graphs(self):
        """Whether a stream is idle is not asked while one is captured: that would be the end of the capture."""
        found, _ = self.seen([self.child("captured", "graph_captured_beside", 300, LLMPROF_GRAPHS_AFTER_MS="0")])
        self.check_complete(found["captured"], "captured")
        self.assertGreater(found["captured"].whole, 0)

    def test_graphs_that_were_not_sampled(self):
        """A graph whose kernels ran in another one takes their times; one whose kernels ran nowhere else is unknown, and
        the report says why."""
        _, recording = self.seen([self.child("again", "graph_recaptured", 40, LLMPROF_GRAPHS_AFTER_MS="0")])
        bases = recording.query("SELECT basis, count(DISTINCT n.graph) AS n FROM node_share s JOIN graph_node n ON n.id = s.graph_node_id "
                                "GROUP BY basis ORDER BY basis")
        self.assertEqual({row["basis"]: row["n"] for row in bases}, {"other graphs": 1, "same graph": 1})
        text = " ".join(self.llmprof("report", recording.path, "--full").stdout.split())
        self.assertRegex(text, "Note, graphs: the kernels of 2 launches of 1 graph .* are unknown: none of these was recorded node by "
                               "node, and fewer than 90 % of their kernels were recorded elsewhere.")

    def test_graphs_that_are_updated(self):
        """The parameters of a node are set before each of 40 launches, from the 21st on to another kernel; another graph is
        updated by one of other kernels for its last 21 of 41 launches. Each kernel has the time of its own launches."""
        _, recording = self.seen([self.child("set", "graph_set_params", 20, LLMPROF_GRAPHS_AFTER_MS="0"),
                                  self.child("kinds", "graph_kinds", 20, LLMPROF_GRAPHS_AFTER_MS="0")])
        work = {row["name"]: row for row in recording.query(
            "SELECT name, sum(executions)::BIGINT AS n, (sum(time_ns) / sum(executions))::BIGINT AS ns FROM work_sum GROUP BY name")}
        self.assertNotIn("nodes of an unknown graph", work)
        for name, launches, kernels in (("function:200", 20, 1), ("other:700", 20, 1), ("kernel:300", 40, 1), ("updated:250", 21, 4)):
            # one launch a sample is silent, there are two at most
            self.assertIn(work[name]["n"], range((launches - 3) * kernels, launches * kernels + 1), name)
            self.assertAlmostEqual(work[name]["ns"], int(name.split(":")[1]), delta=10)

    def test_graphs_that_are_updated_by_another_capture_of_the_same_kernels(self):
        """Every launch runs the nodes of the capture before it, by turns in two ranges: two graphs, not one and not twenty."""
        _, recording = self.seen([self.child("turns", "graph_updated_by_turns", 20)])
        rows = recording.query(
            "SELECT l.launch_begin_ns AS launched, any_value(l.graph) AS graph, string_agg(DISTINCT r.name) AS ranges, count(DISTINCT n.id)::BIGINT AS nodes "
            "FROM graph_launch l JOIN graph_node n USING (graph) JOIN range r ON r.thread_id = n.thread_id AND n.captured_ns BETWEEN r.begin_ns AND r.end_ns "
            "WHERE r.name LIKE 'layer %' GROUP BY l.id, launched ORDER BY launched")
        self.assertEqual([row["ranges"] for row in rows], ["layer 0", "layer 1"] * 10)
        self.assertEqual({row["nodes"] for row in rows}, {5})  # three kernels, a copy and a memset
        self.assertEqual(len({row["graph"] for row in rows}), 2)

    def test_nodes_that_nobody_announced(self):
        """P06: node records without a callback are counted as unknown, and are there."""
        found, _ = self.seen([self.child("hidden", "graph", 50, 4, script="hide_nodes=1", LLMPROF_GRAPHS="2")])
        seen = found["hidden"]
        self.check_complete(seen, "hidden")
        self.assertEqual(seen.kernels, 200)
        self.assertEqual(seen.loss("graph_unknown"), 208, seen)  # 4 launches of 50 kernels, a copy and a memset


class Protocol(GpuCase):
    def test_versions(self):
        """F10: CUPTI of CUDA 11.8 to one that does not exist yet, with their record sizes; each optional function missing."""
        children = [self.child(f"v{version}", "run", 80, script=f"version={version}")
                    for version in (18, 26, 27, 130001, 130300, 999999)]
        for name in OPTIONAL:
            library = self.without(name)
            children.append(self.child(f"no-{name}", "run", 80, LLMPROF_CUPTI=library))
            children.append(self.child(f"graph-no-{name}", "graph", 20, 6, LLMPROF_CUPTI=library))
        found, _ = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_said(seen, label)
                if not label.startswith("graph"):
                    self.assertEqual((seen.kernels, seen.copies), (80, 30), seen)

    def test_the_one_that_was_named(self):
        """LLMPROF_CUPTI names a file that is not there, or one without a needed function: no other is taken in its place."""
        found, recording = self.seen([self.child("absent", "run", 24, LLMPROF_CUPTI="/nonexistent"),
                                      self.child("useless", "run", 24, LLMPROF_CUPTI=self.without("cuptiActivityFlushAll"))])
        for label, seen in found.items():
            self.check_said(seen, label)
            self.assertEqual((seen.kernels, seen.loss("cupti_missing")), (0, 1), label)
        details = [row["detail"] for row in recording.query("SELECT detail FROM loss WHERE name = 'cupti_missing' ORDER BY detail")]
        self.assertIn("LLMPROF_CUPTI: /nonexistent cannot be loaded", details)
        self.assertTrue(any("lacks cuptiActivityFlushAll" in detail for detail in details), details)

    def without(self, name):
        """A copy of the fake in whose table of symbols a function has another name."""
        path = self.folder / f"without-{name}" / "libcupti.so.13"
        path.parent.mkdir(exist_ok=True)
        data = CUPTI.read_bytes()
        wanted = b"\0" + name.encode() + b"\0"
        self.assertIn(wanted, data)
        path.write_bytes(data.replace(wanted, b"\0x" + name.encode()[1:] + b"\0"))
        path.chmod(0o755)
        return str(path)

    def test_a_call_fails(self):
        """P01: the N-th call of CUPTI fails, whichever it is; then each function in turn, from its first call on. What
        is missing is said; the program does not notice."""
        calls = [*range(1, 24), *range(24, 240, 9)]
        children = [self.child(f"call-{n}", "run", 16, script=f"fail=*@{n}:{ERRORS[n % len(ERRORS)]}") for n in calls]
        functions = (*OPTIONAL, "cuptiGetVersion", "cuptiSubscribe", "cuptiEnableCallback", "cuptiActivityEnable",
                     "cuptiActivityDisable", "cuptiActivityRegisterCallbacks", "cuptiActivityFlushAll")
        for i, function in enumerate(functions):
            children.append(self.child(f"{function}", "graph", 20, 12, script=f"fail={function}@1+:{ERRORS[i % len(ERRORS)]}"))
        found, recording = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_said(seen, label)
        self.assertGreater(recording.total("cupti_error"), 30)

    def test_records(self):
        """P04, S08: unknown kinds, larger records, any order; lost times, ends before begins, 1e14 ns off, before the
        launch: all counted, none believed. One record in ten: 11 of 110."""
        scripts = {"unheard": "unheard=10", "grown": "grown=40", "shuffle": "shuffle=1", "all": "grown=8 shuffle=1 unheard=3",
                   "drop": "drop=10", "zero": "zero=10", "reversed": "reversed=10", "shifted": "shifted=10", "early": "early=10"}
        children = [self.child(label, "run", 80, script=script) for label, script in scripts.items()]
        children.append(self.child("zero-graph", "graph", 50, 40, script="zero=10", LLMPROF_GRAPHS_AFTER_MS="0"))
        found, _ = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_complete(seen, label)
                bad = {"zero": "zero_times", "reversed": "bad_time", "shifted": "bad_time", "early": "bad_time", "drop": "cupti_dropped"}
                if label in bad:
                    self.assertEqual(seen.loss(bad[label]), 11, seen)
                    self.assertEqual(seen.recovered(), 99, seen)

    def test_buffers(self):
        """P03: completed late, twice, never lent, empty, claimed longer than they are; all only when CUPTI's destructor
        runs; only by force."""
        scripts = {"twice": "twice=1", "stray": "stray=1", "empty": "empty=1", "overlong": "overlong=1", "late": "late_ms=30",
                   "forced": "incomplete=1"}
        children = [self.child(label, "run", 400, 500, script=script) for label, script in scripts.items()]
        children += [self.child("kept", "run", 80, script="keep=1"), self.child("later", "run", 80, script="late_ms=5000")]
        found, _ = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                self.check_said(seen, label)
                if label in scripts:
                    self.assertEqual((seen.kernels, seen.copies), (400, 150), seen)

    def test_pool_is_used_up(self):
        """P02: CUPTI keeps the buffers it has and asks for more. Before version 27 it must get one, from then on none."""
        children = [self.child(f"pool-{version}", "run", 20000, script=f"version={version} incomplete=1",
                               LLMPROF_GPU_POOL_BYTES=str(1 << 20)) for version in (26, 27, 130001)]
        found, _ = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                # the last resort before version 27 is memory that several share and nobody reads
                for shared in ("bad_buffer_twice", "bad_dirty_buffer") if label == "pool-26" else ():
                    seen.made[shared] = 0
                self.check_always(seen, label)
                self.assertGreater(seen.loss("cupti_refused"), 0, seen)
                self.assertGreater(seen.recovered(), 1000, seen)
                if label != "pool-26":
                    self.assertEqual(seen.recovered() + seen.loss("cupti_dropped"), 27500, seen)

    def test_locks(self):
        """P05: CUPTI holds its lock while it calls back and while it flushes, for long: a client that holds one of its
        own meanwhile never returns."""
        children = [self.child("lock", "threads", 4, 400, script="lock=1"),
                    self.child("slow", "threads", 4, 100, script="lock=1 flush_ms=60"),
                    self.child("graph", "graph", 50, 60, script="lock=1 flush_ms=20", LLMPROF_GRAPHS_AFTER_MS="0")]
        found, _ = self.seen(children)
        for label, seen in found.items():
            self.check_complete(seen, label)

    def test_started_and_stopped(self):
        """P07: 100 windows between cudaProfilerStart and Stop, 10 ms apart: 4 kernels and a copy outside and inside of
        each. CUPTI is given the clock once."""
        found, _ = self.seen([self.child("windows", "profiler_windows", 100, 10000, LLMPROF_PROFILER_API="1")])
        seen = found["windows"]
        self.check_complete(seen, "windows")
        self.assertEqual((seen.kernels, seen.copies, seen.made.timestamp_callbacks), (400, 100, 1), seen)

    def test_somebody_else_has_cupti(self):
        """Another client holds the slot: its name is told, ranges are recorded. Another one takes the buffers for a
        time: a gap, and afterwards everything again."""
        children = [self.child("held", "run", 80, script="held=nsys"),
                    self.child("old", "run", 80, script="held=ncu version=26", LLMPROF_CUPTI=self.without("cuptiSubscribe_v2")),
                    self.child("thief", "twice", 160, 12000, 3000, script="thief=60:40"),
                    self.child("thief-stays", "run", 160, 12000, script="thief=60:40")]
        found, recording = self.seen(children)
        for label, seen in found.items():
            self.check_said(seen, label)
        for label in ("held", "old"):
            self.assertEqual((found[label].loss("cupti_held"), found[label].recovered()), (1, 0))
        details = {row["detail"] for row in recording.query("SELECT detail FROM loss WHERE name = 'cupti_held'")}
        self.assertIn("nsys", details)
        ranges = recording.query("SELECT count(*) AS n FROM range WHERE name = 'eight'")
        self.assertEqual(ranges[0]["n"], 10 + 10 + 40 + 20)
        for label in ("thief", "thief-stays"):
            self.assertGreater(found[label].gaps, 0, found[label])
            self.assertGreater(found[label].loss("buffers_taken"), 0, found[label])
        self.assertEqual(found["thief"].recovered(), 60 + 220, found["thief"])  # the first 60, and all of the second half


class Ends(GpuCase):
    def test_exits(self):
        """C06-C08: exit in an exit handler, in a thread, in a callback, beside launches that go on, with work in flight;
        while a flush takes three seconds; _exit. Nothing is called once the driver is gone."""
        ways = ("unfinished", "exit_in_handler", "exit_in_thread", "exit_in_callback", "exit_beside_launches", "leave")
        children = [self.child(way, way) for way in ways]
        children += [self.child("kept", "unfinished", script="keep=1"), self.child("flushing", "unfinished", script="flush_ms=3000"),
                     self.child("locked", "exit_beside_launches", script="lock=1"),
                     self.child("forced", "unfinished", script="incomplete=1")]
        found, _ = self.seen(children)
        for label, seen in found.items():
            with self.subTest(label):
                # what is launched while the process exits, or left behind by _exit, may be missing
                late = label in ("leave", "exit_beside_launches", "locked")
                (self.check_always if late else self.check_said)(seen, label)
                if label in ("unfinished", "exit_in_thread", "forced"):
                    self.assertEqual(seen.kernels, 100, seen)

    def test_killed_in_mid_replay(self):
        """SIGKILL with 20 launches in flight and 1,500 behind it, a millisecond apart at least: no more than the last
        second is missing."""
        found, recording = self.seen([self.child("killed", "killed", 1500)])
        seen = found["killed"]
        self.check_always(seen, "killed")
        self.assertGreater(seen.launches, 500, seen)
        self.assertGreater(recording.total("abnormal_end"), 0)

    def test_nothing_completes(self):
        """T07: 20,000 launches whose records never come, in a program that leaves by _exit."""
        found, recording = self.seen([self.child("never", "leave", 20000, script="incomplete=1 keep=1")])
        self.assertEqual(found["never"].recovered(), 0)
        self.assertGreater(recording.total("abnormal_end"), 0)

    def test_fork(self):
        """A child of a process that has CUDA stays out of it and says so; the parent goes on."""
        found, recording = self.seen([self.child("parent", "fork_after_init", 40)])
        seen = found["parent"]
        self.check_always(seen, "parent")
        self.assertEqual((seen.kernels, seen.copies), (60, 7 + 15), seen)
        self.assertEqual(recording.query("SELECT count(*) AS n FROM range WHERE name = 'child'")[0]["n"], 0)


if __name__ == "__main__":
    unittest.main()
