"""llmprof predict: a real vLLM run predicted from its operator tables, generated workloads, and what cannot be predicted."""
import json
import pathlib
import shutil
import unittest

from harness import Case, WORKLOAD

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"
BACKTEST = pathlib.Path(__file__).resolve().parents[2] / "libs/predict/backtests/vllm_0.19_rtx4090"


RUNS = BACKTEST.parents[3] / "tests/runs"


class Predict(Case):
    def predict(self, *words):
        return json.loads(self.llmprof("predict", *words, "--json").stdout)

    def refused(self, *words):
        return self.llmprof("predict", *words, status=1).stderr

    # The command line of the manual. The errors are computed here from the files, not taken from the output.
    def test_a_real_run_of_vllm(self):
        got = self.predict("--serving", "vllm@0.19", "--model", "llama-3.1-8b", "--device", "RTX 4090", "--tables", str(BACKTEST), "--workload",
                           str(BACKTEST / "workload.jsonl.gz"), "--measured", str(BACKTEST / "measured_requests.jsonl.gz"))
        self.assertEqual(got["schema"], "llmprof.predict_serving")
        self.assertEqual(got["memory"]["kv_blocks"], 2588)  # from meta.json
        rows = {(row["metric"], row["statistic"]): row for row in got["comparison"]}
        limits = {"ttft": 0.03, "tpot": 0.01, "e2e": 0.02}
        for (metric, statistic), row in rows.items():
            if metric in limits:
                error = row["predicted_ns"] / row["measured_ns"] - 1
                self.assertAlmostEqual(error, row["error"])
                self.assertLess(abs(error), limits[metric] if statistic == "mean" else 0.05, (metric, statistic))
        latency = {row["metric"]: row for row in got["latency"]}
        self.assertAlmostEqual(latency["ttft"]["mean_ns"], rows["ttft", "mean"]["predicted_ns"])
        self.assertEqual(sum(got["stands_on"][key] for key in ("measured", "interpolated", "extrapolated", "roof", "assumed")), 1)
        self.assertEqual(got["stands_on"]["roof"], 0)

    def test_a_folder_of_ones_own_is_a_back_test(self):
        shutil.copytree(BACKTEST, self.folder / "mine")
        got = self.predict("--backtest", "mine")
        self.assertEqual(len(got["servings"]), 3)
        self.assertEqual(got["servings"][0]["ttft_mean_error"], got["servings"][2]["ttft_mean_error"])
        self.assertTrue(all(row["points"] > 0 for row in got["operators"]))

    def test_generated_workloads(self):
        words = ("llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm@0.19", "--requests", "100")
        for more in (("--rate", "10"), ("--rate", "1..20"), ("--rate", "5", "--arrivals", "gamma:2"), ("--arrivals", "constant"), ("--concurrency", "8"),
                     ("--prompt", "64..512", "--new", "16..64"), ("--prompt", "sharegpt", "--new", "sharegpt"), ("--prefixes", "4x512"),
                     ("--set", "max_num_seqs=4"), ("--serving", "static"), ("--dp", "2", "--rate", "20"), ("--tp", "2")):
            with self.subTest(words=more):
                got = self.predict(*words, *more)
                self.assertEqual(got["throughput"]["completed"], 100)
                for row in got["latency"]:
                    self.assertLessEqual(row["p50_ns"], row["p99_ns"])
                    self.assertLessEqual(row["mean_low_ns"], row["mean_high_ns"])
                self.assertAlmostEqual(got["stands_on"]["roof"] + got["stands_on"]["assumed"], 1)
                self.assertEqual(got["stands_on"]["assumed"] > 0, "--tp" in more)
                self.assertTrue(all(row["rule"] and row["source"] for row in got["rules"]))
        again = [self.predict(*words, "--rate", "10") for _ in range(2)]
        self.assertEqual(*again)

    def test_a_shared_prefix_is_found_in_the_cache(self):
        words = ("llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm@0.19", "--requests", "50", "--prefixes", "1x1024")
        self.assertGreater(self.predict(*words)["load"]["cached_share"], 0.5)
        self.assertEqual(self.predict(*words, "--set", "enable_prefix_caching=false")["load"]["cached_share"], 0)

    # Floors of steps are those of `llmprof model`, and the prediction is a run like any other.
    def test_steps(self):
        words = ("llama-3.2-1b", "--device", "h100-sxm", "--batch", "4", "--prompt", "256", "--context", "512")
        got = self.predict(*words, "--steps", "1", "-o", "steps")
        design = json.loads(self.llmprof("model", "llama-3.2-1b", "--device", "h100-sxm", "--batch", "4", "--prompt", "256", "--context", "512", "--json").stdout)
        for stage in got["stages"]:
            theirs = next(each for each in design["stages"] if each["name"] == stage["stage"])
            self.assertAlmostEqual(stage["floor_ns"] / theirs["floor_ns"], 1, places=6)
            self.assertAlmostEqual(stage["flops"] / theirs["flops"], 1, places=9)
            self.assertAlmostEqual(sum(row["ns"] for row in got["operators"] if row["stage"] == stage["stage"]) / stage["device_ns"], 1, places=6)
            self.assertAlmostEqual(stage["measured"] + stage["interpolated"] + stage["roof"] + stage["assumed"], 1, places=6)
        self.assertTrue(got["needs"]["fits"])
        report = self.report("steps")
        self.assertEqual([stage["name"] for stage in report["stages"]], ["prefill", "decode"])
        self.assertAlmostEqual(report["stages"][0]["ttft_ns"] / got["ttft_ns"], 1, places=3)
        screen = " ".join(self.llmprof("report", "steps").stdout.split())
        self.assertIn("Predicted, not measured", screen)
        for untrue in ("exit status", "Recording cost", "Lost: nothing"):
            self.assertNotIn(untrue, screen)
        self.assertIn("exists", self.llmprof("predict", *words, "-o", "steps", status=1).stderr)
        narrow = self.predict(*words, "--dtype", "float8", "-f", "-o", "steps")
        self.assertLess(narrow["tpot_ns"], got["tpot_ns"])
        self.assertFalse(self.predict("llama-3.1-405b", "--device", "h100-sxm", "--steps", "1")["needs"]["fits"])

    # Kernels of a recorded program, their times from the run itself: at its own sizes its own step times come back.
    def test_steps_of_a_recorded_program(self):
        shutil.copytree(RUNS / "h200_decode", self.folder / "decode.llmprof")
        words = ("--from", "decode", "--kernels", "decode")
        got = self.predict(*words, "--steps", "1")
        rows = self.query("decode", "SELECT stage, median(end_ns - begin_ns) AS ns, median(kernels) AS kernels FROM step WHERE NOT warm_up GROUP BY 1")
        times = {row["stage"]: (float(row["ns"]), float(row["kernels"])) for row in rows}
        self.assertLess(abs(got["tpot_ns"] / times["decode"][0] - 1), 0.03)
        # The host launches its kernels: 0.6 of 10.2 ms are what timing 469 of them took, and the rest is by the fastest of three steps.
        self.assertLess(abs(got["ttft_ns"] / times["prefill"][0] - 0.94), 0.07)
        recorded = {row["stage"]: row["kernels"] for row in got["variants"] if row["name"].startswith("as recorded")}
        self.assertEqual(recorded["decode"], times["decode"][1])
        longer = self.predict(*words, "--steps", "1", "--prompt", "4096")
        self.assertGreater(longer["ttft_ns"], 2 * got["ttft_ns"])
        self.assertIn("beyond", longer["step_error"]["why"])
        shutil.copytree(RUNS / "h200_decode", self.folder / "batch=8" / "decode.llmprof")  # to DuckDB, a partition by name
        self.assertEqual(self.report("batch=8/decode")["stages"], self.report("decode")["stages"])
        self.predict(*words, "-o", "next")  # a run like any other
        self.assertIn("Predicted, not measured", self.llmprof("report", "next").stdout)
        self.assertIn("is a prediction itself", self.refused("--from", "next", "--kernels", "decode"))
        self.assertIn("bench --for RUN", self.llmprof("predict", "--from", "decode", status=2).stderr)
        self.assertIn("not on this machine", self.llmprof("bench", "--for", "decode", status=1).stderr)
        (self.folder / "rows.jsonl").write_text('{"row": "kernel", "kernel": "k"}\n')
        self.assertIn("line 1: 'op'", self.llmprof("predict", "--from", "decode", "--kernels", "rows.jsonl", status=2).stderr)

    # The simulated serving is a run: requests add up to the latencies that were printed, steps to their number.
    def test_a_serving_is_a_run(self):
        words = ("llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm@0.19", "--rate", "10")
        got = self.predict(*words, "--requests", "100", "-o", "served")
        ttft, e2e, count, longest = self.query(
            "served", "SELECT avg(first_token_ns - arrival_ns), avg(end_ns - arrival_ns), count(*), max(output_tokens) FROM request WHERE status = 'finished'")[0].values()
        latency = {row["metric"]: row for row in got["latency"]}
        self.assertAlmostEqual(ttft / latency["ttft"]["mean_ns"], 1, places=6)
        self.assertAlmostEqual(e2e / latency["e2e"]["mean_ns"], 1, places=6)
        self.assertEqual((count, longest), (100, 128))
        report = self.report("served")
        self.assertEqual(sum(stage["steps"] for stage in report["stages"]), got["load"]["steps"])
        self.assertEqual({stage["name"] for stage in report["stages"]} - {"prefill", "decode", "mixed"}, set())
        for part in ((), ("--full",)):
            screen = " ".join(self.llmprof("report", "served", *part).stdout.split())
            self.assertIn("Predicted, not measured", screen)
            for untrue in ("exit status", "Recording cost", "Lost: nothing", "recorded on"):
                self.assertNotIn(untrue, screen)
        self.predict(*words[:-1], "20", "--requests", "100", "-o", "more")
        self.assertIn("predicted, not measured", self.llmprof("diff", "served", "more").stdout.lower())
        self.llmprof("report", "served", "--html", "served.html")
        self.assertIn("exists", self.llmprof("predict", *words, "-o", "served", status=1).stderr)

    def test_a_long_serving_is_a_run_of_bounded_size(self):
        got = self.predict("llama-3.2-1b", "--device", "h100-sxm", "--serving", "vllm@0.19", "--rate", "10", "--requests", "1500", "-o", "long")
        self.assertGreater(got["load"]["steps"], 20_000)
        report = self.report("long")
        self.assertEqual(sum(stage["steps"] for stage in report["stages"]), 20_000)
        notes = " ".join(row["text"] for row in self.query("long", "SELECT text FROM note"))
        self.assertIn(f"of the {got['load']['steps']} steps those from", notes)
        self.assertEqual(self.query("long", "SELECT count(*) AS n FROM request")[0]["n"], 1500)

    # Two recordings of the same program: what the first says of the second, kept and said again.
    def test_steps_of_another_run(self):
        for name in ("base_1", "base_2"):
            shutil.copytree(RUNS / "diff" / name, self.folder / name)
        words = ("--from", "base_1", "--kernels", "base_1", "--measured", "base_2")
        got = self.predict(*words, "--save", "mine")
        (row,) = got["step_checks"]
        measured = [each["ns"] for each in self.query(
            "base_2", "SELECT end_ns - begin_ns AS ns FROM step WHERE stage = 'prefill' AND NOT coalesce(warm_up, false)")]
        self.assertIn(row["measured_ns"], measured)
        self.assertAlmostEqual(row["error"], row["predicted_ns"] / row["measured_ns"] - 1)
        self.assertEqual(row["inside"], row["low_ns"] <= row["measured_ns"] <= row["high_ns"])
        self.assertEqual([(each["stated"], each["covered"]) for each in got["coverage"]], [(1, int(row["inside"]))])
        self.assertLess(sum(path.stat().st_size for path in (self.folder / "mine").iterdir()), 100_000)
        again = self.predict("--backtest", "mine")
        self.assertAlmostEqual(again["step_checks"][-1]["predicted_ns"] / row["predicted_ns"], 1, places=4)
        self.assertEqual(again["coverage"][-1]["stated"], sum(each["stated"] for each in again["coverage"][:-1]))
        self.assertIn("says nothing about itself", self.refused("--from", "base_1", "--kernels", "base_1", "--measured", "./base_1"))
        self.assertIn("mine exists", self.refused(*words, "--save", "mine"))
        text = self.llmprof("predict", *words).stdout
        self.assertIn("How often the stated intervals held", text)
        self.assertIn("no step of this stage", " ".join(text.split()))  # decode: graphs, whose kernels were not recorded
        (self.folder / "mine" / "measured_steps.jsonl.gz").unlink()
        (self.folder / "mine" / "measured_steps.jsonl").write_text('{"stage": "decode"}')
        self.assertIn("line 1", self.llmprof("predict", "--backtest", "mine", status=2).stderr)

    # Tables whose times are all the same: what a step takes beyond them is the host's.
    def test_calibration(self):
        tables = self.folder / "tables"
        tables.mkdir()
        parts = ("embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj", "final_layernorm")
        (tables / "dense.csv").write_text("layer,tokens,time_us\n" + "".join(f"{part},{n},30\n" for part in parts for n in (1, 2, 64)))
        (tables / "per_sequence.csv").write_text("layer,sequences,time_us\n" + "".join(f"{part},{n},30\n" for part in ("lm_head", "sampler") for n in (1, 2, 64)))
        (tables / "attention.csv").write_text("prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n64,0,0,0,30\n16,0,0,0,30\n" +
                                              "".join(f"0,0,{n},{kv},30\n" for n in (1, 2) for kv in (1, 128)))
        self.write("tiny.json", json.dumps({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
                                            "intermediate_size": 128, "vocab_size": 256, "tie_word_embeddings": False, "torch_dtype": "float32",
                                            "max_position_embeddings": 256}))
        self.record("ran", WORKLOAD, "infer", "--config", "tiny.json", "--batch", "2", "--prompt", "16", "--new", "60", "--threads", "1")
        words = ("tiny.json", "--device", "cpu", "--tables", "tables", "--batch", "2", "--prompt", "16", "--steps", "40")
        before = self.predict(*words)
        got = self.predict("--calibrate", "ran", "--tables", "tables")
        terms = {row["term"]: row for row in got["terms"]}
        self.assertGreaterEqual(got["steps"], 40)
        self.assertEqual([name for name, row in terms.items() if not row["determined"]], ["device_factor", "per_request_ns", "per_new_request_ns"])
        self.assertIn("2 requests", terms["per_request_ns"]["why"])
        took = self.query("ran", "SELECT median(n - b) AS ns FROM (SELECT begin_ns AS b, lead(begin_ns) OVER (ORDER BY begin_ns) AS n, stage FROM step) WHERE stage = 'decode'")[0]["ns"]
        self.assertAlmostEqual(max(0, took - before["tpot_ns"]) / took, terms["per_step_ns"]["value"] / took, delta=0.25)
        after = self.predict(*words)
        self.assertAlmostEqual(after["tpot_ns"], before["tpot_ns"] + terms["per_step_ns"]["value"], delta=1)
        self.assertTrue(any("calibrated by" in note and "ran" in note for note in after["notes"]), after["notes"])
        self.assertIn("calibration", after["step_error"]["why"])
        self.assertEqual(self.predict(*words, "--no-calibration")["tpot_ns"], before["tpot_ns"])
        self.predict(*words, "-o", "predicted")
        self.assertIn("a prediction itself", self.refused("--calibrate", "predicted"))
        self.assertIn("is not determined", self.llmprof("predict", "--calibrate", "ran", "--tables", "tables").stdout)

    def test_goodput_and_text(self):
        text = self.llmprof("predict", "llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm", "--rate", "2", "--slo", "ttft=1us").stdout
        self.assertIn("Predicted, not measured", text)
        self.assertIn("0.0 % of all requests", " ".join(text.split()))
        self.assertIn("the least it can be", " ".join(text.split()))

    def test_what_cannot_be_predicted_says_why(self):
        on = ("--device", "h100-sxm", "--serving", "vllm")
        self.assertIn("weights alone exceed", self.refused("llama-3.1-405b", *on))
        self.assertIn("operator tables of NVIDIA GeForce RTX 4090", self.refused("llama-3.1-8b", *on, "--tables", str(BACKTEST)))
        self.assertIn("operator tables of meta-llama/Llama-3.1-8B",
                      self.refused("llama-3.2-1b", "--device", "rtx4090", "--serving", "vllm", "--tables", str(BACKTEST)))
        self.assertIn("no operator tables for tensor parallelism of 2",
                      self.llmprof("predict", "llama-3.1-8b", "--device", "rtx4090", "--tp", "2", "--tables", str(BACKTEST), status=2).stderr)
        self.assertIn("did you mean max_num_seqs", self.refused("llama-3.1-8b", *on, "--set", "max_num_seq=3"))
        self.assertIn("vllm@0.11 to vllm@0.28", self.refused("llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm@0.5"))
        self.assertIn("not a time", self.refused("llama-3.1-8b", *on, "--slo", "ttft=fast"))
        (self.folder / "late.jsonl").write_text('{"timestamp": 9, "input_length": 8, "output_length": 8, "hash_ids": []}\n'
                                                '{"timestamp": 3, "input_length": 8, "output_length": 8, "hash_ids": []}\n')
        self.assertIn("late.jsonl", self.llmprof("predict", "llama-3.1-8b", *on, "--workload", "late.jsonl", status=2).stderr)


if __name__ == "__main__":
    unittest.main()
