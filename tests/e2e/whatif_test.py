"""llmprof whatif: changes to models and to recorded runs."""
import json
import pathlib
import shutil
import unittest

from harness import WORKLOAD, Case

BACKTEST = pathlib.Path(__file__).resolve().parents[2] / "libs/predict/backtests/vllm_0.19_rtx4090"
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
        for words, said in ((("--set", "max_num_seq=2"), "did you mean max_num_seqs"), (("--set", "kv_heads"), "not KEY=VALUE"),
                            (("--sweep", "bach=1..4"), "batch"), (("--sweep", "dtype=1"), "no setting that counts"), (("-o", "x.svg"), "picture of a --sweep"),
                            (("--sweep", "batch=1..4", "-o", "x.pdf"), "x.pdf"), (("--sweep", "batch=1..4", "--draw", "watts"), "watts"), (("--rate", "4"), "wants a change"),
                            (("--rate", "4", "--set", "batch=2"), "max_num_seqs"), (("--rate", "4", "--set", "kv_head=2"), "kv_heads")):
            self.assertIn(said, self.llmprof("whatif", "gpt2", "--device", "h100-sxm", *words, status=1).stderr, words)
        shutil.copytree(RUNS / "strangers/jax", self.folder / "jax.llmprof")
        self.assertIn("its model is not known", self.llmprof("whatif", "jax", "--set", "dtype=float8", status=1).stderr)

    # Of a model without a change: gradients and cliffs. A batch of 33 is not among the sizes of vLLM's graphs.
    def test_cliffs_have_a_next_better_size(self):
        got = self.whatif("llama-3.1-8b", "--device", "h100-sxm", "--batch", "33", "--context", "4096")
        self.assertEqual(got["rows"], [])
        graphs = next(row for row in got["cliffs"] if row["what"].startswith("CUDA graphs"))
        self.assertEqual((graphs["here"], graphs["better"]), ("batch 33 runs as 40", "batch=40"))
        blocks = next(row for row in got["cliffs"] if row["what"].startswith("KV blocks"))
        serving = json.loads(self.llmprof("predict", "llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm", "--requests", "2", "--json").stdout)
        usable = serving["memory"]["kv_blocks"] - 1
        self.assertEqual(blocks["here"], f"batch 33 at context 4096: {33 * 256} of {usable} blocks of 16 tokens")
        self.assertIn(f"batch {usable // 256} at this context, context {usable // 33 * 16} at this batch", blocks["where"])
        layer = next(row for row in got["gradients"] if row["what"] == "1 layer more")
        more = self.whatif("llama-3.1-8b", "--device", "h100-sxm", "--batch", "33", "--context", "4096", "--set", "layers=33")
        floors = {row["part"]: row for row in more["rows"] if row["name"] == "floor"}
        self.assertAlmostEqual(layer["tpot_ns"], floors["decode"]["b"] - floors["decode"]["a"], delta=1)

    # The question of the manual. Both sides are what predict says of them.
    def test_a_serving_before_and_after(self):
        words = ("llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm@0.19", "--rate", "10", "--requests", "60")
        changes = ("--set", "kv_heads=4", "--set", "dtype=float8", "--set", "max_num_seqs=64")
        got = self.whatif(*words, *changes)
        before, after = (json.loads(self.llmprof("predict", *words, *more, "--json").stdout) for more in ((), changes))
        self.assertAlmostEqual(after["memory"]["kv_bytes_per_token"] * 2, before["memory"]["kv_bytes_per_token"])
        rows = {(row["metric"], row["statistic"]): row for row in got["latency"]}
        self.assertEqual(len(rows), 16)
        for side, theirs in (("before", before), ("after", after)):
            self.assertEqual(got[side]["kv_blocks"], theirs["memory"]["kv_blocks"])
            for row in theirs["latency"]:
                if row["metric"] == "queue":
                    continue
                for statistic in ("mean", "p50", "p90", "p99"):
                    self.assertEqual(rows[row["metric"], statistic][f"{side}_ns"], row[f"{statistic}_ns"])
                self.assertEqual(rows[row["metric"], "mean"][f"{side}_high_ns"], row["mean_high_ns"])
        text = self.llmprof("whatif", *words, *changes).stdout
        self.assertIn("TPOT mean", text)
        self.assertIn("KV blocks", text)

    # Times of published operator tables: predictions are those of predict, and what a change leaves alone stays measured.
    def test_predictions_by_operator_tables(self):
        words = ("llama-3.1-8b", "--device", "RTX 4090", "--tables", str(BACKTEST), "--prompt", "512", "--context", "1024")
        got = self.whatif(*words, "--batch", "8", "--set", "batch=16")
        self.assertEqual(got["stands_on"]["source"], "operator tables")
        for side, batch in (("before", "8"), ("after", "16")):
            theirs = json.loads(self.llmprof("predict", *words, "--batch", batch, "--steps", "1", "--json").stdout)
            for row, key in zip(got["predicted"], ("ttft_ns", "tpot_ns")):
                self.assertAlmostEqual(row[f"{side}_ns"] / theirs[key], 1, places=9)
        self.assertEqual({row["by"] for row in got["gradients"] if row["setting"].startswith("batch")}, {"operator tables"})
        layers = next(row for row in got["gradients"] if row["what"] == "1 layer more")
        self.assertEqual(layers["by"], "operator tables")  # the same operators once more
        heads = self.whatif(*words, "--batch", "8", "--set", "kv_heads=4")
        decode = heads["predicted"][1]
        self.assertLess(decode["ratio"], 1)
        self.assertLessEqual(decode["after_least_ns"], decode["after_ns"])
        note = next(note for note in heads["notes"] if "not measured in the changed shape" in note)
        self.assertIn("attention, qkv_proj", note)
        self.assertNotIn("o_proj", note)
        serving = self.whatif("llama-3.1-8b", "--device", "RTX 4090", "--tables", str(BACKTEST), "--serving", "vllm@0.19", "--rate", "2", "--requests", "20", "--set", "kv_heads=4")
        self.assertTrue(any("not measured in the changed shape" in note for note in serving["notes"]))
        self.assertNotIn("roof", serving["after"]["stands_on"])
        # Tables are of the type before the change: what reads half the bytes is not as slow as before.
        half = self.whatif("llama-3.1-8b", "--device", "RTX 4090", "--tables", str(BACKTEST), "--serving", "vllm@0.19", "--rate", "2", "--requests", "20", "--set", "dtype=float8")
        tpot = next(row for row in half["latency"] if (row["metric"], row["statistic"]) == ("tpot", "mean"))
        self.assertTrue(0.45 < tpot["ratio"] < 0.8, tpot)

    # Recorded, measured and asked on this machine: only the arithmetic is checked, not how well it predicts.
    def test_the_ratio_of_predictions_on_a_recorded_run(self):
        self.record("b1", WORKLOAD, "infer", "--preset", "tiny-llama", "--threads", "1", "--batch", "1", "--prompt", "32", "--new", "8", options=())
        config = self.report("b1")["model"]["config"]
        self.write("config.json", json.dumps(config))
        self.llmprof("bench", "--for", "config.json", "--device", "cpu", "--threads", "1", "--budget", "3s", "--max-tokens", "64", "--max-batch", "4", "--max-context", "64")
        got = self.whatif("b1", "--set", "batch=2")
        report = {stage["name"]: stage for stage in self.report("b1")["stages"]}
        for row in got["expected"]:
            stage = report[row["stage"]]
            own = row["measured_ns"] * stage["steady_busy"]
            predicted = next(each for each in got["predicted"] if each["stage"] == row["stage"])
            self.assertEqual(row["predicted_before_ns"], predicted["before_ns"])
            self.assertAlmostEqual(row["error"], row["predicted_before_ns"] / own - 1, places=6)
            off = max(row["predicted_before_ns"] / own, own / row["predicted_before_ns"])
            if off > 1.5:
                self.assertIsNone(row["expected_ns"])
                self.assertTrue(any("its ratio is not applied" in note for note in got["notes"]))
                continue
            expected = row["measured_ns"] - own + own * row["ratio"]
            self.assertGreaterEqual(row["most_ns"], row["expected_ns"])
            self.assertTrue(abs(row["expected_ns"] - expected) < 2 or row["expected_ns"] == row["least_ns"])

    def test_sweeps(self):
        words = ("llama-3.1-8b", "--device", "h100-sxm", "--context", "4096")
        got = self.whatif(*words, "--sweep", "batch=1,8,200", "--set", "kv_heads=4")
        model = json.loads(self.llmprof("model", *words, "--sweep", "batch=1,8,200", "--json").stdout)
        self.assertEqual([row["line"] for row in got["points"]], ["as it is"] * 3 + ["kv_heads=4"] * 3)
        for row, theirs in zip(got["points"], model["points"]):
            self.assertAlmostEqual(row["tpot_ns"] / theirs["decode"]["floor_ns"], 1, places=9)
            self.assertAlmostEqual(row["ttft_ns"] / theirs["prefill"]["floor_ns"], 1, places=9)
            self.assertEqual((row["memory_bytes"], row["fits"]), (theirs["memory_bytes"], theirs["fits"]))
        self.assertFalse(got["points"][2]["fits"])
        self.assertEqual(got["by"], "floor")
        text = self.llmprof("whatif", *words, "--sweep", "kv_heads=4,8 batch=1..256:x2", "--draw", "tpot", "-o", "sweep.svg").stdout
        self.assertIn("kv_heads=4", text)
        picture = (self.folder / "sweep.svg").read_text()
        for said in ("<svg", "TPOT at least by batch", "kv_heads=8", "does not fit from"):
            self.assertIn(said, picture)


if __name__ == "__main__":
    unittest.main()
