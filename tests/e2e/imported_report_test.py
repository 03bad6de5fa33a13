"""Reports of runs that real files of other tools made, held to what Python's json, csv and sqlite3 say of the same files."""
import collections
import csv
import gzip
import io
import json
import pathlib
import sqlite3
import unittest

import harness

IMPORTS = pathlib.Path(__file__).resolve().parents[1] / "imports"


def trace_events(name):
    return json.loads(gzip.decompress((IMPORTS / name).read_bytes()))["traceEvents"]


def ns(event):
    return round(event["dur"] * 1000)


class ImportedReport(harness.Case):
    def imported(self, *names, options=()):
        """The JSON report and the text of it; the run is called run."""
        self.llmprof("import", *(str(IMPORTS / name) for name in names), "-o", "run", "-q", *options, status=None)
        self.assertIn(self.llmprof("check", "run", status=None).returncode, (0,))
        return self.report("run"), self.llmprof("report", "run", "--full").stdout

    def test_kineto_inference(self):
        report, text = self.imported("kineto_llama_full.json.gz")
        events = trace_events("kineto_llama_full.json.gz")
        kernels = [e for e in events if e.get("cat") == "kernel"]
        self.assertIn("Imported from kineto_llama_full.json.gz (kineto, ", text)
        self.assertNotIn("instrumented", text)
        self.assertEqual(report["coverage"]["kernels"], len(kernels))
        self.assertAlmostEqual(report["coverage"]["gpu_ns"], sum(map(ns, kernels)), delta=len(kernels))
        self.assertEqual({s["name"]: s["steps"] for s in report["stages"]}, {"prefill": 1, "decode": 3})
        self.assertIsNotNone(next(s for s in report["stages"] if s["name"] == "prefill")["ttft_ns"])
        self.assertIsNotNone(next(s for s in report["stages"] if s["name"] == "decode")["tpot_p50_ns"])
        # Operators: calls by name, and the kernels that carry the operator's External id.
        ops = collections.Counter(e["name"] for e in events if e.get("cat") == "cpu_op")
        found = {op["name"]: op for op in report["framework_operators"]}
        self.assertEqual({name: op["calls"] for name, op in found.items()}, dict(ops))
        by_id = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
        device = collections.Counter()
        for event in events:
            if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and event["args"].get("External id") in by_id:
                device[by_id[event["args"]["External id"]]] += ns(event)
        for name in ("aten::mm", "aten::addmm", "aten::mul"):
            if name in device:
                self.assertAlmostEqual(found[name]["self_device_ns"], device[name], delta=ops[name] + 1, msg=name)
        # Attention: 4 layers, one prefill of 2 x 128 tokens (causal) and 3 decode steps.
        self.assertEqual(sum(a["calls"] for a in report["attention"]), 16)
        prefill = next(a for a in report["attention"] if a["queries"] == 128)
        pairs = 128 * 129 // 2
        self.assertEqual(prefill["flops"], prefill["calls"] * 2 * prefill["batch"] * prefill["heads"] * 2 * prefill["head_size"] * pairs)
        self.assertGreater(prefill["time_ns"], 0)
        self.assertEqual(report["devices"][0]["name"], "NVIDIA H200")
        self.assertIsNotNone(report["devices"][0]["peak_bandwidth"])

    def test_a_model_is_matched_by_shape_though_classes_name_the_modules(self):
        # The decoder of the fixture: 4 layers, q and o 1024 x 1024, k and v 1024 x 256, mlp 2816, 32000 words.
        config = self.write("config.json", json.dumps({
            "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 2816,
            "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
            "tie_word_embeddings": False}))
        report, text = self.imported("kineto_llama_full.json.gz", options=("--model", config))
        decode = {op["name"]: op for op in report["operators"] if op["stage"] == "decode"}
        # 3 steps of batch 2: 2 * 2 * 1024 * 2816 FLOPs in each of 4 layers.
        for name in ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"):
            self.assertEqual(decode[name]["flops"], 3 * 4 * 2 * 2 * 1024 * 2816, name)
            self.assertEqual(decode[name]["flops_shapes"], 3 * 4 * 2 * 2 * 1024 * 2816, name)
        self.assertEqual(decode["self_attn.k_proj"]["calls"], 12)
        self.assertNotIn("LlamaMLP", text[text.index("Operators of decode"):text.index("Kernels by GPU time")])

    def test_kineto_lines_of_source(self):
        self.imported("kineto_llama_full.json.gz")
        report = json.loads(self.llmprof("report", "run", "--by", "line", "--json").stdout)
        known = sum(row["time_ns"] for row in report["gpu_by_source"]["rows"] if row["file"])
        self.assertGreater(known, 0.9 * report["coverage"]["gpu_ns"])

    def test_kineto_training(self):
        report, _ = self.imported("kineto_llama_train.json.gz")
        events = trace_events("kineto_llama_train.json.gz")
        stages = {s["name"]: s for s in report["stages"]}
        self.assertEqual(set(stages), {"forward", "backward", "optimizer"})
        # Backward runs on a thread of autograd: its kernels are those whose launch lies in the range on the main thread.
        ranges = {e["name"]: (e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") == "user_annotation"}
        launches = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
        for stage in ("forward", "backward"):
            begin, end = ranges[stage]
            expected = sum(ns(e) for e in events if e.get("cat") == "kernel" and begin <= launches[e["args"]["correlation"]]["ts"] < end)
            self.assertAlmostEqual(stages[stage]["kernel_ns"], expected, delta=0.001 * expected, msg=stage)

    def test_two_ranks(self):
        report, text = self.imported("kineto_nccl_rank0.json.gz", "kineto_nccl_rank1.json.gz")
        kernels = [e for rank in (0, 1) for e in trace_events(f"kineto_nccl_rank{rank}.json.gz") if e.get("cat") == "kernel"]
        self.assertEqual(report["coverage"]["kernels"], len(kernels))
        self.assertEqual(report["coverage"]["processes"], 2)
        self.assertEqual(len(report["sources"]), 2)
        self.assertIn("kineto_nccl_rank1.json.gz", text)

    def test_graph_replays(self):
        report, _ = self.imported("kineto_graph.json.gz")
        kernels = [e for e in trace_events("kineto_graph.json.gz") if e.get("cat") == "kernel"]
        self.assertEqual(report["coverage"]["kernels"], len(kernels))
        self.assertAlmostEqual(report["coverage"]["gpu_ns"], sum(map(ns, kernels)), delta=len(kernels))
        self.assertEqual({s["name"]: s["steps"] for s in report["stages"]}["decode"], 4)

    def test_nsys(self):
        report, text = self.imported("nsys_llama.sqlite.gz")
        path = self.folder / "nsys.sqlite"
        path.write_bytes(gzip.decompress((IMPORTS / "nsys_llama.sqlite.gz").read_bytes()))
        with sqlite3.connect(path) as database:
            count, total = database.execute('SELECT count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchone()
        self.assertEqual(report["coverage"]["kernels"], count)
        self.assertEqual(report["coverage"]["gpu_ns"], total)
        self.assertIn("decode", {s["name"] for s in report["stages"]})
        self.assertIn("(nsys, ", text)

    def test_ncu(self):
        report, text = self.imported("ncu_raw_full.csv.gz")
        lines = [line for line in gzip.decompress((IMPORTS / "ncu_raw_full.csv.gz").read_bytes()).decode().splitlines() if line.startswith('"')]
        rows = list(csv.DictReader(io.StringIO("\n".join(lines))))[1:]  # the first row holds units

        def value(row, metric):
            return float(row[metric].replace(",", ""))

        self.assertIn("There is no timeline", text)
        self.assertEqual(sum(k["launches"] for k in report["counters"]), len(rows))
        self.assertAlmostEqual(sum(k["dram_bytes"] for k in report["counters"]),
                               sum(value(r, "dram__bytes_read.sum") + value(r, "dram__bytes_write.sum") for r in rows), delta=len(rows) * 1000)
        longest = max(report["counters"], key=lambda k: k["time_ns"])
        self.assertGreater(longest["occupancy"], 0)
        self.assertTrue(longest["stalled_warps"])
        # How loads use the memory: of kernels with one launch, as its row says.
        loads = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
        ratios = {round(value(r, loads.format("sectors")) / value(r, loads.format("requests")), 6) for r in rows if value(r, loads.format("requests"))}
        conflicts = {round(value(r, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum") / value(r, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"), 9)
                     for r in rows if value(r, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")}
        once = [k for k in report["counters"] if k["launches"] == 1]
        self.assertTrue(any(k["sectors_per_load"] for k in once))
        for kernel in once:
            self.assertIn(round(kernel["sectors_per_load"] or min(ratios), 6), ratios, kernel["name"])
            self.assertIn(round(kernel["bank_conflicts"] or min(conflicts), 9), conflicts, kernel["name"])
        self.assertEqual({k["local_bytes"] for k in report["counters"]}, {0})
        self.assertIn("sectors/load", text)

    def test_totals_with_a_model(self):
        """Document 1's table: passes, device time and what follows, as `llmprof model --measured` says it."""
        report, text = self.imported("table_t4_llama32_1b.txt.gz", options=("--model", "llama-3.2-1b"))
        self.assertEqual(report["stages"], [])
        self.assertIn("there is no timeline", text)
        self.assertEqual(report["measured"]["passes"]["count"], 189)  # 21357 linears / 113 a pass
        self.assertAlmostEqual(report["measured"]["busy"]["share"], 5.59 / 14.759, places=9)
        self.assertIn("189 passes", text)

    def test_totals_without_a_model(self):
        report, text = self.imported("proton_python.hatchet.gz")
        self.assertEqual(report["stages"], [])
        self.assertTrue(report["totals"])
        self.assertNotIn("measured", report)
        self.assertIn("Totals from the imported profile", text)


if __name__ == "__main__":
    unittest.main()
