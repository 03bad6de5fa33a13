"""llmprof predict: a real vLLM run predicted from its operator tables, generated workloads, and what cannot be predicted."""
import json
import pathlib
import shutil
import unittest

from harness import Case

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"
BACKTEST = pathlib.Path(__file__).resolve().parents[2] / "libs/predict/backtests/vllm_0.19_rtx4090"


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
        self.predict(*words, "-o", "next")  # a run like any other
        self.assertIn("Predicted, not measured", self.llmprof("report", "next").stdout)
        self.assertIn("is a prediction itself", self.refused("--from", "next", "--kernels", "decode"))
        self.assertIn("bench --for RUN", self.llmprof("predict", "--from", "decode", status=2).stderr)
        self.assertIn("not on this machine", self.llmprof("bench", "--for", "decode", status=1).stderr)
        (self.folder / "rows.jsonl").write_text('{"row": "kernel", "kernel": "k"}\n')
        self.assertIn("line 1: 'op'", self.llmprof("predict", "--from", "decode", "--kernels", "rows.jsonl", status=2).stderr)

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
