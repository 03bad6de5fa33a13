"""llmprof model: its numbers against arithmetic of their own, its tables, its errors.

The formulas below are written from the papers of the architectures, not from llmprof's code."""
import csv
import io
import json
import os
import pathlib
import unittest

from harness import Case

H100_FLOPS, H100_BYTES = 989e12, 3.35e12  # bfloat16 dense and memory, NVIDIA's product page
PAGE = pathlib.Path(__file__).with_name("model_page.txt")


def pairs(tokens, context):
    """Pairs of a query and a key that a causal pass computes."""
    return tokens * context - tokens * (tokens - 1) // 2


class Dense:
    """Llama-3.1-8B, as its config.json describes it."""
    layers, hidden, heads, kv_heads, size, width, vocab = 32, 4096, 32, 8, 128, 14336, 128256
    matrices = layers * (2 * hidden * heads * size + 2 * hidden * kv_heads * size + 3 * hidden * width)
    norms = (2 * layers + 1) * hidden
    parameters = matrices + norms + 2 * vocab * hidden
    kv_per_token = layers * 2 * kv_heads * size * 2

    @classmethod
    def flops(cls, batch, tokens, context):
        core = 2 * cls.heads * 2 * cls.size * pairs(tokens, context) * cls.layers
        return batch * (2 * tokens * cls.matrices + core + 2 * cls.hidden * cls.vocab)


class Experts:
    """Mixtral-8x7B: 2 of 8 experts."""
    layers, hidden, heads, kv_heads, size, width, vocab, experts, chosen = 32, 4096, 32, 8, 128, 14336, 32000, 8, 2
    attention = 2 * hidden * heads * size + 2 * hidden * kv_heads * size
    expert = 3 * hidden * width
    router = hidden * experts

    @classmethod
    def weight_bytes(cls, tokens):
        read = cls.experts * (1 - (1 - cls.chosen / cls.experts) ** tokens)  # that at least one token chooses
        layer = cls.attention + cls.router + 2 * cls.hidden + read * cls.expert
        return 2 * (cls.layers * layer + cls.hidden + cls.hidden * cls.vocab + tokens * cls.hidden)


class Model(Case):
    def analyse(self, *words):
        return json.loads(self.llmprof("model", *words, "--json").stdout)

    def stage(self, page, name):
        return next(stage for stage in page["stages"] if stage["name"] == name)

    def config(self, **keys):
        values = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256,
                  "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}
        return self.write("config.json", json.dumps(values | keys))


class Numbers(Model):
    def test_dense_with_grouped_queries(self):
        page = self.analyse("llama-3.1-8b", "--batch", "4", "--prompt", "2k", "--context", "8k", "--device", "h100-sxm")
        self.assertEqual(page["parameters"]["total"], Dense.parameters)
        self.assertEqual(Dense.parameters, 8_030_261_248)  # sum over the published checkpoint's tensors
        prefill, decode = self.stage(page, "prefill"), self.stage(page, "decode")
        self.assertEqual(prefill["flops"], Dense.flops(4, 2048, 2048))
        self.assertEqual(decode["flops"], Dense.flops(4, 1, 8192))
        weights = 2 * (Dense.matrices + Dense.norms + Dense.vocab * Dense.hidden + 4 * Dense.hidden)
        kv = 4 * (8192 + 1) * Dense.kv_per_token
        self.assertEqual(decode["weight_bytes"], weights)
        self.assertEqual(decode["kv_bytes"], kv)
        self.assertEqual(decode["activation_bytes"], 0)
        self.assertEqual(page["memory"]["kv_bytes"], 4 * 8192 * Dense.kv_per_token)
        self.assertEqual(page["memory"]["weights_bytes"], 2 * Dense.parameters)
        self.assertAlmostEqual(decode["floor_ns"], (weights + kv) / H100_BYTES * 1e9, places=3)
        self.assertEqual((decode["bound"], prefill["bound"]), ("memory", "compute"))
        self.assertAlmostEqual(prefill["floor_ns"], prefill["flops"] / H100_FLOPS * 1e9, places=3)
        self.assertAlmostEqual(page["speeds"]["tokens_per_s"], 4e9 / decode["floor_ns"])
        self.assertAlmostEqual(decode["ridge_flops_per_byte"], H100_FLOPS / H100_BYTES)

    def test_experts(self):
        page = self.analyse("mixtral-8x7b", "--batch", "3", "--context", "100", "--device", "h100-sxm")
        self.assertEqual(page["parameters"]["total"], 46_702_792_704)
        decode = self.stage(page, "decode")
        layer = Experts.attention + Experts.router + Experts.chosen * Experts.expert
        core = 2 * Experts.heads * 2 * Experts.size * 100
        flops = 3 * (Experts.layers * (2 * layer + core) + 2 * Experts.hidden * Experts.vocab)
        self.assertEqual(decode["flops"], flops)
        self.assertAlmostEqual(decode["weight_bytes"] / Experts.weight_bytes(3), 1, places=12)
        idle = Experts.layers * (Experts.experts - Experts.chosen) * Experts.expert
        self.assertLess(page["parameters"]["active"], 46_702_792_704)
        self.assertEqual(46_702_792_704 - idle - page["parameters"]["active"], 0)

    def test_latent_attention(self):
        # DeepSeek-V3: 61 layers, 128 heads of 128 + 64, values of 128, a latent of 512 and a rotary key of 64.
        context, layers, heads = 5000, 61, 128
        core = {}
        for how in ("least", "absorbed", "expanded"):
            page = self.analyse("deepseek-v3", "--context", str(context), "--mla", how)
            rows = {row["name"]: row for row in self.stage(page, "decode")["operators"]}
            core[how] = rows["self_attn.core"]
            self.assertEqual(page["memory"]["kv_bytes_per_token"], layers * (512 + 64) * 2)
        self.assertEqual(core["absorbed"]["flops"], layers * context * 278_528)
        self.assertEqual(core["expanded"]["flops"], layers * context * 2 * heads * (192 + 128))
        self.assertEqual(core["least"]["flops"], core["absorbed"]["flops"])
        self.assertEqual(core["absorbed"]["kv_bytes"], layers * (context + 1) * 576 * 2)

    def test_types(self):
        path = self.config()
        plain = self.analyse(path)["memory"]
        wide = self.analyse(path, "--dtype", "float32")["memory"]
        self.assertEqual(wide["weights_bytes"], 2 * plain["weights_bytes"])
        self.assertEqual(wide["kv_bytes"], 2 * plain["kv_bytes"])
        narrow = self.analyse(path, "--dtype", "int8", "--kv-dtype", "float8")["memory"]
        matrices = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128)
        self.assertEqual(plain["weights_bytes"] - narrow["weights_bytes"], matrices)  # the layers' matrices only
        self.assertEqual(narrow["kv_bytes"], plain["kv_bytes"] / 2)

    def test_a_type_that_the_device_has_not(self):
        page = self.analyse("llama-3.2-1b", "--device", "t4")
        peak = page["device"]["flops_peaks"][0]
        self.assertEqual((peak["type"], peak["peak_type"], peak["source"]), ("bfloat16", "float32", "spec"))
        self.assertTrue(any("bfloat16" in caveat and "float32" in caveat for caveat in page["caveats"]))

    def test_tensor_parallel_shards_add_up(self):
        one = self.stage(self.analyse("llama-3.1-8b"), "decode")
        page = self.analyse("llama-3.1-8b", "--tp", "8")
        eighth = self.stage(page, "decode")
        self.assertEqual(8 * eighth["flops"], one["flops"])
        self.assertEqual(8 * eighth["kv_bytes"], one["kv_bytes"])
        # Two ring all-reduces a layer: each rank sends 2·7/8 of a row of 4096 bfloat16.
        self.assertEqual(eighth["communication_bytes"], 32 * 2 * 2 * 7 / 8 * 4096 * 2)

    def test_training(self):
        page = self.analyse("gpt2", "--train", "--batch", "2", "--prompt", "128", "--recompute", "layers")
        names = [stage["name"] for stage in page["stages"]]
        self.assertEqual(names, ["forward", "backward", "optimizer"])
        forward, backward = page["stages"][0]["flops"], page["stages"][1]["flops"]
        matrices = 12 * (4 * 768 * 768 + 2 * 768 * 3072)
        logits = 768 * 50257
        core = 12 * 2 * 12 * 2 * 64 * pairs(128, 128)
        self.assertEqual(forward, 2 * (2 * 128 * (matrices + logits) + core))
        self.assertEqual(backward, 2 * forward)
        training = page["training"]
        self.assertEqual(training["moments_bytes"], 8 * 124_439_808)
        self.assertEqual(training["recomputed_flops"], 2 * (2 * 128 * matrices + core))

    def test_mixed_pass(self):
        page = self.analyse("llama-3.1-8b", "--mixed", "8x1@2048,1x512@512")
        mixed = self.stage(page, "mixed")
        self.assertEqual(mixed["tokens"], 520)
        self.assertEqual(mixed["flops"], Dense.flops(8, 1, 2048) + Dense.flops(1, 512, 512))

    def test_efficiency_from_one_number(self):
        page = self.analyse("llama-3.1-8b", "--batch", "16", "--context", "4k", "--device", "h100-sxm",
                            "--measured-tps", "1900", "--measured-ttft", "500ms")
        prefill, decode = page["measured"]
        seconds = 16 / 1900
        self.assertAlmostEqual(decode["mfu"], Dense.flops(16, 1, 4096) / seconds / H100_FLOPS)
        self.assertAlmostEqual(decode["mbu"], self.stage(page, "decode")["bytes"] / seconds / H100_BYTES)
        self.assertAlmostEqual(prefill["mfu"], Dense.flops(16, 1024, 1024) / 0.5 / H100_FLOPS)

    def test_fit(self):
        memory = self.analyse("llama-3.1-70b", "--device", "h100-sxm")["memory"]
        self.assertFalse(memory["fits"])
        self.assertEqual(memory["longest_context"], 0)
        memory = self.analyse("llama-3.1-8b", "--device", "h100-sxm")["memory"]
        free = memory["device_bytes"] - memory["weights_bytes"] - memory["activation_bytes"]
        self.assertEqual(memory["left_for_kv_bytes"], free)
        self.assertEqual(memory["longest_context"], 131072)  # all the model was made for
        memory = self.analyse("llama-3.1-8b", "--device", "h100-sxm", "--batch", "64")["memory"]
        free = memory["device_bytes"] - memory["weights_bytes"] - memory["activation_bytes"]
        self.assertEqual(memory["longest_context"], free // (64 * Dense.kv_per_token))


class Shape(Model):
    def test_json(self):
        page = self.analyse("llama-3.2-1b", "--device", "h100-sxm")
        self.assertEqual(page["schema"], "llmprof.model")
        self.assertEqual(page["model"]["layers"], 16)
        self.assertEqual(sum(part["parameters"] for part in page["parameters"]["parts"]), page["parameters"]["total"])
        for stage in page["stages"]:
            for rows in ("operators", "layers"):
                for key in ("flops", "weight_bytes", "kv_bytes", "activation_bytes"):
                    self.assertAlmostEqual(sum(row[key] for row in stage[rows]), stage[key], delta=1e-9 * stage["bytes"])
        self.assertEqual([row["name"] for row in page["stages"][0]["layers"]],
                         ["before layers", "layers 0-15", "after layers"])

    def test_csv(self):
        def table(*words):
            text = self.llmprof("model", "llama-3.2-1b", *words, "--csv").stdout
            return list(csv.DictReader(io.StringIO(text)))

        operators = table("--device", "h100-sxm")
        decode = {row["operator"]: row for row in operators if row["stage"] == "decode"}
        self.assertEqual(float(decode["mlp.up_proj"]["flops"]), 16 * 2 * 2048 * 8192)
        self.assertEqual(decode["mlp.up_proj"]["bound"], "memory")
        layers = table("--per-layer", "--device", "h100-sxm")
        self.assertEqual({row["name"] for row in layers}, {"before layers", "layers 0-15", "after layers"})
        points = table("--sweep", "batch=1,8", "--device", "h100-sxm")
        self.assertEqual([row["batch"] for row in points], ["1", "8"])
        self.assertEqual(points[0]["fits"], "true")

    def test_without_a_device(self):
        page = self.analyse("llama-3.2-1b")  # the test's own cache is empty: nothing was measured here
        if page["device"]["name"] is not None:
            self.skipTest("this machine has a device of the catalogue")
        self.assertIsNone(page["speeds"]["tpot_ns"])
        self.assertIn("--device", page["device"]["why"])
        self.assertIn("--device", self.llmprof("model", "llama-3.2-1b").stdout)

    def test_sweep(self):
        page = self.analyse("llama-3.1-8b", "--sweep", "batch=1..4:x2 context=1k,2k", "--device", "h100-sxm")
        self.assertEqual(page["schema"], "llmprof.model_sweep")
        self.assertEqual([(p["batch"], p["context"]) for p in page["points"]],
                         [(1, 1024), (1, 2048), (2, 1024), (2, 2048), (4, 1024), (4, 2048)])
        self.assertEqual(page["points"][3]["decode"]["flops"], Dense.flops(2, 1, 2048))
        text = self.llmprof("model", "llama-3.1-8b", "--sweep", "batch=1..256:x2", "--device", "h100-sxm", "--plot",
                            "sweep.svg").stdout
        self.assertIn("tokens/s at most by batch", text)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()))
        self.assertTrue((self.folder / "sweep.svg").read_text().startswith("<svg"))

    def test_diff(self):
        words = ("llama-3.1-8b", "--diff", "llama-3.2-1b", "--device", "h100-sxm")
        rows = {(row["part"], row["name"]): row for row in self.analyse(*words)["rows"]}
        parameters = rows["model", "parameters"]
        self.assertEqual((parameters["a"], parameters["b"]), (8_030_261_248, 1_235_814_400))
        self.assertAlmostEqual(parameters["ratio"], 1_235_814_400 / 8_030_261_248)
        self.assertEqual(rows["memory", "KV cache per token"]["ratio"], 0.25)
        self.assertIn("B / A", self.llmprof("model", *words).stdout)

    def test_diff_of_devices_and_types(self):
        page = self.analyse("llama-3.1-8b", "--device", "h100-sxm", "--diff-device", "h200", "--diff-dtype", "int8")
        self.assertEqual((page["a"]["device"]["name"], page["b"]["device"]["name"]), ("NVIDIA H100 SXM", "NVIDIA H200 SXM"))
        rows = {(row["part"], row["name"]): row for row in page["rows"]}
        self.assertEqual(rows["memory", "weights"]["a"] - rows["memory", "weights"]["b"], Dense.matrices)
        self.assertEqual(rows["decode", "FLOPs"]["ratio"], 1)

    def test_list(self):
        names = {entry["name"]: entry for entry in json.loads(self.llmprof("model", "--list", "--json").stdout)["models"]}
        self.assertGreaterEqual(len(names), 25)
        self.assertEqual(names["llama-3.2-1b"]["parameters"], 1_235_814_400)
        self.assertIn("mixtral-8x7b", self.llmprof("model").stdout)

    def test_page(self):
        """The whole page; LLMPROF_UPDATE=1 renews it: look at the diff."""
        text = self.llmprof("model", "llama-3.2-1b", "--batch", "8", "--prompt", "2k", "--context", "4k", "--device",
                            "h100-sxm").stdout
        if os.environ.get("LLMPROF_UPDATE"):
            PAGE.write_text(text)
        self.assertEqual(text, PAGE.read_text())
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()))


class Errors(Model):
    def refused(self, *words, status=1):
        stderr = self.llmprof("model", *words, status=status).stderr
        self.assertTrue(stderr.startswith("llmprof: "), stderr)
        return stderr

    def test_unknown_name_has_suggestions(self):
        stderr = self.refused("lamma-3.2-1b", status=2)
        self.assertIn("did you mean", stderr)
        self.assertIn("llama-3.2-1b", stderr)

    def test_unknown_device_has_suggestions(self):
        self.assertIn("h100 fits several devices: h100-sxm", self.refused("gpt2", "--device", "h100", status=2))

    def test_options(self):
        for words, message in ((("--batch", "0"), "--batch"), (("--batch", "many"), "'many'"),
                               (("--dtype", "float33"), "float33"), (("--recompute", "all"), "none, cheap, layers"),
                               (("--mla", "x"), "least, absorbed, expanded"), (("--tp", "13"), "tensor parallelism"),
                               (("--sweep", "batch"), "NAME=VALUES"), (("--sweep", "layers=1"), "'layers'"),
                               (("--mixed", "1x8@4"), "1x8@4"), (("--measured-tpot", "5"), "'5'"),
                               (("--measured-tps", "-1"), "--measured-tps"), (("--plot", "x.svg"), "--sweep"),
                               (("--csv", "--json"), "exclude"), (("--top", "-1"), "-1"),
                               (("--train", "--measured-tpot", "5ms"), "--train")):
            self.assertIn(message, self.refused("gpt2", *words), words)

    def test_bad_files(self):
        self.assertIn("hidden_size", self.refused(self.config(hidden_size=0), status=2))
        self.assertIn("config.json", self.refused(self.write("config.json", "{"), status=2))
        self.refused(str(self.folder / "nowhere"), status=2)


if __name__ == "__main__":
    unittest.main()
