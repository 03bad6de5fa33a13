"""Results of load generators from import to report: experiments stay apart, figures keep their meaning, and nothing is said of
what the server executed. Numbers are counted here, by Python, in the same files."""
import gzip
import json
import pathlib
import unittest

from harness import Case

IMPORTS = pathlib.Path(__file__).resolve().parents[1] / "imports"
SERVE = {"backend": "openai", "model_id": "m", "num_prompts": 2, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": None,
         "duration": 1.5, "completed": 2, "total_input_tokens": 30, "total_output_tokens": 5, "request_throughput": 1.33,
         "total_token_throughput": 24.67, "input_lens": [10, 20], "output_lens": [2, 3], "ttfts": [0.05, 0.1],
         "itls": [[0.01], [0.3, 0.1]], "start_times": [101.25, 101.5], "errors": ["", ""], "mean_ttft_ms": 75.0}
# What a run of results must not claim.
FOREIGN = ["GPU", "kernel", "Stages", "MFU", "idle", "doctor", "annotate"]


class ServingTest(Case):
    def imported(self, *files, name="run", status=0):
        self.llmprof("import", *map(str, files), "-o", name, status=status)
        self.llmprof("check", name)
        return self.report(name)

    def latencies(self, report):
        return {(row["source"], row["metric"]): row for row in report["requests"]["latencies"]}

    def claims_nothing(self, name="run"):
        self.assertIn("This run has nothing of it", self.llmprof("report", name, "stages").stdout)
        for words in ([], ["run"], ["requests"]):
            text = self.llmprof("report", name, *words).stdout
            for word in FOREIGN:
                self.assertNotIn(word, text)

    def test_aiperf_records(self):
        with gzip.open(IMPORTS / "aiperf_records.jsonl.gz", "rt") as file:
            records = [json.loads(line) for line in file]
        records = [r for r in records if r["metadata"]["benchmark_phase"] == "profiling"]
        report = self.imported(IMPORTS / "aiperf_records.jsonl.gz")
        requests = report["requests"]
        self.assertEqual((requests["count"], requests["warm_up"], requests["finished"]), (6, 1, 6))
        rows = self.latencies(report)
        self.assertNotIn(("aiperf", "TTFT"), rows)  # when a request was due is not in the file
        ttft = [r["metrics"]["time_to_first_token"]["value"] for r in records]
        self.assertAlmostEqual(rows["aiperf", "TTFT sent"]["mean_ns"] / 1e6, sum(ttft) / 6, places=4)
        # Computed from rows here, and as the tool says: one definition, two names.
        figures = {figure["metric"]: figure for figure in report["reported"]}
        self.assertEqual(figures["inter_token_latency"]["means"], "tpot")
        self.assertAlmostEqual(figures["inter_token_latency"]["value"], rows["aiperf", "TPOT"]["mean_ns"] / 1e6, places=4)
        self.assertTrue(figures["inter_token_latency"]["from_samples"])
        self.assertIn("vLLM calls this TPOT", figures["inter_token_latency"]["definition"])
        self.assertIn("inter_token_latency", self.llmprof("report", "run", "requests").stdout)
        self.claims_nothing()

    def test_aggregates_are_figures_alone(self):
        report = self.imported(IMPORTS / "aiperf_aggregate.json.gz")
        self.assertNotIn("requests", report)
        figures = {figure["metric"]: figure for figure in report["reported"]}
        self.assertAlmostEqual(figures["time_to_first_token"]["value"], 53.2332495)
        self.assertFalse(figures["time_to_first_token"]["from_samples"])
        self.claims_nothing()

    def test_experiments_of_one_file_and_of_several_stay_apart(self):
        first = json.dumps(SERVE) + "\n" + json.dumps({**SERVE, "request_rate": 4.0, "ttfts": [0.5, 0.5]}) + "\n"
        (self.folder / "two.json").write_text(first)
        (self.folder / "third.json").write_text(json.dumps({**SERVE, "ttfts": [0.2, 0.2]}))
        rows = self.latencies(self.imported("two.json", "third.json", status=3))  # no_clock: two monotonic clocks
        means = {source: row["mean_ns"] / 1e6 for (source, metric), row in rows.items() if metric == "TTFT sent"}
        self.assertEqual(means, {"vllm-bench 1: rate inf": 75, "vllm-bench 2: rate 4": 500, "vllm-bench 3: rate inf": 200})

    def test_where_nobody_says_when_requests_were_sent_there_are_no_rates(self):
        report = self.imported(IMPORTS / "sglang_bench.jsonl.gz")
        requests = report["requests"]
        self.assertEqual((requests["count"], requests["duration_ns"], requests["requests_per_s"]), (4, 0, None))
        self.assertFalse(any(request["placed"] for request in requests["all"]))
        figures = {figure["metric"]: figure for figure in report["reported"]}
        tpot = self.latencies(report)["sglang-bench", "TPOT"]["mean_ns"] / 1e6
        self.assertAlmostEqual(figures["tpot"]["value"], tpot, delta=0.02)  # its end is the last line, ours the last message
        self.claims_nothing()


if __name__ == "__main__":
    unittest.main()
