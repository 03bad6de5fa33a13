"""Runs after they were recorded: SQL on the locked connection, checks, and folders that are not good runs."""
import csv
import io
import json
import shutil
import unittest

from harness import SYSTEM_PYTHON, WORKLOAD, Case


class Run(Case):
    def setUp(self):
        super().setUp()
        self.record("run", WORKLOAD, "infer", "--preset", "tiny-llama", "--prompt", "4", "--new", "3")

    def test_query_forms(self):
        sql = "SELECT name, count(*) AS n FROM range WHERE category = 'step' GROUP BY name ORDER BY name"
        self.assertEqual(self.query("run", sql), [{"name": "decode", "n": 2}, {"name": "prefill", "n": 1}])
        rows = list(csv.reader(io.StringIO(self.llmprof("query", "run", sql, "--csv").stdout)))
        self.assertEqual(rows, [["name", "n"], ["decode", "2"], ["prefill", "1"]])
        self.assertIn("decode", self.llmprof("query", "run", sql).stdout)
        self.write("q.sql", sql)
        self.assertIn("prefill", self.llmprof("query", "run", "-f", "q.sql").stdout)
        self.llmprof("query", "run", sql, "--parquet", "out.parquet")
        self.assertEqual((self.folder / "out.parquet").read_bytes()[:4], b"PAR1")

    def test_query_is_locked(self):
        self.write("secret.csv", "a\n1\n")
        for sql in ("SELECT * FROM read_csv('secret.csv')", "SELECT * FROM read_text('/etc/hostname')",
                    "COPY range TO 'x.csv'", "COPY (SELECT 1) TO 'run.llmprof/tables/x.parquet'", "ATTACH 'x.db'",
                    "INSTALL httpfs", "SET memory_limit='100GB'", "CREATE TABLE t AS SELECT 1", "SELECT 1; SELECT 2",
                    "SELECT nonsense FROM nowhere"):
            done = self.llmprof("query", "run", sql, status=2)
            self.assertIn("llmprof:", done.stderr, sql)
        self.assertFalse((self.folder / "x.csv").exists())
        self.assertFalse((self.folder / "run.llmprof/tables/x.parquet").exists())

    def test_check_says_fine(self):
        verdict = json.loads(self.llmprof("check", "run", "--json").stdout)
        self.assertEqual(verdict["schema"], "llmprof.check")

    def test_a_flipped_byte_is_found(self):
        table = self.folder / "run.llmprof/tables/gemm.parquet"
        data = bytearray(table.read_bytes())
        data[len(data) // 2] ^= 1
        table.write_bytes(data)
        self.llmprof("check", "run", status=2)

    def test_a_truncated_table_is_refused(self):
        table = self.folder / "run.llmprof/tables/gemm.parquet"
        table.write_bytes(table.read_bytes()[:-10])
        done = self.llmprof("report", "run", status=2)
        self.assertIn("gemm", done.stderr)

    def test_a_newer_format_is_refused(self):
        path = self.folder / "run.llmprof/run.json"
        info = json.loads(path.read_text())
        info["format_version"] = 99
        path.write_text(json.dumps(info))
        done = self.llmprof("report", "run", status=2)
        self.assertIn("99", done.stderr)
        self.assertIn("hint: update llmprof", done.stderr)

    def test_what_is_not_a_run_is_refused(self):
        (self.folder / "empty.llmprof").mkdir()
        for path in ("empty", "nowhere", self.write("file", "hello")):
            done = self.llmprof("report", path, status=2)
            self.assertIn("llmprof:", done.stderr)
            self.assertIn("hint:", done.stderr)

    def test_foreign_parquet_is_refused(self):
        self.llmprof("query", "run", "SELECT 1 AS evil", "--parquet", "evil.parquet")
        info = json.loads((self.folder / "run.llmprof/run.json").read_text())
        for entry in info["files"]:
            if entry["table"] == "gemm":
                entry["bytes"] = (self.folder / "evil.parquet").stat().st_size
        (self.folder / "run.llmprof/run.json").write_text(json.dumps(info))
        shutil.copy(self.folder / "evil.parquet", self.folder / "run.llmprof/tables/gemm.parquet")
        self.llmprof("report", "run", status=2)

    def test_report_text_fits_100_columns(self):
        text = self.llmprof("report", "run", "--full").stdout
        self.assertNotIn("\x1b", text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 100)
        self.assertIn("prefill", text)

    def test_check_reads_a_log(self):
        self.record("raw", WORKLOAD, "infer", "--preset", "tiny-llama", "--prompt", "4", "--new", "3",
                    options=("--no-peaks", "--no-ingest"))
        logs = [path for path in (self.folder / "raw.llmprof/capture").glob("*.log") if path.name != "recorder.log"]
        self.assertEqual(len(logs), 1)
        self.llmprof("check", str(logs[0]))
        logs[0].write_bytes(logs[0].read_bytes()[:-7])
        self.assertIn("torn", self.llmprof("check", str(logs[0]), status=None).stdout)


if __name__ == "__main__":
    unittest.main()
