"""llmprof bench on a CPU: sweeps and their outputs, resuming, Ctrl-C, comparing, presets, and what must not work."""
import csv
import json
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest

from harness import LLMPROF, WORKLOAD, Case

# Small sizes, little time: what is tested is the verb, not the machine.
QUICK = ("--device", "cpu", "--limit", "0.05", "--no-peaks", "--no-check")


class Bench(Case):
    def bench(self, *words, status=0, **more):
        return self.llmprof("bench", *words, *QUICK, status=status, **more)

    def bench_json(self, *words, **more):
        return json.loads(self.bench(*words, "--json", **more).stdout)

    def refused(self, *words, status=1):
        """The message and the hint of a sweep that must not begin."""
        done = self.bench(*words, status=status)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def start(self, *words, **more):
        return subprocess.Popen([LLMPROF, "bench", *words, *QUICK], cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=more.pop("stderr", subprocess.PIPE), **more)

    def rows(self, name, sql):
        return [list(row.values()) for row in self.query(name, sql)]

    def journal(self, name):
        return self.folder / f"{name}.llmprof" / "capture" / "bench.jsonl"

    def wait_for_points(self, name, points):
        """Until so many points stand in the journal, behind its head."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            path = self.journal(name)
            if path.exists() and path.read_text().count("\n") > points:
                return
            time.sleep(0.01)
        self.fail("the benchmark did not get going")

    def killed(self, name, *words, after=2):
        running = self.start(*words, "-o", name)
        self.wait_for_points(name, after)
        running.send_signal(signal.SIGKILL)
        running.communicate(timeout=600)
        return [json.loads(line) for line in self.journal(name).read_text().splitlines(keepends=True)
                if line.endswith("\n")]


SWEEP = ("residual_add", "--batch", "1,2", "--seq", "8..32:x2", "--hidden", "64")
LONG = ("residual_add", "--batch", "1", "--seq", "1..12", "--hidden", "4096")


class Outputs(Bench):
    def test_a_sweep_in_every_form(self):
        page = self.bench_json(*SWEEP, "-o", "x", "--csv", "x.csv")
        self.assertEqual(page["schema"], "llmprof.bench")
        points = page["points"]
        sizes = [(p["axes"]["batch"], p["axes"]["seq"]) for p in points]
        self.assertEqual(sizes, [(1, 8), (1, 16), (1, 32), (2, 8), (2, 16), (2, 32)])
        for point in points:
            self.assertEqual((point["op"], point["type"], point["cache"]), ("residual_add", "float32", "cold"))
            self.assertIn(point["status"], ("measured", "failed"), point["reason"])
            values = point["axes"]["batch"] * point["axes"]["seq"] * 64
            self.assertEqual(point["read_bytes"], 2 * values * 4)  # x and the residual
            self.assertEqual(point["write_bytes"], values * 4)
            self.assertEqual(point["tensor_bytes"], 3 * values * 4)
            if point["status"] != "measured":
                continue
            times = point["time"]
            self.assertGreaterEqual(times["samples"], 1)
            self.assertLessEqual(times["min_ns"], times["low_ns"])
            self.assertLessEqual(times["low_ns"], times["median_ns"])
            self.assertLessEqual(times["median_ns"], times["high_ns"])
            self.assertLessEqual(times["p95_ns"], times["p99_ns"])
            self.assertAlmostEqual(point["bytes_per_s"], 3 * values * 4 / times["median_ns"] * 1e9, delta=1)
        with open(self.folder / "x.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(int(r["batch"]), int(r["seq"])) for r in rows], sizes)
        rows_of_run = self.rows("x", "SELECT b.id, b.median_ns, count(s.number) FROM bench b LEFT JOIN bench_sample s "
                                      "ON s.bench_id = b.id GROUP BY ALL ORDER BY b.id")
        for row, cells, point in zip(rows_of_run, rows, points):
            median, samples = row[1], row[2]
            if point["status"] == "measured":
                self.assertEqual(median, point["time"]["median_ns"])
                self.assertEqual(float(cells["median_ns"]), median)
                self.assertEqual(samples, point["time"]["samples"])
        self.llmprof("check", "x")

    def test_text_and_report_are_the_same_table_of_at_most_100_columns(self):
        text = self.bench(*SWEEP, "-o", "x").stdout
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100, line)
        report = self.llmprof("report", "x").stdout
        self.assertEqual(report.split("\n", 1)[1], text.split("\n", 1)[1])
        self.assertIn("holds no kernels", report)
        self.assertIn("hidden=64", report)  # what does not vary stands above the table
        self.assertIn("batch  seq", report)
        page = self.report("x")
        self.assertEqual(len(page["bench"]), 6)
        self.assertEqual(page["stages"], [])

    def test_the_share_of_the_roof_says_of_what(self):
        """Measures the machine's peaks first: the only test here that does."""
        done = self.llmprof("bench", "gemm", "--m", "8", "--n", "64", "--k", "32", "--device", "cpu", "--limit", "0.05",
                            "-o", "x", "--json")
        point, = json.loads(done.stdout)["points"]
        self.assertEqual(point["flops"], 2 * 8 * 64 * 32)
        self.assertEqual(point["read_bytes"], 4 * (8 * 32 + 64 * 32))
        self.assertIn(point["bound"], ("compute", "memory", "latency"))
        self.assertIn("(measured)", point["denominator"])
        self.assertLess(point["error"], 1e-5)  # checked against the reference
        if point["status"] == "measured":
            self.assertAlmostEqual(point["of_roof"], point["floor_ns"] / point["time"]["median_ns"])
        self.assertGreater(self.rows("x", "SELECT count(*) FROM peak")[0][0], 1)

    def test_the_default_name_is_bench_and_the_time(self):
        self.bench("copy", "--values", "1k")
        names = [path.name for path in self.folder.glob("*.llmprof")]
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^bench-\d{8}-\d{6}\.llmprof$")

    def test_plots(self):
        self.bench(*SWEEP, "-o", "x", "--plot", "x.svg")
        self.assertIn("<svg", (self.folder / "x.svg").read_text())
        self.assertTrue((self.folder / "x-residual_add-seq.svg").exists())
        self.bench(*SWEEP, "-o", "y", "--plot", "y.png", status=None)
        if (self.folder / "y.png").exists():  # needs librsvg
            self.assertEqual((self.folder / "y.png").read_bytes()[:4], b"\x89PNG")
        self.assertIn("residual_add: time by seq", self.bench(*SWEEP, "-o", "z", "--plot", "-").stdout)

    def test_hot_and_cold(self):
        page = self.bench_json("copy", "--values", "1k,2k", "--cache", "both", "-o", "x")
        self.assertEqual([(p["axes"]["values"], p["cache"]) for p in page["points"]],
                         [(1024, "cold"), (1024, "hot"), (2048, "cold"), (2048, "hot")])

    def test_the_list_is_what_the_flags_are(self):
        listed = json.loads(self.llmprof("bench", "--list", "--json").stdout)["operators"]
        names = [op["name"] for op in listed]
        self.assertEqual(len(names), len(set(names)))
        text = self.llmprof("bench", "--list").stdout
        manual = self.llmprof("bench", "--help").stdout
        for op in listed:
            self.assertIn(f"{op['name']}: ", text)
            self.assertTrue(op["axes"], op["name"])
            for axis in op["axes"]:
                self.assertIn(f"{axis['flag']} VALUES", manual)

    def test_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        running = self.start(*LONG, "-o", "x", "--min-samples", "2000", stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # the terminal is gone with the program
            pass
        os.close(ours)
        running.communicate(timeout=600)
        if b"points" in seen:  # shown once it takes over a second
            self.assertRegex(seen.decode(), r"residual_add .*seq=\d+ hidden=4096: \d+ of 12 points, .* left")


class Stopped(Bench):
    def test_killed_and_resumed(self):
        lines = self.killed("x", *LONG)
        done = lines[1:]
        refused = self.llmprof("report", "x", status=2).stderr
        self.assertIn("not finished", refused)
        self.assertIn("--resume", refused)
        self.llmprof("bench", "--resume", "x", "--no-peaks")
        self.assertEqual(self.rows("x", "SELECT count(*) FROM bench"), [[12]])
        self.assertFalse(self.journal("x").exists())
        for line in done:  # taken over, not measured again
            samples = self.rows("x", f"SELECT time_ns FROM bench_sample WHERE bench_id = {line['point'] + 1} ORDER BY number")
            for (measured,), noted in zip(samples, line["measured"]["samples"]):
                self.assertAlmostEqual(measured, noted * 1e9, delta=1e-3)
        again = self.llmprof("bench", "--resume", "x", "--no-peaks")
        self.assertIn("complete already", again.stderr)

    def test_a_torn_line_is_measured_again(self):
        self.killed("x", *LONG)
        with open(self.journal("x"), "a") as file:
            file.write('{"point":20,"status":"mea')
        self.llmprof("bench", "--resume", "x", "--no-peaks")
        self.assertEqual(self.rows("x", "SELECT count(*), count(DISTINCT id) FROM bench"), [[12, 12]])

    def test_another_device_or_llmprof_is_refused(self):
        self.killed("x", *LONG)
        whole = self.journal("x").read_text()
        head, rest = whole.split("\n", 1)
        for key, value, why in (("llmprof_version", "0.0.0", "llmprof 0.0.0 began it"),
                                ("fingerprint", "another-cpu", "begun on another-cpu")):
            self.journal("x").write_text(json.dumps(json.loads(head) | {key: value}) + "\n" + rest)
            self.assertIn(why, self.llmprof("bench", "--resume", "x", "--no-peaks", status=2).stderr)
        self.journal("x").write_text("nonsense\n")
        self.llmprof("bench", "--resume", "x", "--no-peaks", status=2)

    def test_ctrl_c_leaves_a_good_run(self):
        running = self.start(*LONG, "-o", "x")
        self.wait_for_points("x", 2)
        running.send_signal(signal.SIGINT)
        out, error = running.communicate(timeout=600)
        self.assertEqual(running.returncode, 130, error)
        self.assertIn("of 12 points are in x.llmprof", error)
        self.assertIn("residual_add", out)
        self.llmprof("check", "x")
        (count,), = self.rows("x", "SELECT count(*) FROM bench")
        self.assertGreaterEqual(count, 2)
        self.assertEqual(self.rows("x", "SELECT count FROM loss WHERE name = 'bench_incomplete'"), [[12 - count]])
        self.llmprof("bench", "--resume", "x", "--no-peaks")
        self.assertEqual(self.rows("x", "SELECT count(*) FROM bench"), [[12]])

    def test_resume_takes_no_other_sweep(self):
        self.assertIn("takes no operator", self.llmprof("bench", "copy", "--resume", "x", status=1).stderr)
        self.assertIn("does not take --limit", self.llmprof("bench", "--resume", "x", "--limit", "1", status=1).stderr)
        self.assertIn("no benchmark to resume", self.llmprof("bench", "--resume", "x", status=2).stderr)


class Compared(Bench):
    def compare(self, *words):
        return json.loads(self.llmprof("bench", "--compare", *words, "--json").stdout)

    def test_a_run_with_itself_is_the_same(self):
        self.bench(*SWEEP, "-o", "x")
        page = self.compare("x", "x")
        self.assertTrue(page["points"])
        self.assertEqual({p["verdict"] for p in page["points"]}, {"same"})
        self.assertEqual({p["ratio"] for p in page["points"]}, {1})
        self.assertAlmostEqual(page["geometric_mean_ratio"], 1)
        self.assertIn("the same in", self.llmprof("bench", "--compare", "x", "x").stdout)

    def test_a_doctored_run(self):
        """Journals with times of our own, those of b twice as long: slower by 2, whatever the machine does."""
        head, *lines = self.killed("a", *LONG, after=3)
        lines = [line for line in lines if line["measured"]]
        self.assertTrue(lines)
        shutil.copytree(self.folder / "a.llmprof", self.folder / "b.llmprof")
        doctored = [line["point"] + 1 for line in lines]  # seq begins with 1, points with 0
        for name, factor in (("a", 1), ("b", 2)):
            for line in lines:
                line["status"], line["reason"] = "measured", ""
                line["measured"]["samples"] = [factor * (1e-4 + i * 1e-8) for i in range(40)]
            self.journal(name).write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
        for name in "ab":
            self.llmprof("bench", "--resume", name, "--no-peaks")
        points = {p["axes"]["seq"]: p for p in self.compare("a", "b")["points"]}
        for seq in doctored:
            self.assertAlmostEqual(points[seq]["ratio"], 2, places=6)
            self.assertEqual(points[seq]["verdict"], "slower")
            self.assertLess(points[seq]["p"], 0.05)
            self.assertLess(points[seq]["low"], 2.0001)
            self.assertGreater(points[seq]["high"], 1.9999)
        back = {p["axes"]["seq"]: p for p in self.compare("b", "a")["points"]}
        self.assertEqual({back[seq]["verdict"] for seq in doctored}, {"faster"})
        lax = self.compare("a", "b", "--threshold", "150")["points"]
        self.assertEqual({p["verdict"] for p in lax if p["axes"]["seq"] in doctored}, {"same"})

    def test_points_on_one_side_are_listed(self):
        self.bench("copy", "--values", "1k,2k", "-o", "x")
        self.bench("copy", "--values", "2k,3k", "-o", "y")
        page = self.compare("x", "y")
        self.assertEqual([p["axes"]["values"] for p in page["only_a"]], [1024])
        self.assertEqual([p["axes"]["values"] for p in page["only_b"]], [3072])
        self.assertIn("Only in B", self.llmprof("bench", "--compare", "x", "y").stdout)

    def test_what_cannot_be_compared(self):
        self.assertIn("takes two runs", self.llmprof("bench", "--compare", "x", status=1).stderr)
        self.record("plain", "/bin/true")
        self.assertIn("holds no benchmark", self.llmprof("bench", "--compare", "plain", "plain", status=1).stderr)


class Shapes(Bench):
    def test_like_a_model(self):
        page = self.bench_json("linear", "rmsnorm", "layernorm", "--like", "gpt2", "--context", "16", "--batch", "2", "-o", "x")
        shapes = {p["name"]: p["axes"] for p in page["points"]}
        # GPT-2: hidden 768, MLP of 3072, vocabulary 50257.
        self.assertEqual(shapes["attn.c_attn"], {"batch": 2, "seq": 1, "in": 768, "out": 2304})
        self.assertEqual(shapes["mlp.c_fc"], {"batch": 2, "seq": 1, "in": 768, "out": 3072})
        self.assertEqual(shapes["mlp.c_proj"], {"batch": 2, "seq": 1, "in": 3072, "out": 768})
        self.assertEqual(shapes["lm_head"], {"batch": 2, "seq": 1, "in": 768, "out": 50257})
        self.assertEqual({p["op"] for p in page["points"]}, {"linear", "layernorm"})
        self.assertIn("the model says it", self.refused("--like", "gpt2", "--hidden", "64"))
        self.refused("--like", "no-such-model", status=2)

    def test_from_a_recorded_run(self):
        self.record("run", WORKLOAD, "infer", "--preset", "tiny-llama", "--batch", "1", "--prompt", "8", "--new", "4")
        page = self.bench_json("--from", "run", "--top", "2", "-o", "x")
        used = [p for p in page["points"] if p["used_calls"]]
        self.assertEqual(len(used), 2)
        calls = self.rows("run", "SELECT sum(end_ns - begin_ns)::BIGINT AS ns, count(*) FROM gemm "
                                  "GROUP BY greatest(m, n), least(m, n), k, batch ORDER BY ns DESC")
        self.assertEqual([used[0]["used_ns"], used[0]["used_calls"]], calls[0])
        rows = {p["axes"]["m"] for p in page["points"]
                if p["axes"]["n"] == used[0]["axes"]["n"] and p["axes"]["k"] == used[0]["axes"]["k"]}
        self.assertGreater(len(rows), 1)  # with its neighbours
        self.record("plain", "/bin/true")
        self.assertIn("no matrix products", self.refused("--from", "plain"))
        self.refused("--from", "nowhere", status=2)


TINY = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
        "max_position_embeddings": 128, "torch_dtype": "bfloat16"}
FOR = ("--for", "tiny", "--max-tokens", "8", "--max-batch", "2", "--max-context", "32")


class OperatorTables(Bench):
    def setUp(self):
        super().setUp()
        (self.folder / "tiny").mkdir()
        (self.folder / "tiny" / "config.json").write_text(json.dumps(TINY))
        self.environment["LLMPROF_CACHE_DIR"] = str(self.folder / "cache")

    def kept(self):
        return sorted((self.folder / "cache" / "operators").glob("*/*"))

    def table(self, folder, name):
        with open(folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def test_what_a_model_needs(self):
        done = self.bench(*FOR, "-o", "x")
        self.assertIn("Operator tables of tiny", done.stdout)
        self.assertIn("points in about", done.stderr)
        (folder,) = self.kept()
        self.assertTrue(folder.name.endswith("-tp1-float32"), folder)
        dense = self.table(folder, "tp1_dense.csv")
        self.assertEqual({row["layer"] for row in dense},
                         {"embedding", "layernorm", "final_layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj",
                          "act_fn", "down_proj"})
        self.assertEqual([row["tokens"] for row in dense if row["layer"] == "qkv_proj"], ["1", "2", "4", "8"])
        self.assertTrue(all(float(row["time_us"]) > 0 for row in dense))
        sequences = self.table(folder, "tp1_per_sequence.csv")
        self.assertEqual({(row["layer"], row["sequences"]) for row in sequences},
                         {("lm_head", "1"), ("lm_head", "2"), ("sampler", "1"), ("sampler", "2")})
        attention = {tuple(row[axis] for axis in ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode"))
                     for row in self.table(folder, "tp1_attention.csv")}
        self.assertLessEqual({("0", "0", "2", "32"), ("8", "0", "0", "0"), ("8", "16", "0", "0")}, attention)
        meta = json.loads((folder / "meta.json").read_text())
        self.assertEqual((meta["model"], meta["tensor_parallel"], meta["dtype"]), ("tiny", 1, "float32"))
        self.assertTrue(meta["hardware"]["device_name"] and meta["llmprof_version"] and meta["date"])
        # q, k and v as one product, of the model's sizes.
        self.assertEqual(self.rows("x", "SELECT DISTINCT value FROM bench_axis a JOIN bench b ON b.id = a.bench_id "
                                        "WHERE b.name = 'qkv_proj' AND a.axis = 'out'"), [[128]])
        self.assertIn("bench", self.llmprof("report", "x").stdout)

    def test_one_rank_of_two(self):
        self.bench(*FOR, "--tp", "2", "-o", "x", "--json")
        self.bench(*FOR, "-o", "y")
        self.assertEqual([folder.name.rsplit("-", 2)[1] for folder in self.kept()], ["tp1", "tp2"])
        self.assertEqual(self.rows("x", "SELECT DISTINCT value FROM bench_axis a JOIN bench b ON b.id = a.bench_id "
                                        "WHERE b.name LIKE 'qkv_proj%' AND a.axis = 'out'"), [[64]])

    def test_killed_and_resumed(self):
        self.killed("x", *FOR, after=5)
        self.assertFalse((self.folder / "cache" / "operators").exists())
        done = self.llmprof("bench", "--resume", "x", "--no-peaks")
        self.assertIn("Operator tables of tiny", done.stdout)
        self.assertEqual(len(self.kept()), 1)

    def test_refused(self):
        self.assertIn("it takes no operator", self.refused("gemm", *FOR))
        self.assertIn("the model says it", self.refused(*FOR, "--hidden", "64"))
        self.assertIn("exclude each other", self.refused(*FOR, "--like", "gpt2"))
        self.assertIn("needs --for", self.refused("copy", "--tp", "2"))
        self.assertIn("float32", self.refused(*FOR, "--dtype", "bf16"))
        self.assertIn("--max-batch", self.refused("--for", "tiny", "--max-batch", "0"))
        self.refused(*FOR, "--budget", "soon")
        self.refused(*FOR, "--tp", "0")
        self.refused("--for", "no-such-model", status=2)


class BadInput(Bench):
    def test_names_and_axes(self):
        self.assertIn("did you mean gemm?", self.refused("gem"))
        self.assertIn("no operator to measure", self.refused())
        self.assertIn("gemm has m, n, k", self.refused("gemm", "--heads", "8"))
        self.assertIn("did you mean --heads?", self.refused("attention_decode", "--haeds", "8"))
        self.assertIn("m = 0 is less than 1", self.refused("gemm", "--m", "0"))
        self.assertIn("--m: 'many'", self.refused("gemm", "--m", "many"))
        self.assertIn("never ends", self.refused("gemm", "--m", "1..8:x1"))
        self.assertIn("1000000 points, more than 10000", self.refused("gemm", "--m", "1..1000", "--n", "1..1000"))
        self.assertIn("no type 'bf17'", self.refused("gemm", "--dtype", "bf17"))
        self.assertIn("not cold, hot or both", self.refused("gemm", "--cache", "warm"))
        self.assertIn("share 2 kv_heads", self.refused("attention_decode", "--heads", "7", "--kv-heads", "2"))
        self.refused("gemm", "--m", "9000000000000000000", "--n", "9000000000000000000")
        for flag, value in (("--limit", "0"), ("--limit", "x"), ("--spread", "-1"), ("--min-samples", "0"),
                            ("--threads", "0"), ("--seed", "-1")):
            self.assertIn(flag, self.llmprof("bench", "copy", flag, value, "--device", "cpu", status=1).stderr)
        self.assertEqual(list(self.folder.glob("*.llmprof")), [])  # nothing was begun

    def test_an_axis_that_only_some_operators_have_is_fine(self):
        page = self.bench_json("copy", "residual_add", "--values", "1k", "--seq", "2", "--hidden", "64", "-o", "x")
        self.assertEqual([p["op"] for p in page["points"]], ["copy", "residual_add"])

    def test_sizes_that_do_not_fit_each_other_are_a_skipped_row(self):
        page = self.bench_json("attention_decode", "--heads", "7,8", "--kv-heads", "2", "--batch", "1", "--context", "8",
                               "--head-dim", "16", "-o", "x")
        skipped, measured = page["points"]
        self.assertEqual(skipped["status"], "skipped")
        self.assertIn("7 heads", skipped["reason"])
        self.assertIsNone(skipped["time"])
        self.assertEqual(measured["axes"]["heads"], 8)

    def test_memory(self):
        page = self.bench_json("residual_add", "--seq", "1,100000000", "--hidden", "4096", "-o", "x")
        small, large = page["points"]
        self.assertEqual(large["status"], "skipped")
        self.assertIn("does not fit", large["reason"])
        self.assertIsNone(large["time"])
        self.assertIsNone(large["bytes_per_s"])
        self.assertNotEqual(small["status"], "skipped")
        self.assertIn("does not fit", self.llmprof("report", "x").stdout)

    def test_types_a_cpu_lacks(self):
        page = self.bench_json("residual_add", "--seq", "8", "--hidden", "64", "--dtype", "bf16,fp32", "-o", "x")
        self.assertEqual([(p["type"], p["status"]) for p in page["points"]][0], ("bfloat16", "skipped"))
        self.assertEqual(page["points"][1]["type"], "float32")

    def test_no_gpu(self):
        self.environment["CUDA_VISIBLE_DEVICES"] = ""
        for device in ("cuda", "cuda:7"):
            done = self.llmprof("bench", "copy", "--device", device, "-o", "x", status=2)
            self.assertTrue(done.stderr.startswith("llmprof: "), done.stderr)
        self.assertFalse((self.folder / "x.llmprof").exists())
        self.llmprof("bench", "copy", "--device", "tpu", status=None)

    def test_an_existing_run_is_not_overwritten(self):
        self.bench("copy", "--values", "1k", "-o", "x")
        self.assertIn("exists", self.refused("copy", "--values", "1k", "-o", "x"))
        self.bench("copy", "--values", "2k", "-o", "x", "-f")
        self.assertEqual(self.rows("x", "SELECT value FROM bench_axis WHERE axis = 'values'"), [[2048]])


if __name__ == "__main__":
    unittest.main()
