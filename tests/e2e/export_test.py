"""llmprof export: tables and operators, read back by readers that are not ours. A real run of an H200 (tests/runs)."""
import csv
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import unittest

from harness import LLMPROF, Case

HERE = pathlib.Path(__file__).resolve().parent
RUN = HERE.parent / "runs/h200_decode"


class Tables(Case):
    def setUp(self):
        super().setUp()
        shutil.copytree(RUN, self.folder / "run.llmprof", copy_function=shutil.copy)

    def export(self, kind, *options, **more):
        return self.llmprof("export", "run", "-t", kind, *options, **more)

    def kernels(self):
        row = self.query("run", "SELECT count(*) AS n, sum(end_ns - begin_ns)::BIGINT AS ns FROM kernel")[0]
        return row["n"], row["ns"]

    def test_sqlite_holds_every_row_and_says_what_columns_mean(self):
        self.export("sqlite", "-o", "run.sqlite")
        database = sqlite3.connect(self.folder / "run.sqlite")
        self.addCleanup(database.close)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        self.assertEqual(database.execute("SELECT count(*), sum(end_ns - begin_ns) FROM kernel").fetchone(), self.kernels())
        unit = database.execute("SELECT unit FROM llmprof_column WHERE table_name = 'kernel' AND column_name = 'begin_ns'")
        self.assertEqual(unit.fetchone()[0], "ns")
        orphans = database.execute("SELECT count(*) FROM kernel WHERE gemm_id NOT IN (SELECT id FROM gemm)").fetchone()[0]
        self.assertEqual(orphans, 0)

    def test_csv_reads_back_to_the_same_values(self):
        self.export("csv", "-o", "tables", "--table", "kernel,node_share")
        self.assertEqual(sorted(p.name for p in (self.folder / "tables").iterdir()), ["kernel.csv", "node_share.csv"])
        with open(self.folder / "tables/kernel.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual((len(rows), sum(int(r["end_ns"]) - int(r["begin_ns"]) for r in rows)), self.kernels())
        with open(self.folder / "tables/node_share.csv", newline="") as file:
            shares = [float(r["begin_share"]) for r in csv.DictReader(file)]
        expected = [r["begin_share"] for r in self.query("run", "SELECT begin_share FROM node_share ORDER BY graph_node_id")]
        self.assertEqual(sorted(shares), sorted(expected))  # to the last bit

    def read_parquet(self, path, *columns):
        script = shutil.copy(HERE / "parquet_reader.mjs", self.folder)  # modules are looked up beside the script
        link = self.folder / "node_modules"
        link.exists() or link.symlink_to(HERE.parents[1] / "third_party/node/node_modules")
        return json.loads(self.run_command(["node", script, str(path), *columns]).stdout)

    def test_parquet_is_read_by_others(self):
        self.export("parquet", "-o", "tables", "--table", "kernel,gemm")
        expected = self.kernels()
        for path in ("tables/kernel.parquet", "run.llmprof/tables/kernel.parquet"):  # what we export, and the run itself
            rows = self.read_parquet(path, "begin_ns", "end_ns", "name")
            self.assertEqual((len(rows), sum(int(r["end_ns"]) - int(r["begin_ns"]) for r in rows)), expected, path)
            names = {r["n"] for r in self.query("run", "SELECT DISTINCT name AS n FROM kernel")}
            self.assertEqual({r["name"] for r in rows}, names, path)

    def test_json_says_units_and_holds_the_rows(self):
        self.export("json", "-o", "run.json", "--table", "kernel,device")
        document = json.loads((self.folder / "run.json").read_text())
        self.assertEqual((document["schema"], document["schema_version"]), ("llmprof.tables", 1))
        kernel = document["tables"]["kernel"]
        names = [c["name"] for c in kernel["columns"]]
        self.assertEqual({c["name"]: c["unit"] for c in kernel["columns"]}["begin_ns"], "ns")
        begin, end = names.index("begin_ns"), names.index("end_ns")
        self.assertEqual((len(kernel["rows"]), sum(r[end] - r[begin] for r in kernel["rows"])), self.kernels())
        self.assertTrue(all(len(r) == len(names) for r in kernel["rows"]))

    def test_what_is_no_regular_file_stays_what_it_is(self):
        os.mkfifo(self.folder / "pipe")
        done = self.llmprof("export", "run", "-t", "json", "-f", "-o", "pipe", status=1)
        self.assertIn("pipe is not a regular file", done.stderr)
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_a_window_keeps_what_overlaps_it(self):
        begin = self.query("run", """SELECT least((SELECT min(begin_ns) FROM kernel), (SELECT min(begin_ns) FROM graph_launch),
                                     (SELECT min(ts_ns) FROM telemetry)) AS t""")[0]["t"]
        first = self.query("run", "SELECT min(begin_ns) AS t FROM kernel")[0]["t"]
        from_ms, to_ms = (first - begin) / 1e6 + 5, (first - begin) / 1e6 + 25
        self.export("csv", "-o", "part", "--table", "kernel", "--window", f"{from_ms:.3f}ms:{to_ms:.3f}ms")
        with open(self.folder / "part/kernel.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        low, high = begin + round(from_ms, 3) * 1e6, begin + round(to_ms, 3) * 1e6
        expected = self.query("run", f"SELECT count(*) AS n FROM kernel WHERE end_ns >= {low:.0f} AND begin_ns <= {high:.0f}")
        self.assertEqual(len(rows), expected[0]["n"])
        self.assertGreater(len(rows), 0)
        self.assertLess(len(rows), self.kernels()[0])

    def test_a_stage_keeps_its_kernels(self):
        self.export("csv", "-o", "part", "--table", "kernel_all,step", "--stage", "prefill")
        with open(self.folder / "part/kernel_all.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        expected = self.query("run", "SELECT sum(executions)::BIGINT AS n FROM work WHERE stage = 'prefill'")[0]["n"]
        self.assertEqual(len(rows), expected)
        self.assertEqual({r["stage"] for r in rows}, {"prefill"})

    def test_operators_have_the_columns_that_scripts_expect(self):
        done = self.export("ops-csv", "-o", "ops.csv")
        self.assertIn("no framework operators", done.stderr)
        with open(self.folder / "ops.csv", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
        self.assertEqual(reader.fieldnames[:6], ["key", "cuda_time_total_us", "cpu_time_total_us", "self_cuda_time_total_us",
                                                 "calls", "input_shapes"])
        kernels = [r for r in rows if r["kind"] == "kernel" and not r["key"].startswith("copy ")]
        expected = self.query("run", "SELECT count(*) AS n, sum(end_ns - begin_ns)::BIGINT AS ns FROM kernel_all")[0]
        self.assertEqual(sum(int(r["calls"]) for r in kernels), expected["n"])
        self.assertAlmostEqual(sum(float(r["self_cuda_time_total_us"]) for r in kernels), expected["ns"] / 1e3, delta=0.1)
        self.assertTrue([r for r in rows if r["kind"] == "operator"])  # told by shapes

    def test_readings_have_the_columns_that_scripts_expect(self):
        self.export("nvml-csv", "-o", "nvml.csv")
        with open(self.folder / "nvml.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), "ts,gpu_util_pct,mem_util_pct,sm_clock_MHz,mem_clock_MHz,power_W,temp_C,mem_used_MiB,"
                                        "mem_total_MiB".split(","))
        monitor = self.llmprof("monitor", "--from", "run", "--csv").stdout
        self.assertEqual((self.folder / "nvml.csv").read_text(), monitor)

    def test_the_table_of_pytorch_can_be_read_back(self):
        self.export("key-averages", "-o", "table.txt")
        text = (self.folder / "table.txt").read_text()
        total = self.query("run", """SELECT ((SELECT sum(end_ns - begin_ns) FROM kernel_all) +
                                     (SELECT sum(end_ns - begin_ns) FROM copy))::BIGINT AS ns""")[0]["ns"]
        self.assertIn(f"Self CUDA time total: {total / 1e6:.3f}ms", text)
        lines = text.splitlines()
        self.assertEqual(len({len(line) for line in lines[:-2]}), 1)  # columns stand below each other

    def test_sums_of_a_stage_are_those_of_the_stage(self):
        self.export("json", "-o", "work.json", "--table", "work", "--stage", "prefill")
        rows = json.loads((self.folder / "work.json").read_text())["tables"]["work"]["rows"]
        expected = self.query("run", "SELECT count(*) AS n FROM work WHERE stage = 'prefill'")[0]["n"]
        self.assertEqual(len(rows), expected)
        self.assertIn("know no --window", self.export("csv", "--table", "work", "--window", "0s:1s", status=1).stderr)

    def test_totals_of_another_tool_are_not_added_up_again(self):
        table = HERE.parent / "imports/table_t4_llama32_1b.txt.gz"  # its last lines: 14.759s on the CPU, 5.590s on the GPU
        self.llmprof("import", str(table), "-o", "t4", "-q")
        text = self.llmprof("export", "t4", "-t", "key-averages", "-o", "-").stdout
        self.assertTrue(text.endswith("Self CPU time total: 14.759s\nSelf CUDA time total: 5.590s\n"), text[-200:])
        rows = list(csv.DictReader(self.llmprof("export", "t4", "-t", "ops-csv", "-o", "-").stdout.splitlines()))
        self.assertEqual({r["kind"] for r in rows}, {"operator", "kernel"})
        self.assertEqual(next(r for r in rows if r["key"] == "aten::linear")["calls"], "21357")
        self.write("again.txt", text)
        self.llmprof("import", "again.txt", "-o", "again", "-q")
        sums = "SELECT kind, count(*) AS n, sum(calls)::BIGINT AS calls FROM summary GROUP BY kind ORDER BY kind"
        self.assertEqual(self.query("again", sums), self.query("t4", sums))

    def test_what_a_tool_does_not_tell_is_empty(self):
        self.llmprof("import", str(HERE.parent / "imports/proton_python.hatchet.gz"), "-o", "proton", "-q")
        rows = list(csv.DictReader(self.llmprof("export", "proton", "-t", "ops-csv", "-o", "-").stdout.splitlines()))
        self.assertEqual({r["cpu_time_total_us"] for r in rows}, {""})  # Proton times devices only

    def test_a_reader_that_goes_leaves_nothing_behind(self):
        subprocess.run(["bash", "-c", '"$0" export run -t json -o - | head -c 100 >/dev/null', LLMPROF], cwd=self.folder,
                       env=self.environment, check=True, timeout=600)
        self.assertEqual([p.name for p in (self.folder / "run.llmprof").iterdir() if "export" in p.name], [])

    def test_what_cannot_be_done_is_said(self):
        self.assertIn("formats: perfetto", self.export("nope", status=1).stderr)
        self.assertIn("it has decode, prefill", self.export("csv", "--stage", "x", status=1).stderr)
        self.assertIn("there is no table x", self.export("csv", "--table", "x", status=1).stderr)
        self.assertIn("llmprof record --counters roofline", self.export("roofline-csv", "-o", "x.csv", status=None).stderr)
        self.assertFalse((self.folder / "x.csv").exists())
        self.assertIn("wants two times", self.export("csv", "--window", "5s", status=1).stderr)
        self.export("json", "-o", "a.json", "--table", "device")
        self.assertIn("is there already", self.export("json", "-o", "a.json", status=1).stderr)
        self.export("json", "-o", "a.json", "-f", "--table", "device")

    def test_standard_output_and_json(self):
        document = json.loads(self.export("json", "-o", "-", "--table", "device").stdout)
        self.assertEqual(list(document["tables"]), ["device"])
        told = json.loads(self.export("sqlite", "-o", "b.sqlite", "--json").stdout)
        self.assertEqual((told["schema"], told["format"]), ("llmprof.export", "sqlite"))
        self.assertEqual([f["path"] for f in told["files"]], ["b.sqlite"])
        self.assertEqual(told["files"][0]["bytes"], (self.folder / "b.sqlite").stat().st_size)

    def test_nothing_half_is_left(self):
        full = subprocess.run(["bash", "-c", 'ulimit -f 64; exec "$0" export run -t json -o big.json',
                               LLMPROF], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.assertNotEqual(full.returncode, 0)
        self.assertEqual([p.name for p in self.folder.iterdir() if "big" in p.name], [])


if __name__ == "__main__":
    unittest.main()
