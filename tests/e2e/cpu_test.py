"""Any program, on the CPU: where its time went, what its threads waited for, what holds it back; attached to while it runs, and
live."""
import json
import os
import signal
import subprocess
import time
import unittest

from harness import BIN, LLMPROF, SYSTEM_PYTHON, Case

PROGRAM = str(BIN.parent / "tests" / "thread_program")
CPUS = len(os.sched_getaffinity(0))
BURN = """
import hashlib, sys, time
data = b"x" * 1_000_000

def digest():
    return hashlib.sha256(data).hexdigest()

def add_up():
    return sum(i * i for i in range(20000))

end = time.time() + float(sys.argv[1])
while time.time() < end:
    digest()
    add_up()
"""


class Cpu(Case):
    def findings(self, name):
        report = self.report(name)
        return report, {finding["rule"]: finding for finding in report["diagnosis"]["findings"]}

    def outcomes(self, report):
        return {rule["rule"]: rule["outcome"] for rule in report["diagnosis"]["rules"]}

    def test_threads_that_spin_are_found(self):
        self.record("run", PROGRAM, "spin", "2", str(4 * CPUS))
        report, found = self.findings("run")
        if report["stacks"]["why"]:
            self.skipTest(report["stacks"]["why"])
        used = sum(p["cpu_ns"] for p in report["host"]["processes"]) / (CPUS * report["coverage"]["wall_ns"])
        if used < 0.7:
            self.skipTest(f"other programs have the CPUs: {used:.0%} of them were ours")
        spinning = found["spinning_threads"]
        self.assertIn("sched_yield", spinning["title"])
        self.assertGreater(spinning["gain"]["ns"], 0)
        self.assertIn("OMP_NUM_THREADS", spinning["advice"][0])
        crowd = found["cpu_oversubscribed"]
        self.assertIn("OMP_NUM_THREADS", crowd["next"])
        names = [function["name"] for function in report["top_functions"]]
        self.assertIn("spin_for_work", names)
        self.assertIn("compute", names)
        waits = {wait["state"]: wait for wait in report["host"]["thread_states"]}
        self.assertGreater(waits["run queue"]["share"], 0.2)
        text = self.llmprof("report", "run", "--full").stdout
        self.assertIn("Thread time by state", text)
        self.assertIn("run queue", text)

    def test_threads_that_work_do_not_spin(self):
        self.record("run", PROGRAM, "work", "1", "1")
        report = self.report("run")
        outcomes = self.outcomes(report)
        self.assertNotEqual(outcomes["spinning_threads"], "found")
        self.assertNotEqual(outcomes["lock_contention"], "found")
        self.assertNotEqual(outcomes["kernel_time"], "found")

    def test_threads_that_take_turns_wait_for_locks(self):
        self.record("run", PROGRAM, "turns", "2", "5")
        report = self.report("run")
        waits = {wait["state"]: wait for wait in report["host"]["thread_states"]}
        self.assertGreater(waits["lock"]["time_ns"], 1e9)
        self.assertEqual(self.outcomes(report)["lock_contention"], "found", report["diagnosis"]["rules"])
        threads = report["host"]["threads"]
        self.assertEqual(len(threads), 5)
        self.assertEqual([thread["main"] for thread in threads].count(True), 1)

    def test_what_a_sleeping_program_waits_for(self):
        self.record("run", PROGRAM, "sleep", "1.5", "2")
        report = self.report("run")
        waits = {wait["state"]: wait for wait in report["host"]["thread_states"] if wait["name"] == PROGRAM}
        self.assertGreater(waits["sleep"]["share"], 0.7)
        self.assertGreater(waits["sleep"]["main_share"], 0.7)
        whole = sum(wait["time_ns"] for wait in waits.values())
        self.assertAlmostEqual(whole, waits["sleep"]["thread_ns"], delta=10)
        self.assertNotEqual(self.outcomes(report)["lock_contention"], "found")

    def test_programs_that_are_no_models(self):
        data = self.write("data", "\n".join(str(i * 7919 % 100003) for i in range(400000)))
        for command in (["gzip", "-k", "-9", data], ["sort", data, "-o", data + ".sorted"], ["ls", "/"]):
            name = command[0]
            self.record(name, *command)
            report = self.report(name)
            headline = report["diagnosis"]["headline"]
            self.assertIn(f"{name} ran ", headline)
            for word in ("prefill", "model", "Nothing can be said"):
                self.assertNotIn(word, headline)
        gzip = self.report("gzip")
        if not gzip["stacks"]["why"]:
            self.assertTrue(gzip["top_functions"])
            self.assertIn("Most CPU time", gzip["diagnosis"]["headline"])

    def test_python_functions_are_charged_with_native_code(self):
        script = self.write("burn.py", BURN)
        self.record("run", SYSTEM_PYTHON, script, "2")
        report = self.report("run")
        if report["stacks"]["why"]:
            self.skipTest(report["stacks"]["why"])
        functions = {function["name"]: function for function in report["python_functions"]}
        self.assertIn("digest", functions)
        digest = functions["digest"]
        self.assertTrue(digest["file"].endswith("burn.py"))
        self.assertEqual(digest["line"], 6)
        self.assertGreater(digest["native_ns"], digest["self_ns"] // 2)
        self.assertNotEqual(digest["native"], "")
        self.assertLessEqual(sum(f["self_ns"] for f in report["python_functions"]), report["stacks"]["sampled_ns"])
        self.assertIn("Python functions", self.llmprof("report", "run", "--full").stdout)


class Running(Case):
    def start(self, seconds="60"):
        script = self.write("burn.py", BURN)
        program = subprocess.Popen([SYSTEM_PYTHON, script, seconds])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        time.sleep(0.5)
        return program


class Attached(Running):
    def test_for_a_time(self):
        program = self.start()
        self.llmprof("record", "--no-peaks", "--pid", str(program.pid), "--duration", "1500ms", "-o", "run")
        self.assertIsNone(program.poll())  # it goes on
        report = self.report("run")
        self.assertIn("attached", [loss["name"] for loss in report["losses"]])
        self.assertIn(f"attached to the running process {program.pid}", report["run"]["window"])
        self.assertEqual([process["pid"] for process in report["host"]["processes"]], [program.pid])
        waits = {wait["state"]: wait for wait in report["host"]["thread_states"]}
        self.assertIn("user", waits)
        if not report["stacks"]["why"]:
            self.assertIn("digest", [function["name"] for function in report["python_functions"]])
        rows = self.query("run", "SELECT injected, end_ns, exit_status FROM process")
        self.assertEqual(rows, [{"injected": False, "end_ns": None, "exit_status": None}])

    def test_until_it_ends(self):
        program = self.start("2")
        self.llmprof("record", "--no-peaks", "--pid", str(program.pid), "-o", "run")
        self.assertEqual(program.wait(), 0)
        self.assertIn("until it ended", self.report("run")["run"]["window"])
        self.assertIsNotNone(self.query("run", "SELECT end_ns FROM process")[0]["end_ns"])

    def test_until_ctrl_c(self):
        program = self.start()
        recorder = subprocess.Popen([LLMPROF, "record", "--no-peaks", "--pid", str(program.pid), "-o", "run"],
                                    cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL)
        time.sleep(2)
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(120), 0)
        self.assertIsNone(program.poll())
        self.assertEqual(len(self.report("run")["host"]["processes"]), 1)

    def test_children_too(self):
        script = self.write("parent.py", "import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1], '60'])\n")
        child = self.write("burn.py", BURN)
        program = subprocess.Popen([SYSTEM_PYTHON, script, child], start_new_session=True)
        self.addCleanup(program.wait)
        self.addCleanup(os.killpg, program.pid, signal.SIGKILL)
        time.sleep(1)
        self.llmprof("record", "--no-peaks", "--pid", str(program.pid), "--duration", "1s", "-o", "run")
        report = self.report("run")
        self.assertEqual(len(report["host"]["processes"]), 2)
        if not report["stacks"]["why"]:
            self.assertIn("digest", [function["name"] for function in report["python_functions"]])

    def test_what_cannot_be(self):
        self.assertIn("there is no process", self.llmprof("record", "--pid", "999999999", status=125).stderr)
        self.assertIn("--pid takes no command", self.llmprof("record", "--pid", "1", "--", "true", status=1).stderr)
        self.assertIn("needs llmprof inside", self.llmprof("record", "--pid", "1", "--steps", "1:2", status=1).stderr)
        self.assertIn("a process id", self.llmprof("record", "--pid", "x", status=1).stderr)
        self.assertEqual(list(self.folder.glob("*.llmprof")), [])


class Top(Running):
    def test_json(self):
        program = self.start()
        done = self.llmprof("top", "--pid", str(program.pid), "--count", "2", "--interval", "700ms", "--json")
        head, *lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(head["schema"], "llmprof.top")
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.assertEqual([process["pid"] for process in line["processes"]], [program.pid])
        last = lines[-1]
        self.assertGreater(last["processes"][0]["cpu_share"], 0)
        self.assertAlmostEqual(sum(last["thread_states"].values()), 1, delta=0.01)
        if last["no_stacks"] is None:
            self.assertIn("digest", [function["name"] for line in lines for function in line["python_functions"]])
        self.assertIsNone(program.poll())

    def test_text(self):
        program = self.start()
        text = self.llmprof("top", "--pid", str(program.pid), "--count", "1").stdout
        self.assertIn(str(program.pid), text)
        self.assertIn("threads are in", text)
        self.assertNotIn("\033", text)  # no terminal
        text = self.llmprof("top", "--count", "1", "--top", "50").stdout
        self.assertIn("burn.py", text)

    def test_it_ends_with_the_program(self):
        program = self.start("2")
        self.llmprof("top", "--pid", str(program.pid), "--interval", "500ms", timeout=60)
        self.assertEqual(program.wait(), 0)

    def test_ctrl_c(self):
        program = self.start()
        top = subprocess.Popen([LLMPROF, "top", "--pid", str(program.pid)], env=self.environment, stdout=subprocess.PIPE)
        top.stdout.readline()
        top.send_signal(signal.SIGINT)
        top.stdout.read()
        self.assertEqual(top.wait(60), 0)
        top.stdout.close()
        self.assertIsNone(program.poll())

    def test_what_cannot_be_shown(self):
        self.assertIn("there is no process", self.llmprof("top", "--pid", "999999999", status=2).stderr)
        self.assertIn("100ms is the least", self.llmprof("top", "--interval", "1ms", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
