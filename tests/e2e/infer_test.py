"""The embedded transformer, profiled from outside: stages, and FLOPs that equal the hand-derived count."""
import json
import unittest

from harness import LLMPROF, WORKLOAD, Case


def llama_flops(c, batch, tokens, context):
    """Model FLOPs of one pass: matrix products 2MNK, causal attention, logits for one position.

    Written from the architecture, not from libs/model: per layer q and o are hidden x heads*dim, k and v are
    hidden x kv_heads*dim, the gated MLP has three hidden x intermediate matrices.
    """
    hidden, dim = c["hidden_size"], c["head_dim"]
    heads, kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
    weights = 2 * hidden * heads * dim + 2 * hidden * kv_heads * dim + 3 * hidden * c["intermediate_size"]
    rows = batch * tokens
    pairs = sum(context - tokens + 1 + i for i in range(tokens))  # query i sees the context up to itself
    attention = batch * 4 * heads * dim * pairs                   # q.k and p.v, 2 FLOPs each
    return c["num_hidden_layers"] * (2 * rows * weights + attention) + 2 * batch * hidden * c["vocab_size"]


def gpt2_flops(c, batch, tokens, context):
    """GPT-2: c_attn hidden x 3 hidden, c_proj hidden x hidden, two MLP matrices hidden x inner, tied head."""
    hidden, inner = c["n_embd"], c.get("n_inner") or 4 * c["n_embd"]
    weights = 4 * hidden * hidden + 2 * hidden * inner
    rows = batch * tokens
    pairs = sum(context - tokens + 1 + i for i in range(tokens))
    attention = batch * 4 * hidden * pairs
    return c["n_layer"] * (2 * rows * weights + attention) + 2 * batch * hidden * c["vocab_size"]


class Infer(Case):
    def profile(self, preset, batch, prompt, new, formula):
        self.record("run", WORKLOAD, "infer", "--preset", preset, "--batch", str(batch), "--prompt", str(prompt),
                    "--new", str(new), options=())
        report = self.report("run")
        stages = {stage["name"]: stage for stage in report["stages"]}
        config = json.loads(self.query("run", "SELECT name FROM range WHERE category = 'model'")[0]["name"])
        prefill = formula(config, batch, prompt, prompt)
        # The first new token comes from prefill; the other new - 1 from decode, each with one more token of context.
        decode = sum(formula(config, batch, 1, prompt + i) for i in range(1, new))
        self.assertEqual(stages["prefill"]["flops"], prefill)
        self.assertEqual(stages["decode"]["flops"], decode)
        self.assertEqual(stages["prefill"]["steps"], 1)
        self.assertEqual(stages["decode"]["steps"], new - 1)
        return report, stages

    def test_llama(self):
        report, stages = self.profile("tiny-llama", 2, 12, 6, llama_flops)
        self.assertEqual([loss for loss in report["losses"] if loss["severity"] == "data_loss"], [])
        self.assertGreater(stages["prefill"]["ttft_ns"], 0)
        self.assertGreater(stages["decode"]["tpot_p50_ns"], 0)
        self.assertGreaterEqual(stages["decode"]["tpot_p99_ns"], stages["decode"]["tpot_p50_ns"])
        for stage in ("prefill", "decode"):
            self.assertGreater(stages[stage]["device_busy_ns"], 0)
            self.assertLessEqual(stages[stage]["device_busy_ns"], stages[stage]["time_ns"])
            self.assertGreater(stages[stage]["mfu"], 0)
            self.assertGreater(stages[stage]["bytes"], 0)

    def test_gpt2(self):
        self.profile("tiny-gpt2", 1, 9, 5, gpt2_flops)

    def test_shapes_equal_the_model_for_every_weight_product(self):
        self.profile("tiny-llama", 2, 12, 6, llama_flops)
        # Decode attention is not a BLAS call, so in decode the shapes are exactly the weight products.
        rows = self.query("run", """
            SELECT sum(2 * g.m * g.n * g.k * g.batch) AS flops FROM gemm g
            JOIN range s ON s.category = 'step' AND s.name = 'decode' AND s.thread_id = g.thread_id
             AND g.begin_ns >= s.begin_ns AND g.end_ns <= s.end_ns""")
        config = json.loads(self.query("run", "SELECT name FROM range WHERE category = 'model'")[0]["name"])
        # With context = 0 pairs the attention term vanishes and only weight products and logits stay.
        expected = 5 * (llama_flops(config, 2, 1, 1) - 2 * 4 * config["num_attention_heads"] * config["head_dim"]
                        * config["num_hidden_layers"])
        self.assertEqual(int(rows[0]["flops"]), expected)

    def test_output_is_that_of_the_program_alone(self):
        words = [WORKLOAD, "infer", "--preset", "tiny-llama", "--prompt", "8", "--new", "8", "--json"]
        alone = json.loads(self.run_command(words).stdout)
        profiled = json.loads(self.record("run", *words).stdout)
        self.assertEqual(alone["tokens"], profiled["tokens"])

    def without_gpu(self, *words, status):
        """The same on every machine: CUDA hides its GPUs, if it is there at all."""
        return self.run_command([WORKLOAD, *words], status=status, env={**self.environment, "CUDA_VISIBLE_DEVICES": ""})

    def test_without_a_gpu_cuda_is_refused_and_auto_takes_the_cpu(self):
        reason = r"no CUDA driver|the CUDA driver does not start|reports no GPU|built without CUDA"
        for command in (["infer", "--preset", "tiny-llama"], ["train", "--preset", "tiny", "--steps", "2"]):
            refused = self.without_gpu(*command, "--device", "cuda", status=2)
            self.assertEqual(refused.stdout, "")
            self.assertRegex(refused.stderr, f"^llmprof-workload: .*({reason})")
            self.assertIn("--device cpu", refused.stderr)
            chosen = self.without_gpu(*command, "--device", "auto", "--json", status=0)
            self.assertRegex(chosen.stderr, f"^llmprof-workload: device cpu: .*({reason})")
            self.assertEqual(json.loads(chosen.stdout)["device"], "cpu")

    def test_options_of_a_gpu(self):
        self.assertIn("--cuda-graph needs a GPU", self.without_gpu("infer", "--cuda-graph", status=1).stderr)
        self.assertIn("float32 only", self.without_gpu("infer", "--type", "bf16", status=2).stderr)
        self.assertIn("known: cpu, cuda, auto", self.without_gpu("infer", "--device", "tpu", status=1).stderr)
        self.assertIn("known: float32, bf16", self.without_gpu("infer", "--type", "int8", status=1).stderr)
        presets = self.without_gpu("infer", "--list-presets", status=0).stdout
        self.assertIn("demo-gpu", presets)

    def test_the_demo_says_which_device_it_took(self):
        done = self.run_command([LLMPROF, "demo", "--preset", "tiny-llama", "--no-peaks", "--json"],
                                env={**self.environment, "CUDA_VISIBLE_DEVICES": ""})
        self.assertIn("llmprof-workload infer --device auto --preset tiny-llama", done.stderr)
        self.assertIn("llmprof-workload: device cpu: ", done.stderr)
        self.assertEqual([stage["name"] for stage in json.loads(done.stdout)["stages"]], ["load", "prefill", "decode"])


if __name__ == "__main__":
    unittest.main()
