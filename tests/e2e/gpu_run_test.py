#!/usr/bin/env python3
"""Reports on GPU data, without a GPU: a run recorded on an H200 of a Llama-shaped model (16 layers, 502 kernels a token) whose
decode step is a CUDA graph, without any annotation (tests/runs/README.md). What the program did and printed is known."""
import shutil
import unittest
from pathlib import Path

from harness import Case

SAMPLE = Path(__file__).resolve().parents[1] / "runs" / "h200_decode"
TOKENS, REPETITIONS, NODES = 128, 4, 502  # the first repetition is the program's warm-up
OWN_MS_PER_TOKEN = 2.0367                 # printed by the program: median of its last three repetitions
# Before the capture it ran the prompt once and three tokens kernel by kernel; the capture itself makes the calls once more.
PASSES_BY_CALLS = (1 + REPETITIONS) + 3 + 1
PRODUCTS = 16 * 4 + 1  # qkv, o, gate-up and down of each layer, fused; the logits


class GpuRun(Case):
    def setUp(self):
        super().setUp()
        shutil.copytree(SAMPLE, self.folder / "run.llmprof")

    def one(self, sql):
        (row,) = self.query("run", sql)
        return tuple(row.values()) if len(row) > 1 else next(iter(row.values()))

    def test_what_is_in_the_run(self):
        recorded, by_node = self.one("SELECT count(*), count(*) FILTER (nodes_recorded) FROM graph_launch")
        silent = self.one("SELECT count(*) FROM gap WHERE why = 'graph sampling'")
        self.assertEqual((recorded + silent, by_node), (REPETITIONS * TOKENS, 2))
        self.assertEqual(self.one("SELECT count(*) FROM kernel WHERE graph_node_id IS NOT NULL"), 2 * NODES)
        self.assertEqual(self.one("SELECT count(*) FROM gemm"), PASSES_BY_CALLS * PRODUCTS)
        self.assertEqual(self.one("SELECT count(*) FROM kernel WHERE launch_begin_ns IS NULL OR begin_ns < launch_begin_ns"), 0)

    def test_sum_of_products_is_the_hand_count(self):
        # rows x (in x out) of the fused projections; logits of one position
        layer = 2048 * (2048 + 2 * 512) + 2048 * 2048 + 2048 * 2 * 8192 + 8192 * 2048
        logits = 2048 * 128256
        by_hand = sum(2 * (rows * 16 * layer + logits) for rows in [512] * (1 + REPETITIONS) + [1] * 4)
        self.assertEqual(self.one("SELECT sum(2 * m * n * k * batch)::BIGINT FROM gemm"), by_hand)
        joined = self.one("SELECT count(DISTINCT gemm_id) FROM (SELECT gemm_id FROM kernel UNION ALL SELECT gemm_id FROM graph_node)")
        self.assertEqual(joined, PASSES_BY_CALLS * PRODUCTS)

    def test_stages_without_annotations(self):
        report = self.report("run")
        self.assertEqual(report["model"]["origin"], "inferred from GEMM shapes: llama-3.2-1b")
        stages = {stage["name"]: stage for stage in report["stages"]}
        self.assertEqual(list(stages), ["prefill", "decode"])
        self.assertEqual({stage["source"] for stage in stages.values()}, {"inferred"})
        self.assertEqual(stages["prefill"]["steps"], 1 + REPETITIONS)
        self.assertEqual(stages["decode"]["steps"], 3 + self.one("SELECT count(*) FROM graph_launch"))
        self.assertAlmostEqual(stages["decode"]["tpot_p50_ns"] / 1e6, OWN_MS_PER_TOKEN, delta=0.02 * OWN_MS_PER_TOKEN)
        self.assertEqual((stages["prefill"]["warm_up_steps"], stages["decode"]["warm_up_steps"]), (1, 3))
        decode = next(row for row in report["waterfalls"] if row["stage"] == "decode")
        self.assertAlmostEqual(decode["measured_ns"] / decode["samples"] / 1e6, OWN_MS_PER_TOKEN, delta=0.02 * OWN_MS_PER_TOKEN)
        coverage = report["coverage"]
        self.assertGreater(coverage["gpu_placed_ns"], 0.99 * coverage["gpu_ns"])

    def test_estimated_times_add_up(self):
        self.report("run")  # makes the derived tables
        first, last, nodes = self.one("SELECT min(begin_share), max(end_share), count(*) FILTER (kind = 'kernel') FROM node_share "
                                      "JOIN graph_node n ON n.id = graph_node_id")
        self.assertEqual((first, nodes), (0, NODES))
        self.assertAlmostEqual(last, 1)
        launches = self.one("SELECT count(*) FROM graph_launch WHERE NOT nodes_recorded")
        self.assertEqual(self.one("SELECT sum(executions)::BIGINT FROM work WHERE source = 'estimated'"), launches * NODES)
        # Kernels of one launch follow each other: together they are no longer than it, and no more than a tenth shorter.
        whole = self.one("SELECT sum(end_ns - begin_ns)::BIGINT FROM graph_launch WHERE NOT nodes_recorded")
        kernels = self.one("SELECT sum(time_ns)::BIGINT FROM work WHERE source = 'estimated'")
        self.assertLessEqual(kernels, whole)
        self.assertGreater(kernels, 0.85 * whole)

    def test_text(self):
        text = self.llmprof("report", "run", "--full").stdout
        self.assertIn("NVIDIA H200", text)
        self.assertIn("recorded node by node", text)
        self.assertIn("~", text)


if __name__ == "__main__":
    unittest.main()
