"""llmprof counters: the catalogue of hardware counters, with and without CUPTI; no GPU is needed."""
import json
import unittest

from harness import Case

SETS = ["light", "memory", "access", "compute", "stalls", "roofline", "links", "full"]


class CountersList(Case):
    def counters(self, *words, **how):
        return self.llmprof("counters", *words, **how).stdout

    def without_cupti(self):
        return dict(self.environment, LLMPROF_CUPTI=str(self.folder / "none.so"))

    def has_cupti(self):
        return "cannot load" not in self.llmprof("counters", "--chip", "GH100", "--raw", "dram", status=None).stderr

    def test_every_chip_with_the_passes_of_every_set(self):
        chips = json.loads(self.counters("--json"))
        if "chips" not in chips:
            self.skipTest("this machine's GPU is shown")
        self.assertEqual(chips["schema"], "llmprof.counters")
        by_name = {chip["name"]: chip for chip in chips["chips"]}
        self.assertGreaterEqual(len(by_name), 29)
        self.assertTrue(all(set(chip["passes"]) == set(SETS) for chip in by_name.values()))
        self.assertTrue(all(chip["passes"]["light"] == 1 for chip in by_name.values()))
        self.assertFalse(by_name["GV100"]["sampled"])
        self.assertRegex(self.counters(), r"(?m)^ *GH100 +Hopper +1 ")

    def test_a_chip_by_name_or_by_a_device_that_has_it(self):
        chip = json.loads(self.counters("--chip", "h200", "--json"))
        self.assertEqual(chip["chip"]["name"], "GH100")
        self.assertEqual([s["name"] for s in chip["sets"]], SETS)
        light = chip["sets"][0]["methods"]
        self.assertEqual((light["range"]["passes"], light["kernel"]["passes"], light["sampled"]["passes"]), (1, 1, 1))
        self.assertEqual(light["range"]["missing"], [])
        for name in ("dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum", "lts__t_bytes.sum"):
            self.assertIn(name, light["range"]["metrics"])
        for counter in chip["counters"]:
            self.assertEqual(counter["unit"] == "%", counter["denominator"] is not None, counter["name"])

    def test_what_a_method_offers(self):
        sampled = json.loads(self.counters("--chip", "GH100", "--method", "sampled", "--json"))
        by_name = {counter["name"]: counter["methods"] for counter in sampled["counters"]}
        self.assertEqual(list(by_name["dram_read_bytes"]), ["sampled"])
        self.assertEqual(by_name["flops_bf16_tensor"], {})
        self.assertIn("flops_bf16_tensor", self.counters("--chip", "GH100", "--method", "sampled").split("Not on")[1])

    def test_a_counter_with_its_formula_without_cupti(self):
        text = self.counters("--chip", "GB202", "dram_bytes", env=self.without_cupti())
        self.assertIn("dram__bytes_op_read.sum + dram__bytes_op_write.sum", text)
        self.assertIn("in ranges and kernels: 1 pass", text)
        hit = self.counters("--chip", "GH100", "l2_hit_pct", env=self.without_cupti())
        self.assertIn("percent of: sectors looked up in L2", hit)
        self.assertIn("in ranges and kernels: 2 passes", hit)
        both = self.counters("--chip", "GH100", "l2_hit_pct", "ipc", env=self.without_cupti())
        self.assertIn("unknown without CUPTI", both)

    def test_a_set_says_what_sampling_leaves_out(self):
        text = self.counters("--chip", "GH100", "roofline", env=self.without_cupti())
        self.assertIn("in ranges and kernels: 5 passes", text)
        self.assertRegex(text, r"sampled: 1 pass; without [^.]*l1_bytes")

    def test_mistakes_get_a_hint(self):
        for words, status, hint in ((("--chip", "GH10"), 2, "did you mean GH100?"),
                                    (("--chip", "Z9000"), 2, "Chips are GV100"),
                                    (("--chip", "GH100", "dram_read_byte"), 1, "did you mean dram_read_bytes?"),
                                    (("--chip", "GH100", "dram__bytes_read"), 1, "dram__bytes_read.sum"),
                                    (("--chip", "GH100", "--method", "replay"), 1, "range, kernel and sampled"),
                                    (("--chip", "GH100", "light", "--raw", "x"), 1, "one of them")):
            self.assertIn(hint, self.llmprof("counters", *words, status=status).stderr, words)
        refused = self.llmprof("counters", "--chip", "GH100", "--raw", "dram", status=2, env=self.without_cupti())
        self.assertIn("still lists our counters", refused.stderr)

    def test_metrics_of_the_chip(self):
        if not self.has_cupti():
            self.skipTest("no CUPTI here")
        rows = json.loads(self.counters("--chip", "GH100", "--raw", "dram__bytes_*", "--json"))["metrics"]
        self.assertEqual([row["name"] for row in rows], ["dram__bytes_read", "dram__bytes_write"])
        self.assertTrue(all(row["range"] and row["sampled"] and row["unit"] == "byte" for row in rows))
        self.assertIn("dram__bytes_op_read", self.counters("--chip", "GB202", "--raw", "bytes_op_read"))
        self.llmprof("counters", "--chip", "GH100", "--raw", "no_such_metric", status=2)

    def test_passes_of_what_is_chosen_by_hand(self):
        if not self.has_cupti():
            self.skipTest("no CUPTI here")
        asked = json.loads(self.counters("--chip", "GH100", "light", "dram__cycles_active.sum", "--json"))
        self.assertEqual(asked["metrics_of_the_chip"], ["dram__cycles_active.sum"])
        self.assertEqual(asked["together"]["range"]["passes"], 1)
        wrong = json.loads(self.counters("--chip", "GH100", "dram__bytes_op_read.sum", "--json"))
        self.assertIn("has no metric dram__bytes_op_read.sum", wrong["together"]["range"]["error"])


if __name__ == "__main__":
    unittest.main()
