"""The answer on one screen: of every sample run, in 80 and in 120 columns, 40 lines that hold what matters; what a recording ends
with; parts of a report; and the words that are no longer used."""
import pathlib
import shutil
import unittest

from harness import Case, SYSTEM_PYTHON, WORKLOAD

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"
SAMPLES = sorted(str(run.parent.relative_to(RUNS)) for run in RUNS.glob("**/run.json"))
PARTS = ("losses", "diagnosis", "run", "life", "stages", "steps", "ranges", "operators", "modules", "kernels", "gemms", "framework",
         "counters", "power", "memory", "server", "host", "functions", "python")

# Riddles of the old screens, and what is said instead in docs/glossary.md.
OLD_WORDS = ("Not settled", "what would settle it", "found nothing", "seen from inside", "Known by", "least, median, most",
             "idle, nothing launched", "Nothing can be said", "told apart", "disturbs least", "ask a run with SQL", "cannot be told from nothing")


class Screen(Case):
    def sample(self, name):
        path = self.folder / pathlib.Path(name).name
        if not path.exists():
            shutil.copytree(RUNS / name, path)
        return path.name

    def screen(self, run, columns, *words):
        return self.llmprof("report", run, *words, env={**self.environment, "COLUMNS": str(columns)}).stdout

    def test_every_sample_fits_and_says_what_matters(self):
        for name in SAMPLES:
            run = self.sample(name)
            report = self.report(run)
            for columns in (80, 120):
                with self.subTest(run=name, columns=columns):
                    text = self.screen(run, columns)
                    lines = text.splitlines()
                    self.assertLessEqual(len(lines), 40, text)
                    self.assertLessEqual(max(map(len, lines)), columns, text)
                    flat = " ".join(text.split())
                    self.assertIn("Lost: ", flat)
                    self.assertIn("Next: llmprof report", flat)
                    self.assertIn("Recording cost: ", flat)
                    for device in report["devices"][:1]:
                        self.assertIn(device["name"] or "of unknown name", flat)
                    longest = sorted(report["stages"], key=lambda stage: -stage["time_ns"])
                    for stage in longest[:3] if report.get("requests") else longest[:6]:
                        self.assertIn(f"  {stage['label']} ", text)
                    self.check_findings(flat, report)

    # Those that are shown are the first, whole, and say their share of the run.
    def check_findings(self, flat, report):
        found = [f for f in report["diagnosis"]["findings"] if f["verdict"] == "found" and f["severity"] != "note"]
        shown = [f for f in found[:3] if f["title"] in flat]
        self.assertEqual(shown, found[:len(shown)])
        self.assertTrue(shown or not found)
        whole = [all(advice in flat for advice in finding["advice"]) for finding in shown] + [False]
        advised = shown[:whole.index(False)]
        self.assertTrue(advised or not shown)
        said = {advice for finding in advised for advice in finding["advice"]}
        for finding in shown[len(advised):]:  # these have their title alone: half of an advice misleads
            for advice in set(finding["advice"]) - said:
                self.assertNotIn(advice, flat)
        for finding in shown:
            gain = finding["gain"]
            if gain["latency"]:  # of what requests wait, not of the run
                self.assertIn(f"{gain['ns'] / gain['of_ns'] * 100:.1f} % of {gain['of']}", flat)
                continue
            self.assertIn(f"{gain['run_share'] * 100:.1f} % of", flat)
            self.assertGreaterEqual(gain["run_share"], 0.001)
        shares = [finding["gain"]["run_share"] for finding in found
                  if finding["confidence"] >= 0.6 and not finding["gain"]["latency"]]
        self.assertEqual(shares, sorted(shares, reverse=True))

    def test_a_wide_terminal_shows_more_columns_and_a_narrow_one_loses_none_of_a_part(self):
        run = self.sample("h200_decode")
        self.assertIn("floor %", self.screen(run, 120))
        self.assertNotIn("floor %", self.screen(run, 80))
        narrow, wide = (self.screen(run, columns, "stages") for columns in (80, 160))
        titles = "FLOPs shapes FLOP/s MFU % bytes B/s MBU % FLOP/B bound floor floor%"
        self.assertIn(titles, " ".join(wide.split()))
        for title in titles.replace("MFU %", "MFU").replace("MBU %", "MBU").split():
            self.assertIn(title, narrow)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 80)

    # A stage is as long as in the bar above: its warm-up is a phase of its own.
    def test_times_of_stages_agree_with_the_bar(self):
        run = self.sample("h200_decode")
        report = self.report(run)
        phases = {phase["name"]: phase for phase in report["life"]["phases"]}
        for stage in report["stages"]:
            self.assertGreater(stage["warm_up_steps"], 0)
            self.assertEqual(stage["steady_steps"] + stage["warm_up_steps"], stage["steps"])
            self.assertAlmostEqual(stage["steady_ns"], phases[stage["name"]]["time_ns"], delta=0.01 * report["coverage"]["wall_ns"])
        self.assertIn("Without warm-up (prefill 1.33 s, decode 842 ms)", self.screen(run, 120))

    def test_units_scale(self):
        text = self.screen(self.sample("h200_decode"), 120, "stages")
        self.assertIn("99.8 T", text)  # FLOP/s of prefill
        self.assertNotIn("99847", text)

    def test_parts(self):
        run = self.sample("strangers/llmc")
        for part in PARTS:
            with self.subTest(part=part):
                self.assertGreater(len(self.screen(run, 100, part).splitlines()), 3)
        self.assertIn("has no part 'kernel'", self.llmprof("report", run, "kernel", status=1).stderr)

    def test_stages_that_are_guessed_are_marked(self):
        run = self.sample("strangers/dit")
        for stage in self.report(run)["stages"]:
            mark = "" if stage["confidence"] >= 1 and stage["source"] == "declared" else "?" if stage["confidence"] < 0.6 else "*"
            self.assertEqual(stage["label"], stage["name"] + mark)

    def test_a_recording_ends_with_the_screen(self):
        environment = {k: v for k, v in self.environment.items() if k != "LLMPROF_NO_REPORT"}
        done = self.record("run", WORKLOAD, "infer", "--prompt", "32", "--new", "8", env=environment)
        self.assertIn("Stages", done.stderr)
        self.assertIn("exit status 0", done.stderr)
        self.assertIn("Next: llmprof report run.llmprof", done.stderr)
        self.assertNotIn("Stages", done.stdout)
        shown = self.llmprof("report", "run.llmprof").stdout
        self.assertIn(shown.split("Recording cost")[0].strip(), done.stderr)
        quiet = self.record("quiet", WORKLOAD, "infer", "--prompt", "32", "--new", "8", options=("--no-peaks", "--no-report"), env=environment)
        self.assertNotIn("Stages", quiet.stderr)

    def test_a_program_that_fails_says_so(self):
        environment = {k: v for k, v in self.environment.items() if k != "LLMPROF_NO_REPORT"}
        done = self.record("run", SYSTEM_PYTHON, "-c", "raise SystemExit(3)", status=3, env=environment)
        self.assertIn("exit status 3", done.stderr)

    def test_old_words_are_gone(self):
        texts = {"help": "".join(self.llmprof(verb, "--help").stdout for verb in ("report", "record", "query", "diff", "counters"))}
        for name in SAMPLES:
            run = self.sample(name)
            texts[name] = self.screen(run, 200) + self.screen(run, 200, "--full") + self.screen(run, 200, "diagnosis")
        for name, text in texts.items():
            for words in OLD_WORDS:
                with self.subTest(text=name, words=words):
                    flat = " ".join(text.split())
                    at = flat.find(words)
                    self.assertEqual(at, -1, flat[max(0, at - 60):at + 60])


if __name__ == "__main__":
    unittest.main()
