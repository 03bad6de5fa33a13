"""`llmprof record` around programs that are not ours: same output, same status, no harm."""
import os
import signal
import subprocess
import sys
import time
import unittest

from harness import LLMPROF, SYSTEM_PYTHON, WORKLOAD, Case


class Record(Case):
    def test_ls(self):
        self.write("a file", "")
        alone = self.run_command(["ls", "-1", "/"])
        recorded = self.record("run", "ls", "-1", "/")
        self.assertEqual(recorded.stdout, alone.stdout)
        report = self.report("run")
        self.assertEqual(report["coverage"]["kernels"], 0)
        self.assertEqual(report["coverage"]["processes"], 1)

    def test_status_is_the_commands_own(self):
        self.record("a", "sh", "-c", "exit 7", status=7)
        self.record("b", "sh", "-c", "kill -TERM $$", status=128 + signal.SIGTERM)
        self.record("c", "./no-such-program", status=127)
        self.record("d", self.write("not-executable", "x"), status=126)

    def test_existing_run_is_refused_without_force(self):
        self.record("run", "true")
        refused = self.record("run.llmprof", "true", status=125)
        self.assertIn("hint:", refused.stderr)
        self.record("run", "true", options=("--no-peaks", "-f"))

    def test_force_never_deletes_what_is_not_a_run(self):
        (self.folder / "run.llmprof").mkdir()
        (self.folder / "run.llmprof" / "thesis.txt").write_text("keep me")
        self.record("run", "true", options=("--no-peaks", "-f"), status=125)
        self.assertEqual((self.folder / "run.llmprof" / "thesis.txt").read_text(), "keep me")

    def test_numpy(self):
        code = ("import numpy as np; a = np.ones((40, 30), np.float32); b = np.ones((30, 20), np.float32); "
                "x = np.ones(30); print((a @ b).sum(), (a.astype(np.float64) @ x).sum())")
        done = self.record("run", SYSTEM_PYTHON, "-c", code)
        self.assertEqual(done.stdout, "24000.0 1200.0\n")
        rows = self.query("run", "SELECT m, n, k, type_a FROM gemm ORDER BY begin_ns")
        self.assertEqual({(r["type_a"], 2 * r["m"] * r["n"] * r["k"]) for r in rows},
                         {("float32", 2 * 40 * 20 * 30), ("float64", 2 * 40 * 30)})
        kernels = self.query("run", "SELECT count(*) AS n FROM kernel")
        self.assertEqual(kernels[0]["n"], len(rows))

    def test_exec_chain_leaves_one_log_per_image(self):
        words = f"{WORKLOAD} infer --preset tiny-llama --prompt 4 --new 2 >/dev/null"
        self.record("run", "sh", "-c", f"{words}; exec sh -c '{words}; exec {WORKLOAD} infer --preset tiny-gpt2 "
                                       f"--prompt 4 --new 2'")
        rows = self.query("run", "SELECT count(log) AS n FROM process")
        self.assertEqual(rows[0]["n"], 3)

    def test_ranks_of_the_processes_of_a_job(self):
        words = f"{WORKLOAD} infer --preset tiny-llama --prompt 4 --new 2 >/dev/null"
        self.record("run", "sh", "-c", f"RANK=0 LOCAL_RANK=7 {words} & LOCAL_RANK=1 {words} & SLURM_PROCID=2 {words} & "
                                       f"RANK=x {words} & wait")
        rows = self.query("run", "SELECT rank FROM process WHERE log IS NOT NULL ORDER BY rank NULLS LAST")
        self.assertEqual([row["rank"] for row in rows], [0, 1, 2, None])

    def test_children_are_followed(self):
        script = self.write("spawn.py", f"import subprocess\nfor i in range(3):\n  subprocess.run([{WORKLOAD!r}, 'infer', "
                                        "'--preset', 'tiny-llama', '--prompt', '4', '--new', '2'], check=True, "
                                        "stdout=subprocess.DEVNULL)\n")
        self.record("run", SYSTEM_PYTHON, script)
        # The Python parent has no events, so only its three children have a log.
        self.assertEqual(self.query("run", "SELECT count(log) AS n FROM process")[0]["n"], 3)

    def test_sigkill_leaves_a_good_run(self):
        code = self.write("loop.py", "import numpy as np, os, signal, time\na = np.ones((64, 64))\n"
                                     "for i in range(2000):\n  a @ a\n  time.sleep(0.001)\n"
                                     "os.kill(os.getpid(), signal.SIGKILL)\n")
        self.record("run", SYSTEM_PYTHON, code, status=128 + signal.SIGKILL)
        calls = self.query("run", "SELECT count(*) AS n FROM gemm")[0]["n"]
        # 2,000 calls at about 1 ms each: at most the last second may be missing.
        self.assertGreater(calls, 500)
        self.assertLessEqual(calls, 2000)
        self.assertIn("abnormal_end", [loss["name"] for loss in self.report("run")["losses"]])

    def test_interrupt_from_the_terminal_reaches_the_program_once(self):
        script = self.write("count.py", "import signal, time, sys\nhits = []\n"
                                        "signal.signal(signal.SIGINT, lambda *a: hits.append(1))\nprint('ready', flush=True)\n"
                                        "end = time.time() + 30\n"
                                        "while time.time() < end and not hits: time.sleep(0.05)\n"
                                        "time.sleep(0.5)\nprint(len(hits))\n")
        driver = self.write("driver.py", f"""
import os, pty, subprocess, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv({LLMPROF!r}, [{LLMPROF!r}, "record", "-q", "-o", "run", "--no-peaks", "--", {SYSTEM_PYTHON!r}, {script!r}])
text = b""
sent = False
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    text += part
    if not sent and b"ready" in text:
        sent = True
        os.write(terminal, b"\\x03")
_, status = os.waitpid(pid, 0)
print(text.decode().replace("\\r", "").replace("^C", " "))
print("status", os.waitstatus_to_exitcode(status))
""")
        done = self.run_command([sys.executable, driver])
        lines = done.stdout.split()
        self.assertIn("ready", lines, done.stdout)
        self.assertEqual(lines[lines.index("ready") + 1], "1", done.stdout)
        self.assertEqual(lines[-2:], ["status", "0"], done.stdout)

    def test_kill_of_llmprof_ends_the_program_and_keeps_the_run(self):
        process = subprocess.Popen([LLMPROF, "record", "-o", "run", "--no-peaks", "--", SYSTEM_PYTHON, "-c",
                                    "import time; open('started', 'w'); time.sleep(300)"], cwd=self.folder,
                                   env=self.environment, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not (self.folder / "started").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=600)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.report("run")["coverage"]["processes"], 1)

    def test_unfinished_ingest_is_finished_by_the_next_verb(self):
        self.record("run", WORKLOAD, "infer", "--preset", "tiny-llama", "--prompt", "4", "--new", "3",
                    options=("--no-peaks", "--no-ingest"))
        self.assertFalse((self.folder / "run.llmprof" / "run.json").exists())
        self.assertEqual(self.report("run")["coverage"]["injected"], 1)
        self.assertTrue((self.folder / "run.llmprof" / "run.json").exists())

    def test_static_program_runs_unharmed_and_is_reported(self):
        source = self.write("hello.c", '#include <stdio.h>\nint main(void) { puts("static"); return 5; }\n')
        self.run_command(["cc", "-static", "-o", "hello", source])
        done = self.record("run", "./hello", status=5)
        self.assertEqual(done.stdout, "static\n")
        self.assertIn("not_injected", [loss["name"] for loss in self.report("run")["losses"]])

    @unittest.skipUnless(os.geteuid() == 0, "making a setuid program needs root")
    def test_setuid_program_runs_unharmed_and_is_reported(self):
        source = self.write("hello.c", '#include <stdio.h>\nint main(void) { puts("setuid"); return 0; }\n')
        self.run_command(["cc", "-o", "hello", source])
        os.chown(self.folder / "hello", 65534, 65534)  # to another user: only then does the loader refuse preloads
        os.chmod(self.folder / "hello", 0o4755)
        os.chmod(self.folder, 0o755)
        done = self.record("run", "./hello")
        self.assertEqual(done.stdout, "setuid\n")
        self.assertIn("not_injected", [loss["name"] for loss in self.report("run")["losses"]])

    def test_users_preload_is_kept(self):
        source = self.write("other.c", '#include <stdio.h>\n__attribute__((constructor)) static void hi(void) '
                                       '{ fputs("other preload\\n", stdout); }\n')
        self.run_command(["cc", "-shared", "-fPIC", "-o", "other.so", source])
        environment = dict(self.environment, LD_PRELOAD=str(self.folder / "other.so"))
        code = "import numpy as np; print((np.ones((8, 8)) @ np.ones((8, 8))).sum())"
        done = self.run_command([LLMPROF, "record", "-o", "run", "--no-peaks", "--", SYSTEM_PYTHON, "-c", code],
                                env=environment)
        self.assertIn("other preload", done.stdout)
        self.assertIn("512.0", done.stdout)
        self.assertEqual(self.query("run", "SELECT count(*) AS n FROM gemm")[0]["n"], 1)
        self.assertIn("existing_injection", [loss["name"] for loss in self.report("run")["losses"]])

    def test_secrets_are_redacted(self):
        self.record("run", "true", "--api-key=hunter2", "--token", "hunter2")
        for file in (self.folder / "run.llmprof").rglob("*"):
            if file.is_file():
                self.assertNotIn(b"hunter2", file.read_bytes(), str(file))

    def test_without_a_command(self):
        done = self.llmprof("record", status=None)
        self.assertIn(done.returncode, (1, 125))
        self.assertIn("hint:", done.stderr)


if __name__ == "__main__":
    unittest.main()
