"""Programs that nobody here wrote, recorded on an H200: what llmprof says of them, held against what they say themselves."""
import json
import pathlib
import shutil
import unittest

from harness import Case

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs/strangers"


class StrangersTest(Case):
    def of(self, name):
        shutil.copytree(RUNS / name, self.folder / f"{name}.llmprof")
        return self.report(name)

    def test_llmc(self):
        report = self.of("llmc")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual({name: stage["steps"] for name, stage in stages.items()},
                         {"validation": 2, "forward": 40, "backward": 40, "optimizer": 40, "generation": 63})
        self.assertEqual(report["model"]["family"], "gpt2")
        series, = report["training"]
        totals = sorted(step["total_ns"] for step in series["steps"])
        self.assertEqual(len(totals), 40)
        self.assertTrue(46.2e6 < totals[20] < 47e6, totals[20])
        self.assertEqual({step["tokens"] for step in series["steps"]}, {16 * 1024})
        self.assertAlmostEqual(16 * 1024 / totals[20] * 1e9, 350e3, delta=5e3)
        blocks = {block["name"] for block in report["blocks"]}
        self.assertLessEqual({f"h.{layer}" for layer in range(12)}, blocks)
        coverage = report["coverage"]
        self.assertGreater(coverage["gpu_module_ns"] / coverage["gpu_ns"], 0.9)
        # Six FLOPs per parameter and token, the attention besides; the embeddings of positions make none.
        flops = stages["forward"]["flops"] + stages["backward"]["flops"]
        self.assertTrue(1.0 < flops / (40 * 16 * 1024 * 6 * 124e6) < 1.2, flops)
        text = self.llmprof("report", "llmc").stdout
        for wrong in ("prefill", "TTFT", "Choosing tokens", "decode"):
            self.assertNotIn(wrong, text)
        self.assertIn("352 k tokens/s (16384 tokens in 46.5 ms), MFU 28.4 %", text)
        tree = {node["name"]: node for node in report["ranges"] if node["depth"] <= 1}
        self.assertEqual(tree["gpt#_update"]["ranges"], 40)
        self.assertEqual(tree["gpt#_update"]["stage"], "optimizer")

    def test_jax(self):
        report = self.of("jax")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual(set(stages), {"compile", "jit_step"})
        self.assertEqual(stages["jit_step"]["steps"], 128)
        self.assertGreater(stages["compile"]["time_ns"], 4e9)
        # The collector of that day neither sampled bursts nor named nodes that were added by hand; the report says so.
        text = " ".join(self.llmprof("report", "jax").stdout.split())
        self.assertIn("the kernels of 2048 launches of 1 graph (80.7 % of the GPU time) are unknown: no launch was recorded node by node, "
                      "and 0 of their 18 kernel nodes have a name.", text)

    def test_generate_with_modules(self):
        report = self.of("qm")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual({name: stage["steps"] for name, stage in stages.items()}, {"prefill": 2, "decode": 66})
        self.assertEqual([stages[name]["warm_up_steps"] for name in ("prefill", "decode")], [1, 1])
        self.assertLess(stages["prefill"]["ttft_ns"], 50e6)  # 38 ms; the first took 933 ms, cold
        self.assertGreater(stages["prefill"]["cold_ttft_ns"], 900e6)
        self.assertAlmostEqual(stages["decode"]["tpot_p50_ns"] / 1e6, 75, delta=1)  # by its own clock
        operators = {row["name"]: row for row in report["operators"] if row["stage"] == "decode"}
        for name in ("self_attn", "self_attn.q_proj", "mlp.up_proj", "input_layernorm"):
            self.assertEqual(operators[name]["calls"], 28 * 66, name)  # layers x steps
        self.assertEqual(operators["embed_tokens"]["calls"], 66)  # before the first product of a pass
        self.assertGreater(operators["mlp.up_proj"]["mbu"], 0.3)
        self.assertNotIn("(none)", {row["stage"] for row in report["operators"] if row["calls"] > 0})
        self.assertGreater(report["coverage"]["gpu_module_ns"] / report["coverage"]["gpu_ns"], 0.95)

    def test_rules_of_the_user(self):
        self.of("llmc")
        rules = self.llmprof("ranges", "llmc", "--rules").stdout
        self.assertIn('{ name = "gpt*_forward", is = "step", stage = "forward" }', rules)
        self.write("llmprof.toml", '[ranges]\nrules = [ { name = "gpt2_update", is = "step", stage = "my update" } ]\n')
        stages = {stage["name"]: stage["steps"] for stage in self.report("llmc")["stages"]}
        self.assertEqual(stages["my update"], 40)
        self.assertNotIn("optimizer", stages)
        names = {row["name"]: row for row in json.loads(self.llmprof("ranges", "llmc", "--json").stdout)["names"]}
        self.assertEqual(names["gpt#_update"]["why"], "a rule of llmprof.toml")
        self.write("llmprof.toml", "[ranges]\nrules = [ { name = 3 } ]\n")
        self.assertIn("llmprof.toml", self.llmprof("report", "llmc", status=2).stderr)


if __name__ == "__main__":
    unittest.main()
