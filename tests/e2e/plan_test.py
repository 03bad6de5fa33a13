"""llmprof plan: ways to serve a load, held against `predict` and arithmetic; what cannot be served."""
import json
import pathlib
import signal
import subprocess
import time
import unittest

from harness import LLMPROF, Case

BACKTEST = pathlib.Path(__file__).resolve().parents[2] / "libs/predict/backtests/vllm_0.19_rtx4090"
LOAD = ("--rate", "8", "--requests", "100")
SLO = ("--slo", "ttft=300ms,tpot=20ms")


class Plan(Case):
    def plan(self, *words, status=0):
        return json.loads(self.llmprof("plan", *words, "--json", status=status).stdout)

    # One replica is the serving that `predict` simulates.
    def test_rows_are_what_predict_says(self):
        got = self.plan("llama-3.1-8b", *SLO, *LOAD, "--device", "h100-sxm", "--tp", "1,2", "--share", "1")
        self.assertEqual(got["schema"], "llmprof.plan")
        self.assertEqual(got["searched"]["configurations"], 10)
        for row in got["configurations"]:
            self.assertEqual(row["devices"], row["tensor"] * row["replicas"])
            self.assertEqual(row["replicas"], 1)
            theirs = json.loads(self.llmprof("predict", "llama-3.1-8b", "--device", "h100-sxm", "--serving", "vllm", *LOAD, *SLO, "--tp", str(row["tensor"]), "--set",
                                             f"max_num_seqs={row['max_num_seqs']}", "--set", f"max_num_batched_tokens={row['max_num_batched_tokens']}", "--json").stdout)
            latency = {each["metric"]: each for each in theirs["latency"]}
            self.assertAlmostEqual(row["ttft_ns"], latency["ttft"]["max_ns"], delta=1)
            self.assertAlmostEqual(row["tpot_ns"], latency["tpot"]["max_ns"], delta=1)
            self.assertEqual(row["good_share"], theirs["throughput"]["good_share"])
            self.assertAlmostEqual(row["of_slo"], max(row["ttft_ns"] / 300e6, row["tpot_ns"] / 20e6))
            self.assertAlmostEqual(row["step_most"], theirs["step_error"]["most"], places=2)
            self.assertTrue(row["meets"])
            self.assertLessEqual(row["of_slo_longest"], 1)
            # 700 W, 8 requests a second of 128 tokens
            self.assertAlmostEqual(row["energy_bound_j"], 700 * row["devices"] / (8 * 128) * 1000)

    def test_no_row_of_the_front_beats_another(self):
        got = self.plan("llama-3.1-8b", *SLO, "--rate", "60", "--requests", "100", "--device", "h100-sxm,l40s", "--price", "h100-sxm=2.5", "--price", "l40s=0.8")
        front = got["front"]
        self.assertGreater(len(front), 1)
        places = [(row["cost_per_hour"], row["energy_bound_j"], row["of_slo_longest"]) for row in front]
        self.assertEqual(sorted(places), places)
        for one in places:
            self.assertFalse(any(other != one and all(a <= b for a, b in zip(other, one)) for other in places), one)
        for row in got["configurations"]:
            price = {"h100-sxm": 2.5, "l40s": 0.8}[row["short_name"]] * row["devices"]
            self.assertAlmostEqual(row["cost_per_hour"], price)
            self.assertAlmostEqual(row["cost_per_mtoken"], price / (60 * 128 * 3600) * 1e6)
            self.assertEqual(row["highest_rate"] is not None, row["front"])
            if row["front"]:
                self.assertGreaterEqual(row["highest_rate"], 60)

    # The highest rate is kept, as `predict` says; a tenth more is not.
    def test_the_highest_rate(self):
        words = ("llama-3.1-8b", "--device", "l40s", "--requests", "1200", "--slo", "ttft=1s,tpot=30ms", "--set", "max_num_seqs=64", "--set", "max_num_batched_tokens=2048")
        got = self.plan(*words, "--rate", "2", "--tp", "1", "--share", "1", status=4)
        self.assertEqual(got["front"], [])
        row, = got["may"]  # judged by the steps that predict has, too
        self.assertEqual((row["replicas"], row["rate_may_be_higher"]), (1, False))
        shares = [json.loads(self.llmprof("predict", *words, "--serving", "vllm", "--rate", str(row["highest_rate"] * factor), "--json").stdout)["throughput"]["good_share"]
                  for factor in (1, 1.1)]
        self.assertEqual(shares[0], 1)
        self.assertLess(shares[1], 1)

    # 50 requests at once end before a queue shows: a plan takes more of them; a rising rate cannot be repeated.
    def test_a_short_workload(self):
        words = ("llama-3.1-8b", "--slo", "ttft=2s", "--requests", "50", "--device", "h100-sxm", "--tp", "1")
        got = self.plan(*words, "--rate", "500")
        self.assertGreater(min(row["replicas"] for row in got["front"]), 1)
        rising = self.plan(*words, "--rate", "400..600")
        self.assertTrue(any(not row["steady"] for row in rising["front"]))
        self.assertTrue(any("50 requests arrive in less than" in note for note in rising["notes"]))
        self.assertLess(rising["front"][0]["replicas"], got["front"][0]["replicas"])

    def test_a_price_names_the_devices(self):
        got = self.plan("llama-3.1-8b", *SLO, *LOAD, "--price", "h200=3.5,l40s=0.8", "--tp", "1")
        self.assertEqual({row["device"] for row in got["devices"]}, {"NVIDIA H200 SXM", "NVIDIA L40S"})

    def test_the_server_gpus_of_the_catalogue(self):
        got = self.plan("llama-3.1-8b", "--slo", "tpot=200ms", "--rate", "1", "--requests", "10", "--tp", "1", "--set", "max_num_seqs=64", "--set", "max_num_batched_tokens=2048")
        names = {row["device"] for row in got["devices"]}
        self.assertLessEqual({"NVIDIA H100 SXM", "NVIDIA L4", "AMD Instinct MI300X"}, names)
        self.assertFalse(any("GeForce" in name or "Apple" in name for name in names))
        self.assertTrue(all(row["memory_bytes"] and row["bandwidth"] for row in got["devices"]))

    # Measured operators narrow the interval, and the row says so.
    def test_with_operator_tables(self):
        got = self.plan("llama-3.1-8b", "--slo", "ttft=1s,tpot=30ms", "--rate", "5", "--requests", "100", "--device", "rtx4090", "--tables", str(BACKTEST))
        self.assertEqual({row["tensor"] for row in got["configurations"]}, {1})
        for row in got["configurations"]:
            self.assertEqual(row["roof"], 0)
            self.assertLess(row["step_most"], 1.2)

    def test_a_trace_and_waiting_clients(self):
        trace = self.write("trace.jsonl", "".join(f'{{"timestamp": {100 * i}, "input_length": 512, "output_length": 32, "hash_ids": []}}\n' for i in range(60)))
        words = ("llama-3.1-8b", "--device", "l40s", "--tp", "1")
        got = self.plan(*words, "--slo", "ttft=2s,tpot=60ms", "--workload", trace)
        self.assertAlmostEqual(got["rate"], 10)
        self.assertTrue(got["front"])
        self.assertTrue(any("least load" in note for note in got["notes"]))
        waiting = self.plan(*words, "--slo", "tpot=100ms", "--concurrency", "8", "--requests", "40")
        self.assertIsNone(waiting["rate"])
        self.assertTrue(waiting["front"])

    def test_what_cannot_be_served_says_what_stands_in_the_way(self):
        small = ("--rate", "1", "--requests", "20", "--device", "h100-sxm")
        floor = json.loads(self.llmprof("predict", "llama-3.1-8b", "--device", "h100-sxm", "--prompt", "512", "--context", str(512 + 64), "--steps", "1", "--tp", "8", "--json").stdout)
        got = self.plan("llama-3.1-8b", "--slo", "tpot=100us", *small, status=4)
        self.assertEqual(got["front"] + got["may"] + got["configurations"], [])
        self.assertEqual(got["searched"]["simulations"], 0)
        self.assertEqual(len(got["obstacles"]), 1)
        self.assertIn("TPOT of 100 us cannot be", got["obstacles"][0])
        least = min(row["tpot_alone_ns"] for row in got["left_out"])
        self.assertAlmostEqual(least / floor["tpot_ns"], 1, delta=0.02)
        got = self.plan("llama-3.1-405b", "--slo", "tpot=1s", "--rate", "1", "--device", "l4", status=4)
        self.assertIn("fits none of the devices", got["obstacles"][0])
        text = self.llmprof("plan", "llama-3.1-405b", "--slo", "tpot=1s", "--rate", "1", "--device", "l4", "--full", status=4).stdout
        self.assertIn("does not fit", text)
        got = self.plan("llama-3.1-8b", "--slo", "ttft=1s,tpot=50ms", "--rate", "500", "--requests", "200", "--device", "l4", "--max-devices", "2", status=4)
        self.assertIn("With at most 2 devices", got["obstacles"][0])
        self.assertGreater(got["searched"]["too_many_devices"], 0)

    def test_wrong_words(self):
        for words, expected in (((), "a plan needs limits"), (("--slo", "tpot=50ms", "--device", "h100"), "fits several devices"), (("--slo", "tpot=50ms", "--price", "l4"), "--price"),
                                (("--slo", "tpot=50ms", "--price", "l4=-1"), "--price"), (("--slo", "tpot=50ms", "--tp", "3"), "nothing to try"), (("--slo", "tpot=50ms", "--tp", "x"), "--tp"),
                                (("--slo", "tpot=50ms", "--dtype", "float9"), "float9"), (("--slo", "tpot=50ms", "--share", "2"), "--share"), (("--slo", "speed=1ms"), "--slo"),
                                (("--slo", "tpot=50ms", "--tables", "x"), "--tables"), (("--slo", "tpot=50ms", "--set", "num_gpu_blocks=7"), "num_gpu_blocks"),
                                (("--slo", "tpot=50ms", "--max-devices", "0"), "--max-devices")):
            with self.subTest(words=words):
                done = self.llmprof("plan", "llama-3.1-8b", "--rate", "1", *words, status=None)
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(expected, done.stderr)

    def test_ctrl_c_ends_it(self):
        process = subprocess.Popen([LLMPROF, "plan", "llama-3.1-8b", *SLO, "--rate", "200", "--requests", "3000"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out), (130, ""), error)


if __name__ == "__main__":
    unittest.main()
