"""llmprof whatif: changes to models and to recorded runs."""
import json
import pathlib
import shutil
import unittest

from harness import Case

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"


class WhatIf(Case):
    def whatif(self, *words):
        return json.loads(self.llmprof("whatif", *words, "--json").stdout)

    def test_of_a_model_the_rows_are_those_of_model_diff(self):
        words = ("llama-3.1-8b", "--device", "h100-sxm", "--batch", "8", "--prompt", "1024", "--context", "4096")
        got = self.whatif(*words, "--set", "dtype=float8")
        theirs = json.loads(self.llmprof("model", *words, "--diff-dtype", "float8", "--json").stdout)
        self.assertEqual(got["rows"], theirs["rows"])
        self.assertEqual(got["expected"], [])
        self.assertGreaterEqual(len(got["gradients"]), 5)

    def test_of_a_run_floors_move_and_idle_time_stays(self):
        shutil.copytree(RUNS / "h200_decode", self.folder / "decode.llmprof")
        report = self.report("decode")
        decode = next(stage for stage in report["stages"] if stage["name"] == "decode")
        got = self.whatif("decode", "--set", "dtype=float8")
        row = next(each for each in got["expected"] if each["stage"] == "decode")
        self.assertEqual(row["measured_ns"], decode["tpot_p50_ns"])
        saved = row["floor_before_ns"] - row["floor_after_ns"]
        self.assertAlmostEqual(row["most_ns"], row["measured_ns"] - saved, delta=1)
        busy = row["measured_ns"] * decode["steady_busy"]
        self.assertAlmostEqual(row["least_ns"], row["measured_ns"] - busy * (1 - row["floor_after_ns"] / row["floor_before_ns"]), delta=1)
        self.assertLess(row["floor_after_ns"], row["floor_before_ns"])
        text = self.llmprof("whatif", "decode", "--set", "dtype=float8").stdout
        self.assertIn("What the run would become", text)

    # Continuous batching: no step stands for the others.
    def test_stages_whose_steps_differ_are_left_out(self):
        shutil.copytree(RUNS / "strangers/cb", self.folder / "cb.llmprof")
        got = self.whatif("cb", "--set", "kv_dtype=float8")
        self.assertEqual(got["expected"], [])
        self.assertTrue(any("left out, as its steps differ" in note for note in got["notes"]))

    def test_what_cannot_be_says_why(self):
        self.assertIn("did you mean kv_heads", self.llmprof("whatif", "gpt2", "--device", "h100-sxm", "--set", "kv_head=2", status=1).stderr)
        self.assertIn("wants a change", self.llmprof("whatif", "gpt2", status=1).stderr)
        shutil.copytree(RUNS / "strangers/jax", self.folder / "jax.llmprof")
        self.assertIn("its model is not known", self.llmprof("whatif", "jax", "--set", "dtype=float8", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
