"""Jobs of several processes: the embedded transformer as data and tensor parallel ranks on the CPU, with values derived by hand."""
import json
import pathlib
import unittest

from harness import WORKLOAD, Case
from infer_test import llama_flops

IMPORTS = pathlib.Path(__file__).resolve().parents[1] / "imports"
BATCH, PROMPT, NEW = 2, 12, 6
RUN = ("--preset", "tiny-llama", "--batch", str(BATCH), "--prompt", str(PROMPT), "--new", str(NEW), "--threads", "1")


class Ranks(Case):
    def profile(self, *options):
        self.record("run", WORKLOAD, "infer", *RUN, *options, "--json", options=())
        report = self.report("run")
        self.assertEqual([loss for loss in report["losses"] if loss["severity"] == "data_loss"], [])
        self.assertEqual(report["peaks_together"]["devices"], 1)  # all share the CPU, whose peak counts once
        config = json.loads(self.query("run", "SELECT name FROM range WHERE category = 'model'")[0]["name"])
        self.decode = sum(llama_flops(config, BATCH, 1, PROMPT + i) for i in range(1, NEW))
        return report, {stage["name"]: stage for stage in report["stages"]}

    def check_rates(self, report, stage):
        seconds = stage["time_ns"] * 1e-9
        if stage["warm_up_steps"] == 0:  # else rates are those without it
            self.assertAlmostEqual(stage["tokens_per_s"], stage["tokens"] / seconds, delta=1e-6 * stage["tokens_per_s"])
            mfu = stage["flops"] / seconds / report["peaks_together"]["flops"]
            self.assertAlmostEqual(stage["mfu"], mfu, delta=1e-6 * mfu)

    def test_data_parallel(self):
        for ranks in (2, 8):
            with self.subTest(ranks=ranks):
                self.setUp()
                report, stages = self.profile("--ranks", str(ranks), "--parallel", "dp")
                job = report["job"]
                self.assertEqual([rank["rank"] for rank in job["ranks"]], list(range(ranks)))
                self.assertEqual([rank["data"] for rank in job["ranks"]], list(range(ranks)))
                self.assertEqual((job["data"], job["tensor"], job["known"]), (ranks, 1, True))
                self.assertIn(f"dp={ranks}", job["origin"])
                decode = stages["decode"]
                self.assertEqual(decode["steps"], ranks * (NEW - 1))
                self.assertEqual(decode["tokens"], ranks * BATCH * (NEW - 1))
                self.assertEqual(decode["flops"], ranks * self.decode)
                self.check_rates(report, decode)

    def test_tensor_parallel(self):
        report, stages = self.profile("--ranks", "2", "--parallel", "tp")
        job = report["job"]
        self.assertEqual([rank["tensor"] for rank in job["ranks"]], [0, 1])
        self.assertEqual([rank["counts_tokens"] for rank in job["ranks"]], [True, False])
        decode = stages["decode"]
        self.assertEqual(decode["steps"], 2 * (NEW - 1))
        self.assertEqual(decode["tokens"], BATCH * (NEW - 1))  # both ranks compute the same tokens
        self.assertEqual(decode["flops"], self.decode)         # each has an even half
        self.check_rates(report, decode)
        # The products that were seen are those of the halves: decode has no other BLAS calls than those with weights.
        logits = [op for op in report["operators"] if op["stage"] == "decode" and op["name"] == "lm_head"][0]
        self.assertEqual(logits["flops"], logits["flops_shapes"])
        text = self.llmprof("report", "run", "--full").stdout
        words = "2 ranks on 1 CPU, shared: tensor parallel 2. Source: declared by the program: tp=2"
        self.assertIn(words, " ".join(text.split()))
        self.llmprof("report", "run", "--html", "page.json")
        page = json.loads((self.folder / "page.json").read_text())
        self.assertIn(words, page["runs"][0]["report"]["job"]["sentence"])

    def test_a_declaration_outside_the_recorded_window_is_kept(self):
        for options in (("--steps", "2:4"), ("--last", "10s"), ("--delay", "10s"), ("--profiler-api",),
                        ("--control", "socket", "--start-stopped")):
            with self.subTest(options=options):
                self.setUp()
                self.record("run", WORKLOAD, "infer", *RUN, "--ranks", "2", "--parallel", "tp", options=("--no-peaks", *options))
                marks = self.query("run", "SELECT name, count(*) AS n FROM range WHERE category = 'parallel' GROUP BY 1")
                self.assertEqual([(row["name"], row["n"]) for row in marks], [("tp=2", 2)])  # by each rank, once
        self.setUp()
        self.record("run", WORKLOAD, "infer", *RUN, "--ranks", "2", "--parallel", "tp", options=("--no-peaks", "--steps", "2:4"))
        job = self.report("run")["job"]
        self.assertEqual((job["tensor"], job["origin"]), (2, "declared by the program: tp=2"))

    def test_what_the_launcher_says_is_kept_of_each_process(self):
        self.environment = {**self.environment, "WORLD_SIZE": "4", "VLLM_DP_SIZE": "2", "PMI_SIZE": "my-secret"}
        self.record("run", WORKLOAD, "infer", *RUN, options=("--no-peaks",))
        rows = self.query("run", "SELECT DISTINCT world, variables FROM process WHERE injected")
        self.assertEqual(rows, [{"world": 4, "variables": "WORLD_SIZE=4 VLLM_DP_SIZE=2"}])
        self.assertEqual(self.report("run")["job"]["world"], 4)

    def test_a_trace_of_one_rank_says_how_many_there_are(self):
        self.llmprof("import", IMPORTS / "kineto_nccl_rank0.json.gz", "-o", "run")
        rows = self.query("run", "SELECT world, description, size, ranks FROM communicator JOIN process ON id = process_id")
        self.assertEqual(rows, [{"world": 2, "description": "default_pg", "size": 2, "ranks": "0 1"}])
        job = self.report("run")["job"]
        self.assertEqual((job["world"], len(job["ranks"]), job["known"]), (2, 1, False))  # not taken for the whole job

    def test_another_division_is_derived_anew(self):
        self.profile("--ranks", "2", "--parallel", "tp")

        said = json.loads(self.llmprof("report", "run", "--json", "--parallel", "dp=2").stdout)
        decode = [stage for stage in said["stages"] if stage["name"] == "decode"][0]
        self.assertEqual(decode["flops"], 2 * self.decode)
        self.assertEqual(decode["tokens"], 2 * BATCH * (NEW - 1))

    def test_what_was_said_to_the_recorder_is_kept(self):
        self.record("run", WORKLOAD, "infer", *RUN, "--ranks", "2", "--parallel", "tp",
                    options=("--no-peaks", "--parallel", "dp=2"))
        job = self.report("run")["job"]
        self.assertEqual((job["tensor"], job["data"]), (1, 2))
        self.assertEqual(job["origin"], "--parallel dp=2, when it was recorded")

    def test_parts_add_up_to_the_model(self):
        words = [WORKLOAD, "infer", *RUN, "--json"]
        alone = json.loads(self.run_command(words).stdout)
        both = json.loads(self.run_command([*words, "--ranks", "2", "--parallel", "tp"]).stdout)
        self.assertEqual(alone["tokens"], both["tokens"])

    def test_bad_groups_are_refused(self):
        self.assertIn("does not say how ranks divide", self.record("x", "true", options=("--parallel", "two"), status=1).stderr)
        self.assertIn("--ranks", self.run_command([WORKLOAD, "infer", "--ranks", "65"], status=1).stderr)
        failed = self.run_command([WORKLOAD, "infer", "--preset", "tiny-gpt2", "--ranks", "2", "--parallel", "tp"], status=1)
        self.assertIn("only llama", failed.stderr)


if __name__ == "__main__":
    unittest.main()
