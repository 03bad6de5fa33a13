"""A load against a scripted server whose numbers are known by construction, and against the embedded one."""
import asyncio
import json
import pathlib
import signal
import ssl
import subprocess
import threading
import time
import unittest

from harness import LLMPROF, WORKLOAD, Case


def event(data):
    return b"data: " + (data if isinstance(data, str) else json.dumps(data)).encode() + b"\n\n"


def text(content, finish=None):
    return {"id": "c", "choices": [{"index": 0, "text": content, "finish_reason": finish}], "usage": None}


def usage(prompt, completion):
    return {"id": "c", "choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def good(tokens=4):
    return [event(text("ab ", None if i + 1 < tokens else "length")) for i in range(tokens)] + \
        [event(usage(11, tokens)), event("[DONE]")]


class Server:
    """`answer(number, request)` says what the n-th request gets: a status and a list of bytes (sent one after the other),
    numbers (seconds to wait) or None (close the connection)."""

    def __init__(self, answer, endpoints=("/v1/completions",), models=("m",), certificate=None):
        self.answer, self.endpoints, self.models = answer, endpoints, models
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.requests, self.writers, self.running, self.most = [], set(), 0, 0
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self.serve, args=(started,), daemon=True)
        self.thread.start()
        started.wait(30)

    def serve(self, started):
        asyncio.set_event_loop(self.loop)
        self.listener = self.loop.run_until_complete(asyncio.start_server(self.client, "127.0.0.1", 0, backlog=1000, ssl=self.tls))
        self.port = self.listener.sockets[0].getsockname()[1]
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"
        started.set()
        self.loop.run_forever()

    def stop(self):
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)

    def vanish(self):
        """As if it were killed: every connection is reset, and nothing listens."""
        def gone():
            self.listener.close()
            for writer in self.writers:
                writer.transport.abort()
            self.loop.call_later(0.1, self.loop.stop)
        self.loop.call_soon_threadsafe(gone)
        self.thread.join(30)

    async def client(self, reader, writer):
        self.writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = head.split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:] if ":" in line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if not await self.reply(writer, method, path, headers, json.loads(body) if body else None):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        self.writers.discard(writer)
        writer.close()

    async def reply(self, writer, method, path, headers, body):
        if path == "/v1/models":
            return self.whole(writer, 200, {"data": [{"id": model} for model in self.models]})
        if path not in self.endpoints:
            return self.whole(writer, 404, {"detail": "Not Found"})
        if "prompt" not in body and "messages" not in body:
            return self.whole(writer, 400, {"error": {"message": "prompt: is missing"}})
        number = len(self.requests)
        self.requests.append({"path": path, "headers": headers, "body": body})
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            status, parts = self.answer(number, body)
            if status != 200 or isinstance(parts, dict):
                return self.whole(writer, status, parts)
            return await self.stream(writer, parts)
        finally:
            self.running -= 1

    def whole(self, writer, status, value):
        body = json.dumps(value).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return True

    async def stream(self, writer, parts):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            if part is None:
                await writer.drain()
                writer.transport.abort()
                return False
            if isinstance(part, (int, float)):
                await asyncio.sleep(part)
            else:
                writer.write(b"%x\r\n" % len(part) + part + b"\r\n")
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True


class Load(Case):
    def serve(self, answer, **options):
        server = Server(answer, **options)
        self.addCleanup(server.stop)
        return server

    def load(self, server, *words, status=0, **options):
        url = server if isinstance(server, str) else server.url
        done = self.llmprof("load", url, "--json", "-f", "-o", "out", "--timeout", "60s", "--prompt", "8", "--new", "4", *words, status=status, **options)
        return json.loads(done.stdout) if done.stdout else done

    def statuses(self, result):
        return {row["status"]: row["requests"] for row in result["statuses"]}

    def span(self, result, name="whole"):
        return next(row for row in result["spans"] if row["span"] == name)

    def latency(self, result, metric, span="whole"):
        return next((row for row in result["latency"] if row["metric"] == metric and row["span"] == span), None)

    def test_counts_tokens_and_rows(self):
        server = self.serve(lambda n, body: (200, good(4)))
        result = self.load(server, "--requests", "20", "--rate", "200", "--warmup", "3")
        self.assertEqual(self.statuses(result), {"finished": 20})
        self.assertEqual((result["warm_up"], result["not_sent"], result["interrupted"]), (3, 0, False))
        whole = self.span(result)
        self.assertEqual((whole["requests"], whole["prompt_tokens"], whole["output_tokens"]), (20, 220, 80))
        self.assertEqual(result["counted"], [{"counted_by": "usage", "requests": 20}])
        self.assertEqual(self.latency(result, "ITL")["count"], 60)  # 3 gaps each
        self.assertEqual(self.latency(result, "TTFT")["vllm"], "TTFT")
        self.assertEqual(self.latency(result, "TPOT")["aiperf"], "inter_token_latency")
        self.assertEqual(len(server.requests), 23)
        ids = [request["headers"]["x-request-id"] for request in server.requests]
        self.assertEqual(len(set(ids)), 23)
        body = server.requests[-1]["body"]
        self.assertEqual((body["model"], body["stream"], body["max_tokens"]), ("m", True, 4))
        rows = self.query("out", "SELECT count(*) AS n, count(*) FILTER (warm_up) AS warm, sum(output_tokens)::BIGINT AS tokens, "
                                 "min(counted_by) AS by, min(source) AS source FROM request")
        self.assertEqual(rows, [{"n": 23, "warm": 3, "tokens": 92, "by": "usage", "source": "client"}])
        names = {row["name"] for row in self.query("out", "SELECT name FROM request")}
        self.assertEqual(names, set(ids))
        tokens = self.query("out", "SELECT sum(tokens)::BIGINT AS tokens, count(*) AS messages FROM request_token")
        self.assertEqual(tokens, [{"tokens": 92, "messages": 92}])
        order = self.query("out", "SELECT count(*) AS n FROM request WHERE arrival_ns <= sent_ns AND sent_ns <= first_token_ns "
                                  "AND first_token_ns <= last_token_ns AND last_token_ns <= end_ns")
        self.assertEqual(order[0]["n"], 23)
        self.assertIn("20 requests", self.llmprof("report", "out").stdout)

    def test_delays_of_the_server_are_lower_bounds(self):
        parts = [0.2] + good(2)[:1] + [0.1] + good(2)[1:]
        result = self.load(self.serve(lambda n, body: (200, parts)), "--requests", "3", "--rate", "100")
        self.assertGreaterEqual(self.latency(result, "TTFT")["p50_ns"], 200e6)
        self.assertGreaterEqual(self.latency(result, "TPOT")["p50_ns"], 95e6)
        self.assertGreaterEqual(self.latency(result, "E2E")["p50_ns"], 295e6)

    def test_chat_whose_first_message_is_only_a_role(self):
        def delta(**fields):
            return event({"choices": [{"delta": fields, "finish_reason": None}]})
        parts = [delta(role="assistant", content=""), 0.15, delta(reasoning_content="hm"), delta(content="yes"),
                 event({"choices": [{"delta": {}, "finish_reason": "stop"}]}), event("[DONE]")]
        server = self.serve(lambda n, body: (200, parts), endpoints=("/v1/chat/completions",))
        result = self.load(server, "--requests", "2", "--rate", "100")
        self.assertEqual((result["endpoint"], self.statuses(result)), ("chat", {"finished": 2}))
        self.assertEqual(server.requests[0]["body"]["messages"][0]["role"], "user")
        self.assertEqual(result["counted"], [{"counted_by": "messages", "requests": 2}])
        self.assertEqual(self.span(result)["output_tokens"], 4)  # two with text, each
        self.assertGreaterEqual(self.latency(result, "TTFT")["p50_ns"], 145e6)
        self.assertLess(self.latency(result, "TTFT any")["p50_ns"], self.latency(result, "TTFT")["p50_ns"])

    def test_every_failure_is_its_own_status_and_has_a_row(self):
        answers = [(200, good()), (429, {"error": {"message": "slow down"}}), (200, good()[:2] + [None]), (200, good()[:2]),
                   (200, [event(text("a")), event("{oops"), event("[DONE]")]),
                   (200, [event({"error": {"message": "out of memory"}}), event("[DONE]")]),
                   (200, [event(text("a", "stop"))]), (200, [b": ping\n\n", b"foo\n\n"] + good())]
        server = self.serve(lambda n, body: answers[n])
        result = self.load(server, "--requests", str(len(answers)), "--concurrency", "1")
        self.assertEqual(self.statuses(result), {"finished": 2, "http 429": 1, "cut": 2, "malformed": 2, "error": 1})
        by_status = {row["status"]: row["example"] for row in result["statuses"]}
        self.assertEqual(by_status["http 429"], "slow down")
        self.assertEqual(by_status["error"], "out of memory")
        self.assertIn("{oops", by_status["malformed"])
        self.assertEqual(self.latency(result, "TTFT")["count"], 2)
        rows = self.query("out", "SELECT status, error FROM request ORDER BY id")
        self.assertEqual([row["status"] for row in rows],
                         ["finished", "http 429", "cut", "cut", "malformed", "error", "finished", "malformed"])

    def test_a_server_that_is_silent_is_given_up(self):
        server = self.serve(lambda n, body: (200, good()[:1] + [30] if n == 1 else good()))
        result = self.load(server, "--requests", "3", "--concurrency", "1", "--timeout", "500ms")
        self.assertEqual(self.statuses(result), {"finished": 2, "timeout": 1})

    def test_waiting_for_the_cap_is_shown(self):
        server = self.serve(lambda n, body: (200, [0.05] + good()))
        result = self.load(server, "--requests", "20", "--rate", "1000", "--arrivals", "constant", "--max-outstanding", "2")
        self.assertEqual(server.most, 2)
        self.assertEqual(self.statuses(result), {"finished": 20})
        client = result["client"]
        self.assertEqual(client["capped"] + client["scheduled"], 20)
        self.assertGreaterEqual(client["capped"], 17)
        self.assertGreaterEqual(client["cap_wait_most_ns"], 400e6)  # 18 others in pairs, 50 ms each
        queue, queued, ttft = (self.latency(result, name) for name in ("client queue", "TTFT, queued", "TTFT"))
        self.assertEqual(queue["count"], 20)
        self.assertAlmostEqual(queued["mean_ns"], queue["mean_ns"] + ttft["mean_ns"], delta=1e3)
        self.assertGreaterEqual(self.span(result)["most_concurrency"], 2)

    def test_closed_loop(self):
        server = self.serve(lambda n, body: (200, [0.02] + good()))
        result = self.load(server, "--requests", "30", "--concurrency", "5")
        self.assertEqual(server.most, 5)
        self.assertEqual(self.span(result)["most_concurrency"], 5)
        self.assertEqual(self.span(result)["requests"], 30)

    def test_goodput(self):
        server = self.serve(lambda n, body: (200, ([0.5] if n % 4 == 0 else []) + good()) if n else (500, {"error": "x"}))
        result = self.load(server, "--requests", "8", "--concurrency", "1", "--slo", "ttft=450ms")
        self.assertEqual(self.span(result)["good_share"], 6 / 8)  # one failed, one late

    def test_answers_in_one_piece(self):
        whole = {"choices": [{"text": "a b", "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
        server = self.serve(lambda n, body: (200, whole))
        result = self.load(server, "--requests", "2", "--rate", "100", "--no-stream", "--body", "top_p=0.5", "--ignore-eos")
        self.assertEqual(self.statuses(result), {"finished": 2})
        self.assertIsNone(self.latency(result, "TTFT"))
        self.assertEqual(self.latency(result, "E2E")["count"], 2)
        body = server.requests[0]["body"]
        self.assertEqual((body["stream"], body["top_p"], body["ignore_eos"]), (False, 0.5, True))
        self.assertEqual(self.span(result)["output_tokens"], 4)

    def test_headers_and_key(self):
        server = self.serve(lambda n, body: (200, good()))
        environment = dict(self.environment, OPENAI_API_KEY="sk-secret-key")
        self.load(server, "--requests", "1", "--header", "X-A: b", env=environment)
        self.assertEqual(server.requests[0]["headers"]["authorization"], "Bearer sk-secret-key")
        self.assertEqual(server.requests[0]["headers"]["x-a"], "b")
        for file in (self.folder / "out.llmprof").rglob("*"):
            self.assertFalse(file.is_file() and b"sk-secret" in file.read_bytes(), file)

    def test_errors_say_what_to_do(self):
        refused = self.llmprof("load", "127.0.0.1:1", "--requests", "1", status=2)
        self.assertIn("nothing listens at http://127.0.0.1:1", refused.stderr)
        server = self.serve(lambda n, body: (200, good()) if body["model"] in "ab" else (404, {"error": "no"}), models=("a", "b"))
        wrong = self.llmprof("load", server.url, "--model", "c", status=2)
        self.assertIn("it has: a, b", wrong.stderr)
        for words in (["--body", "x"], ["--body", "x=y"], ["--header", "x"], ["--timeout", "0s"], ["--endpoint", "x"],
                      ["--concurrency", "2", "--max-outstanding", "2"], ["--rate", "0"]):
            self.llmprof("load", server.url, *words, status=1)
        other = self.serve(lambda n, body: (200, good()), endpoints=())
        self.assertIn("neither", self.llmprof("load", other.url, status=2).stderr)

    def start(self, server, *words):
        return subprocess.Popen([LLMPROF, "load", server.url, "--json", "-o", "out", "--timeout", "60s", "--prompt", "8", "--new", "4", *words],
                                cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self, process, status=0):
        out, errors = process.communicate(timeout=300)
        self.assertEqual(process.returncode, status, errors)
        return json.loads(out)

    def test_a_server_that_goes_away(self):
        server = self.serve(lambda n, body: (200, good()[:1] + [60]))
        process = self.start(server, "--requests", "12", "--rate", "200")
        while server.running < 12 and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)  # the first message of each is on its way
        server.vanish()
        result = self.ended(process)
        self.assertEqual(self.statuses(result), {"cut": 12})
        self.assertEqual(self.query("out", "SELECT count(*) AS n FROM request WHERE status = 'cut'")[0]["n"], 12)

    def test_thousands_of_refused_connections(self):
        server = self.serve(lambda n, body: (200, good()))
        process = self.start(server, "--requests", "3000", "--rate", "3000")
        while not server.requests and process.poll() is None:
            time.sleep(0.001)
        server.vanish()
        statuses = self.statuses(self.ended(process))
        self.assertEqual(sum(statuses.values()), 3000)
        self.assertGreater(statuses.get("refused", 0), 0, statuses)
        self.assertEqual(self.query("out", "SELECT count(*) AS n FROM request")[0]["n"], 3000)

    def interrupted(self, server, signals, *words):
        process = self.start(server, *words)
        while len(server.requests) < 5 and process.poll() is None:
            time.sleep(0.01)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        return self.ended(process, 130)

    def test_one_interrupt_waits_for_what_runs(self):
        server = self.serve(lambda n, body: (200, [0.1] + good()))
        result = self.interrupted(server, 1, "--requests", "1000", "--rate", "50")
        self.assertTrue(result["interrupted"])
        self.assertEqual(set(self.statuses(result)), {"finished"})
        self.assertEqual(self.span(result)["requests"] + result["not_sent"], 1000)
        self.assertEqual(self.query("out", "SELECT count(*) AS n FROM request")[0]["n"], self.span(result)["requests"])

    def test_two_interrupts_give_up(self):
        server = self.serve(lambda n, body: (200, good()[:1] + [60]))
        result = self.interrupted(server, 2, "--requests", "1000", "--rate", "50")
        self.assertEqual(set(self.statuses(result)), {"aborted"})

    def test_tls_is_verified(self):
        certificate = str(pathlib.Path(__file__).parent / "fixtures/load_tls.pem")
        server = self.serve(lambda n, body: (200, good()), certificate=certificate)
        refused = self.llmprof("load", server.url, "--requests", "2", status=2)
        self.assertIn("--insecure", refused.stderr)
        for words in (["--insecure"], ["--cacert", certificate]):
            self.assertEqual(self.statuses(self.load(server, "--requests", "3", "--rate", "100", *words)), {"finished": 3})

    def test_the_highest_rate(self):
        # One at a time, 20 ms each: 50 requests/s, and what is sent faster waits.
        lock = {}

        def answer(n, body):
            lock.setdefault("free", 0)
            now = time.monotonic()
            lock["free"] = max(lock["free"], now) + 0.02
            return 200, [lock["free"] - now] + good(2)
        done = self.llmprof("load", self.serve(answer).url, "--json", "--find-rate", "--slo", "e2e=300ms", "--requests", "40", "--rate", "20",
                            "--arrivals", "constant", "--prompt", "8", "--new", "2")
        result = json.loads(done.stdout)
        self.assertEqual(result["varied"], "rate")
        self.assertGreater(len(result["points"]), 2)
        self.assertEqual([point["value"] for point in result["points"]], sorted(point["value"] for point in result["points"]))
        self.assertTrue(result["why"])
        # A busy machine makes it lower; nothing makes it as high as this: the 40th would wait 40 (1/50 - 1/200) s = 0.6 s.
        self.assertLess(result["rate"] or 0, 200)
        self.assertTrue([point for point in result["points"] if not point["good"]])

    def test_a_sweep_draws_and_writes_a_run_a_point(self):
        server = self.serve(lambda n, body: (200, [0.01] + good()))
        done = self.llmprof("load", server.url, "--sweep", "concurrency=1,4", "--requests", "12", "--prompt", "8", "--new", "4",
                            "--plot", "load.svg", "-o", "swept", "--json")
        points = json.loads(done.stdout)["points"]
        self.assertEqual([(point["value"], point["finished"]) for point in points], [(1, 12), (4, 12)])
        self.assertIn("<svg", (self.folder / "load.svg").read_text())
        for point in points:
            self.assertEqual(self.query(point["run"], "SELECT count(*) AS n FROM request")[0]["n"], 12)
        prompts = [request["body"]["prompt"] for request in server.requests]
        self.assertEqual(len(set(prompts)), 24)  # nothing that a prefix cache had seen
        text_ = self.llmprof("load", server.url, "--sweep", "rate=50,100", "--requests", "5", "--prompt", "8", "--new", "4").stdout
        self.assertIn("Throughput against latency", text_)
        for words in (["--sweep", "x=1"], ["--sweep", "rate=0"], ["--find-rate"], ["--sweep", "rate=1", "--concurrency", "2"]):
            self.llmprof("load", server.url, *words, status=1)

    def test_vllm_s_result(self):
        server = self.serve(lambda n, body: (200, good(3)) if n else (500, {"error": "x"}))
        self.load(server, "--requests", "5", "--rate", "100", "--vllm-json", "vllm.json")
        result = json.loads((self.folder / "vllm.json").read_text())
        self.assertEqual((result["completed"], result["failed"], result["num_prompts"], result["request_rate"]), (4, 1, 5, 100.0))
        self.assertEqual((result["input_lens"], result["output_lens"]), ([0] + [11] * 4, [0] + [3] * 4))
        self.assertEqual([len(each) for each in result["itls"]], [0, 2, 2, 2, 2])
        self.assertEqual(result["errors"], ["http 500: x", "", "", "", ""])
        self.assertEqual(result["generated_texts"][1], "ab ab ab ")
        self.assertAlmostEqual(result["output_throughput"], 12 / result["duration"])

    def test_the_text(self):
        server = self.serve(lambda n, body: (200, good()) if n % 5 else (503, {"error": "busy"}))
        text_ = self.llmprof("load", server.url, "--requests", "20", "--rate", "200", "--slo", "ttft=1s", "--no-run").stdout
        for words in ("Load on http://127.0.0.1", "How requests ended", "http 503", "busy", "TTFT", "TPOT", "good %", "Client: sent p50",
                      "by the server's usage"):
            self.assertIn(words, text_)
        self.assertFalse(list(self.folder.glob("load-*")))


class EmbeddedServer(Case):
    def setUp(self):
        super().setUp()
        port = self.folder / "port"
        self.server = subprocess.Popen([WORKLOAD, "serve", "--port", "0", "--port-file", str(port), "--preset", "tiny-llama"],
                                       cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end)
        for _ in range(3000):
            if port.exists() and port.read_text().endswith("\n"):
                break
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{port.read_text().strip()}"

    def end(self):
        self.server.send_signal(signal.SIGTERM)
        try:
            self.server.wait(60)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()

    def test_exact_lengths_over_both_endpoints(self):
        for endpoint in ("completions", "chat"):
            done = self.llmprof("load", self.url, "--json", "-f", "-o", "out", "--endpoint", endpoint, "--requests", "12", "--concurrency", "3",
                                "--prompt", "20", "--new", "6", "--ignore-eos")
            result = json.loads(done.stdout)
            self.assertEqual([(row["status"], row["requests"]) for row in result["statuses"]], [("finished", 12)], result["statuses"])
            self.assertEqual(result["spans"][0]["output_tokens"], 72)
            self.assertEqual(result["counted"], [{"counted_by": "usage", "requests": 12}])
            self.assertEqual({line["finish_reason"] for line in result["requests"]}, {"length"})
            tokens = self.query("out", "SELECT sum(tokens)::BIGINT AS tokens FROM request_token")
            self.assertEqual(tokens[0]["tokens"], 72)


if __name__ == "__main__":
    unittest.main()
