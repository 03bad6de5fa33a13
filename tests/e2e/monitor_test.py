"""Readings of devices, live and in a run, with a driver of our own; and that nobody waits for a driver that hangs."""
import csv
import datetime
import io
import json
import signal
import subprocess
import time
import unittest

from harness import BIN, LLMPROF, Case

DRIVER = BIN.parent / "tests" / "fake_nvml"
COLUMNS = "ts,gpu_util_pct,mem_util_pct,sm_clock_MHz,mem_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB"


class Monitor(Case):
    def setUp(self):
        super().setUp()
        self.bare = dict(self.environment)
        self.environment["LD_LIBRARY_PATH"] = str(DRIVER)

    def test_csv(self):
        lines = self.llmprof("monitor", "--csv", "--interval", "50ms", "--duration", "300ms").stdout.splitlines()
        self.assertEqual(lines[0], COLUMNS)
        self.assertEqual(len(lines), 1 + 6)
        for line in lines[1:]:
            self.assertEqual(line.split(",")[1:], ["", "", "1500", "3000", "250.000", "", "2048.0", "8192.0"])
        times = [datetime.datetime.fromisoformat(line.split(",")[0].replace("Z", "+00:00")) for line in lines[1:]]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[0].timestamp() - time.time()), 100)

    def test_json(self):
        done = self.llmprof("monitor", "--json", "--interval", "100ms", "--duration", "200ms", "--device", "0", "--costs")
        head, *lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(head["schema"], "llmprof.monitor")
        self.assertEqual(head["devices"], [{"device": 0, "kind": "gpu", "name": "Fake GPU"}])
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0]["metrics"]["power_w"], 250)
        self.assertIn("nvmlGetFieldValues: ", done.stderr)

    def test_a_pipe_gets_csv_and_a_terminal_a_table(self):
        words = [LLMPROF, "monitor", "--interval", "50ms", "--duration", "150ms"]
        rows = list(csv.DictReader(io.StringIO(self.run_command(words).stdout)))
        self.assertEqual(len(rows), 3)
        self.assertEqual(list(rows[0]), COLUMNS.split(","))
        self.assertEqual(float(rows[0]["power_W"]), 250)
        self.assertIn("0 Fake GPU", self.on_a_terminal(words))

    def test_the_file_says_the_form(self):
        for name in ("a.csv", "a.json", "a.jsonl"):
            self.llmprof("monitor", "--interval", "50ms", "--duration", "50ms", "-o", name)
        self.assertTrue((self.folder / "a.csv").read_text().startswith(COLUMNS))
        for line in (self.folder / "a.json").read_text().splitlines():
            json.loads(line)
        for words in (("-o", "a.txt"), ("--csv", "-o", "b.json"), ("--json", "-o", "b.csv")):
            self.assertIn("end it in .", self.llmprof("monitor", *words, status=1).stderr)

    def test_what_it_writes_can_be_imported(self):
        self.llmprof("monitor", "--interval", "50ms", "--duration", "150ms", "-o", "gpu.csv")
        self.llmprof("import", "gpu.csv", "-o", "back")
        rows = self.query("back", "SELECT count(*) AS n, min(value) AS low FROM telemetry WHERE metric = 'power_w'")
        self.assertEqual((rows[0]["n"], rows[0]["low"]), (3, 250))

    def test_interrupted_the_file_is_good(self):
        path = self.folder / "gpu.csv"
        monitor = subprocess.Popen([LLMPROF, "monitor", "--csv", "--interval", "20ms", "-o", str(path)],
                                   env=self.environment)
        while not path.exists() or path.read_text().count("\n") < 4:
            time.sleep(0.02)
        monitor.send_signal(signal.SIGINT)
        self.assertEqual(monitor.wait(60), 0)
        text = path.read_text()
        self.assertTrue(text.endswith("\n"))
        self.assertTrue(all(line.count(",") == 8 for line in text.splitlines()))

    def test_what_cannot_be_shown_says_why(self):
        self.assertIn("there is no GPU 7", self.llmprof("monitor", "--device", "7", status=2).stderr)
        self.assertIn("10ms is the least", self.llmprof("monitor", "--interval", "1ms", status=1).stderr)
        self.assertIn("neither a number nor cpu", self.llmprof("monitor", "--device", "x", status=1).stderr)
        self.assertIn("--csv or --json, not both", self.llmprof("monitor", "--csv", "--json", status=1).stderr)

    def test_the_cpu(self):
        done = self.llmprof("monitor", "--csv", "--device", "cpu", "--interval", "50ms", "--duration", "100ms")
        self.assertTrue(done.stdout.startswith("ts,cpu_util_pct,cpu_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB\n"))

    def test_in_a_run(self):
        self.record("run", "sleep", "1.2")
        rows = self.query("run", "SELECT metric, count(*) AS n, min(value) AS low, any_value(unit) AS unit FROM telemetry "
                                 "GROUP BY metric")
        found = {row["metric"]: row for row in rows}
        self.assertEqual((found["power_w"]["low"], found["power_w"]["unit"]), (250, "W"))
        self.assertGreaterEqual(found["power_w"]["n"], 5)
        self.assertEqual(found["sm_clock_mhz"]["low"], 1500)
        telemetry = self.report("run")["telemetry"]
        self.assertEqual(telemetry["devices"][0]["name"], "Fake GPU")
        self.assertAlmostEqual(telemetry["devices"][0]["power_w"], 250, delta=1)
        lines = self.llmprof("monitor", "--from", "run", "--csv").stdout.splitlines()
        self.assertEqual(lines[0], COLUMNS)
        self.assertEqual(lines[-1].split(",")[1:], ["", "", "1500", "3000", "250.000", "", "2048.0", "8192.0"])

    def test_not_asked_for_or_without_the_host_side(self):
        self.record("none", "sleep", "0.3", options=("--no-peaks", "--no-telemetry"))
        self.assertEqual(self.query("none", "SELECT count(*) AS n FROM telemetry"), [{"n": 0}])
        self.record("alone", "sleep", "0.7", options=("--no-peaks", "--no-host"))
        self.assertGreater(self.query("alone", "SELECT count(*) AS n FROM telemetry")[0]["n"], 5)

    def test_a_lost_gpu_is_said(self):
        self.environment["FAKE_NVML"] = "lost"
        self.record("run", "sleep", "1")
        losses = self.query("run", "SELECT name, detail FROM loss WHERE name LIKE 'telemetry%'")
        self.assertEqual(losses, [{"name": "telemetry_stopped", "detail": "GPU 0 is read no more: NVML status 15"}])

    def test_a_driver_that_hangs_delays_nobody(self):
        self.environment["FAKE_NVML"] = "hang"
        done = self.record("run", "sleep", "1", timeout=600)
        self.assertIn("telemetry_stopped", done.stderr)
        self.assertIn("the driver did not answer at the end", done.stderr)
        self.assertGreater(self.query("run", "SELECT count(*) AS n FROM telemetry")[0]["n"], 0)  # what came before

    def test_without_a_driver_nothing_happens(self):
        done = self.record("run", "sleep", "0.2", env=self.bare)
        self.assertNotIn("telemetry", done.stderr)


if __name__ == "__main__":
    unittest.main()
