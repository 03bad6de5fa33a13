"""What makes the command line pleasant: runs and dashes left out, names mistyped, help, completion, llmprof.toml."""
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import BIN, LLMPROF, SYSTEM_PYTHON, Case

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"


class Commands(Case):
    def test_a_command_needs_no_dashes(self):
        script = self.write("x.py", "import sys; print(sys.argv[1:])")
        plain = ["record", "--no-peaks", "-q", "-o", "a", SYSTEM_PYTHON, script, "-o", "b", "--json", "--help"]
        self.assertEqual(self.llmprof(*plain).stdout, "['-o', 'b', '--json', '--help']\n")
        with_dashes = ["record", "--no-peaks", "-q", "-o", "c", "--", SYSTEM_PYTHON, script, "--", "-h"]
        self.assertEqual(self.llmprof(*with_dashes).stdout, "['--', '-h']\n")
        self.assertEqual(sorted(p.name for p in self.folder.glob("*.llmprof")), ["a.llmprof", "c.llmprof"])
        advice = self.llmprof("advise", "nsys", "./engine", "--prompt", "x").stdout
        self.assertIn("./engine --prompt x", advice)

    def test_options_behind_a_command_that_is_not_there_get_a_hint(self):
        done = self.llmprof("record", "no-such-program", "--no-peaks", status=127)
        self.assertIn("no-such-program: command not found", done.stderr)
        self.assertIn("options of record, such as --no-peaks, come before the command", done.stderr)
        self.write("train.py", "")
        self.assertIn("llmprof record python3 train.py --x", self.llmprof("record", "train.py", "--x", status=127).stderr)

    def test_options_without_their_value_stay_errors(self):
        for words in (("record", "-o"), ("record", "-o", "--", "true"), ("record",)):
            self.assertTrue(self.llmprof(*words, status=1).stderr.startswith("llmprof: "))
        self.assertEqual(list(self.folder.glob("*.llmprof")), [])

    def test_a_run_is_no_file(self):
        for words in (("record", "-o", "x.csv", "true"), ("bench", "residual_add", "-o", "x.xlsx"), ("demo", "-o", "x.html")):
            self.assertIn("a run is a folder", self.llmprof(*words, status=1).stderr)


class Latest(Case):
    def setUp(self):
        super().setUp()
        for i, name in enumerate(("old", "new", "newest")):
            folder = self.folder / f"{name}.llmprof"
            shutil.copytree(RUNS / "h200_decode", folder, copy_function=shutil.copy)
            info = json.loads((folder / "run.json").read_text())
            info["created"] = f"2026-01-0{i + 1}T00:00:00Z"
            (folder / "run.json").write_text(json.dumps(info))
        (self.folder / "no-run.llmprof").mkdir()

    def using(self, *words, name="newest", **more):
        done = self.llmprof(*words, **more)
        self.assertRegex(done.stderr, rf"(?m)^Using {name}\.llmprof, (recorded|made) \d+ days? ago\.$")
        self.assertNotIn("Using", done.stdout)
        return done.stdout

    def test_verbs_take_the_latest_run_here(self):
        self.assertEqual(json.loads(self.using("report", "--json"))["run"]["path"], "newest.llmprof")
        self.assertIn("newest.llmprof", self.using("check"))
        self.using("ranges")
        self.using("report", "--html", "page.html")
        self.assertTrue((self.folder / "page.html").exists())
        self.using("plot", "roofline", "-o", "roof.svg")
        self.using("export", "-t", "folded", "-o", "-")
        self.assertIn("kernel", self.using("query", "--tables"))
        self.assertIn("begin_ns", self.using("query", "--tables", "kernel"))
        count = self.using("query", "SELECT count(*) AS n FROM kernel", "--csv")
        self.assertEqual(count, self.llmprof("query", "old", "SELECT count(*) AS n FROM kernel", "--csv").stdout)
        self.write("q.sql", "SELECT 1 AS one")
        self.assertEqual(self.using("query", "-f", "q.sql", "--csv"), "one\n1\n")

    def test_what_is_given_is_taken(self):
        self.assertNotIn("Using", self.llmprof("report", "old").stderr)
        self.assertIn("query needs SQL", self.llmprof("query", "old", status=1).stderr)
        self.assertIn("plot needs PICTURE", self.llmprof("plot", "old", status=1).stderr)
        self.assertIn("nowhere", self.llmprof("query", "nowhere", "SELECT 1", status=2).stderr)
        self.assertNotIn("Using", self.llmprof("report", "--explain", "mbu").stderr)
        self.assertNotIn("Using", self.llmprof("export", "--formats").stderr)

    def test_diff_takes_the_last_two(self):
        done = self.llmprof("diff")
        self.assertIn("Using new.llmprof as before, and as after newest.llmprof.", done.stderr)
        self.assertIn("as after newest.llmprof", self.llmprof("diff", "old").stderr)
        self.assertIn("as after new.llmprof", self.llmprof("diff", "newest.llmprof").stderr)
        self.assertNotIn("Using", self.llmprof("diff", "old", "new").stderr)

    def test_without_any_the_error_says_how_to_record(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for verb in ("report", "check", "view", "ranges", "query", "plot", "export"):
            words = {"query": ["query", "SELECT 1"], "plot": ["plot", "flame"], "export": ["export", "-t", "csv"]}
            done = subprocess.run([LLMPROF, *words.get(verb, [verb])], cwd=empty, env=self.environment, text=True,
                                  capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 1, verb)
            self.assertIn("this folder has none", done.stderr)
            self.assertIn("hint: llmprof record python3", done.stderr)


class Suggestions(Case):
    def test_names_that_are_nearly_right(self):
        shutil.copytree(RUNS / "h200_decode", self.folder / "run.llmprof", copy_function=shutil.copy)
        for words, hint in ((("reprot",), "did you mean report?"),
                            (("help", "recrod"), "did you mean record?"),
                            (("report", "run", "--htlm", "x"), "did you mean --html?"),
                            (("report", "run", "--stage", "decod"), "did you mean decode?"),
                            (("report", "run", "--explain", "tpot_50"), "did you mean tpot_p50"),
                            (("report", "--explain", "wide_weight"), "did you mean wide_weights"),
                            (("diff", "run", "--gate", "decode.tpot_50 < 1ms"), "did you mean tpot_p50"),
                            (("export", "run", "-t", "perfeto"), "did you mean perfetto?"),
                            (("export", "run", "-t", "chrome", "--stage", "decod"), "did you mean decode?"),
                            (("import", "x", "--as", "kinetto"), "lists them"),
                            (("plot", "run", "rooflin"), "did you mean roofline?"),
                            (("query", "run", "kernl", "--tables"), "did you mean kernel?"),
                            (("record", "--counters", "memori", "true"), "did you mean memory?"),
                            (("bench", "gem"), "did you mean gemm?"),
                            (("completion", "bsh"), "did you mean bash?")):
            stderr = self.llmprof(*words, status=1).stderr
            self.assertIn(hint, stderr, words)

    def test_models_and_devices_match_loosely(self):
        def model(*words):
            return json.loads(self.llmprof("model", *words, "--json").stdout)
        exact = model("llama-3.2-1b", "--device", "h100-pcie")
        for name in ("llama 3.2 1b", "Llama-3.2-1B-Instruct", "LLAMA3.2-1b-chat"):
            loose = model(name, "--device", "H100 PCIe")
            self.assertEqual(loose["model"], dict(exact["model"], **{k: v for k, v in loose["model"].items() if k == "notes"}))
            self.assertEqual(loose["device"], exact["device"])
        several = self.llmprof("model", "llama-3.2", status=2).stderr
        self.assertIn("llama-3.2 fits several built-in models: llama-3.2-1b, llama-3.2-3b", several)
        self.assertIn("h100 fits several devices: h100-sxm, h100-pcie, h100-nvl",
                      self.llmprof("model", "gpt2", "--device", "h100", status=2).stderr)


class HelpPages(Case):
    def test_short_help_and_manual(self):
        short = self.llmprof("record", "-h").stdout
        self.assertLessEqual(len(short.splitlines()), 40)
        self.assertIn("llmprof record --help shows the manual", short)
        manual = self.llmprof("record", "--help").stdout
        self.assertGreater(len(manual.splitlines()), 80)
        self.assertEqual(manual, self.llmprof("help", "record").stdout)
        self.assertNotIn("\033", manual)
        self.assertIn("llmprof.toml", self.llmprof("help", "config").stdout)
        self.assertLessEqual(len(self.llmprof("-h").stdout.splitlines()), 40)
        self.assertEqual(self.llmprof("-h").stdout, self.llmprof("help").stdout)

    def test_a_terminal_gets_a_pager_and_bold_headings(self):
        shown = self.on_a_terminal([LLMPROF, "record", "--help"], columns=60, PAGER="sed s/^/PAGED:/")
        self.assertTrue(shown.startswith("PAGED:\033[1mllmprof record\033[0m\n"), shown[:200])
        text = [re.sub("\033\\[[0-9]*m", "", line)[len("PAGED:"):] for line in shown.splitlines()]
        wide = [line for line in text if len(line) > 60 and not line.startswith("      ")]
        self.assertLess(len(wide), len(text) / 50, wide)  # tables break no words
        for pager in ("", "no-such-pager-anywhere"):
            self.assertIn("EXAMPLES", self.on_a_terminal([LLMPROF, "check", "--help"], PAGER=pager))

    def test_a_pager_that_is_left_early_is_no_error(self):
        self.assertIn("llmprof record", self.on_a_terminal([LLMPROF, "record", "--help"], PAGER="head -1"))


class Completion(Case):
    """By a real bash, as it calls the function when somebody presses Tab."""

    def setUp(self):
        super().setUp()
        self.script = self.write("completion.bash", self.llmprof("completion", "bash").stdout)
        for name in ("first.llmprof", "second.llmprof"):
            shutil.copytree(RUNS / "h200_decode", self.folder / name, copy_function=shutil.copy)
        (self.folder / "folder").mkdir()
        self.write("a file.json", "")

    def complete(self, *words):
        quoted = " ".join("'" + word + "'" for word in ("llmprof", *words))
        text = f"""source {self.script}; PATH={BIN}:$PATH; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _llmprof
                   printf '%s\\n' "${{COMPREPLY[@]}}" """
        return [line for line in self.run_command(["bash", "-c", text]).stdout.split("\n") if line]

    def test_verbs_and_options(self):
        self.assertEqual(self.complete("re"), ["record", "report"])
        self.assertEqual(self.complete("report", "--expl"), ["--explain"])
        self.assertEqual(self.complete("help", "roof"), ["roofline"])

    def test_runs(self):
        both = ["first.llmprof", "second.llmprof"]
        self.assertEqual(sorted(word for word in self.complete("report", "") if word.endswith(".llmprof")), both)
        self.assertEqual(self.complete("report", "first.llmprof", "kern"), ["kernels"])
        self.assertEqual(self.complete("view", "fi"), ["first.llmprof"])
        self.assertEqual(self.complete("report", "run", "--against", "se"), ["second.llmprof"])
        self.assertEqual(self.complete("report", "fol"), ["folder"])  # on the way to one

    def test_names_of_things(self):
        self.assertEqual(self.complete("model", "llama-3.2"), ["llama-3.2-1b", "llama-3.2-3b"])
        self.assertEqual(self.complete("model", "gpt2", "--device", "h100"), ["h100-sxm", "h100-pcie", "h100-nvl"])
        self.assertEqual(self.complete("model", "gpt2", "--device", "=", "h20"), ["h200", "h200-nvl", "h20"])
        self.assertEqual(self.complete("model", "gpt2", "-d", "t"), ["t4"])
        self.assertEqual(self.complete("report", "run", "--explain", "tpot_p5"), ["tpot_p50"])
        self.assertEqual(self.complete("diff", "--gate", "decode.tpot_p5"), ["decode.tpot_p50"])
        self.assertEqual(self.complete("export", "run", "-t", "p"), ["perfetto", "pprof", "parquet"])
        self.assertEqual(self.complete("export", "run", "--stage", "dec"), ["decode"])
        self.assertEqual(self.complete("plot", "first", "roof"), ["roofline"])
        self.assertEqual(self.complete("plot", "--weight", ""), ["gpu", "cpu", "bytes"])
        self.assertEqual(self.complete("advise", "n")[:2], ["nsys", "ncu"])
        self.assertIn("light", self.complete("record", "--counters", "li"))
        self.assertEqual(self.complete("import", "a"), ["a file.json"])
        self.assertEqual(self.complete("report", "--top", ""), [])
        self.assertIn("bash", self.complete("record", "bas"))

    def test_every_kind_that_a_script_asks_for_is_known(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.llmprof("completion", shell).stdout
            for kind in set(re.findall(r"--values ([a-z][a-z-]*)", script)):
                self.llmprof("completion", "--values", kind)
        kinds = {kind for line in re.findall(r"kinds='([^']*)'", self.llmprof("completion", "bash").stdout)
                 for part in line.split(";") if not part.startswith("words ") for kind in part.split()}
        for kind in kinds - {"files", "commands"}:
            self.assertTrue(self.llmprof("completion", "--values", kind).returncode == 0, kind)

    def test_other_shells_read_their_scripts(self):
        for shell, words in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            if shutil.which(shell):
                self.run_command([shell, *words, self.write(f"script.{shell}", self.llmprof("completion", shell).stdout)])


class Configuration(Case):
    def setUp(self):
        super().setUp()
        shutil.copytree(RUNS / "h200_decode", self.folder / "run.llmprof", copy_function=shutil.copy)
        (self.folder / "config/llmprof").mkdir(parents=True)

    def rows(self, *words, **variables):
        text = self.llmprof("query", "run", "SELECT * FROM range(100)", *words, env=dict(self.environment, **variables)).stdout
        return text.count("\n") - 1

    def test_flag_then_variable_then_folder_then_user(self):
        self.write("config/llmprof/llmprof.toml", "[query]\nlimit = 20\ncsv = true\n[model]\ntop = 4\n")
        self.assertEqual(self.rows(), 20)
        self.write("llmprof.toml", "[query]\nlimit = 10\n")
        self.assertEqual(self.rows(), 10)
        self.assertEqual(self.rows("--limit", "5"), 5)
        self.assertIn(",", self.llmprof("query", "run", "SELECT 1, 2").stdout)
        self.assertNotIn(",", self.llmprof("query", "run", "SELECT 1, 2", "--csv=false").stdout)
        self.write("llmprof.toml", "[model]\ntop = 3\n")
        lines = lambda **variables: self.llmprof("model", "gpt2", env=dict(self.environment, **variables)).stdout
        self.assertEqual(lines(), self.llmprof("model", "gpt2", "--top", "3").stdout)
        self.assertEqual(lines(LLMPROF_TOP="2"), self.llmprof("model", "gpt2", "--top", "2").stdout)

    def test_without_a_configuration_folder_the_home_is_asked(self):
        home = self.folder / "home/.config/llmprof"
        home.mkdir(parents=True)
        (home / "llmprof.toml").write_text("[query]\nlimit = 7\n")
        environment = dict(self.environment, HOME=str(self.folder / "home"))
        del environment["XDG_CONFIG_HOME"]
        text = self.llmprof("query", "run", "SELECT * FROM range(100)", "--csv", env=environment).stdout
        self.assertEqual(text.count("\n"), 8)

    def test_mistakes_are_errors(self):
        for text, message in (("[query]\nlimt = 3\n", "did you mean limit?"), ("[qery]\n", "did you mean query?"),
                              ("[record]\noutput = 'x'\n", "not taken from the file of a folder"),
                              ("[view]\nlisten = '0.0.0.0'\n", "not taken from the file of a folder"),
                              ("[query\n", "llmprof.toml: line 1")):
            self.write("llmprof.toml", text)
            self.assertIn(message, self.llmprof("query", "run", "SELECT 1", status=2).stderr)
        self.assertIn("EXAMPLES", self.llmprof("query", "--help").stdout)

    def test_rules_of_ranges_share_the_file(self):
        self.write("llmprof.toml", '[ranges]\ntop = 3\nrules = [ { name = "x", is = "part" } ]\n[query]\nlimit = 3\n')
        self.llmprof("ranges", "run")
        self.assertEqual(self.rows("--csv"), 3)


class Endings(Case):
    def setUp(self):
        super().setUp()
        shutil.copytree(RUNS / "h200_decode", self.folder / "run.llmprof", copy_function=shutil.copy)

    def test_a_wrong_ending_is_an_error_that_lists_the_right_ones(self):
        for words, endings in ((("export", "run", "-t", "perfetto", "-o", "x.txt"), ".pftrace"),
                               (("export", "run", "-t", "chrome", "-o", "x.html"), ".json.gz or .json"),
                               (("plot", "run", "roofline", "-o", "x.pdf"), ".svg or .png"),
                               (("report", "run", "--html", "x.txt"), ".html, .htm or .json"),
                               (("diff", "run", "run", "--html", "x.json"), ".html or .htm"),
                               (("diff", "run", "run", "--junit", "x.txt"), ".xml"),
                               (("bench", "residual_add", "--csv", "x.xlsx"), ".csv"),
                               (("bench", "residual_add", "--plot", "x.pdf"), ".svg or .png"),
                               (("model", "gpt2", "--sweep", "batch=1..4:x2", "--plot", "x.png"), ".svg"),
                               (("roofline", "--plot", "x.pdf"), ".svg or .png"),
                               (("query", "run", "SELECT 1", "--parquet", "x.csv"), ".parquet")):
            self.assertIn("end it in " + endings, self.llmprof(*words, status=1).stderr)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("x.")], [])

    def test_an_ending_that_only_one_format_has_says_the_format(self):
        self.llmprof("export", "run", "-o", "x.pftrace")
        self.assertIn("formats: chrome, speedscope, json", self.llmprof("export", "run", "-o", "x.json", status=1).stderr)


class Compressed(Case):
    def setUp(self):
        super().setUp()
        shutil.copytree(RUNS / "h200_decode", self.folder / "run.llmprof", copy_function=shutil.copy)

    def kernels(self, name):
        opened = gzip.open if name.endswith(".gz") else open
        with opened(self.folder / name, "rt") as file:
            return [e for e in json.load(file)["traceEvents"] if e.get("cat") == "kernel"]

    def test_chrome_traces_are_compressed_and_the_same(self):
        self.llmprof("export", "run", "-t", "chrome")
        self.llmprof("export", "run", "-t", "chrome", "-o", "plain.json")
        with gzip.open(self.folder / "run.json.gz") as packed:
            self.assertEqual(packed.read(), (self.folder / "plain.json").read_bytes())
        self.assertEqual(self.llmprof("export", "run", "-t", "chrome", "-o", "-").stdout, (self.folder / "plain.json").read_text())
        packed, plain = ((self.folder / name).stat().st_size for name in ("run.json.gz", "plain.json"))
        self.assertLess(packed, plain / 5)

    def test_our_importer_reads_them(self):
        self.llmprof("export", "run", "-t", "chrome")
        self.llmprof("import", "run.json.gz", "-o", "back", status=None)
        expected = self.query("run", "SELECT count(*) AS n FROM kernel_all")[0]["n"]
        self.assertEqual(self.query("back", "SELECT count(*) AS n FROM kernel")[0]["n"], expected)

    def test_other_formats_compress_by_name(self):
        for kind, name, plain in (("folded", "x.folded.gz", "x.folded"), ("json", "x.json.gz", "x.json"),
                                  ("ops-csv", "x.csv.gz", "x.csv"), ("perfetto", "x.pftrace.gz", "x.pftrace")):
            self.llmprof("export", "run", "-t", kind, "-o", name)
            self.llmprof("export", "run", "-t", kind, "-o", plain)
            with gzip.open(self.folder / name) as packed:
                self.assertEqual(packed.read(), (self.folder / plain).read_bytes(), kind)

    def test_stages_and_windows_of_traces(self):
        self.llmprof("export", "run", "-t", "chrome", "-o", "all.json")
        self.llmprof("export", "run", "-t", "chrome", "--stage", "prefill", "-o", "stage.json")
        expected = self.query("run", "SELECT sum(executions)::BIGINT AS n FROM work WHERE stage = 'prefill'")[0]["n"]
        self.assertEqual(len(self.kernels("stage.json")), expected)
        everything = self.kernels("all.json")
        middle = sorted(e["ts"] for e in everything)[len(everything) // 2]
        zero = self.query("run", """SELECT min(t) AS t FROM (SELECT min(begin_ns) AS t FROM kernel UNION ALL
            SELECT min(begin_ns) FROM graph_launch UNION ALL SELECT min(begin_ns) FROM "range" UNION ALL SELECT min(ts_ns)
            FROM telemetry UNION ALL SELECT min(ts_ns) FROM sample UNION ALL SELECT min(begin_ns) FROM api UNION ALL
            SELECT min(begin_ns) FROM op)""")[0]["t"]
        window = f"{middle - zero / 1e3:.0f}us:"
        self.llmprof("export", "run", "-t", "chrome", "--window", window, "-o", "part.json.gz")
        part = self.kernels("part.json.gz")
        self.assertLess(len(part), len(everything))
        self.assertGreater(len(part), len(everything) // 4)
        self.assertTrue(all(e["ts"] + e["dur"] >= middle - 1 for e in part))
        for kind in ("perfetto", "speedscope", "folded", "pprof"):
            sizes = []
            for words in ((), ("--stage", "prefill"), ("--window", window)):
                name = {"perfetto": "x.pftrace", "speedscope": "x.json", "folded": "x.folded", "pprof": "x.pb.gz"}[kind]
                self.llmprof("export", "run", "-t", kind, *words, "-f", "-o", name)
                sizes.append((self.folder / name).stat().st_size)
            self.assertLess(sizes[1], sizes[0], kind)

    def test_a_large_file_is_announced(self):
        shutil.copytree(RUNS / "strangers/dit", self.folder / "small.llmprof", copy_function=shutil.copy)
        self.assertNotIn("About", self.llmprof("export", "small", "-t", "chrome").stderr)
        done = self.llmprof("export", "run", "-t", "chrome")
        told = re.search(r"About (\d+) MB before compression. --stage NAME or --window A:B exports a part.", done.stderr)
        self.assertTrue(told, done.stderr)
        with gzip.open(self.folder / "run.json.gz") as file:
            plain = len(file.read())
        self.assertLess(abs(int(told[1]) * 1e6 - plain), plain / 3)


if __name__ == "__main__":
    unittest.main()
