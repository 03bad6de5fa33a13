"""The model joined to runs without annotations: found by flag, by file or by shapes, and matched by shape and order."""
import json
import pathlib
import textwrap
import unittest

from harness import SYSTEM_PYTHON, WORKLOAD, Case

CALLS = """SELECT g.m, g.n, g.k, g.batch, a.module, a.op, a.stage, a.module_source, a.confidence
    FROM gemm g JOIN attribution a ON a.gemm_id = g.id ORDER BY g.thread_id, g.begin_ns, g.id"""

# A Llama of two layers, 64 wide, made with numpy alone: reads its config, then a prompt and four tokens. The config is the
# file that the command line names, or one that only the program knows, or none: the text itself.
NUMPY_LLAMA = textwrap.dedent("""
    import json, sys
    import numpy as np
    c = json.loads(sys.argv[2]) if len(sys.argv) > 2 else json.load(open(sys.argv[1] if len(sys.argv) > 1 else "model/config.json"))
    h, f, v = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    kv = h // c["num_attention_heads"] * c["num_key_value_heads"]
    rng = np.random.default_rng(0)
    w = lambda i, o: (rng.standard_normal((i, o)) / i).astype(np.float32)
    layers = [dict(q=w(h, h), k=w(h, kv), v=w(h, kv), o=w(h, h), g=w(h, f), u=w(h, f), d=w(f, h))
              for _ in range(c["num_hidden_layers"])]
    head = w(h, v)
    def forward(x):
        for l in layers:
            q, k, v = x @ l["q"], x @ l["k"], x @ l["v"]
            x = x + q @ l["o"]
            x = x + (x @ l["g"] * (x @ l["u"])) @ l["d"]
        return x
    x = rng.standard_normal((24, h)).astype(np.float32)  # 2 sequences of 12
    logits = forward(x)[11::12] @ head
    for _ in range(4):
        logits = forward(rng.standard_normal((2, h)).astype(np.float32)) @ head
    print(float(logits.sum()) == float(logits.sum()))
""")
NUMPY_CONFIG = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                "num_key_value_heads": 2, "intermediate_size": 160, "vocab_size": 300, "max_position_embeddings": 128,
                "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


class Join(Case):
    def both(self, *words):
        """The same program twice: with its annotations, and with the model by flag only."""
        self.record("declared", *words)
        config = self.query("declared", "SELECT name FROM range WHERE category = 'model'")[0]["name"]
        self.write("model.json", config)
        self.record("matched", *words, options=("--no-peaks", "--no-nvtx", "--model", "model.json"))
        return self.query("declared", CALLS), self.query("matched", CALLS)

    def share_right(self, truth, found):
        self.assertEqual([(c["m"], c["n"], c["k"], c["batch"]) for c in truth],
                         [(c["m"], c["n"], c["k"], c["batch"]) for c in found])
        right = sum(t["module"] == f["module"] and t["stage"] == f["stage"] for t, f in zip(truth, found))
        self.assertTrue(all(f["module_source"] == "shape" for f in found if f["module"]))
        self.assertTrue(all(0 < f["confidence"] <= 0.9 for f in found if f["module"]))
        return right / len(truth)

    def test_shapes_attribute_as_ranges_do(self):
        for words in (("infer", "--preset", "tiny-llama", "--batch", "2", "--prompt", "12", "--new", "6"),
                      ("infer", "--preset", "tiny-gpt2", "--batch", "1", "--prompt", "9", "--new", "5"),
                      ("infer", "--preset", "tiny-llama", "--batch", "6", "--prompt", "7", "--new", "4"),
                      ("train", "--preset", "tiny", "--steps", "3", "--batch", "3", "--tokens", "16")):
            with self.subTest(words=words):
                truth, found = self.both(WORKLOAD, *words)
                self.assertEqual(self.share_right(truth, found), 1)
                stages = {s["name"]: s for s in self.report("declared")["stages"]}
                for stage in self.report("matched")["stages"]:
                    self.assertEqual(stage["source"], "inferred")
                    declared = stages[stage["name"]]
                    self.assertEqual(stage["steps"], declared["steps"])
                    self.assertEqual(stage["tokens"], declared["tokens"])
                    self.assertEqual(stage["flops"], declared["flops"])          # the same model, the same passes
                    self.assertEqual(stage["flops_shapes"], declared["flops_shapes"])
                self.llmprof("query", "matched", "SELECT 1")
                for name in ("declared", "matched"):
                    self.run_command(["rm", "-r", str(self.folder / (name + ".llmprof"))])

    def test_flops_of_weight_products_equal_the_analysis_exactly(self):
        """Per module: what BLAS was asked to compute is what the model analysis says, in every stage.

        Attention is the exception that is meant: the model counts a query against the keys before it, a product computes
        all pairs. T queries see T (T + 1) / 2 keys instead of T T: of T = 12 that is 78 to 144.
        """
        for words, cores in ((("infer", "--preset", "tiny-llama", "--batch", "2", "--prompt", "12", "--new", "6"),
                              {"prefill": (12 * 12, 78)}),
                             (("infer", "--preset", "tiny-gpt2", "--batch", "2", "--prompt", "12", "--new", "6"),
                              {"prefill": (12 * 12, 78)}),
                             (("train", "--preset", "tiny", "--steps", "3", "--batch", "3", "--tokens", "16"),
                              {"forward": (16 * 16, 136), "backward": (16 * 16, 136)})):
            with self.subTest(words=words):
                for name, report in self.declared_and_matched(words):
                    compared = 0
                    for module in report["modules"]:
                        if module["flops_shapes"] is None or not module["flops"] or module["calls"] == 0:
                            continue
                        last = module["name"].rsplit(".", 1)[-1]
                        if last == "core":
                            full, causal = cores[module["stage"]]
                            self.assertEqual(module["flops_shapes"] * causal, module["flops"] * full, (name, module))
                        elif last.endswith("_proj") or last in ("c_attn", "c_fc", "lm_head"):
                            self.assertEqual(module["flops_shapes"], module["flops"], (name, module["name"]))
                            compared += 1
                    self.assertGreaterEqual(compared, 2 * 4 + 1, name)

    def declared_and_matched(self, words):
        self.both(WORKLOAD, *words)
        for name in ("declared", "matched"):
            yield name, self.report(name)
            self.run_command(["rm", "-r", str(self.folder / (name + ".llmprof"))])

    def test_time_that_is_not_matched_is_shown(self):
        self.both(WORKLOAD, "infer", "--preset", "tiny-llama", "--prompt", "12", "--new", "6")
        report = self.report("matched")
        for rest in report["unmatched"]:
            stage = next(s for s in report["stages"] if s["name"] == rest["stage"])
            known = sum(m["self_ns"] for m in report["modules"] if m["stage"] == rest["stage"])
            self.assertEqual(rest["time_ns"], max(0, stage["steps_ns"] - known))
        text = self.llmprof("report", "matched", "--full").stdout
        for part in ("not matched to the model", "Source: --model model.json", "inferred from the shapes",
                     "Operators against the roofline"):
            self.assertIn(part, text)

    def numpy_run(self, name, words, before="", **more):
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(NUMPY_CONFIG))
        script = self.write("llama.py", before + NUMPY_LLAMA)
        self.record(name, SYSTEM_PYTHON, script, *words, **more)
        return self.report(name)

    def test_a_config_on_the_command_line_is_found(self):
        report = self.numpy_run("run", ["model/config.json"])
        model = report["model"]
        self.assertEqual(model["source"], "opened")
        self.assertIn("model/config.json, named on the command line of process", model["origin"])
        self.assertIn("counted in float32", model["note"])  # numpy computes in float32, whatever the config says
        stages = {s["name"]: s for s in report["stages"]}
        self.assertEqual(list(stages), ["prefill", "decode"])
        self.assertEqual(stages["decode"]["steps"], 4)
        self.assertEqual(stages["prefill"]["tokens"], 24)
        # 2 layers of q, o 64 x 64, k, v 64 x 32, gate, up, down 64 x 160; logits 64 x 300 for each of two sequences.
        per_row = 2 * 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160)
        self.assertEqual(stages["decode"]["flops_shapes"], 4 * 2 * (per_row + 2 * 64 * 300))
        weights = 4 * (2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160 + 2 * 64) + 64 + 64 * 300)
        self.assertEqual(model["weights_read_bytes"], weights)

    def test_steps_that_do_not_say_their_size_take_it_from_their_products(self):
        python = str(pathlib.Path(__file__).resolve().parents[2] / "python")
        script = f"import sys\nsys.path.insert(0, {python!r})\nimport llmprof\n" + NUMPY_LLAMA
        script = script.replace("logits = forward(x)", 'with llmprof.step("prefill"): logits = forward(x)')
        script = script.replace("logits = forward(rng", 'with llmprof.step("decode"): logits = forward(rng')
        self.write("llama.py", script)
        (self.folder / "config.json").write_text(json.dumps(NUMPY_CONFIG))
        self.record("run", SYSTEM_PYTHON, "llama.py", "config.json")
        stages = {s["name"]: s for s in self.report("run")["stages"]}
        self.assertEqual({s["source"] for s in stages.values()}, {"declared"})
        self.assertEqual(stages["prefill"]["tokens"], 24)
        self.assertEqual(stages["decode"]["tokens"], 4 * 2)
        sizes = self.query("run", "SELECT stage, batch, tokens, context FROM step ORDER BY begin_ns")
        self.assertEqual([tuple(row.values()) for row in sizes],
                         [("prefill", 2, 12, 12)] + [("decode", 2, 1, 12 + i) for i in range(1, 5)])
        self.assertGreater(stages["decode"]["flops"], 0)

    def test_precedence_of_flags(self):
        smaller = dict(NUMPY_CONFIG, num_hidden_layers=1)
        self.write("smaller.json", json.dumps(smaller))
        report = self.numpy_run("run", ["model/config.json"], options=("--no-peaks", "--model", "smaller.json"))
        self.assertEqual(report["model"]["source"], "given")
        self.assertEqual(report["model"]["config"]["num_hidden_layers"], 1)
        again = json.loads(self.llmprof("report", "run", "--model", "gpt2", "--json").stdout)
        self.assertEqual(again["model"]["source"], "option")
        self.assertEqual(again["model"]["family"], "gpt2")
        self.assertEqual(self.report("run")["model"]["source"], "given")

    def test_what_cannot_be_read_is_refused_before_the_program_runs(self):
        done = self.record("run", "touch", "ran", options=("--no-peaks", "--model", "no-such-model"), status=125)
        self.assertIn("no-such-model", done.stderr)
        self.assertFalse((self.folder / "ran").exists())
        self.assertFalse((self.folder / "run.llmprof").exists())

    def test_a_config_that_only_the_program_knows_is_found(self):
        report = self.numpy_run("run", [], options=("--no-peaks", "--no-host"))
        self.assertEqual(report["model"]["source"], "opened")
        self.assertRegex(report["model"]["origin"], r"/model/config.json, opened by process \d+$")
        self.assertEqual([s["name"] for s in report["stages"]], ["prefill", "decode"])

    def test_of_several_configs_the_one_that_ran_is_taken(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "config.json").write_text(json.dumps(dict(NUMPY_CONFIG, hidden_size=128)))
        report = self.numpy_run("run", ["model/config.json"], options=("--no-peaks",),
                                before="open('other/config.json').read()")
        self.assertEqual(report["model"]["config"]["hidden_size"], 64)
        self.assertIn("one of 2 that the program used: 100 % of its products were called", report["model"]["note"])

    def test_a_model_that_no_library_has_is_inferred(self):
        report = self.numpy_run("run", ["-", json.dumps(NUMPY_CONFIG)])
        model = report["model"]
        self.assertEqual((model["family"], model["source"]), ("inferred", "products"))
        self.assertIn("2 layers, hidden 64, queries 64, keys and values 32, FFN 160 (gated), vocabulary 300; heads unknown", model["origin"])
        known = json.loads(self.llmprof("report", "run", "--model", "model/config.json", "--json").stdout)
        self.assertEqual([s["name"] for s in report["stages"]], ["prefill", "decode"])
        for found, true in zip(report["stages"], known["stages"]):
            for what in ("flops", "floor_ns", "steps", "confidence"):
                self.assertEqual(found[what], true[what], f"{what} of {true['name']}")

    def test_nothing_known_is_said(self):
        # One layer does not repeat.
        report = self.numpy_run("run", ["-", json.dumps(dict(NUMPY_CONFIG, num_hidden_layers=1))])
        self.assertIsNone(report["model"]["family"])
        self.assertIn("--model", report["model"]["why"])
        # Its products repeat: passes are told apart all the same, and marked so.
        self.assertEqual([s["name"] for s in report["stages"]], ["prefill", "decode"])
        for stage in report["stages"]:
            self.assertEqual(stage["source"], "inferred")
            self.assertLess(stage["confidence"], 0.8)
            self.assertIsNone(stage["mfu"])

    def test_shapes_alone_tell_a_built_in_model(self):
        self.record("run", WORKLOAD, "infer", "--preset", "gpt2", "--prompt", "8", "--new", "4",
                    options=("--no-peaks", "--no-nvtx", "--no-host"))
        report = self.report("run")
        self.assertEqual(report["model"]["source"], "shapes", report["model"])
        self.assertEqual(report["model"]["parameters"], 124439808)
        self.assertEqual([s["name"] for s in report["stages"]], ["prefill", "decode"])
        self.assertIn("inferred from GEMM shapes: gpt2", self.llmprof("report", "run", "--full").stdout)


if __name__ == "__main__":
    unittest.main()
