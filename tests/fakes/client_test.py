#!/usr/bin/env python3
"""The fakes against a client that does it right (perf/minimal_collector.cpp): what the books say was recorded is what the
client got, whatever the script does in between."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import books

FAKES = pathlib.Path(os.environ.get("LLMPROF_FAKES", pathlib.Path(__file__).resolve().parents[2] / "build/tests/fakes"))
ALL_KINDS = "51,10,1,2"


class Client(unittest.TestCase):
    def run_victim(self, *words, script="", kinds=ALL_KINDS, status=0):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            environment = dict(os.environ, FAULT_LEDGER=str(folder), FAKE_CUPTI=script, FAKE_CUDA=str(FAKES / "libcuda.so.1"),
                               CUDA_INJECTION64_PATH=str(FAKES / "libminimal_collector.so"), MINIMAL_KINDS=kinds,
                               MINIMAL_CUPTI=str(FAKES / "libcupti.so.13"), MINIMAL_OUT=str(folder / "out.json"))
            done = subprocess.run([str(FAKES / "gpu_victim"), *map(str, words)], env=environment, timeout=60,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            found = books.of_folder(folder)
            self.assertEqual(len(found), 1)
            out = folder / "out.json"
            return next(iter(found.values())), json.loads(out.read_text()) if out.exists() else None

    def test_everything_arrives(self):
        made, got = self.run_victim("run", "a", 800)
        # 800 kernels by turns of 1500, 700 and 2100 ns; in every 8 of them two copies and a memset
        self.assertEqual((made.kernels, made.copies, made.memsets), (800, 200, 100))
        self.assertEqual(made.kernel_ns, 267 * 1500 + 267 * 700 + 266 * 2100)
        self.assertEqual((got["kernels"], got["kernel_ns"], got["copies"]), (800, made.kernel_ns, 300))
        self.assertEqual((got["dropped"], got["zero"], got["others"]), (0, 0, 0))
        self.assertEqual(made.delivered_records, 1100)
        self.assertEqual(made.forbidden(), {})

    def test_threads_have_buffers_of_their_own(self):
        made, got = self.run_victim("threads", "a", 4, 80)
        self.assertEqual(got["kernels"], 320)
        self.assertEqual(made.buffers_asked, 4)

    def test_graphs(self):
        """One record a launch where graphs are traced, else one a node: 50 kernels, a copy and a memset."""
        made, got = self.run_victim("graph", "a", 50, 10)
        self.assertEqual((got["graphs"], got["kernels"]), (10, 0))
        made, got = self.run_victim("graph", "a", 50, 10, kinds="10,1,2")
        self.assertEqual((got["graphs"], got["kernels"], got["copies"]), (0, 500, 20))
        self.assertEqual((made.nodes_created, made.nodes_cloned, made.node_kernels), (52, 52, 500))

    def test_graph_kinds(self):
        """A nested graph of 5 kernels, and a loop that runs it 3 times: 20 kernels a launch, 20 launches, and as many of
        a clone; 20 launches of the inner one, 20 after an update, one more."""
        made, got = self.run_victim("graph_kinds", "a", 20, kinds="10,1,2")
        self.assertEqual(got["kernels"], 2 * 20 * 20 + 41 * 5)
        self.assertEqual(made.node_kernels, got["kernels"])

    def test_faults_are_in_the_books(self):
        for script, fault in (("drop=10", "dropped_records"), ("zero=10", "zero_records"),
                              ("reversed=10", "bad_time_records"), ("shifted=10", "bad_time_records"),
                              ("early=10", "bad_time_records"), ("unheard=10", "unknown_records")):
            with self.subTest(script):
                made, got = self.run_victim("run", "a", 80, script=script)
                self.assertEqual(made[fault], 11)  # of 80 kernels and 30 copies and memsets
                self.assertEqual(got["others"], made.unknown_records)
                self.assertEqual(got["dropped"], made.dropped_records)
                self.assertEqual(got["kernels"] + got["copies"] + got["dropped"], 110)

    def test_sizes_of_versions(self):
        for version in (18, 26, 27, 130001, 130300, 999999):
            with self.subTest(version):
                made, got = self.run_victim("run", "a", 80, script=f"version={version} grown=40 shuffle=1")
                self.assertEqual((got["kernels"], got["kernel_ns"]), (80, made.kernel_ns))

    def test_failing_calls(self):
        made, got = self.run_victim("run", "a", 80, script="fail=cuptiActivityEnable@2:35")
        self.assertEqual((made.failed_calls, got["kernels"], got["copies"]), (1, 0, 30))
        self.assertEqual(made.unrecorded, 80)

    def test_thief(self):
        """Another client takes the buffers after 50 records, and 20 records later switches everything off."""
        made, got = self.run_victim("run", "a", 80, script="thief=50:20")
        self.assertEqual(got["kernels"] + got["copies"], 50)
        self.assertEqual(made.unrecorded, 110 - 50 - 20)


if __name__ == "__main__":
    unittest.main()
