"""llmprof view as clients meet it: raw sockets, so that every byte is ours. Every rule of
docs/format/view-api.md has its tests; each fails when its guard is taken out."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import LLMPROF, WORKLOAD, Case

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1]) if raw else None
        self.headers = dict(line.split(": ", 1) for line in lines[1:])
        self.raw = raw

    def json(self):
        return json.loads(self.body)


class Server:
    """A server of the test's own, ended with it."""

    def __init__(self, case, *words):
        self.process = subprocess.Popen([LLMPROF, "view", *words, "--json", "--no-open"], cwd=case.folder, text=True,
                                        env=case.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        case.addCleanup(self.end)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read())
        self.ready = json.loads(line)
        self.port = self.ready["port"]
        self.token = self.ready["url"].rpartition("=")[2]
        self.host = f"127.0.0.1:{self.port}"
        self.cookie = None

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self, address="127.0.0.1"):
        return socket.create_connection((address, self.port), timeout=600)

    def send(self, raw):
        """Everything that comes back until the server closes."""
        with self.connect() as client:
            try:
                client.sendall(raw)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return read_all(client)

    def ask(self, target, method="GET", headers=(), body=b"", host=None):
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host or self.host}", "Connection: close", *headers]
        if body or method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        return Answer(self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body))

    def session(self):
        if self.cookie is None:
            answer = self.ask("/api/session", "POST", ["Content-Type: application/json"],
                              json.dumps({"token": self.token}).encode())
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return f"Cookie: {self.cookie}"

    def api(self, target, **more):
        """Waits while the run is being read."""
        for _ in range(600):
            answer = self.ask(target, headers=[self.session()], **more)
            if answer.status != 202:
                return answer
            time.sleep(0.1)
        raise AssertionError("never ready")


def read_all(client):
    raw = b""
    while True:
        try:
            part = client.recv(65536)
        except (ConnectionResetError, TimeoutError):
            part = b""
        if not part:
            return raw
        raw += part


class ViewCase(Case):
    recorded = None  # once for all tests

    def setUp(self):
        super().setUp()
        if ViewCase.recorded is None:
            ViewCase.recorded = pathlib.Path(tempfile.mkdtemp(prefix="llmprof-e2e-"))
            unittest.addModuleCleanup(shutil.rmtree, ViewCase.recorded, ignore_errors=True)
            self.record(str(ViewCase.recorded / "run"), WORKLOAD, "infer", "--preset", "tiny-llama", "--prompt", "8", "--new", "4")
        shutil.copytree(ViewCase.recorded / "run.llmprof", self.folder / "run.llmprof")


class Loopback(ViewCase):
    def test_only_loopback_and_both_families(self):
        server = Server(self, "run")
        self.assertTrue(server.ready["url"].startswith(f"http://127.0.0.1:{server.port}/#token="))
        listening = set()
        for table, width in (("/proc/net/tcp", 8), ("/proc/net/tcp6", 32)):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                address, port = line.split()[1].split(":")
                if int(port, 16) == server.port and line.split()[3] == "0A":
                    listening.add(address)
        loopback6 = "00000000000000000000000001000000"
        self.assertLessEqual(listening, {"0100007F", loopback6})
        self.assertIn("0100007F", listening)
        if loopback6 in listening:
            with server.connect("::1") as client:
                client.sendall(f"GET / HTTP/1.1\r\nHost: [::1]:{server.port}\r\nConnection: close\r\n\r\n".encode())
                self.assertEqual(Answer(read_all(client)).status, 200)

    def test_other_addresses_need_consent(self):
        for address in ("192.0.2.1", "0.0.0.0", "::"):
            done = self.llmprof("view", "run", "--listen", address, status=1)
            self.assertIn("--listen", done.stderr)
        done = self.llmprof("view", "run", "--listen", "0.0.0.0", "--i-understand", status=1)
        self.assertIn("every address", done.stderr)
        self.assertIn("not an address", self.llmprof("view", "run", "--listen", "example.com", status=1).stderr)

    def test_bad_words(self):
        self.assertIn("--port", self.llmprof("view", "run", "--port", "80", status=1).stderr)
        self.assertIn("--port", self.llmprof("view", "run", "--port", "70000", status=1).stderr)
        self.assertIn("nothing", self.llmprof("view", "nothing", status=2).stderr)


class Guards(ViewCase):
    def setUp(self):
        super().setUp()
        self.server = Server(self, "run")

    def test_host(self):
        port = self.server.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            self.assertEqual(self.server.ask("/", host=host).status, 200, host)
        for host in ("evil.com", f"evil.com:{port}", f"127.0.0.1.nip.io:{port}", f"localhost.:{port}",
                     f"LOCALHOST:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"user@127.0.0.1:{port}"):
            for method in ("GET", "POST", "OPTIONS", "DELETE"):
                self.assertEqual(self.server.ask("/", method, host=host).status, 421, (host, method))
        own = self.server.host
        for head in (f"GET / HTTP/1.1\r\n", f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.com\r\n",
                     f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: {own}\r\n", f"GET http://evil.com/ HTTP/1.1\r\nHost: {own}\r\n",
                     f"GET http://{own}/ HTTP/1.1\r\nHost: {own}\r\n",
                     f"GET / HTTP/1.1\r\nHost: evil.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"):
            self.assertEqual(Answer(self.server.send(f"{head}Connection: close\r\n\r\n".encode())).status, 421, head)

    def test_token_and_cookie(self):
        server = self.server
        self.assertRegex(server.token, r"^[0-9a-f]{32}$")
        for path in ("/api/runs", "/api/run/0", "/api/run/0/timeline", "/api/diffs", "/api/anything"):
            self.assertEqual(server.ask(path).status, 401, path)
        name = f"llmprof_{server.port}"
        for cookie in (f"{name}={server.token}", f"{name}=", f"{name}={'0' * 32}"):
            self.assertEqual(server.ask("/api/runs", headers=[f"Cookie: {cookie}"]).status, 401)
        wrong = server.ask("/api/session", "POST", ["Content-Type: application/json"], b'{"token": "' + b"0" * 32 + b'"}')
        self.assertEqual((wrong.status, wrong.headers.get("Set-Cookie")), (401, None))
        self.assertEqual(server.ask(f"/api/runs?token={server.token}").status, 401)
        cookie = server.ask("/api/session", "POST", ["Content-Type: application/json"],
                            json.dumps({"token": server.token}).encode()).headers["Set-Cookie"]
        self.assertRegex(cookie, rf"^{name}=[0-9a-f]{{32}}; HttpOnly; SameSite=Strict; Path=/$")
        self.assertNotIn(server.token, cookie)
        self.assertEqual(server.ask("/api/runs", headers=["Cookie: " + cookie.partition(";")[0]]).status, 200)

    def test_no_token_on_a_command_line(self):
        """The browser is handed a file of this user's own, which leads to the URL and goes with the server."""
        opener, words, runtime = self.folder / "xdg-open", self.folder / "words", self.folder / "runtime"
        opener.write_text(f'#!/bin/sh\necho "$@" > {words}.new; cat "${{1#file://}}" >> {words}.new; mv {words}.new {words}\n')
        opener.chmod(0o755)
        runtime.mkdir()
        process = subprocess.Popen([LLMPROF, "view", "run", "--json"], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   env={**self.environment, "PATH": f"{self.folder}:{os.environ['PATH']}", "DISPLAY": ":9",
                                        "XDG_RUNTIME_DIR": str(runtime)})
        self.addCleanup(process.stdout.close)
        url = json.loads(process.stdout.readline())["url"]
        token = url.rpartition("=")[2]
        while not words.exists():
            time.sleep(0.01)
        argument, _, page = words.read_text().partition("\n")
        self.assertTrue(argument.startswith(f"file://{runtime}/"), argument)
        self.assertNotIn(token, argument)
        self.assertIn(f'location.replace("{url}")', page)
        folder, = runtime.iterdir()
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        process.send_signal(signal.SIGINT)
        process.wait()
        self.assertEqual(list(runtime.iterdir()), [])

    def test_other_sites(self):
        session = self.server.session()
        for header in ("Origin: http://evil.com", "Origin: null", f"Origin: http://localhost:{self.server.port}",
                       "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"):
            self.assertEqual(self.server.ask("/api/runs", headers=[session, header]).status, 403, header)
        good = self.server.ask("/api/runs", headers=[session, f"Origin: http://{self.server.host}",
                                                     "Sec-Fetch-Site: same-origin"])
        self.assertEqual(good.status, 200)
        self.assertFalse([name for name in good.headers if name.lower().startswith("access-control")])
        body = json.dumps({"token": self.server.token}).encode()
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
            headers = [f"Content-Type: {kind}"] if kind else []
            self.assertEqual(self.server.ask("/api/session", "POST", headers, body).status, 415, kind)
        for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
            self.assertEqual(self.server.ask("/", method).status, 405, method)

    def test_no_path_reaches_the_files(self):
        secret = self.folder / "run.llmprof" / "secret"
        secret.symlink_to("/etc/passwd")
        session = self.server.session()
        for path in ("/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/%2e%2e%5c%2e%2e%5cetc", "/..%00", "//",
                     "//etc/passwd", "/etc/passwd", "/#", "/api/run/../..", "/api/run/0/../../secret", "/secret",
                     "/api/run/0/secret", "/api/run/0/tables/kernel.parquet", "/api/run/0/run.json", "/api/run/1",
                     "/run.llmprof/run.json", "/api/run/%30", "/app.js/..", "/app.js%00"):
            answer = self.server.ask(path, headers=[session])
            self.assertEqual(answer.status, 404, path)
            self.assertNotIn(b"root:", answer.body)
        plain, odd = self.server.ask("/"), self.server.ask("/?raw??/../../etc/passwd")
        self.assertEqual((odd.status, odd.body), (200, plain.body))

    def test_headers_everywhere(self):
        for answer in (self.server.ask("/"), self.server.ask("/api/runs"), self.server.ask("/", host="evil.com"),
                       self.server.ask("/nothing"), Answer(self.server.send(b"nonsense\r\n\r\n"))):
            self.assertEqual(answer.headers["Content-Security-Policy"], POLICY)
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(answer.headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(answer.headers["Cross-Origin-Resource-Policy"], "same-origin")
            self.assertEqual(answer.headers["Cache-Control"], "no-store")

    def test_own_sql_is_off(self):
        answer = self.server.ask("/api/run/0/query", "POST", [self.server.session(), "Content-Type: application/json"],
                                 b'{"sql": "SELECT 1"}')
        self.assertEqual(answer.status, 403)

    def test_limits(self):
        own = f"Host: {self.server.host}\r\n"
        cases = {
            f"GET /{'a' * 5000} HTTP/1.1\r\n{own}\r\n": 414,
            f"GET / HTTP/1.1\r\n{own}X: {'a' * 20000}\r\n\r\n": 431,
            f"GET / HTTP/1.1\r\n{own}" + "A: b\r\n" * 70 + "\r\n": 431,
            f"POST /api/session HTTP/1.1\r\n{own}Content-Length: 2000000\r\n\r\n": 413,
            f"POST /api/session HTTP/1.1\r\n{own}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 501,
            f"GET / HTTP/1.0\r\n{own}\r\n": 505,
            "\r\n\r\n": 400,
        }
        for raw, status in cases.items():
            self.assertEqual(Answer(self.server.send(raw.encode())).status, status, raw[:60])

    def test_slow_clients_lock_nobody_out(self):
        slow = []
        for _ in range(64):  # every connection there is, none of which says a whole request
            client = self.server.connect()
            client.sendall(b"GET / HTTP/1.1\r\nHost:")
            slow.append(client)
        for client in slow[:8]:
            client.sendall(b" ")
        answers = [self.server.ask("/") for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200] * 3)
        for client in slow:
            client.close()
        status = pathlib.Path(f"/proc/{self.server.ready['pid']}/fd")
        self.assertLess(len(list(status.iterdir())), 64 + 40)

    def test_keep_alive_and_pipelining(self):
        own = f"Host: {self.server.host}\r\n"
        with self.server.connect() as client:
            client.sendall((f"HEAD / HTTP/1.1\r\n{own}\r\n" + f"GET /nothing HTTP/1.1\r\n{own}\r\n" +
                            f"GET / HTTP/1.1\r\n{own}Connection: close\r\n\r\n").encode())
            raw = read_all(client)
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", raw), [b"200", b"404", b"200"])
        self.assertEqual(raw.count(b"<!doctype html>"), 1)  # HEAD has no body


class Data(ViewCase):
    def test_runs_timeline_and_rows(self):
        shutil.copytree(self.folder / "run.llmprof", self.folder / "other.llmprof")
        server = Server(self, "run", "other")
        listing = server.api("/api/runs").json()
        self.assertEqual([run["name"] for run in listing["runs"]], ["run", "other"])
        self.assertFalse(listing["allow_sql"])
        run = server.api("/api/run/0").json()
        for key in ("name", "report", "timeline", "details", "flame", "roofline", "steps"):
            self.assertIn(key, run)
        # Every kernel of the run stands in the whole window; each appears alone where the window is its own.
        kernels = self.query("run", "SELECT id, begin_ns, end_ns, name FROM kernel ORDER BY begin_ns")
        whole = server.api("/api/run/0/timeline?width=800").json()
        counted = sum(sum(lane["count"]) for lane in whole["lanes"] if lane["kind"] == "stream")
        self.assertEqual(counted, len(kernels))
        one = kernels[len(kernels) // 2]
        window = f"begin={one['begin_ns']}&end={max(one['end_ns'], one['begin_ns'] + 1)}"
        close = server.api(f"/api/run/0/timeline?{window}&width=1000").json()
        found = [close["names"][label] for lane in close["lanes"] if lane["table"] == "kernel"
                 for number, label in zip(lane["id"], lane["label"]) if number == one["id"]]
        self.assertEqual(found, [one["name"]])
        decode = server.api("/api/run/0/timeline?stage=decode").json()
        of_stage = self.query("run", "SELECT count(*) AS n FROM attribution WHERE stage = 'decode'")[0]["n"]
        self.assertEqual(sum(sum(lane["count"]) for lane in decode["lanes"] if lane["kind"] == "stream"), of_stage)
        self.assertEqual(server.api("/api/run/0/timeline?stage=nosuch").status, 404)
        self.assertIsInstance(server.api("/api/diffs").json(), list)
        self.check_evidence(server, run)

    def check_evidence(self, server, run):
        findings = run["report"].get("diagnosis", {}).get("findings", [])
        asked = 0
        for number, finding in enumerate(findings):
            for at, evidence in enumerate(finding["evidence"]):
                answer = server.api(f"/api/run/0/rows?finding={number}&evidence={at}")
                self.assertEqual(answer.status, 200 if evidence["rows"] else 404, evidence)
                asked += bool(evidence["rows"])
                if evidence["rows"] and asked == 1:
                    self.assertEqual(len(answer.json()["rows"][:1000]),
                                     min(1000, len(self.query("run", evidence["rows"]))))
        self.assertEqual(server.api(f"/api/run/0/rows?finding={len(findings)}&evidence=0").status, 404)

    def test_allowed_sql_can_read_and_do_nothing_else(self):
        server = Server(self, "run", "--allow-sql")
        headers = [server.session(), "Content-Type: application/json"]

        def query(sql):
            return server.ask("/api/run/0/query", "POST", headers, json.dumps({"sql": sql}).encode())

        server.api("/api/run/0")
        good = query("SELECT count(*) AS n FROM attribution")
        self.assertEqual(good.json()["columns"], ["n"])
        self.assertGreater(good.json()["rows"][0][0], 0)
        for sql in ("SELECT * FROM read_text('/etc/passwd')", "COPY kernel TO 'stolen.csv'", "SET threads = 4",
                    "ATTACH 'x.db'", "INSTALL httpfs", "SELECT 1; SELECT 2", "DELETE FROM kernel", "nonsense"):
            answer = query(sql)
            self.assertEqual(answer.status, 400, sql)
            self.assertNotIn(b"root:", answer.body)
        many = query("SELECT unnest(range(5000))").json()
        self.assertEqual((len(many["rows"]), many["truncated"]), (1000, True))
        hungry = query("SELECT len(list(range)) FROM range(500000000)")  # 4 GB
        self.assertEqual(hungry.status, 400)
        self.assertEqual(query("SELECT 1 AS one").json()["rows"], [[1]])  # it lives on


SERVING = pathlib.Path(__file__).resolve().parents[1] / "runs/serving"


class Requests(ViewCase):
    def setUp(self):
        super().setUp()
        shutil.copytree(SERVING, self.folder / "serving.llmprof")

    def test_windows_and_members(self):
        server = Server(self, "serving")
        data = server.api("/api/run/0").json()["requests"]
        begin, end = data["span"]
        self.assertEqual((data["in_window"], len(data["rows"]["id"])), (24, 24))
        whole = server.api("/api/run/0/requests").json()
        self.assertEqual(whole["rows"], data["rows"])
        middle = server.api(f"/api/run/0/requests?begin={begin + 20_000_000}&end={begin + 30_000_000}&width=2000").json()
        self.assertEqual((middle["pixel_ns"], middle["in_window"]), (5000, len(middle["rows"]["id"])))
        self.assertLess(middle["in_window"], 24)
        for arrival in middle["rows"]["arrival_ns"]:
            self.assertLessEqual(arrival, 30_000_000)
        victim = data["rows"]["name"].index("load-03")  # lost its KV cache once
        answer = server.api(f"/api/run/0/members?request={data['rows']['id'][victim]}").json()
        rows = [dict(zip(answer["columns"], row)) for row in answer["rows"]]
        self.assertEqual(len(rows), data["rows"]["steps"][victim])
        self.assertEqual(sum(row["time_ns"] for row in rows), data["rows"]["time_ns"][victim])
        self.assertEqual({row["request"] for row in rows}, {"load-03"})
        step = server.api(f"/api/run/0/members?step={rows[1]['step_id']}").json()
        parts = [dict(zip(step["columns"], row)) for row in step["rows"]]
        self.assertEqual(sum(row["time_ns"] for row in parts), rows[1]["end_ns"] - rows[1]["begin_ns"])
        self.assertEqual(len(parts), rows[1]["members"] + 1)  # and the engine
        self.assertEqual(server.api("/api/run/0/members?step=999999").json()["rows"], [])

    def test_a_run_without_any(self):
        server = Server(self, "run")
        self.assertNotIn("requests", server.api("/api/run/0").json())
        self.assertEqual(server.ask("/api/run/0/requests", headers=[server.session()]).status, 404)

    def test_in_a_browser(self):
        look_at(self, "serving")


def look_at(case, *runs):
    script = pathlib.Path(__file__).resolve().parents[2] / "web/tests/browser/view.mjs"
    node = shutil.which("node")
    if node is None or not (script.parents[2] / "node_modules/playwright-core").is_dir():
        case.skipTest("no Node.js, or web/ was built elsewhere")
    server = Server(case, *runs)
    picture = os.environ.get("LLMPROF_VIEW_SCREENSHOT", "")
    done = subprocess.run([node, str(script), server.ready["url"], *([picture] if picture else [])], text=True,
                          capture_output=True, timeout=600)
    if done.returncode == 77:
        case.skipTest("no chromium")
    case.assertEqual(done.returncode, 0, done.stderr)


class Browser(ViewCase):
    def test_zoom_is_live_and_the_console_stays_empty(self):
        shutil.copytree(self.folder / "run.llmprof", self.folder / "other.llmprof")
        look_at(self, "run", "other")


class Life(ViewCase):
    def test_ctrl_c_ends_it_cleanly(self):
        server = Server(self, "run")
        server.api("/api/run/0")
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.process.wait(20), 0)
        self.assertNotIn("token", server.process.stderr.read())

    def test_idle_ends_it_and_strangers_do_not_keep_it(self):
        server = Server(self, "run", "--idle", "2")
        stop = threading.Event()

        def knock():
            while not stop.is_set() and server.process.poll() is None:
                try:
                    server.ask("/", host="evil.com")
                except OSError:
                    return
                stop.wait(0.2)

        knocking = threading.Thread(target=knock)
        knocking.start()
        try:
            self.assertEqual(server.process.wait(60), 0)
        finally:
            stop.set()
            knocking.join()

    def test_a_run_that_cannot_be_analysed_is_said(self):
        (self.folder / "empty").mkdir()
        done = self.llmprof("view", "empty", status=2)
        self.assertIn("empty", done.stderr)


if __name__ == "__main__":
    unittest.main()
