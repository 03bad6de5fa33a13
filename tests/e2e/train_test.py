"""The training step of the embedded GPT-2, profiled from outside: stages, series, blocks, and FLOPs by hand."""
import json
import unittest

from harness import LLMPROF, WORKLOAD, Case

STEPS, BATCH, TOKENS = 6, 3, 16
TINY = [WORKLOAD, "train", "--preset", "tiny", "--steps", str(STEPS), "--batch", str(BATCH), "--tokens", str(TOKENS)]


def forward_flops(c):
    """(weight products, causal attention, full attention) of one forward pass, written from the architecture.

    Per layer c_attn is hidden x 3 hidden, c_proj hidden x hidden, the MLP two of hidden x 4 hidden; the head is hidden x
    vocabulary, at every position. Query i of a sequence sees i + 1 keys; a pair costs two products of head size per head.
    """
    hidden, rows = c["n_embd"], BATCH * TOKENS
    weights = c["n_layer"] * (3 + 1 + 4 + 4) * hidden * hidden + hidden * c["vocab_size"]
    causal = c["n_layer"] * BATCH * 4 * hidden * TOKENS * (TOKENS + 1) // 2
    full = c["n_layer"] * BATCH * 4 * hidden * TOKENS * TOKENS
    return 2 * rows * weights, causal, full


class Train(Case):
    def profile(self):
        self.record("run", *TINY)
        report = self.report("run")
        return report, {stage["name"]: stage for stage in report["stages"]}

    def test_stages_steps_and_flops(self):
        report, stages = self.profile()
        self.assertEqual([loss for loss in report["losses"] if loss["severity"] == "data_loss"], [])
        self.assertEqual([name for name in stages], ["load", "forward", "backward", "optimizer"])
        weights, causal, full = forward_flops(report["model"]["config"])
        for name, times in (("forward", 1), ("backward", 2)):
            stage = stages[name]
            self.assertEqual(stage["steps"], STEPS)
            self.assertEqual(stage["tokens"], STEPS * BATCH * TOKENS)
            self.assertEqual(stage["flops"], STEPS * times * (weights + causal))
            # What was really multiplied: the same matrices, and attention without leaving the masked half out.
            self.assertEqual(stage["flops_shapes"], STEPS * times * (weights + full))
        self.assertEqual(stages["optimizer"]["steps"], STEPS)
        self.assertEqual(stages["optimizer"]["flops"], 0)
        # AdamW in float32: parameter, gradient and two moments read, all but the gradient written.
        self.assertEqual(stages["optimizer"]["bytes"], STEPS * 28 * report["model"]["parameters"])
        self.assertEqual(stages["optimizer"]["kernels"], 0)

    def test_every_weight_product_has_the_flops_of_the_model(self):
        report, _ = self.profile()
        operators = {(op["stage"], op["name"]): op for op in report["operators"]}
        for stage, products in (("forward", 1), ("backward", 2)):
            for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj", "lm_head"):
                op = operators[(stage, name)]
                by_shape = sum(2 * p["m"] * p["n"] * p["k"] * p["batch"] * p["calls"] for p in op["products"])
                self.assertEqual(by_shape, op["flops"], (stage, name))
                self.assertEqual(sum(p["calls"] for p in op["products"]), products * op["calls"], (stage, name))
        hidden, rows = report["model"]["config"]["n_embd"], BATCH * TOKENS
        shapes = {p["shape"] for p in operators[("forward", "mlp.c_fc")]["products"]}
        self.assertEqual(shapes, {f"[{rows}, {hidden}] x [{hidden}, {4 * hidden}]"})
        shapes = {p["shape"] for p in operators[("backward", "mlp.c_fc")]["products"]}
        self.assertEqual(shapes, {f"[{rows}, {4 * hidden}] x [{4 * hidden}, {hidden}]",
                                  f"[{4 * hidden}, {rows}] x [{rows}, {hidden}]"})

    def test_series_blocks_and_modules(self):
        report, stages = self.profile()
        self.assertEqual(len(report["training"]), 1)
        steps = report["training"][0]["steps"]
        self.assertEqual([step["number"] for step in steps], list(range(STEPS)))
        for name in ("forward", "backward", "optimizer"):
            self.assertEqual(sum(step[name + "_ns"] for step in steps), stages[name]["steps_ns"])
        for step in steps:
            self.assertGreaterEqual(step["total_ns"],
                                    step["forward_ns"] + step["backward_ns"] + step["optimizer_ns"])
        blocks = {block["name"]: {s["stage"]: s for s in block["stages"]} for block in report["blocks"]}
        self.assertEqual(list(blocks), ["wte", "h.0", "h.1", "ln_f", "lm_head", "loss"])
        for name in ("wte", "h.0", "h.1", "ln_f"):
            self.assertEqual({s: b["calls"] for s, b in blocks[name].items()},
                             {"forward": STEPS, "backward": STEPS, "optimizer": STEPS}, name)
        names = lambda stage: {m["name"] for m in report["modules"] if m["stage"] == stage}
        self.assertEqual(names("forward"), names("backward"))  # they line up
        self.assertLess(names("optimizer"), names("forward"))  # what has parameters

    def test_text_shows_steps_blocks_and_shapes(self):
        self.record("run", *TINY)
        text = self.llmprof("report", "run", "--full").stdout
        for part in ("Training steps", "slowest", f"Total of {STEPS} steps", "Blocks", "h.1", "Operators of backward",
                     "[48, 64] x [64, 256]"):
            self.assertIn(part, text)
        self.assertNotIn("TTFT", text)

    def test_output_and_status_are_those_of_the_program_alone(self):
        alone = self.run_command(TINY)
        profiled = self.record("run", *TINY)
        self.assertEqual(alone.stdout, profiled.stdout)
        losses = [float(line.split()[-1]) for line in alone.stdout.splitlines() if line.startswith("step ")]
        self.assertEqual(len(losses), STEPS)
        self.assertLess(losses[-1], losses[0] - 0.3)
        bad = [WORKLOAD, "train", "--preset", "tiny", "--tokens", "65"]
        self.assertEqual(self.run_command(bad, status=1).stderr.count("\n"), 1)
        self.assertEqual(self.record("bad", *bad, status=1).stdout, "")

    def test_json_has_every_step(self):
        summary = json.loads(self.run_command(TINY + ["--json", "--threads", "1"]).stdout)
        self.assertEqual(len(summary["steps"]), STEPS)
        self.assertEqual(summary["model"]["model_type"], "gpt2")

    def test_demo_of_training(self):
        done = self.run_command([LLMPROF, "demo", "--train", "--preset", "tiny", "--no-peaks", "--json"])
        report = json.loads(done.stdout)
        self.assertEqual(len(report["training"][0]["steps"]), 20)


if __name__ == "__main__":
    unittest.main()
