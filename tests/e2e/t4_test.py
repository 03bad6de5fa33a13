"""Somebody else's profile of Llama-3.2-1B on a T4 (fixtures/), explained by the analysis of the model.

Every expected number is worked out here, from the architecture's public sizes and from the table's own text.
"""
import json
import pathlib
import unittest

from harness import Case

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
TABLE = FIXTURES / "t4_llama32_1b_key_averages.txt"
FACTS = json.loads((FIXTURES / "t4_llama32_1b.json").read_text())

# Llama-3.2-1B: 16 layers, hidden 2048, 32 heads of 64 with 8 for keys and values, MLP 8192, vocabulary 128256, tied.
LAYERS, HIDDEN, KV, MLP, VOCAB = 16, 2048, 8 * 64, 8192, 128256
LINEAR = LAYERS * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * KV + 3 * HIDDEN * MLP) + VOCAB * HIDDEN
PARAMETERS = LINEAR + (2 * LAYERS + 1) * HIDDEN  # the norms; lm_head is the embedding's table


class T4Test(Case):
    def measured(self, *more, **options):
        weights = FACTS["gpu_memory_after_load_mib"] - FACTS["gpu_memory_before_load_mib"]
        return self.llmprof("model", "llama-3.2-1b", "--device", "t4", "--measured", str(TABLE),
                            "--measured-weights", f"{weights:.2f}MiB", *more, **options)

    def test_numbers(self):
        found = json.loads(self.measured("--json").stdout)
        self.assertEqual(PARAMETERS, 1_235_814_400)
        weights = found["weights"]
        self.assertEqual(weights["parameters"], PARAMETERS)
        self.assertAlmostEqual(weights["bytes_per_parameter"], 4714.27 * 2**20 / PARAMETERS, places=9)
        self.assertAlmostEqual(weights["bytes_per_parameter"], 4, places=3)
        self.assertEqual((weights["type"], weights["type_source"]), ("float32", "inferred"))

        passes = found["passes"]
        self.assertEqual((passes["row"], passes["calls"], passes["linear_layers"]), ("aten::linear", 21357, 16 * 7 + 1))
        self.assertEqual(passes["count"], 189)

        linear = found["linear_layers_per_pass"]
        seconds = 3.846 / 189
        self.assertAlmostEqual(linear["time_ns"], seconds * 1e9, delta=1)
        self.assertEqual(linear["weight_bytes"], 4 * LINEAR)
        self.assertAlmostEqual(linear["bytes_per_s"], 4 * LINEAR / seconds, delta=1e4)
        self.assertEqual(round(linear["bytes_per_s"] / 1e9), 243)
        self.assertEqual(linear["bandwidth"]["per_second"], 320e9)
        self.assertEqual(linear["bandwidth"]["source"], "spec")
        self.assertEqual(round(linear["share_of_bandwidth"] * 100), 76)
        self.assertEqual(linear["bound"], "memory")
        self.assertAlmostEqual(linear["floor_ns"], 4 * LINEAR / 320, delta=1)

        self.assertAlmostEqual(found["busy"]["share"], 5.59 / 14.759, places=9)
        self.assertAlmostEqual(found["busy"]["share"], FACTS["self_cuda_time_total_s"] / FACTS["self_cpu_time_total_s"])
        self.assertEqual(round(found["busy"]["share"] * 100), 38)
        copies = [row for row in found["device_time"] if row["what"] == "copies"]
        self.assertEqual([row["row"] for row in copies], ["Memcpy HtoD (Pageable -> Device)"])
        self.assertEqual(round(copies[0]["share"] * 100), 22)
        self.assertEqual(found["caveats"], [])

    def test_what_follows(self):
        text = self.measured().stdout
        joined = " ".join(text.split())
        self.assertIn("= 4.000 B each: float32 (inferred)", joined)
        self.assertIn("= 189 passes (inferred)", joined)
        self.assertIn("243 GB/s, 75.9 % of 320 GB/s bandwidth (spec:", joined)
        self.assertIn("Busy 37.9 %", joined)
        self.assertIn("half the bytes (float16) would make them up to 2x faster", joined)
        self.assertIn("Better kernels for the same bytes are worth 24 % of their time at most", joined)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()), text)

    def test_diagnosis(self):
        """Document 1 as a run: its table, and what its GPU memory was before and after loading (as nvidia-smi writes it)."""
        before, after = (round(FACTS[f"gpu_memory_{when}_load_mib"]) for when in ("before", "after"))
        uuid = "GPU-00000000-1111-2222-3333-444444444444"
        readings = self.write("memory.csv", "timestamp, name, uuid, index, memory.used [MiB], memory.total [MiB]\n" + "".join(
            f"2026/01/01 10:00:{second}.000, Tesla T4, {uuid}, 0, {used} MiB, 15360 MiB\n" for second, used in (("00", before), ("10", after))))
        run = str(self.folder / "t4")
        # 3: the table does not say its time of day, so something is missing.
        self.llmprof("import", str(TABLE), readings, "--model", "llama-3.2-1b", "-o", run, status=3)
        said = json.loads(self.llmprof("report", run + ".llmprof", "--json").stdout)["diagnosis"]
        found = {finding["rule"]: finding for finding in said["findings"]}
        self.assertEqual([f["rule"] for f in said["findings"]],
                         ["wide_weights", "pageable_copies", "bandwidth_floor", "host_sync", "idle_gaps"])
        self.assertTrue(all(f["verdict"] == "found" for f in found.values()))

        def value(rule, name):
            return next(e["value"] for e in found[rule]["evidence"] if e["name"] == name)

        # Weights: 4714 MiB / 1.236 G parameters = 4 bytes; half of the linear layers' 3.846 s.
        self.assertIn("4.94 GB of float32 weights", found["wide_weights"]["title"])
        self.assertAlmostEqual(value("wide_weights", "totals.bytes_per_parameter"), (after - before) * 2**20 / PARAMETERS, places=9)
        self.assertAlmostEqual(found["wide_weights"]["gain"]["ns"], 3.846e9 / 2, delta=1)
        self.assertAlmostEqual(found["wide_weights"]["gain"]["of_ns"], 14.759e9, delta=1)
        # 76 % of the bandwidth: fewer bytes, not better kernels.
        self.assertEqual(round(value("bandwidth_floor", "totals.linear_bandwidth") * 100), 76)
        self.assertIn("only moving fewer bytes helps", found["bandwidth_floor"]["title"])
        self.assertIsNone(found["bandwidth_floor"]["gain"])
        # 38 % busy; pageable copies 22 % of the GPU's time.
        self.assertEqual(round(value("idle_gaps", "totals.busy") * 100), 38)
        self.assertEqual(round(value("pageable_copies", "totals.pageable_share") * 100), 22)
        self.assertAlmostEqual(found["pageable_copies"]["gain"]["ns"], 1.241e9, delta=1)
        # One wait per token: aten::copy_ takes the host 6.041 s, its copies the device 1.279 s; the device works 5.59 - 1.241 s
        # for everything else. Document 1 counts 190 calls of has_unfinished_sequences for its 189 passes.
        self.assertAlmostEqual(value("host_sync", "totals.waits_per_pass"), (6.041 - 1.279) / (5.59 - 1.241), places=6)
        self.assertIn("once per token", found["host_sync"]["title"])
        self.assertIn("busy 38 % of the profile", said["headline"])
        self.assertIn("float32 weights at 76 % of the bandwidth", said["headline"])
        self.assertEqual({r["outcome"] for r in said["rules"]}, {"found", "not applicable"})

    def test_bad_input(self):
        broken = self.write("broken.txt", TABLE.read_text().replace("131.999ms", "soon"))
        done = self.llmprof("model", "llama-3.2-1b", "--measured", broken, status=2)
        self.assertIn("broken.txt:5: 'soon' is not a time", done.stderr)
        self.assertIn("hint: ", done.stderr)
        empty = self.write("empty.txt", "")
        done = self.llmprof("model", "llama-3.2-1b", "--measured", empty, status=2)
        self.assertIn("has no table of torch.profiler", done.stderr)
        done = self.llmprof("model", "llama-3.2-1b", "--measured", str(TABLE), "--measured-weights", "much", status=1)
        self.assertIn("'much' is not a size", done.stderr)
        self.llmprof("model", "llama-3.2-1b", "--measured", str(self.folder / "absent.txt"), status=2)


if __name__ == "__main__":
    unittest.main()
