"""llmprof advise: command lines for the version that is installed, told by fake tools on PATH."""
import json
import os
import pathlib
import shlex
import subprocess
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
NSYS_HELP = "--sample= --cpuctxsw= --force-overwrite= --cuda-graph-trace= --gpu-metrics-devices= -t cuda cublas nvtx"
NCU_HELP = "--clock-control arg --print-units arg --metrics arg -k [ --kernel-name ] arg"


class Advise(harness.Case):
    def setUp(self):
        super().setUp()
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.environment["PATH"] = str(self.tools)

    def fake(self, name, version, help_text, first=""):
        script = f'#!/bin/sh\n{first}\ncase "$*" in *--version) echo "{version}" ;; *--help) echo "{help_text}" ;; esac\n'
        path = self.tools / name
        path.write_text(script)
        path.chmod(0o755)

    def advice(self, tool, *command, options=()):
        return json.loads(self.llmprof("advise", tool, *options, "--json", "--", *command).stdout)

    def lines(self, advice):
        return [step["line"] for step in advice["steps"]]

    def test_nsys_of_today(self):
        self.fake("nsys", "NVIDIA Nsight Systems version 2025.3.1.0", NSYS_HELP)
        text = self.llmprof("advise", "nsys", "-o", "my run", "--", "python3", "a b.py").stdout
        self.assertTrue(text.startswith(f"# Nsight Systems 2025.3.1.0 ({self.tools}/nsys)\n"), text)
        self.assertEqual([line for line in text.splitlines() if line and line[0] != "#"], [
            "nsys profile -t cuda,nvtx,cublas --sample=none --cpuctxsw=none --force-overwrite=true --cuda-graph-trace=node "
            "-o 'my run' python3 'a b.py'",
            "nsys export -t sqlite --force-overwrite=true -o 'my run.sqlite' 'my run.nsys-rep'",
            "llmprof import 'my run.sqlite' -o 'my run'"])

    def test_an_old_nsys_is_not_given_what_it_does_not_know(self):
        self.fake("nsys", "NVIDIA Nsight Systems version 2020.4.3", "--sample= --force-overwrite= --gpu-metrics-device= -t cuda,nvtx")
        advice = self.advice("nsys", "./a.out")
        self.assertEqual(advice["version"], "2020.4.3")
        self.assertEqual(self.lines(advice)[0], "nsys profile -t cuda,nvtx --sample=none --force-overwrite=true -o profile ./a.out")
        self.assertTrue(any("has no --cuda-graph-trace" in note for note in advice["notes"]))
        self.assertTrue(any("--gpu-metrics-device=all" in note for note in advice["notes"]))

    @unittest.skipIf(any(pathlib.Path("/").glob(p) and list(pathlib.Path("/").glob(p)) for p in ("usr/local/cuda*/bin/ncu", "opt/nvidia/nsight*")),
                     "Nsight is installed here")
    def test_not_installed_is_said(self):
        for tool, name in (("nsys", "Nsight Systems"), ("ncu", "Nsight Compute")):
            text = self.llmprof("advise", tool, "--", "./a.out").stdout
            self.assertTrue(text.startswith(f"# {name}: not found here; this is for a recent version\n"), text)

    def test_a_tool_that_hangs_or_fails_is_still_advised(self):
        self.fake("ncu", "", "", first="exit 1")
        advice = self.advice("ncu", "./a.out")
        self.assertTrue(advice["installed"])
        self.assertIsNone(advice["version"])
        self.assertIn("--clock-control none", self.lines(advice)[0])

    def test_ncu_takes_the_hot_kernels_of_a_run(self):
        self.fake("ncu", "Version 2025.3.1.0 (build 36398880)", NCU_HELP)
        run = self.folder / "h200.llmprof"
        subprocess.run(["cp", "-r", str(ROOT / "tests/runs/h200_decode"), str(run)], check=True)
        advice = self.advice("ncu", "./decode", options=("--run", "h200", "--stage", "decode"))
        words = advice["steps"][0]["words"]
        self.assertEqual(words[:5], ["ncu", "--target-processes", "all", "--clock-control", "none"])
        # Independently: the same shares by SQL over the run, names cut at the first '<' and behind the last "::".
        rows = self.query("h200", "SELECT regexp_replace(regexp_replace(w.name, '<.*', ''), '.*::', '') AS name, "
                          "sum(w.time_ns)::BIGINT AS ns, sum(w.executions)::BIGINT AS calls FROM work w JOIN device d ON d.id = w.device_id "
                          "WHERE d.kind = 'gpu' AND w.stage = 'decode' AND w.known GROUP BY 1 ORDER BY 2 DESC")
        total, hot = sum(row["ns"] for row in rows), []
        while sum(row["ns"] for row in hot) < 0.8 * total and len(hot) < 8:
            hot.append(rows[len(hot)])
        names = words[words.index("-k") + 1]
        short = [row["name"] if len(row["name"]) <= 96 else row["name"][:96] + ".*" for row in hot]
        self.assertEqual(names, "regex:^(" + "|".join(short) + ")$")
        steps = self.query("h200", "SELECT count(*) AS n FROM step WHERE stage = 'decode'")[0]["n"]
        in_step = sum(row["calls"] for row in hot) // steps
        self.assertEqual(words[words.index("--launch-count") + 1], str(min(100, in_step)))
        # The run has no ranges: everything before the third step is skipped.
        self.assertNotIn("--nvtx-include", words)
        begin = self.query("h200", "SELECT begin_ns AS ns FROM step WHERE stage = 'decode' ORDER BY 1 LIMIT 1 OFFSET 2")[0]["ns"]
        before = self.query("h200", "SELECT regexp_replace(regexp_replace(k.name, '<.*', ''), '.*::', '') AS name, count(*) AS n FROM kernel_all k "
                            f"JOIN device d ON d.id = k.device_id WHERE d.kind = 'gpu' AND k.begin_ns < {begin} GROUP BY 1")
        skipped = sum(row["n"] for row in before if row["name"] in {row["name"] for row in hot})
        self.assertEqual(words[words.index("--launch-skip") + 1], str(skipped))

    def test_ncu_takes_launches_inside_the_ranges_of_a_stage(self):
        self.fake("ncu", "Version 2025.3.1.0 (build 36398880)", NCU_HELP)
        self.llmprof("import", "-q", "-o", "run", str(ROOT / "tests/imports/nsys_llama.sqlite.gz"))
        words = self.advice("ncu", "./decode", options=("--run", "run", "--stage", "decode"))["steps"][0]["words"]
        self.assertEqual(words[words.index("--nvtx-include") + 1], "decode_step/")

    def test_nsys_records_the_ranges_of_a_stage(self):
        self.fake("nsys", "NVIDIA Nsight Systems version 2025.3.1.0", NSYS_HELP)
        self.llmprof("import", "-q", "-o", "run", str(ROOT / "tests/imports/nsys_llama.sqlite.gz"))
        advice = self.advice("nsys", "./decode", options=("--run", "run", "--stage", "decode"))
        step = advice["steps"][0]
        self.assertEqual(step["environment"], ["NSYS_NVTX_PROFILER_REGISTER_ONLY=0"])
        for word in ("--capture-range=nvtx", "--capture-range-end=repeat:3"):
            self.assertIn(word, step["words"])
        self.assertEqual(step["words"][step["words"].index("-p") + 1], "decode_step")
        self.assertEqual(self.lines(advice)[-1], "llmprof import profile.1.sqlite profile.2.sqlite profile.3.sqlite -o profile")
        wrong = self.llmprof("advise", "nsys", "--run", "run", "--stage", "nothing", "--", "./decode", status=2)
        self.assertIn("its stages: ", wrong.stderr)

    def test_a_given_command_is_checked_and_its_program_advised(self):
        self.fake("nsys", "NVIDIA Nsight Systems version 2025.3.1.0", NSYS_HELP)
        advice = self.advice("nsys", "nsys", "profile", "-c", "nvtx", "--capture-range-end=nvtx", "-o", "x.qdrep", "python3", "a.py")
        self.assertEqual(len(advice["mistakes"]), 4, advice["mistakes"])
        self.assertTrue(self.lines(advice)[0].endswith(" -o profile python3 a.py"))

    def test_scripts_are_read_for_what_comes_too_late(self):
        self.write("a.py", 'import os, torch\nos.environ["CUBLAS_LOGINFO_DBG"] = "1"\n')
        mistakes = self.advice("cublas", "python3", "a.py")["mistakes"]
        self.assertEqual(len(mistakes), 1)
        self.assertIn("a.py sets CUBLAS_LOGINFO_DBG itself", mistakes[0])

    def test_cublas_logs_beside_a_trace(self):
        self.fake("nsys", "NVIDIA Nsight Systems version 2025.3.1.0", NSYS_HELP)
        lines = self.lines(self.advice("cublas", "./a.out"))
        self.assertTrue(lines[0].startswith("CUBLAS_LOGINFO_DBG=1 CUBLAS_LOGDEST_DBG=profile.cublas.log CUBLASLT_LOG_LEVEL=5 "
                                            "CUBLASLT_LOG_FILE=profile.cublaslt.%i.log nsys profile "), lines[0])
        self.assertEqual(lines[-1], "llmprof import profile.sqlite profile.cublas.log profile.cublaslt.*.log -o profile")

    def test_what_is_printed_runs_in_a_shell(self):
        """The whole text is given to a shell; fake tools note how they were called."""
        note = 'for w in "$@"; do printf "%s\\n" "$w"; done >> calls'
        self.fake("nsys", "NVIDIA Nsight Systems version 2025.3.1.0", NSYS_HELP)
        text = self.llmprof("advise", "nsys", "--", "./it's", "$HOME", "a;b").stdout
        for name in ("nsys", "llmprof"):
            self.fake(name, "", "", first=note)
        self.run_command(["/bin/sh", "-eu"], input=text)
        calls = (self.folder / "calls").read_text().splitlines()
        self.assertEqual(calls[calls.index("-o") + 2:][:3], ["./it's", "$HOME", "a;b"])

    def test_torch_program_runs_and_keeps_the_exit_status(self):
        """With a module of the same name in torch's place: what is under test is the program around it."""
        package = self.folder / "torch"
        (package / "cuda").mkdir(parents=True)
        (package / "__init__.py").write_text("from . import cuda, profiler\n")
        (package / "cuda/__init__.py").write_text("def is_available(): return False\n")
        (package / "profiler.py").write_text(
            "class ProfilerActivity: CPU, CUDA = 'cpu', 'cuda'\n"
            "class profile:\n"
            "    def __init__(self, **options): self.options = options\n"
            "    def __enter__(self): return self\n"
            "    def __exit__(self, *error): pass\n"
            "    def export_chrome_trace(self, name): open(name, 'w').write(repr(self.options))\n")
        self.write("a.py", "import sys, beside\nprint(sys.argv, __name__)\nsys.exit(7)\n")
        self.write("beside.py", "")
        text = self.llmprof("advise", "torch", "--", harness.SYSTEM_PYTHON, "a.py", "x y").stdout
        self.environment["PATH"] = os.environ["PATH"]
        self.environment["PYTHONPATH"] = str(self.folder)
        script = text.split("\nllmprof import")[0]
        done = self.run_command(["/bin/sh", "-c", script], status=7)
        self.assertEqual(done.stdout, "['a.py', 'x y'] __main__\n")
        self.assertIn("'record_shapes': True", (self.folder / "profile.json").read_text())
        self.assertEqual(shlex.split(text.split("\n")[-1] or "''"), [""])


if __name__ == "__main__":
    unittest.main()
