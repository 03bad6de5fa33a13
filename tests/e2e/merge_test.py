"""A server's metrics beside its recording, and runs merged on one clock."""
import json
import pathlib
import socket
import sys
import unittest

from harness import Case

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"

# Serves its metrics until it was asked five times; counts what it was asked.
SERVER = """
import http.server, sys
asked = 0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        body = f'# TYPE vllm:prompt_tokens counter\\nvllm:prompt_tokens_total{{model_name="m"}} {asked}\\n'.encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler)
while asked < 5: server.handle_request()
"""

# One request as a server marks it.
ENGINE = """
import sys
sys.path.insert(0, sys.argv[1])
import llmprof
llmprof.request("req-1", "queued", 8, 1)
with llmprof.step("serve"):
    llmprof.request("req-1", "scheduled", 0)
    llmprof.step_member("req-1", 8, 8)
llmprof.request("req-1", "output", 1)
llmprof.request("req-1", "finished", 0, 1)
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Scrape(Case):
    def test_metrics_are_on_the_clock_of_the_recording(self):
        port = free_port()
        self.record("served", sys.executable, self.write("server.py", SERVER), str(port),
                    options=("--no-peaks", "--scrape", f"http://127.0.0.1:{port}", "--scrape-every", "100ms"))
        rows = self.query("served", "SELECT name, labels, value, kind, unit, ts_ns FROM metric ORDER BY id")
        self.assertEqual([row["value"] for row in rows], [1, 2, 3, 4, 5])
        self.assertEqual({(row["name"], row["labels"], row["kind"], row["unit"]) for row in rows},
                         {("vllm:prompt_tokens_total", 'model_name="m"', "counter", "tokens")})
        times = [row["ts_ns"] for row in rows]
        self.assertEqual(times, sorted(times))
        [life] = self.query("served", "SELECT min(begin_ns) AS begin_ns, max(end_ns) AS end_ns FROM process")
        self.assertLess(life["begin_ns"], times[0])
        self.assertLess(times[-1], life["end_ns"])
        self.assertIn("prompt tokens", self.llmprof("report", "served", "--full").stdout)

    def test_a_server_that_never_answers_is_said(self):
        self.record("silent", sys.executable, "-c", "pass", options=("--no-peaks", "--scrape", f"http://127.0.0.1:{free_port()}"))
        self.assertIn("scrape_failed", [loss["name"] for loss in self.report("silent")["losses"]])

    def test_what_is_no_address_is_refused(self):
        said = self.llmprof("record", "--scrape", "https://x/metrics", "--", "true", status=1)
        self.assertIn("--scrape wants http://", said.stderr)


class Demo(Case):
    def test_a_server_and_its_load_seen_from_both_sides(self):
        self.llmprof("demo", "--serve", "--no-peaks", "--device", "cpu", "--preset", "tiny-llama", "-o", "shown")
        requests = self.report("shown")["requests"]
        self.assertEqual([requests[key] for key in ("source", "count", "finished", "warm_up")], ["server", 40, 40, 2])
        self.assertEqual(requests["output_tokens"], 40 * 24)
        self.assertEqual(requests["requests_ns"] + requests["engine_ns"], requests["steps_ns"])
        sides = requests["sides"]
        self.assertEqual([sides[key] for key in ("both", "only_client", "only_server", "clock_error_ns", "impossible")], [40, 0, 0, 0, 0])
        # What lies between the two sides adds up, request by request, on one clock.
        rows = self.query("shown", """
            SELECT s.arrival_ns - c.sent_ns AS before, s.first_token_ns - s.arrival_ns AS inside,
              c.first_token_ns - s.first_token_ns AS after, c.first_token_ns - c.sent_ns AS seen
            FROM request AS s JOIN request AS c ON c.name = s.name AND c.source = 'client' WHERE s.source = 'server'""")
        self.assertEqual(len(rows), 42)
        for row in rows:
            self.assertEqual(row["before"] + row["inside"] + row["after"], row["seen"], row)
            self.assertGreaterEqual(min(row["before"], row["after"]), 0, row)
        self.llmprof("check", "shown")


class Merge(Case):
    def test_two_servers_of_one_machine(self):
        engine, python = self.write("engine.py", ENGINE), str(PYTHON)
        for name in ("one", "two"):
            self.record(name, sys.executable, engine, python)
        said = json.loads(self.llmprof("merge", "one", "two", "-o", "both", "--json").stdout)
        self.assertEqual([run["clock_error_ns"] for run in said["runs"]], [0, 0])
        self.llmprof("check", "both")
        [counts] = self.query("both", "SELECT count(*) AS n, count(DISTINCT process_id) AS processes FROM request")
        self.assertEqual(counts, {"n": 2, "processes": 2})
        requests = self.report("both")["requests"]
        self.assertEqual(requests["steps"], 2)
        self.assertEqual(requests["requests_ns"] + requests["engine_ns"], requests["steps_ns"])
        for table in ("kernel", "range", "process_usage"):
            [rows] = self.query("both", f"SELECT count(*) AS n FROM {table}")
            parts = [self.query(name, f"SELECT count(*) AS n FROM {table}")[0]["n"] for name in ("one", "two")]
            self.assertEqual(rows["n"], sum(parts), table)

    def test_what_cannot_be_merged(self):
        self.record("one", "true")
        self.assertIn("nothing to merge", self.llmprof("merge", "one", status=1).stderr)
        self.assertIn("is one of the runs", self.llmprof("merge", "one", "one", "-f", "-o", "one", status=1).stderr)
        self.assertIn("given twice", self.llmprof("merge", "one", "one.llmprof", status=1).stderr)
        self.llmprof("merge", "one", "none", status=2)
        self.assertFalse((self.folder / "merged.llmprof").exists())


if __name__ == "__main__":
    unittest.main()
