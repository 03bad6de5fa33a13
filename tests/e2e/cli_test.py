"""The command line itself: help, version, errors, completion, doctor and devices."""
import json
import subprocess
import unittest

from harness import Case

VERBS = ("demo", "record", "report", "query", "model", "check", "doctor", "devices", "completion")


class CommandLine(Case):
    def test_help_of_every_verb_starts_with_examples(self):
        overview = self.llmprof("--help").stdout
        for verb in VERBS:
            self.assertIn(verb, overview)
            text = self.llmprof(verb, "--help").stdout
            self.assertIn("EXAMPLES", text, verb)
            self.assertIn(f"llmprof {verb}", text)
            self.assertLess(text.index("EXAMPLES"), text.index("OPTIONS"), verb)

    def test_version(self):
        self.assertRegex(self.llmprof("--version").stdout, r"^llmprof \d+\.\d+\.\d+ \(commit ")

    def test_usage_errors(self):
        for words in (["frobnicate"], ["report"], ["report", "--no-such-option", "x"], ["completion", "csh"]):
            done = self.llmprof(*words, status=1)
            self.assertTrue(done.stderr.startswith("llmprof: "), done.stderr)
            self.assertIn("hint: ", done.stderr)

    def test_completion_scripts_are_valid(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("record", self.llmprof("completion", shell).stdout)
        script = self.write("completion.bash", self.llmprof("completion", "bash").stdout)
        answer = subprocess.run(["bash", "-c", f"source {script}; COMP_WORDS=(llmprof re); COMP_CWORD=1; _llmprof; "
                                 "echo ${COMPREPLY[@]}"], capture_output=True, text=True, check=True)
        self.assertEqual(answer.stdout.split(), ["record", "report"])

    def test_doctor(self):
        verdict = json.loads(self.llmprof("doctor", "--json").stdout)
        self.assertEqual(verdict["schema"], "llmprof.doctor")
        self.assertTrue(all(check["remedy"] for check in verdict["checks"] if check["status"] == "fail"))

    def test_doctor_fails_without_the_injected_libraries(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.llmprof("doctor", status=2, env=dict(self.environment, LLMPROF_LIBDIR=str(empty)))

    def test_devices(self):
        cards = json.loads(self.llmprof("devices", "--json").stdout)
        self.assertEqual(cards["devices"][0]["kind"], "cpu")

    def test_devices_of_the_catalogue(self):
        table = self.llmprof("devices", "--all").stdout
        self.assertRegex(table, r"(?m)^h200 +141 GiB +4800 ")
        self.assertTrue(all(len(line) <= 100 for line in table.splitlines()))
        entries = json.loads(self.llmprof("devices", "--all", "--json").stdout)["catalogue"]
        self.assertTrue(all(figure["source"] for entry in entries for figure in entry["peaks"].values()))
        self.assertEqual(table.count("\n"), len(entries) + 4)  # a title, an empty line, two of notes

    def test_one_device_by_the_name_its_driver_reports(self):
        card = self.llmprof("devices", "NVIDIA H100 80GB HBM3").stdout
        self.assertIn("989 TFLOP/s", card)
        self.assertIn("spec: NVIDIA H100 product page", card)
        self.assertIn("conflict ", card)
        one = json.loads(self.llmprof("devices", "t4", "--json").stdout)
        self.assertFalse(one["here"])
        self.assertEqual(one["catalogue"][0]["peaks"]["float16"]["value"], 65e12)
        self.assertNotIn("bfloat16", one["catalogue"][0]["peaks"])
        self.assertEqual({peak["source"] for peak in one["devices"][0]["peaks"]}, {"spec"})

    def test_a_name_that_fits_several_devices_is_no_device(self):
        refused = self.llmprof("devices", "h100", status=2).stderr
        self.assertIn("llmprof: h100 fits several devices: h100-sxm, h100-pcie, h100-nvl", refused)
        self.assertIn("NVIDIA H100 PCIe", self.llmprof("devices", "H100 PCIe").stdout)
        self.assertIn("did you mean h200", self.llmprof("devices", "h2000", status=2).stderr)
        self.assertIn("--all", self.llmprof("devices", "Z9000", status=2).stderr)
        self.llmprof("devices", "t4", "--all", status=1)


if __name__ == "__main__":
    unittest.main()
