#!/usr/bin/env python3
"""Logs of cuBLAS beside the trace of the same run, and CSV of Nsight Compute to a roofline, through the command line.
Every expected number is worked out here from the files, by Python's json and csv."""
import csv
import gzip
import io
import json
import pathlib
import unittest

from harness import Case

IMPORTS = pathlib.Path(__file__).resolve().parents[1] / "imports"
TRACE, CUBLAS, LT = (str(IMPORTS / name) for name in
                     ("kineto_cublas_products.json.gz", "cublas_gemmex.log.gz", "cublaslt_inner.log.gz"))
NCU = str(IMPORTS / "ncu_raw_full.csv.gz")


def products_of_trace():
    """FLOPs of the aten::mm of the trace, and the time of their kernels in ns."""
    with gzip.open(TRACE, "rt") as file:
        events = json.load(file)["traceEvents"]
    flops = 0
    for event in events:
        if event.get("cat") == "cpu_op" and event["name"] == "aten::mm":
            (m, k), (_, n) = event["args"]["Input Dims"][:2]
            flops += 2 * m * n * k
    return flops, sum(event["dur"] for event in events if event.get("cat") == "kernel") * 1000


def number(text):
    return float(text.replace(",", ""))


class ImportLogs(Case):
    def test_every_product_of_the_log_has_its_kernels(self):
        self.llmprof("import", TRACE, CUBLAS, LT, "-o", "run", status=None)
        flops, ns = products_of_trace()
        [row] = self.query("run", "SELECT count(*) AS n, sum(2.0 * m * n * k * batch) AS flops, count(kernel_id) AS joined, "
                                  "min(library) AS a, max(library) AS b, count(algorithm) AS algorithms FROM gemm")
        self.assertEqual((row["n"], row["joined"], row["a"], row["b"]), (54, 54, "cublas", "cublas"))
        self.assertEqual(row["flops"], flops)
        self.assertEqual(row["algorithms"], 54)  # from the log of cuBLASLt, which is otherwise left out
        [row] = self.query("run", "SELECT count(*) AS n, count(gemm_id) AS joined, sum(end_ns - begin_ns) AS ns FROM kernel")
        self.assertEqual((row["n"], row["joined"]), (66, 66))
        self.assertAlmostEqual(row["ns"], ns, delta=66)
        self.assertEqual(self.query("run", "SELECT count(*) AS n FROM loss WHERE name = 'calls_not_joined'"), [{"n": 0}])

    def test_a_log_alone_has_products_without_times(self):
        self.llmprof("import", LT, "-o", "run")
        [row] = self.query("run", "SELECT count(*) AS n, sum(end_ns - begin_ns) AS ns, max(function) AS f FROM gemm")
        self.assertEqual((row["n"], row["ns"], row["f"]), (54, 0, "cublasLtTSTMatmul"))

    def test_roofline_of_nsight_compute(self):
        self.llmprof("import", NCU, "-o", "run")
        self.llmprof("export", "run", "-t", "roofline-csv", "-o", "roof.csv")
        with open(self.folder / "roof.csv", newline="") as file:
            points = list(csv.DictReader(file))
        with gzip.open(NCU, "rt") as file:
            text = file.read()
        header, _, *rows = csv.reader(io.StringIO(text[text.index('"ID"'):]))
        self.assertEqual(len(points), len(rows))
        for point, values in zip(points, rows):
            row = dict(zip(header, values))
            time = number(row["gpu__time_duration.sum"])
            read, written = number(row["dram__bytes_read.sum"]), number(row["dram__bytes_write.sum"])
            self.assertEqual(point["name"], row["Kernel Name"])
            self.assertEqual(float(point["time_ns"]), time)
            self.assertEqual(float(point["dram_bytes"]), read + written)
            self.assertEqual(float(point["tensor_flops"]), number(row["sm__ops_path_tensor_src_bf16_dst_fp32.sum"]))
            # ncu's own rate of the memory, and its own peak at the clock of the profile
            self.assertAlmostEqual(float(point["bytes_per_s"]) / max(1, number(row["dram__bytes.sum.per_second"])), 1, 6)
            peak = number(row["dram__bytes.sum.peak_sustained"]) * number(row["dram__cycles_elapsed.avg.per_second"])
            self.assertAlmostEqual(float(point["peak_bytes_per_s"]) / peak, 1, 6)
            self.assertEqual((point["scope"], point["method"], point["stage"]), ("kernel", "ncu", ""))
            self.assertEqual(float(point["l2_bytes"]), 32 * number(row["lts__t_sectors.sum"]))  # a sector is 32 bytes
            self.assertEqual(point["l1_bytes"], "")  # not in this set
            if point["roof_flops_per_s"]:
                roof = min(float(point["peak_flops_per_s"]), float(point["flops_per_byte"]) * peak)
                self.assertAlmostEqual(float(point["roof_flops_per_s"]) / roof, 1, 6)
            if point["bound"] == "memory":
                self.assertAlmostEqual(float(point["share_of_roof"]), (read + written) / peak / (time * 1e-9), 6)
        product = next(p for p in points if p["name"].startswith("nvjet"))
        self.assertEqual((product["type"], product["bound"], product["peak_flops_source"]), ("bfloat16", "memory", "ncu"))

    def test_a_printed_table_is_a_run_of_totals(self):
        self.llmprof("import", str(IMPORTS / "table_t4_llama32_1b.txt.gz"), "-o", "run", status=None)
        [row] = self.query("run", "SELECT calls, self_device_ns FROM summary WHERE name = 'aten::mm'")
        self.assertEqual((row["calls"], row["self_device_ns"]), (21357, 3.846e9))


if __name__ == "__main__":
    unittest.main()
