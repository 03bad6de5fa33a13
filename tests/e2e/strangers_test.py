"""Programs that nobody here wrote, recorded on an H200: what llmprof says of them, held against what they say themselves."""
import csv
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

    # From exec to exit, by phases, in s: their times are the life, which is the wall time.
    def life(self, report):
        life = report["life"]
        self.assertEqual(sum(phase["time_ns"] for phase in life["phases"]), life["time_ns"])
        self.assertEqual(life["time_ns"], report["coverage"]["wall_ns"])
        return life, {phase["name"]: phase["time_ns"] / 1e9 for phase in life["phases"]}

    def test_life_of_llmc(self):
        life, phases = self.life(self.of("llmc"))
        self.assertAlmostEqual(life["time_ns"] / 1e9, 5.38, delta=0.01)  # the collector was there for 4.95 of it
        for name, seconds in {"backward": 1.22, "build": 2.25, "gpu_start": 0.39, "exit": 0.25}.items():
            self.assertAlmostEqual(phases[name], seconds, delta=0.05, msg=name)
        self.assertLess(phases["idle"] + phases["unsampled"], 0.1)
        evidence = {phase["name"]: phase["evidence"] for phase in life["phases"]}
        self.assertIn("249 MB", evidence["host_to_device"])  # the weights, bfloat16

    def test_life_of_jax(self):
        life, phases = self.life(self.of("jax"))
        self.assertAlmostEqual(life["time_ns"] / 1e9, 10.77, delta=0.01)  # the collector was there for 8.4 of it
        for name, seconds in {"compile": 4.6, "memory": 1.84, "imports": 1.5, "jit_step": 0.285}.items():
            self.assertAlmostEqual(phases[name], seconds, delta=0.1, msg=name)
        self.assertEqual(sum(other["processes"] for other in life["concurrent"]), 76)  # ptxas, not in the bar
        text = self.llmprof("report", "jax", "--full").stdout
        bar = text.split("Life of the program")[1].splitlines()[2].strip()
        self.assertEqual(len(bar), 64)
        self.assertEqual((bar[0], bar[40]), ("I", "C"))

    # 50 passes of 15.3 ms through 16 blocks; the widest matrix lies in every block.
    def test_diffusion_transformer(self):
        report = self.of("dit")
        stage, = report["stages"]
        self.assertEqual((stage["name"], stage["steps"], stage["tokens_per_s"]), ("steps", 50, None))
        self.assertAlmostEqual(stage["step_p50_ns"] / 1e6, 15.26, delta=0.5)
        self.assertEqual([each["stage"] for each in report["waterfalls"]], ["steps"])
        self.assertGreater(report["coverage"]["gpu_stage_ns"] / report["coverage"]["gpu_ns"], 0.99)

    # Three times an encoder of 4 x 256 tokens; 4, 64 and 64 passes of the decoder, 19.8 ms apart.
    def test_encoder_and_decoder(self):
        stages = {stage["name"]: stage for stage in self.of("t5")["stages"]}
        self.assertEqual({name: stage["steps"] for name, stage in stages.items()}, {"encode": 3, "decode": 132})
        self.assertEqual(stages["encode"]["tokens"], 3 * 4 * 256)
        self.assertAlmostEqual(stages["decode"]["tpot_p50_ns"] / 1e6, 19.78, delta=0.2)

    # 8 and 96 tokens, one for each pass of the large model: nothing that the small one drafted was taken.
    def test_speculative_decoding(self):
        report = self.of("assisted")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual({name: stage["steps"] for name, stage in stages.items()},
                         {"draft": 102, "prefill": 2, "verify": 100, "decode": 2})
        verify = stages["verify"]
        self.assertEqual((verify["tokens"], verify["tokens_per_s"], verify["checked"]), (0, None, 200))
        self.assertEqual(verify["least_taken"] + stages["prefill"]["steps"] + stages["decode"]["steps"], 8 + 96)
        self.assertIn("6.83 tokens/s, if one of each sequence is taken", self.llmprof("report", "assisted", "--full").stdout)
        # The one that checks, not the one that drafts.
        self.assertIn("16 layers, hidden 2048, queries 2048, keys and values 1024, FFN 5632 (gated), vocabulary 32000", report["model"]["origin"])

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
        text = self.llmprof("report", "llmc", "--full").stdout
        for wrong in ("prefill", "TTFT", "Sampling takes", "decode"):
            self.assertNotIn(wrong, text)
        self.assertIn("352 k tokens/s (16384 tokens in 46.5 ms), MFU 28.4 %", text)
        tree = {node["name"]: node for node in report["ranges"] if node["depth"] <= 1}
        self.assertEqual(tree["gpt#_update"]["ranges"], 40)
        self.assertEqual(tree["gpt#_update"]["stage"], "optimizer")

    def test_training_of_an_unknown_model(self):
        report = self.of("train")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual({name: stage["steps"] for name, stage in stages.items()},
                         {"forward": 36, "backward": 36, "optimizer": 18, "forward only": 6})
        series, = report["training"]
        self.assertEqual([step["tokens"] for step in series["steps"]], [2 * 4 * 512] * 18)
        totals = sorted(step["total_ns"] for step in series["steps"])
        self.assertAlmostEqual(4096 / totals[9] * 1e9, 100e3, delta=2e3)  # 42.98 ms with its waits: 95.3 k
        model = report["model"]
        self.assertEqual((model["family"], model["source"]), ("inferred", "products"))
        self.assertIn("6 layers, hidden 768, FFN 3072 (not gated), vocabulary 50257; heads of 64", model["origin"])
        # Its parameters, tied, but for 1024 positions.
        self.assertAlmostEqual(model["parameters"], 81_912_576 - 1024 * 768, delta=2)
        # Per row: products with weights, and attention over 4 x 512 tokens; three times with the way back.
        products = 2 * 2048 * (6 * 12 * 768 * 768 + 768 * 50257)
        attention = 6 * 4 * (512 * 513 / 2) * 4 * 768
        self.assertAlmostEqual(stages["forward"]["flops"], 36 * (products + attention), delta=1)
        self.assertAlmostEqual(stages["backward"]["flops"], 2 * 36 * (products + attention), delta=1)
        self.assertIsNone(stages["backward"]["hfu"])  # nothing is computed again
        in_passes = self.query("train", "SELECT sum(k.end_ns - k.begin_ns) AS all_ns, coalesce(sum(k.end_ns - k.begin_ns) FILTER "
                               "(a.module IS NOT NULL), 0) AS module_ns FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id "
                               "JOIN step AS s ON s.id = a.step_id WHERE s.stage <> 'optimizer'")[0]
        self.assertGreater(float(in_passes["module_ns"]) / float(in_passes["all_ns"]), 0.95)
        operators = {(row["stage"], row["name"]): row for row in report["operators"]}
        for name in ("self_attn.qkv_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj", "self_attn.core"):
            for stage in ("forward", "backward"):
                self.assertEqual(operators[stage, name]["calls"], 36 * 6, (stage, name))

    def test_jax(self):
        report = self.of("jax")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual(set(stages), {"compile", "jit_step"})
        self.assertEqual(stages["jit_step"]["steps"], 128)
        self.assertGreater(stages["compile"]["time_ns"], 4e9)
        # The collector of that day neither sampled bursts nor named nodes that were added by hand; the report says so.
        text = " ".join(self.llmprof("report", "jax", "--full").stdout.split())
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

    def test_culprit_of_a_gap(self):
        report = self.of("qm")
        idle, = [row for row in report["idle"] if row["stage"] == "decode" and not row["warm_up"]]
        total = idle["gap_ns"] + idle["between_ns"]
        self.assertEqual(idle["places"][0]["name"], "self_attn")
        self.assertGreater(idle["places"][0]["time_ns"] / total, 0.6)
        compiling, = [work for work in idle["works"] if work["work"] == "compilation"]
        self.assertEqual(compiling["what"], "nvrtc for cuDNN")
        self.assertGreater(compiling["cpu_ns"] / total, 0.4)
        found = {finding["rule"]: finding for finding in report["diagnosis"]["findings"] if finding["stage"] == "decode"}
        self.assertIn("compile_in_loop", found)
        gain = found["launch_bound"]["gain"]
        self.assertLess(gain["ns"] / gain["of_ns"], 0.65)  # 94 % with the compiler's time

    def test_advice_suits_the_program(self):
        advice = [line for finding in self.of("llmc")["diagnosis"]["findings"] for line in finding["advice"]]
        self.assertTrue(advice)
        self.assertEqual([line for line in advice if "torch" in line.lower() or "token" in line], [])

    def modules_of(self, name):
        rows = self.llmprof("query", name, "SELECT k.id, k.end_ns - k.begin_ns, coalesce(a.module, ''), coalesce(a.step_id, 0) "
                            "FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id", "--csv").stdout
        return {row[0]: (int(row[1]), row[2], row[3]) for row in csv.reader(rows.splitlines()[1:])}

    def test_positions_agree_with_modules(self):
        """The modules that ranges name are the truth; hidden, kernels get theirs by shape and position."""
        for name in ("qm", "hidden"):
            shutil.copytree(RUNS / "qm", self.folder / f"{name}.llmprof")
        card = self.folder / "hidden.llmprof/run.json"
        run = json.loads(card.read_text())
        run["files"] = [file for file in run["files"] if file["table"] != "range"]
        card.write_text(json.dumps(run))
        (self.folder / "hidden.llmprof/tables/range.parquet").unlink()
        truth, found = self.modules_of("qm"), self.modules_of("hidden")
        # The model has one operator where the program has several parts, and the other way round.
        same = {"mlp.act": ("mlp", "mlp.act_fn"), "self_attn.core": ("self_attn",), "self_attn.rope": ("self_attn",)}
        told = {"same": 0, "around": 0, "none": 0, "no truth": 0, "wrong": 0}
        for kernel, (time_ns, module, step) in found.items():
            _, true, true_step = truth[kernel]
            self.assertEqual(step, true_step)  # steps begin with the embedding, as modules say
            block, _, operator = module.partition(".")[2].partition(".")
            alike = {f"layers.{block}.{other}" for other in same.get(operator, ())}
            kind = ("same" if module == true or true in alike else "none" if not module else "no truth" if not true else
                    "around" if true.startswith(module + ".") else "wrong")
            told[kind] += time_ns
        total = sum(told.values())
        self.assertEqual(told["wrong"], 0)
        self.assertGreater(told["same"] / total, 0.99)

    def test_continuous_batching(self):
        report = self.of("cb")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual({name: stage["steps"] for name, stage in stages.items()}, {"prefill": 1, "decode": 47})
        self.assertEqual(stages["prefill"]["tokens"], 7980)
        self.assertEqual(stages["decode"]["tokens"] + 24, 24 * 48)  # the first ones come with the prompts
        layers, q, kv, hidden, mlp, vocabulary = 28, 2048, 1024, 2048, 6144, 151936
        weights = layers * (2 * hidden * q + 2 * hidden * kv + 3 * hidden * mlp)
        prefill = 2 * (7980 * weights + 24 * hidden * vocabulary)
        pair = 4 * layers * q  # FLOPs of a new token and one that it attends to
        # Prompts of 332 or 333 tokens make the fewest pairs, one of 7957 among 23 of one the most.
        self.assertAlmostEqual(stages["prefill"]["flops"], prefill + pair * 12 * (332 * 333 + 333 * 334) / 2, delta=1e6)
        self.assertAlmostEqual(stages["prefill"]["flops_most"], prefill + pair * (7957 * 7958 / 2 + 23), delta=1e6)
        self.assertTrue(stages["prefill"]["at_least"])
        # One token each: the sum of the contexts is known, and so is everything.
        contexts = sum(7980 + 24 * step for step in range(1, 48))
        decode = 47 * 2 * (24 * weights + 24 * hidden * vocabulary)
        self.assertAlmostEqual(stages["decode"]["flops"], decode + pair * contexts, delta=1e6)
        self.assertFalse(stages["decode"]["at_least"])
        for name in stages:
            for measure in ("mfu", "mbu", "floor_ns"):
                self.assertGreater(stages[name][measure], 0, name)
        coverage = report["coverage"]
        self.assertGreater(coverage["gpu_module_ns"] / coverage["gpu_ns"], 0.95)
        operators = {row["name"]: row for row in report["operators"] if row["stage"] == "decode"}
        for name in ("self_attn.core", "input_layernorm", "mlp.act", "self_attn.q_norm", "mlp.down_proj"):
            self.assertEqual(operators[name]["calls"], 28 * 47, name)
        self.assertGreater(operators["self_attn.core"]["kernel_ns"], 270e6)  # 273 ms in cuDNN's kernel alone
        text = self.llmprof("report", "cb", "--full").stdout
        self.assertIn("the sequences differ in length and only sums are known", text)
        self.assertNotIn("do not say their batch", text)

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
