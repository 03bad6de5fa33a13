#!/usr/bin/env python3
"""llmprof diff on six runs of an H200 (tests/runs/README.md): the same program three times, and three times with one module
(layers.7.mlp) executed once more in every step. What the programs printed: 2.1051 to 2.1053 ms and 2.1423 to 2.1435 ms a token."""
import json
import os
import shutil
import unittest
import xml.etree.ElementTree
from pathlib import Path

from harness import Case, WORKLOAD

RUNS = Path(__file__).resolve().parents[1] / "runs" / "diff"
PRINTED = (2.1051 + 2.1053 + 2.1053) / 3, (2.1431 + 2.1423 + 2.1435) / 3


class Diff(Case):
    def setUp(self):
        super().setUp()
        self.environment["XDG_DATA_HOME"] = str(self.folder / "data")

    def take(self, *names):
        for name in names:
            shutil.copytree(RUNS / name, self.folder / name)

    def diff(self, *words, **options):
        return json.loads(self.llmprof("diff", *words, "--json", **options).stdout)

    @staticmethod
    def rows(diff, kind=None, **keys):
        return [r for r in diff["rows"] if kind in (None, r["kind"]) and all(r[k] == v for k, v in keys.items())]

    def test_the_same_program_twice_shows_no_change(self):
        self.take("base_1", "base_2")
        diff = self.diff("base_1", "base_2")
        self.assertEqual([(r["kind"], r["name"]) for r in self.rows(diff, significant=True)], [])
        self.assertIn("No significant change", diff["headline"])
        self.assertTrue(any("one recording each" in w for w in diff["warnings"]))

    def test_the_planted_slowdown_is_found_and_named(self):
        self.take(*(f"{kind}_{i}" for kind in ("base", "slow") for i in (1, 2, 3)))
        diff = self.diff("--before", "base_1", "base_2", "base_3", "--after", "slow_1", "slow_2", "slow_3")
        (stage,) = self.rows(diff, "stage", name="decode")
        self.assertTrue(stage["significant"])
        self.assertEqual(stage["better"], "worse")
        self.assertAlmostEqual(stage["change"], PRINTED[1] / PRINTED[0] - 1, delta=0.003)
        self.assertLess(stage["low"], stage["change"])
        self.assertGreater(stage["low"], 0)
        causes = [r for r in self.rows(diff, stage="decode", cause=True) if r["kind"] == "module"]
        self.assertEqual([r["name"] for r in causes][:1], ["layers.7.mlp"], diff["headline"])
        self.assertIn("layers.7.mlp", diff["headline"])
        # gate, up, down in two kernels, silu and the product: six kernels, once more
        self.assertIn("6 more kernels a step (6 -> 12)", causes[0]["why"])
        self.assertEqual(diff["work"]["same"], "same")
        self.assertRegex(diff["headline"], r"^decode is slower: 475 -> 467 tokens/s .*, TPOT 2\.10 -> 2\.14 ms \(\+1\.8 %\)")
        for other in self.rows(diff, "module", stage="decode"):
            if other["significant"]:
                self.assertTrue(other["name"].startswith("layers.7") or other["name"] == "layers", other)

        # one recording each tells it as well
        single = self.diff("base_1", "slow_1")
        (stage,) = self.rows(single, "stage", name="decode")
        self.assertTrue(stage["significant"])
        self.assertIn("layers.7.mlp", single["headline"])
        text = self.llmprof("diff", "base_1,base_2", "slow_1,slow_2", "--html", "diff.html").stdout
        page = (self.folder / "diff.html").read_text()
        self.assertIn("layers.7.mlp", page)
        self.assertLess(len(page), 5_000_000)
        self.assertIn("layers.7.mlp", text)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()), text)

    def test_gates_and_baselines(self):
        self.take("base_1", "base_2", "slow_1")
        self.llmprof("diff", "--save-baseline", "main", "base_1", "base_2")
        shutil.rmtree(self.folder / "base_2")  # a baseline outlives its runs
        self.assertIn("main", self.llmprof("diff", "--list-baselines").stdout)
        gate = "decode.step_p50 < +1%"
        done = self.llmprof("diff", "--baseline", "main", "slow_1", "--gate", gate, "--junit", "gates.xml", status=4)
        self.assertIn("FAIL", done.stdout)
        suite = xml.etree.ElementTree.parse(self.folder / "gates.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("1", "1"))
        self.assertEqual(suite[0].get("name"), gate)
        # both forms of several gates; a change of 1.8 % keeps a limit of 3 %
        for words in (("--gate", "decode.step_p50 < +3%", "decode.steps > 100"), ("--gate", "decode.step_p50 < +3%; decode.steps > 100")):
            diff = self.diff("--baseline", "main", "slow_1", *words)
            self.assertEqual([g["passed"] for g in diff["gates"]], [True, True])
        diff = self.diff("--gate", "decode.mbu > 0.99", "base_1", status=4)  # one run alone
        self.assertIsNone(diff["before"])
        self.assertFalse(diff["passed"])
        diff = self.diff("base_1", "slow_1", "--gate", "prefill.host_memory_peak > 1", status=4)
        self.assertIn("has no prefill.host_memory_peak", diff["gates"][0]["why"])

    def test_mistakes(self):
        self.take("base_1", "base_2")
        for words, status, said in (
                (("base_1", "nowhere"), 2, "nowhere"),
                (("base_1",), 1, "two runs"),
                ((), 1, "two runs"),
                (("base_1", "base_2", "base_1"), 1, "which are before"),
                (("base_1", "base_2", "--gate", "decode.tpot < 1ms"), 1, "did you mean tpot_p50"),
                (("base_1", "base_2", "--least", "much"), 1, "--least"),
                (("--baseline", "none", "base_1"), 2, "there is no baseline 'none'"),
                (("--save-baseline", "../x", "base_1"), 1, "no name")):
            done = self.llmprof("diff", *words, status=status)
            self.assertIn(said, done.stderr, words)
        self.record("nothing", "/bin/true")
        same = self.llmprof("diff", "nothing", "nothing").stdout
        self.assertIn("Both are the same run", same)
        self.assertEqual(same.count("it has no stages"), 1, same)  # said of each run once

    def test_other_models_and_runs_without_a_gpu(self):
        self.take("base_1")
        for name in ("cpu_1", "cpu_2"):
            self.record(name, WORKLOAD, "infer", "--prompt", "32", "--new", "24")
        diff = self.diff("base_1", "cpu_1")
        work = diff["work"]
        self.assertEqual((work["same"], work["same_model"], work["same_device"]), ("different", False, False))
        self.assertRegex(work["text"], "parameters 124 M instead of 1.24 G.*prompt 32 instead of 512.*different hardware")
        # another model: by what it must compute and move, not by step
        self.assertEqual({s["stage"]: s["per"] for s in work["stages"]}, {"prefill": "TFLOP", "decode": "GB"})
        (stage,) = self.rows(diff, "stage", name="decode")
        self.assertEqual(stage["per"], "GB")
        self.assertIn("Shares of what each device can do cannot be compared: peaks", diff["headline"])  # --no-peaks
        diff = self.diff("cpu_1", "cpu_2")
        self.assertEqual(diff["work"]["same"], "same", diff["work"])
        self.assertTrue(any("no GPU" in w for w in diff["warnings"]))
        (stage,) = self.rows(diff, "stage", name="decode")
        self.assertIsNotNone(stage["low"])  # 24 steps tell an interval
        self.assertTrue(self.rows(diff, "operator", stage="decode"))
        self.assertTrue(self.rows(diff, "shape", stage="prefill"))
        self.record("empty", "/bin/true")
        diff = self.diff("cpu_1", "empty")
        self.assertEqual(diff["work"]["same"], "different")
        self.assertIn("stage 'decode' only before", diff["work"]["text"])
        self.assertTrue(any("no stages" in w for w in diff["warnings"]), diff["warnings"])
        self.assertTrue(self.rows(diff, "measure", name="run.wall"))
        # two programs of which nothing is known
        self.record("other", "/bin/echo", "x")
        diff = self.diff("empty", "other")
        self.assertEqual(diff["work"]["same"], "unknown")
        self.assertIn("The work cannot be compared: the runs have no matrix products.", diff["work"]["text"])

    def test_other_sizes_are_said_and_divided_out(self):
        common = ("--new", "24", "--prompt")
        self.record("one", WORKLOAD, "infer", *common, "64")
        self.record("four", WORKLOAD, "infer", *common, "64", "--batch", "4")
        self.record("long", WORKLOAD, "infer", *common, "128")
        there, back = self.diff("one", "four"), self.diff("four", "one")
        self.assertIn("did not do the same work: batch 4 instead of 1.", there["work"]["text"])
        self.assertIn("did not do the same work: batch 1 instead of 4.", back["work"]["text"])
        for row in self.rows(there, "stage", comparable=True):
            (other,) = self.rows(back, "stage", name=row["name"])
            self.assertEqual((row["before"], row["after"], row["per"]), (other["after"], other["before"], other["per"]))
        (tpot,) = self.rows(there, "pace", stage="decode", name="TPOT")
        (each,) = self.rows(there, "pace", stage="decode", name="time per token")
        self.assertAlmostEqual(each["after"], tpot["after"] / 4)
        self.assertEqual((tpot["comparable"], tpot["better"], tpot["caveat"]), (False, "neither", "batch 4 instead of 1"))
        self.assertNotIn("for the same work", json.dumps(there))
        # a gate on it is no silent pass
        words = ("one", "four", "--gate", "decode.tpot_p50 < +99999%", "decode.busy > -99%", "--junit", "gates.xml")
        text = self.llmprof("diff", *words).stdout
        self.assertRegex(text, r"(?s)warn  decode\.tpot_p50 < \+99999%.*Not\s+the\s+same\s+work:\s+batch\s+4\s+instead\s+of\s+1")
        self.assertRegex(text, r"pass  decode\.busy")
        self.assertIn("batch 4 instead of 1", (self.folder / "gates.xml").read_text())
        # a longer prompt is other work for prefill; a decode step hardly notices
        diff = self.diff("one", "long")
        self.assertIn("prompt 128 instead of 64", diff["work"]["text"])
        self.assertEqual({s["stage"]: (s["same"], s["per"]) for s in diff["work"]["stages"]},
                         {"prefill": ("different", "token"), "decode": ("same", "step")})
        # a baseline of an earlier version knows no facts
        self.llmprof("diff", "--save-baseline", "old", "one")
        file = self.folder / "data" / "llmprof" / "baselines" / "old.json"
        saved = json.loads(file.read_text())
        for run in saved["runs"]:
            del run["facts"]
            for stage in run["stages"]:
                for key in ("flops_shapes", "bound", "time_ns", "confidence", "on_cpu"):
                    del stage[key]
        file.write_text(json.dumps(saved))
        self.assertIn("batch 4 instead of 1", self.diff("--baseline", "old", "four")["work"]["text"])
        self.assertEqual(self.diff("--baseline", "old", "one")["work"]["same"], "same")

    def test_strangers_are_held_to_what_they_did(self):
        for name in ("train", "llmc", "qm", "cb", "jax"):
            shutil.copytree(RUNS.parent / "strangers" / name, self.folder / name)
        shutil.copytree(RUNS.parent / "h200_decode", self.folder / "h200_decode")
        self.take("base_1")
        diff = self.diff("train", "llmc")
        text = diff["work"]["text"]
        for said in ("parameters 124 M instead of 81.1 M", "layers 12 instead of 6", "batch 16 instead of 4",
                     "sequence length 1024 instead of 512", "40 training steps instead of 18"):
            self.assertIn(said, text)
        self.assertTrue(diff["headline"].startswith("training step (other work): "), diff["headline"])
        (rate,) = self.rows(diff, "pace", stage="training step", name="tokens/s")
        self.assertAlmostEqual(rate["after"] / 350e3, 1, delta=0.02)  # by llm.c's own clock
        diff = self.diff("qm", "cb")
        self.assertIn("batch 24 instead of 2", diff["work"]["text"])
        (per_token,) = self.rows(diff, "pace", stage="decode", name="time per token")
        self.assertEqual(per_token["better"], "better")
        # the same sizes, more steps: each step is comparable
        diff = self.diff("base_1", "h200_decode")
        self.assertIn("same amount of work: 5 prefill steps instead of 2; 513 decode steps instead of 128. Each step did the same.",
                      diff["work"]["text"])
        self.assertEqual({r["per"] for r in self.rows(diff, "stage")}, {"step"})
        diff = self.diff("jax", "jax")
        self.assertEqual(diff["work"]["text"], "Both are the same run.")
        for width in ("80", "120"):
            self.environment["COLUMNS"] = width
            for pair in (("train", "llmc"), ("qm", "cb"), ("base_1", "h200_decode"), ("base_1", "llmc"), ("jax", "train")):
                lines = self.llmprof("diff", *pair).stdout.splitlines()
                self.assertLessEqual(len(lines), 40, lines)
                self.assertLessEqual(max(map(len, lines)), int(width), lines)
                full = self.llmprof("diff", *pair, "--full").stdout.splitlines()
                self.assertLessEqual(max(map(len, full)), int(width), full)
        del self.environment["COLUMNS"]


if __name__ == "__main__":
    unittest.main()
