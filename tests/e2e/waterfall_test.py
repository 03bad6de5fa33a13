"""The waterfall of real runs: every nanosecond of a stage in one term, on the embedded workload."""
import json
import unittest

from harness import WORKLOAD, Case

CONFIG = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 64,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True, "torch_dtype": "float32"}


class WaterfallTest(Case):
    def check(self, waterfall):
        """Terms and floor add up to the measured time; what is negative says so."""
        known = [term["ns"] for term in waterfall["terms"] if term["ns"] is not None]
        self.assertEqual(sum(known) + (waterfall["floor_ns"] or 0), waterfall["measured_ns"], waterfall)
        for term in waterfall["terms"]:
            if term["ns"] is None:
                self.assertTrue(term["why"], term)
            elif term["ns"] < -waterfall["samples"] - 32:  # floors are rounded to nanoseconds, operator by operator
                self.assertIn(term["name"], ("faster_than_floor", "not_seen"), term)
        self.assertIn("residual", [term["name"] for term in waterfall["terms"]])

    def test_inference(self):
        config = self.write("config.json", json.dumps(CONFIG))
        self.record("run", WORKLOAD, "infer", "--config", config, "--prompt", "16", "--new", "8", options=())
        report = self.report("run")
        stages = {stage["name"]: stage for stage in report["stages"]}
        found = {waterfall["stage"]: waterfall for waterfall in report["waterfalls"]}
        self.assertEqual(list(found), ["prefill", "decode"])
        for waterfall in found.values():
            self.check(waterfall)
            self.assertIsNotNone(waterfall["floor_ns"], waterfall["why"])
        self.assertEqual(found["prefill"]["quantity"], "TTFT")
        self.assertEqual(found["prefill"]["measured_ns"], stages["prefill"]["ttft_ns"])
        self.assertEqual(found["decode"]["quantity"], "TPOT")
        self.assertEqual(found["decode"]["samples"], stages["decode"]["steps"] - 1)
        (begin, end), = [tuple(row.values()) for row in self.query(
            "run", "SELECT min(begin_ns), max(begin_ns) FROM step WHERE stage = 'decode'")]
        self.assertEqual(found["decode"]["measured_ns"], end - begin)  # steps follow each other: the sum of all samples
        names = {(term["name"], term["class"]) for term in found["decode"]["terms"]}
        # Work that no BLAS call does is its operators', not a gap; with a small cache something may beat its floor.
        classes = {op_class for name, op_class in names if name in ("above_floor", "faster_than_floor")}
        self.assertLessEqual({"projection", "attention", "norm", "rope", "elementwise", "logits"}, classes)
        text = self.llmprof("report", "run", "--waterfall", "--stage", "decode").stdout
        self.assertIn("decode: TPOT down to its floor", text)
        self.assertIn("unknown (no telemetry)", text)
        plain = self.llmprof("report", "run", "--waterfall", env={**self.environment, "LC_ALL": "C"}).stdout
        section = plain[plain.index("\nWaterfall"):plain.index("\nBlocks")]
        self.assertTrue(section.isascii(), section)

    def test_training_without_peaks(self):
        self.record("train", WORKLOAD, "train", "--preset", "tiny", "--steps", "3")
        report = self.report("train")
        found = {waterfall["stage"]: waterfall for waterfall in report["waterfalls"]}
        self.assertEqual(list(found), ["forward", "backward", "optimizer"])
        for waterfall in found.values():
            self.check(waterfall)
            self.assertEqual((waterfall["quantity"], waterfall["samples"]), ("step time", 3))
            self.assertIsNone(waterfall["floor_ns"])
            self.assertIn("no peak", waterfall["why"])

    def test_every_step_adds_up(self):
        config = self.write("config.json", json.dumps(CONFIG))
        self.record("run", WORKLOAD, "infer", "--config", config, "--prompt", "4", "--new", "6")
        self.report("run")
        rows = self.query("run", """
            SELECT s.id, any_value(s.end_ns - s.begin_ns) AS expected, sum(t.time_ns)::BIGINT AS found
            FROM step AS s JOIN step_time AS t ON t.step_id = s.id GROUP BY s.id""")
        self.assertGreaterEqual(len(rows), 5)
        for row in rows:
            self.assertEqual(row["expected"], row["found"])


if __name__ == "__main__":
    unittest.main()
