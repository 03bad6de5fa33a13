"""A training program in plain C++ whose matrix products are compiled in (cpp_train.cpp): no BLAS call is there to see. What
stack samples tell of it, what ranges tell, and what is not claimed."""
import json
import unittest

from harness import BIN, Case

PROGRAM = str(BIN.parent / "tests" / "cpp_train")
STEPS = 40


class Sampled(Case):
    def profile(self, name, *words, hz="499"):
        self.record(name, PROGRAM, *words, options=("--no-peaks", "--sample-hz", hz))
        report = self.report(name)
        if report["stacks"]["why"]:
            self.skipTest(report["stacks"]["why"])
        return report

    def stages(self, report):
        out = {}
        for stage in report.get("sampled_stages", []):
            self.assertEqual(stage["caller"], "main")
            self.assertGreaterEqual(stage["samples"], 1)
            self.assertNotIn(stage["stage"], out)
            out[stage["stage"]] = stage
        return out

    def enough(self, report, stage):
        """Machines differ: where a pass is shorter than two samples, how many there are is not said."""
        if stage["passes"] is None:
            self.skipTest(f"{stage['function']}: {stage['samples']} samples in {STEPS} passes are too few to count")

    def test_stages_and_steps_by_sampled_functions(self):
        report = self.profile("run", str(STEPS))
        stages = self.stages(report)
        self.assertEqual({name: stage["function"] for name, stage in stages.items() if name != "forward only"},
                         {"forward": "gpt2_forward", "backward": "gpt2_backward", "optimizer": "gpt2_update"})
        self.assertGreater(stages["backward"]["time_ns"], stages["forward"]["time_ns"])  # about twice the work
        parts = {part["name"]: part for part in stages["forward"]["parts"]}
        self.assertEqual(next(iter(parts)), "matmul_forward")
        self.assertLessEqual(sum(part["time_ns"] for part in parts.values()), stages["forward"]["time_ns"] * 1.001)
        in_stages = {f["stage"] for f in report["functions"] if f["name"] == "matmul_backward"}
        self.assertEqual(in_stages, {"backward"})
        # Nothing is known of shapes, and nothing is said of them.
        for stage in report["stages"]:
            self.assertIsNone(stage["flops"])
            self.assertIsNone(stage["flops_shapes"])
            self.assertEqual(stage["tokens"], 0)
        text = self.llmprof("report", "run", "--full").stdout
        for words in ("Training, by sampled functions", "gpt2_backward", "Shapes, tokens and FLOPs are unknown"):
            self.assertIn(words, text)
        for stage in ("forward", "backward", "optimizer"):
            self.enough(report, stages[stage])
            self.assertEqual(stages[stage]["passes"], STEPS)
        self.assertEqual({s["name"]: s["steps"] for s in report["stages"]},
                         {"forward": STEPS, "backward": STEPS, "optimizer": STEPS})
        self.assertEqual({s["source"] for s in report["stages"]}, {"inferred"})
        self.assertEqual(len(report["training"][0]["steps"]), STEPS)
        self.assertIn("inferred from functions on stack samples", text)

    def test_steps_that_samples_cannot_tell_are_not_counted(self):
        report = self.profile("run", str(STEPS), hz="20")
        if report["stages"]:  # a machine so busy that a step took several samples: then they must be right
            self.assertEqual({stage["steps"] for stage in report["stages"]}, {STEPS})
            return
        for stage in report.get("sampled_stages", []):  # there may be too few samples for any word at all
            self.assertIsNone(stage["passes"])
        if report.get("sampled_stages", []):
            self.assertIn("unknown", self.llmprof("report", "run", "--full").stdout)

    def test_validation_is_no_training(self):
        report = self.profile("run", str(STEPS), "validate")
        stages = self.stages(report)
        self.enough(report, stages["forward"])
        self.assertEqual(stages["forward"]["passes"], STEPS)
        # 20 passes of the 60 are for validation.
        both = stages["forward"]["time_ns"] + stages["forward only"]["time_ns"]
        self.assertGreater(stages["forward only"]["time_ns"], 0.2 * both)
        self.assertLess(stages["forward only"]["time_ns"], 0.45 * both)
        self.assertIsNone(stages["forward only"]["passes"])

    def test_a_program_that_never_goes_back_does_not_train(self):
        for words in ((str(3 * STEPS), "infer"), (str(STEPS), "split")):
            report = self.profile("run-" + words[1], *words)
            self.assertEqual(report.get("sampled_stages", []), [])
            self.assertEqual(report["stages"], [])
            self.assertEqual(report["training"], [])

    def test_ranges_say_it_exactly(self):
        report = self.profile("run", str(STEPS), "ranges", "validate", hz="99")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual({name: stages[name]["steps"] for name in ("forward", "backward", "optimizer")},
                         {"forward": STEPS, "backward": STEPS, "optimizer": STEPS})
        self.assertEqual(stages["validation"]["steps"], 20)
        self.assertEqual({stage["source"] for stage in report["stages"]}, {"declared"})
        self.assertEqual(report.get("sampled_stages", []), [])  # ranges know better
        self.assertEqual(len(report["training"][0]["steps"]), STEPS)
        blocks = [block["name"] for block in report["blocks"]]
        self.assertIn("Layer.0", blocks)
        self.assertIn("Layer.15", blocks)
        operators = {(op["stage"], op["name"]): op for op in report["operators"]}
        self.assertEqual(operators[("forward", "matmul_forward")]["calls"], STEPS * 16 * 2)
        self.assertEqual(operators[("backward", "matmul_backward")]["calls"], STEPS * 16 * 2)

    def test_a_run_keeps_the_rules_it_was_recorded_with(self):
        rules = self.write("mine.toml", '[ranges]\nrules = [ { name = "gpt2_update", is = "step", stage = "my update" } ]\n')
        self.record("run", PROGRAM, "3", "ranges", options=("--no-peaks", "--no-stacks", "--ranges", rules))
        (self.folder / "mine.toml").unlink()
        self.assertIn("my update", {stage["name"] for stage in self.report("run")["stages"]})
        names = json.loads(self.llmprof("ranges", "run", "--json").stdout)["names"]
        (why,) = [name["why"] for name in names if name["name"] == "gpt#_update"]
        self.assertEqual(why, f"a rule of {rules} at the recording")
        # Rules of the reader's own come instead of them.
        self.write("llmprof.toml", '[ranges]\nrules = [ { name = "gpt2_update", is = "step", stage = "yours" } ]\n')
        self.assertIn("yours", {stage["name"] for stage in self.report("run")["stages"]})
        # A file without rules is none.
        self.write("llmprof.toml", "# nothing\n")
        self.assertIn("my update", {stage["name"] for stage in self.report("run")["stages"]})


if __name__ == "__main__":
    unittest.main()
