"""The command line itself: help, version, errors, completion, doctor and devices."""
import json
import subprocess
import unittest

from harness import Case

VERBS = ("demo", "record", "report", "query", "check", "doctor", "devices", "completion")


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


if __name__ == "__main__":
    unittest.main()
