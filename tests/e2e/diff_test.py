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
        self.assertIn("both are the same run", same)
        self.assertEqual(same.count("it has no stages"), 1, same)  # said of each run once

    def test_other_models_and_runs_without_a_gpu(self):
        self.take("base_1")
        for name in ("cpu_1", "cpu_2"):
            self.record(name, WORKLOAD, "infer", "--prompt", "32", "--new", "24")
        diff = self.diff("base_1", "cpu_1")
        self.assertTrue(any(w.startswith("different models") for w in diff["warnings"]), diff["warnings"])
        self.assertTrue(any("different devices" in w for w in diff["warnings"]))
        self.assertTrue(self.rows(diff, "stage", name="decode"))
        diff = self.diff("cpu_1", "cpu_2")
        self.assertTrue(any("no GPU" in w for w in diff["warnings"]))
        (stage,) = self.rows(diff, "stage", name="decode")
        self.assertIsNotNone(stage["low"])  # 24 steps tell an interval
        self.assertTrue(self.rows(diff, "operator", stage="decode"))
        self.assertTrue(self.rows(diff, "shape", stage="prefill"))
        self.record("empty", "/bin/true")
        diff = self.diff("cpu_1", "empty")
        self.assertTrue(any("no stages" in w for w in diff["warnings"]), diff["warnings"])
        self.assertTrue(self.rows(diff, "measure", name="run.wall"))


if __name__ == "__main__":
    unittest.main()
