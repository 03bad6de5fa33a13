#!/usr/bin/env python3
"""Memory snapshots, metrics and telemetry from import to report. Numbers are counted here, by Python, in the same files."""
import gzip
import pathlib
import pickle
import unittest

from harness import Case

IMPORTS = pathlib.Path(__file__).resolve().parents[1] / "imports"

VLLM = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{model_name="m"}} {running} {ms}
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{model_name="m"}} {kv} {ms}
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{{model_name="m"}} {tokens} {ms}
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{{model_name="m"}} 1000 {ms}
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{{model_name="m"}} 250 {ms}
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{{le="0.1",model_name="m"}} {a} {ms}
vllm:time_to_first_token_seconds_bucket{{le="0.5",model_name="m"}} {b} {ms}
vllm:time_to_first_token_seconds_bucket{{le="+Inf",model_name="m"}} {b} {ms}
vllm:time_to_first_token_seconds_sum{{model_name="m"}} {sum} {ms}
vllm:time_to_first_token_seconds_count{{model_name="m"}} {b} {ms}
"""


def snapshot_of(name):
    with gzip.open(IMPORTS / name) as file:
        return pickle.load(file)  # ours: it holds plain values only, as the importer's test shows


def peak_of(snapshot):
    """Bytes asked for and not freed yet, over the events of device 0; what was there before them included."""
    events = snapshot["device_traces"][0]
    there, before = set(), 0
    for event in events:
        if event["action"] == "alloc":
            there.add(event["addr"])
        elif event["action"] == "free_completed":
            before += 0 if event["addr"] in there else event["size"]
            there.discard(event["addr"])
    for segment in snapshot["segments"]:
        before += sum(b["requested_size"] for b in segment["blocks"]
                      if b["state"].startswith("active") and b["address"] not in there)
    now = peak = before
    for event in events:
        now += {"alloc": event["size"], "free_completed": -event["size"]}.get(event["action"], 0)
        peak = max(peak, now)
    return peak


class ReadingsTest(Case):
    def imported(self, *files, name="run", status=0):
        self.llmprof("import", *map(str, files), "-o", name, status=status)
        self.llmprof("check", name)
        return self.report(name)

    def test_a_snapshot_tells_its_peak_by_stack_and_what_lies_idle(self):
        name = "memory_snapshot_protocol4.pickle.gz"
        snapshot = snapshot_of(name)
        device = self.imported(IMPORTS / name)["allocators"]["devices"][0]
        events = device["events"]
        self.assertEqual(events["peak_bytes"], peak_of(snapshot))
        self.assertEqual(sum(stack["bytes"] for stack in events["at_peak"]), events["peak_bytes"])
        self.assertTrue(any(stack["stack"].startswith("kv_block (mem.py:12) < ") for stack in events["at_peak"]))
        allocs = sum(e["action"] == "alloc" for e in snapshot["device_traces"][0])
        frees = sum(e["action"] == "free_completed" for e in snapshot["device_traces"][0])
        self.assertEqual(events["allocations"], allocs)
        self.assertEqual(events["never_freed_allocations"], allocs - frees - 1)  # the first event is the beginning
        pools = device["pools"]
        self.assertEqual(sum(p["bytes"] for p in pools), sum(s["total_size"] for s in snapshot["segments"]))
        self.assertEqual(sum(p["free_bytes"] for p in pools),
                         sum(s["total_size"] - s["active_size"] for s in snapshot["segments"]))
        self.assertEqual(max(p["largest_free_bytes"] for p in pools),
                         max(b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "inactive"))
        self.assertEqual(events["held_peak_bytes"] // 1024, 270336)  # "GPU reserved memory" of memory_summary()
        text = self.llmprof("report", "run", "--full").stdout
        self.assertIn("Allocator of GPU 0", text)
        self.assertIn("OUT OF MEMORY: PyTorch could not get 1.36 GB", text)

    def test_a_snapshot_beside_a_trace_is_about_the_same_device(self):
        report = self.imported(IMPORTS / "kineto_llama_full.json.gz", IMPORTS / "memory_snapshot_train.pickle.gz", status=0)
        self.assertEqual(len(report["devices"]), 1)
        self.assertEqual(report["allocators"]["devices"][0]["name"], report["devices"][0]["name"])
        snapshot = snapshot_of("memory_snapshot_train.pickle.gz")
        self.assertEqual(report["allocators"]["devices"][0]["events"]["peak_bytes"], peak_of(snapshot))

    def test_metrics_of_a_server_over_two_scrapes(self):
        first = VLLM.format(ms=1794770650000, running=2, kv=0.25, tokens=1000, a=10, b=10, sum=0.5)
        last = VLLM.format(ms=1794770660000, running=4, kv=0.5, tokens=3000, a=20, b=40, sum=6.5)
        (self.folder / "scrapes.txt").write_text(first + last)
        metrics = self.imported("scrapes.txt")["metrics"]
        self.assertEqual(metrics["scrapes"], 2)
        gauges = {g["what"]: g for g in metrics["gauges"]}
        self.assertEqual((gauges["requests running"]["last"], gauges["KV cache in use"]["highest"]), (4, 0.5))
        counters = {c["what"]: c for c in metrics["counters"]}
        self.assertEqual(counters["generated tokens"]["total"], 3000)
        self.assertAlmostEqual(counters["generated tokens"]["rate_per_s"], 200)  # 2000 in 10 s
        self.assertEqual(metrics["prefix_hit_rate"], 0.25)
        first_token = metrics["latencies"][0]
        # Between the scrapes: 10 up to 0.1 s, 20 from there to 0.5 s. The 15th is 5 of these 20 along the way.
        self.assertEqual(first_token["count"], 30)
        self.assertAlmostEqual(first_token["p50"]["value_s"], 0.1 + 0.4 * 5 / 20)
        self.assertAlmostEqual(first_token["mean_s"], 6 / 30)
        self.assertIn("Server metrics", self.llmprof("report", "run", "--full").stdout)

    def test_readings_of_nvidia_smi_give_the_energy(self):
        self.environment["TZ"] = "UTC"
        telemetry = self.imported(IMPORTS / "nvidia_smi_query.csv.gz")["telemetry"]["devices"][0]
        self.assertEqual(telemetry["name"], "NVIDIA H200")
        with gzip.open(IMPORTS / "nvidia_smi_query.csv.gz", "rt") as file:
            lines = [[cell.strip() for cell in line.split(",")] for line in file][1:]
        seconds = [int(l[0][14:16]) * 60 + float(l[0][17:]) for l in lines]
        watts = [float(l[8].split()[0]) for l in lines]
        joules = sum((b - a) * (v + w) / 2 for a, b, v, w in zip(seconds, seconds[1:], watts, watts[1:]))
        self.assertAlmostEqual(telemetry["energy_j"], joules, delta=0.02 * joules)


if __name__ == "__main__":
    unittest.main()
