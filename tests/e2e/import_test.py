#!/usr/bin/env python3
"""llmprof import from end to end on real files (tests/imports). Numbers are counted here, by Python, in the same files."""
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from harness import LLMPROF, Case

IMPORTS = pathlib.Path(__file__).resolve().parents[1] / "imports"


def events_of(name):
    with gzip.open(IMPORTS / name) as file:
        return json.load(file)["traceEvents"]


def count(events, category):
    return sum(1 for e in events if e.get("cat") == category and e.get("ph") == "X")


class ImportTest(Case):
    def imported(self, *words, status=0):
        done = self.llmprof("import", *words, status=None)
        self.assertIn(done.returncode, (0, 3) if status == "any" else (status,), done.stderr)
        return done

    def one(self, name, sql):
        return list(self.query(name, sql)[0].values())

    def check(self, name):
        self.assertEqual(json.loads(self.llmprof("check", name, "--json").stdout)["findings"], [])

    def test_a_trace_becomes_a_run_that_reports(self):
        name = "kineto_llama_full.json.gz"
        done = self.imported(str(IMPORTS / name), status="any")
        events = events_of(name)
        self.assertIn("kineto_llama_full.llmprof\nllmprof report kineto_llama_full.llmprof", done.stderr)
        self.assertEqual(self.one("kineto_llama_full", "SELECT count(*) AS n FROM kernel"), [count(events, "kernel")])
        busy = sum(e["dur"] for e in events if e.get("cat") == "kernel")
        self.assertAlmostEqual(self.one("kineto_llama_full", "SELECT sum(end_ns - begin_ns) / 1e3 AS us FROM kernel")[0],
                               busy, delta=busy * 1e-4)
        self.check("kineto_llama_full")
        self.assertIn("H200", self.llmprof("report", "kineto_llama_full", "--full").stdout)
        self.assertGreater(self.one("kineto_llama_full", "SELECT count(*) AS n FROM peak")[0], 0)
        self.assertEqual(self.one("kineto_llama_full", "SELECT file AS f, format AS g FROM source"), [name, "kineto"])

    def test_plain_and_packed_content_are_the_same(self):
        name = "kineto_graph.json.gz"
        plain = self.folder / "plain.json"
        plain.write_bytes(gzip.decompress((IMPORTS / name).read_bytes()))
        shutil.copy(IMPORTS / name, self.folder / "packed.json.gz")
        files = ["plain.json", "packed.json.gz"]
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", "plain.json", "-o", "also.json.zst"], cwd=self.folder, check=True)
            files.append("also.json.zst")
        sums = []
        for file in files:
            self.imported(file, status="any")
            sums.append(self.one(file.split(".")[0], "SELECT count(*) AS n, sum(begin_ns) AS a, sum(end_ns) AS b FROM op"))
        self.assertEqual(sums.count(sums[0]), len(files))

    def test_ranks_of_a_job_become_one_run(self):
        names = ["kineto_nccl_rank0.json.gz", "kineto_nccl_rank1.json.gz"]
        self.imported(*(str(IMPORTS / n) for n in names), "-o", "job", status="any")
        kernels = sum(count(events_of(n), "kernel") for n in names)
        self.assertEqual(self.one("job", "SELECT count(*) AS n, count(DISTINCT id) AS d FROM kernel"), [kernels, kernels])
        ranks = self.query("job", "SELECT DISTINCT rank FROM process WHERE rank IS NOT NULL ORDER BY rank")
        self.assertEqual([row["rank"] for row in ranks], [0, 1])
        # On one clock: the ranks work together, so their kernels overlap.
        spans = self.query("job", "SELECT p.rank AS r, min(k.begin_ns) AS a, max(k.end_ns) AS b FROM kernel k JOIN thread t "
                                  "ON k.thread_id = t.id JOIN process p ON t.process_id = p.id GROUP BY 1 ORDER BY 1")
        self.assertLess(max(row["a"] for row in spans), min(row["b"] for row in spans))
        self.check("job")

    def test_two_traces_of_a_rank_tell_of_one_gpu(self):
        again = self.folder / "again.json.gz"
        shutil.copy(IMPORTS / "kineto_nccl_rank1.json.gz", again)
        names = [str(IMPORTS / "kineto_nccl_rank0.json.gz"), str(IMPORTS / "kineto_nccl_rank1.json.gz"), str(again)]
        self.imported(*names, "-o", "job", status="any")
        self.assertEqual(self.one("job", "SELECT count(*) AS n FROM device"), [2])
        job = self.report("job")["job"]
        self.assertEqual([rank["rank"] for rank in job["ranks"]], [0, 1])
        self.check("job")

    def test_a_trace_and_the_log_of_its_products(self):
        """The trace is made of what Python took from the real one: kernels without any shape."""
        with gzip.open(IMPORTS / "cublas_kernels.tsv.gz", "rt") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and line[0].isdigit()]
        events = []
        for i, (launch, duration, external, m, n, k, name) in enumerate(rows):
            launch, duration, external = int(launch) / 1e3, int(duration) / 1e3, int(external)
            if external:
                events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1846, "tid": 1846, "ts": launch - 1,
                               "dur": 5, "args": {"External id": i + 1, "Input Dims": [[int(m), int(k)], [int(k), int(n)]],
                                                  "Input type": ["c10::BFloat16", "c10::BFloat16"]}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1846, "tid": 1846,
                           "ts": launch, "dur": 2, "args": {"External id": i + 1, "correlation": i + 1}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": launch + 20, "dur": duration,
                           "args": {"External id": i + 1, "correlation": i + 1, "device": 0, "stream": 7}})
        self.write("trace.json", json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]}))
        done = self.imported("trace.json", str(IMPORTS / "cublas_gemmex.log.gz"), "-o", "joined", "--json", status="any")
        told = json.loads(done.stdout)
        self.assertEqual(told["coverage"]["calls_joined"], 54, told)
        self.assertEqual([f["format"] for f in told["files"]], ["kineto", "cublas"])
        rows = self.query("joined", "SELECT count(*) AS n, count(DISTINCT k.id) AS kernels FROM gemm g JOIN kernel k ON "
                                    "g.kernel_id = k.id AND k.gemm_id = g.id WHERE g.function = 'cublasGemmEx'")
        self.assertEqual(rows[0], {"n": 54, "kernels": 54})
        self.assertEqual(self.one("joined", "SELECT count(*) AS n FROM process WHERE pid = 1846"), [1])
        self.check("joined")

    def test_readings_beside_a_trace(self):
        self.imported(str(IMPORTS / "kineto_llama_train.json.gz"), str(IMPORTS / "nvidia_smi_query.csv.gz"), "-o", "both",
                      status="any")
        self.assertEqual(self.one("both", "SELECT count(*) AS n FROM device WHERE kind = 'gpu'"), [1])
        self.assertGreater(self.one("both", "SELECT count(*) AS n FROM telemetry")[0], 19)
        self.assertEqual([row["format"] for row in self.query("both", "SELECT format FROM source ORDER BY id")],
                         ["kineto", "nvidia-smi"])
        self.check("both")

    def test_every_real_file_is_accepted_or_refused_with_words(self):
        refused = {"ncu_failed.csv.gz", "nvidia_smi_noheader.csv.gz", "nvidia_smi_dmon.txt.gz"}
        for file in sorted(IMPORTS.glob("*.gz")):
            if file.name.endswith(".tsv.gz"):
                continue
            with self.subTest(file=file.name):
                done = self.llmprof("import", str(file), "-o", "x", "-f", status=None)
                self.assertIn(done.returncode, (2,) if file.name in refused else (0, 3), done.stderr)
                if file.name not in refused:
                    self.check("x")

    def test_where_the_run_goes(self):
        source = str(IMPORTS / "table_default.txt.gz")
        self.imported(source, "-o", "here", status="any")
        done = self.llmprof("import", source, "-o", "here", status=1)
        self.assertIn("here.llmprof exists", done.stderr)
        self.imported(source, "-o", "here.llmprof", "-f", status="any")
        (self.folder / "mine.llmprof").mkdir()
        (self.folder / "mine.llmprof" / "notes.txt").write_text("x")
        self.llmprof("import", source, "-o", "mine", "-f", status=1)
        self.assertTrue((self.folder / "mine.llmprof" / "notes.txt").exists())
        # A file that is refused leaves the old run, and nothing else.
        self.write("bad.json", "{}")
        self.llmprof("import", "bad.json", "-o", "here", "-f", status=2)
        self.check("here")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir() if p.name != "cache"),
                         ["bad.json", "here.llmprof", "mine.llmprof"])

    def test_what_it_tells(self):
        formats = json.loads(self.llmprof("import", "--formats", "--json").stdout)["formats"]
        self.assertIn("kineto", [f["name"] for f in formats])
        self.assertIn("nsys", self.llmprof("import", "--formats").stdout)
        self.llmprof("import", status=1)
        done = self.imported(str(IMPORTS / "kineto_graph.json.gz"), "-o", "x", "--json", status="any")
        told = json.loads(done.stdout)
        self.assertEqual((told["schema"], told["schema_version"]), ("llmprof.import", 1))
        self.assertEqual(told["exit_status"], done.returncode)
        self.assertEqual(told["run"]["path"], "x.llmprof")
        quiet = self.imported(str(IMPORTS / "kineto_graph.json.gz"), "-o", "x", "-f", "-q", status="any")
        self.assertEqual(quiet.stderr, "")

    def test_losses_show_in_the_status_and_in_the_run(self):
        content = gzip.decompress((IMPORTS / "kineto_graph.json.gz").read_bytes())
        (self.folder / "cut.json").write_bytes(content[:len(content) // 2])
        done = self.imported("cut.json", status=3)
        self.assertIn("input_truncated", done.stderr)
        self.assertEqual(self.one("cut", "SELECT count(*) AS n FROM loss WHERE name = 'input_truncated'"), [1])

    def test_the_model_is_noted(self):
        self.imported(str(IMPORTS / "kineto_graph.json.gz"), "-o", "x", "--model", "gpt2", status="any")
        with open(self.folder / "x.llmprof" / "run.json") as file:
            info = json.load(file)
        self.assertEqual(info["models"][0]["source"], "given")
        self.assertEqual(info["source"], "kineto")
        self.assertIn("midnight", info["clock"])

    def test_a_reader_without_a_sandbox_reads_the_same(self):
        for options in ([], ["--no-sandbox"]):
            self.imported(str(IMPORTS / "kineto_graph.json.gz"), "-o", "x", "-f", *options, status="any")
            rows = self.one("x", "SELECT count(*) AS n, sum(end_ns) AS s, max(id) AS i FROM op")
            before = rows if not options else before
            self.assertEqual(rows, before)

    def test_ctrl_c_leaves_nothing(self):
        event = (b'{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 100.5, "dur": 50.25, '
                 b'"args": {"External id": 1, "Input Dims": [[64, 128], [128, 32]]}},\n')
        with open(self.folder / "big.json", "wb") as file:
            file.write(b'{"traceEvents": [\n')
            for _ in range(200):
                file.write(event * 8000)  # 1.2 MB each
        process = subprocess.Popen([LLMPROF, "import", "big.json"], cwd=self.folder, env=self.environment,
                                   stderr=subprocess.PIPE, start_new_session=True)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)  # as the terminal does: the child hears it, too
        process.communicate(timeout=600)
        self.assertEqual(process.returncode, 130)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["big.json"])


if __name__ == "__main__":
    unittest.main()
