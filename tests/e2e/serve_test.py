"""The embedded server as its clients see it: answers, streams, errors, counters, and what it does when clients or it leave."""
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import BIN, LLMPROF, WORKLOAD, Case

REPLAY = str(BIN.parent / "tests" / "replay_steps")

TINY = ("--preset", "tiny-llama", "--threads", "1")


class Server:
    """`llmprof-workload serve`, alone or under another program, until it is ended."""

    def __init__(self, case, *options, under=(), limit=None):
        self.case = case
        port_file = case.folder / "port"
        port_file.unlink(missing_ok=True)
        words = [*under, WORKLOAD, "serve", *TINY, "--port", "0", "--port-file", str(port_file), *options]
        self.errors = open(case.folder / "server-errors.txt", "w+")
        descriptors = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))) if limit else None
        self.process = subprocess.Popen(words, cwd=case.folder, env=case.environment, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, preexec_fn=descriptors)
        case.addCleanup(self.kill)
        while not (port_file.exists() and port_file.read_text().endswith("\n")):
            case.assertIsNone(self.process.poll(), "the server ended before it served")
            time.sleep(0.01)
        self.port = int(port_file.read_text())

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def end(self, status=0):
        self.process.send_signal(signal.SIGTERM)
        self.case.assertEqual(self.process.wait(300), status, (self.case.folder / "server-errors.txt").read_text())

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def get(self, path):
        connection = self.connect()
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def post(self, body, path="/v1/completions", headers=None, connection=None):
        mine = connection or self.connect()
        mine.request("POST", path, body if isinstance(body, (bytes, str)) else json.dumps(body), headers or {})
        answer = mine.getresponse()
        text = answer.read()
        if connection is None:
            mine.close()
        return answer, json.loads(text) if text else None

    def open_stream(self, body, path="/v1/completions", headers=None):
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}), headers or {})
        answer = connection.getresponse()
        self.case.assertEqual(answer.status, 200)
        self.case.assertIn("text/event-stream", answer.getheader("Content-Type"))
        return connection, answer

    def stream(self, body, **options):
        connection, answer = self.open_stream(body, **options)
        events = list(events_of(answer))
        connection.close()
        return answer, events

    def metrics(self):
        """Values by name and labels but model_name and engine; TYPE lines are checked by unit tests."""
        values = {}
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = re.fullmatch(r"([\w:]+)\{(.*)\} (\S+)", line).groups()
            more = re.sub(r'model_name="[^"]*",engine="0",?', "", labels)
            values[name.removeprefix("vllm:") + (f"{{{more}}}" if more else "")] = float(value)
        return values

    def wait_for_metric(self, name, value):
        while self.metrics()[name] != value:
            self.case.assertIsNone(self.process.poll())
            time.sleep(0.02)


def events_of(answer):
    """The JSON of each event, and last "[DONE]"."""
    for line in answer:
        line = line.decode().rstrip("\n")
        if not line:
            continue
        assert line.startswith("data: "), line
        yield line[6:] if line == "data: [DONE]" else json.loads(line[6:])


def tokens_of(events):
    return [token for event in events[:-1] for choice in event["choices"] for token in choice["token_ids"]]


def in_threads(jobs):
    results = [None] * len(jobs)

    def run(place):
        results[place] = jobs[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Answers(Case):
    def test_both_endpoints_streamed_and_whole(self):
        server = Server(self)
        asked = {"prompt": "The sea", "max_tokens": 6, "return_token_ids": True}
        answer, whole = server.post(asked, headers={"X-Request-Id": "mine-1"})
        self.assertEqual(answer.getheader("X-Request-Id"), "mine-1")
        self.assertEqual((whole["id"], whole["object"], whole["model"]), ("cmpl-mine-1", "text_completion", "tiny-llama"))
        choice = whole["choices"][0]
        self.assertEqual(choice["prompt_token_ids"], list(b"The sea"))
        self.assertEqual((len(choice["token_ids"]), choice["finish_reason"]), (6, "length"))
        self.assertEqual(whole["usage"]["total_tokens"], 13)

        answer, events = server.stream({**asked, "stream_options": {"include_usage": True}},
                                       headers={"X-Request-Id": "mine-2"})
        self.assertEqual(answer.getheader("X-Request-Id"), "mine-2")
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(tokens_of(events), choice["token_ids"])
        self.assertEqual("".join(e["choices"][0]["text"] for e in events[:6]), choice["text"])
        self.assertEqual([e["choices"][0]["finish_reason"] for e in events[:6]], [None] * 5 + ["length"])
        self.assertEqual(events[-2]["choices"], [])
        self.assertEqual(events[-2]["usage"], whole["usage"])

        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, "return_token_ids": True}
        _, whole = server.post(chat, "/v1/chat/completions")
        self.assertEqual(whole["object"], "chat.completion")
        self.assertEqual(whole["choices"][0]["message"]["role"], "assistant")
        _, events = server.stream(chat, path="/v1/chat/completions")
        self.assertEqual(tokens_of(events), whole["choices"][0]["token_ids"])
        self.assertEqual(events[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual("".join(e["choices"][0]["delta"]["content"] for e in events[:-1]),
                         whole["choices"][0]["message"]["content"])
        for unfit in ("two words", "x" * 300):  # not taken over; each answer has an id of its own
            given = server.post(asked, headers={"X-Request-Id": unfit})[0].getheader("X-Request-Id")
            self.assertNotEqual(given, unfit)
            self.assertTrue(given)
        server.end()

    def test_what_ends_a_request_early(self):
        server = Server(self, "--eos", "3")
        asked = {"prompt": [5, 6, 7], "max_tokens": 12, "return_token_ids": True, "ignore_eos": True}
        tokens = server.post(asked)[1]["choices"][0]["token_ids"]
        self.assertEqual(len(tokens), 12)
        choice = server.post({**asked, "stop_token_ids": [tokens[4]]})[1]["choices"][0]
        self.assertEqual((choice["token_ids"], choice["finish_reason"]), (tokens[:tokens.index(tokens[4]) + 1], "stop"))
        drawn = {**asked, "temperature": 1.0, "seed": 5}
        self.assertEqual(server.post(drawn)[1]["choices"][0]["token_ids"],
                         server.post(drawn)[1]["choices"][0]["token_ids"])
        server.end()

    def test_errors(self):
        server = Server(self, "--max-model-len", "64")
        for body, status, param in (
                ("{", 400, None), ({"prompt": "a", "model": "gpt-4"}, 404, "model"), ({}, 400, "prompt"),
                ({"prompt": [512]}, 400, "prompt"), ({"prompt": "a" * 80}, 400, "max_tokens"),
                ({"prompt": "a", "max_tokens": 64}, 400, "max_tokens"), ({"prompt": "a", "n": 2}, 400, "n")):
            answer, error = server.post(body)
            self.assertEqual((answer.status, error["error"]["code"]), (status, status), body)
            self.assertEqual(error["error"]["param"], param, body)
            self.assertTrue(answer.getheader("X-Request-Id"), body)
        self.assertEqual(server.get("/v2")[0], 404)
        self.assertEqual(server.get("/v1/completions")[0], 405)
        connection = server.connect()
        connection.putrequest("POST", "/v1/completions")
        connection.putheader("Content-Length", str(9 << 20))
        connection.endheaders()
        self.assertEqual(connection.getresponse().status, 413)
        connection.close()
        self.assertEqual(server.get("/health"), (200, ""))
        models = json.loads(server.get("/v1/models")[1])["data"]
        self.assertEqual([(m["id"], m["max_model_len"]) for m in models], [("tiny-llama", 64)])
        self.assertEqual(server.metrics()["prompt_tokens_total"], 0)
        server.end()

    def test_usage_errors_of_the_command(self):
        for words in (("--num-gpu-blocks", "1"), ("--max-model-len", "99999"), ("--eos", "512"), ("--host", "somewhere"),
                      ("--set", "async_scheduling=true"), ("--engine", "nosuch"), ("--steps", "/nosuch/folder/file")):
            done = self.run_command([WORKLOAD, "serve", *TINY, "--port", "0", *words], status=None)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn("llmprof-workload: ", done.stderr, words)


TRIES = 50  # of what clients bring about only if they are fast enough


class Batches(Case):
    # A cache that cannot hold all requests, and steps that cannot take a prompt at once.
    SMALL = ("--block-size", "8", "--num-gpu-blocks", "30", "--max-num-batched-tokens", "32", "--max-num-seqs", "16")

    def test_tokens_are_those_of_infer(self):
        infer = json.loads(self.run_command(
            [WORKLOAD, "infer", *TINY, "--batch", "8", "--prompt", "40", "--new", "24", "--json"]).stdout)
        server = Server(self, "--steps", "steps.jsonl", *self.SMALL)
        jobs = [lambda p=p: server.stream({"prompt": p, "max_tokens": 24, "return_token_ids": True})[1]
                for p in infer["prompts"]]
        # The second time some beginnings are in the cache. Clients that are slow beside the server may not need the cache
        # all at once: until they do.
        for tried in range(TRIES):
            self.assertEqual([tokens_of(events) for events in in_threads(jobs)], infer["tokens"])
            metrics = server.metrics()
            if tried > 0 and metrics["num_preemptions_total"] > 0:
                break
        server.end()
        self.assertGreater(metrics["num_preemptions_total"], 0)
        self.check_steps(metrics)

    def check_steps(self, metrics):
        steps = [json.loads(line) for line in (self.folder / "steps.jsonl").read_text().splitlines()]
        self.assertEqual([step["step"] for step in steps], list(range(len(steps))))
        context, sampled = {}, {}
        for step in steps:
            self.assertEqual(step["tokens"], sum(member[1] for member in step["members"]))
            self.assertLessEqual(step["tokens"], 32)
            self.assertLessEqual(step["blocks_used"], 29)
            self.assertEqual(step["chunks"] + step["decodes"], len(step["members"]))
            self.assertEqual(step["sampled"], sum(member[3] for member in step["members"]))
            self.assertLessEqual(step["scheduled_ns"], step["begin_ns"])
            self.assertLess(step["begin_ns"], step["end_ns"])
            for name, tokens, after, samples in step["members"]:
                if step["preempted"] == 0 and after - tokens != 0 and name in context and tokens == 1:
                    self.assertEqual(after - tokens, context[name], step)
                context[name] = after
                sampled[name] = sampled.get(name, 0) + samples
        self.assertTrue(all(later["scheduled_ns"] >= step["end_ns"] for step, later in zip(steps, steps[1:])))
        self.assertEqual(set(sampled.values()), {24})
        self.assertEqual(sum(step["preempted"] for step in steps), metrics["num_preemptions_total"])
        self.assertEqual(sum(step["tokens"] for step in steps), metrics["iteration_tokens_total_sum"])
        self.assertEqual(len(steps), metrics["iteration_tokens_total_count"])
        self.assertTrue(any(step["chunks"] and step["decodes"] for step in steps), "no mixed step")

    def test_steps_are_those_that_predict_simulates(self):
        for policy in ("fcfs", "priority"):
            # Until some requests were preempted and some beginnings found.
            self.assertTrue(any(self.held_against_simulation(policy) for _ in range(TRIES)), policy)

    def held_against_simulation(self, policy):
        server = Server(self, "--steps", "steps.jsonl", "--scheduling-policy", policy, *self.SMALL)
        shared = [[seed * 7 % 251 + i for i in range(20)] for seed in range(3)]
        bodies = {f"r{n}": {"prompt": shared[n % 3] + [n] * (n % 17 + 1), "max_tokens": 3 + n % 20,
                            "priority": n * 7 % 40} for n in range(40)}  # no two are equally urgent
        names = iter(bodies)
        lock = threading.Lock()

        def ask():
            while True:
                with lock:
                    name = next(names, None)
                if name is None:
                    return
                answers[name] = server.post(bodies[name], headers={"X-Request-Id": name})[1]

        answers = {}
        in_threads([ask] * 12)
        server.end()
        engine = next(line for line in server.process.stdout if line.startswith("engine ")).split()[1:]
        return self.hold_against_simulation(engine, bodies, answers)

    def hold_against_simulation(self, engine, bodies, answers):
        numbers = {}  # of equal beginnings
        contents = {name: [numbers.setdefault(tuple(body["prompt"][:end]), len(numbers))
                           for end in range(8, len(body["prompt"]) + 1, 8)] for name, body in bodies.items()}
        self.write("contents.json", json.dumps(contents))
        made = [json.loads(line) for line in
                self.run_command([REPLAY, "steps.jsonl", "contents.json", *engine]).stdout.splitlines()]
        steps = [json.loads(line) for line in (self.folder / "steps.jsonl").read_text().splitlines()]
        for number, (step, simulated) in enumerate(zip(steps, made)):
            lived = {key: step[key] for key in ("begin_ns", "sampled", "blocks_used", "running", "waiting", "preempted")}
            lived["chunks"] = [[new, after - new] for _, new, after, _ in step["members"] if new > 1]
            lived["contexts"] = [after for _, new, after, _ in step["members"] if new == 1]
            self.assertEqual(lived, simulated, f"step {number} of {engine[0]}, {engine[2]}")
        self.assertEqual(len(made), len(steps) + len(bodies))
        cached = {each["id"]: each["cached"] for each in made[len(steps):]}
        self.assertEqual(cached, {name: answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                                  for name, answer in answers.items()})
        return sum(cached.values()) > 0 and any(step["preempted"] for step in steps)

    def test_metrics_are_what_was_asked(self):
        server = Server(self)
        prompt = list(range(40))
        first = server.post({"prompt": prompt, "max_tokens": 7})[1]["usage"]
        again = server.post({"prompt": prompt, "max_tokens": 5})[1]["usage"]
        self.assertEqual(first["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(again["prompt_tokens_details"]["cached_tokens"], 32)  # whole blocks of 16, not the last token
        in_threads([lambda n=n: server.post({"prompt": [n] * 10, "max_tokens": 3}) for n in range(6)])
        metrics = server.metrics()
        for name, value in {"num_requests_running": 0, "num_requests_waiting": 0, "kv_cache_usage_perc": 0,
                            "prompt_tokens_total": 140, "generation_tokens_total": 30, "prefix_cache_queries_total": 140,
                            "prefix_cache_hits_total": 32, "time_to_first_token_seconds_count": 8,
                            "inter_token_latency_seconds_count": 22, "e2e_request_latency_seconds_count": 8,
                            "request_prompt_tokens_sum": 140, "request_generation_tokens_sum": 30,
                            'request_success_total{finished_reason="length"}': 8,
                            'request_success_total{finished_reason="abort"}': 0}.items():
            self.assertEqual(metrics[name], value, name)
        self.assertAlmostEqual(metrics["time_to_first_token_seconds_sum"] + metrics["inter_token_latency_seconds_sum"],
                               metrics["e2e_request_latency_seconds_sum"], places=6)
        server.end()


class Leaving(Case):
    """Of clients, and of the server."""

    LONG = {"prompt": "a", "max_tokens": 4000}  # more than a second

    def test_sigterm_lets_streams_end(self):
        server = Server(self, "--shutdown-timeout", "3000")  # however slow the machine is
        before = server.connect()
        before.request("GET", "/health")
        before.getresponse().read()
        connection, answer = server.open_stream(self.LONG)
        events = events_of(answer)
        next(events)
        server.process.send_signal(signal.SIGTERM)
        try:
            while before.request("GET", "/health") or before.getresponse().read() is None or True:
                before.request("POST", "/v1/completions", '{"prompt":"a"}')
                refused = before.getresponse()
                refused.read()
                if refused.status == 503:
                    self.assertEqual(refused.getheader("Retry-After"), "1")
                    break
                self.assertEqual(refused.status, 200)  # the signal had not come yet
        except (ConnectionError, http.client.HTTPException):
            pass  # the stream was faster
        rest = list(events)
        self.assertEqual(len(rest), 4000)
        self.assertEqual(rest[-2]["choices"][0]["finish_reason"], "length")
        self.assertEqual(rest[-1], "[DONE]")
        connection.close()
        self.assertEqual(server.process.wait(300), 0)

    def test_what_is_left_after_the_timeout_is_aborted(self):
        server = Server(self, "--shutdown-timeout", "0")
        streams = [server.open_stream(self.LONG) for _ in range(8)]
        for _, answer in streams:
            answer.readline()
        server.end()
        for connection, answer in streams:
            events = list(events_of(answer))
            self.assertEqual(events[-2]["choices"][0]["finish_reason"], "abort")
            self.assertEqual(events[-1], "[DONE]")
            connection.close()

    def test_the_second_signal_ends_it_at_once(self):
        server = Server(self)
        streams = [server.open_stream(self.LONG) for _ in range(32)]
        server.process.send_signal(signal.SIGINT)
        while server.get("/health")[0] == 200:
            time.sleep(0.001)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(300), 128 + signal.SIGTERM)
        for connection, answer in streams:
            answer.close()
            connection.close()

    def test_a_client_that_leaves_gives_its_blocks_back(self):
        server = Server(self)
        for end in ("close", "half"):
            connection, answer = server.open_stream(self.LONG)
            answer.readline()
            if end == "half":
                connection.sock.shutdown(socket.SHUT_WR)
            else:
                answer.close()
                connection.close()
            server.wait_for_metric('request_success_total{finished_reason="abort"}', 1 if end == "close" else 2)
            answer.close()
            connection.close()
        waits = server.connect()  # for a whole answer, which never begins
        waits.request("POST", "/v1/completions", json.dumps(self.LONG))
        server.wait_for_metric("num_requests_running", 1)
        waits.close()
        server.wait_for_metric('request_success_total{finished_reason="abort"}', 3)
        metrics = server.metrics()
        self.assertEqual((metrics["num_requests_running"], metrics["kv_cache_usage_perc"]), (0, 0))
        self.assertEqual(len(server.post({"prompt": "a", "max_tokens": 3})[1]["choices"]), 1)
        server.end()

    def test_a_slow_reader_is_disconnected(self):
        name = "m" * 3000  # stands in every event: 4,000 of them are more than what may wait for a client
        server = Server(self, "--served-model-name", name)
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        body = json.dumps({**self.LONG, "stream": True})
        slow.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        self.assertEqual(len(server.stream({"prompt": "b", "max_tokens": 20})[1]), 21)  # meanwhile
        server.wait_for_metric('request_success_total{finished_reason="abort"}', 1)
        self.assertEqual(server.metrics()["kv_cache_usage_perc"], 0)
        slow.close()
        server.end()

    def test_bytes_that_are_no_request(self):
        server = Server(self)
        for sent in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\n", b"", b"\r\n\r\n\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(sent)
        self.assertEqual(server.get("/health")[0], 200)
        server.end()


class Many(Case):
    def open_many(self, server, count):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < count + 200:
            self.skipTest(f"at most {hard} open files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=300) for _ in range(count)]
        self.addCleanup(lambda: [client.close() for client in clients])
        return clients

    def answers(self, clients):
        """How many got an answer of which status; None: the connection ended without one."""
        statuses = {}
        for client in clients:
            try:
                client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                status = client.recv(65536)[9:12].decode() or None
            except ConnectionError:
                status = None
            statuses[status] = statuses.get(status, 0) + 1
        return statuses

    def test_ten_thousand_connections_where_few_are_permitted(self):
        server = Server(self, "--max-connections", "64")
        clients = self.open_many(server, 10_000)
        first = self.answers(clients[:64])
        self.assertEqual(first, {"200": 64})
        statuses = self.answers(clients[64:])
        self.assertGreaterEqual(statuses.pop("503"), 1)
        self.assertLessEqual(set(statuses), {None})
        self.assertEqual(self.answers(clients[:64]), first)  # nobody lost a place
        for client in clients:
            client.close()
        while True:  # until the server has noticed
            try:
                if server.post({"prompt": "a", "max_tokens": 2})[0].status == 200:
                    break
            except (ConnectionError, http.client.HTTPException):
                pass
        server.end()

    def test_more_clients_than_descriptors(self):
        server = Server(self, limit=64)
        clients = self.open_many(server, 300)
        self.assertEqual(self.answers(clients[:8]), {"200": 8})
        self.assertLessEqual(set(self.answers(clients[8:])), {"503", None})
        self.assertEqual(self.answers(clients[:8]), {"200": 8})
        for client in clients:
            client.close()
        while True:
            try:
                if server.get("/health")[0] == 200:
                    break
            except (ConnectionError, http.client.HTTPException):
                pass
        server.end()
        self.assertIn("at most 8 at once", server.process.stdout.read())


class Recorded(Case):
    def test_a_recorded_server(self):
        under = (LLMPROF, "record", "-o", "served", "--no-peaks", "--")
        server = Server(self, "--steps", "steps.jsonl", *Batches.SMALL, under=under)
        truth = {}

        def ask(number):
            name, prompt, most = f"q{number}", [number] * (5 + 7 * number % 60), 4 + number % 9
            _, answer = server.post({"prompt": prompt, "max_tokens": most}, headers={"X-Request-Id": name})
            truth[name] = (len(prompt), answer["usage"]["completion_tokens"],
                           answer["usage"]["prompt_tokens_details"]["cached_tokens"], "length")

        in_threads([lambda n=n: ask(n) for n in range(24)])
        connection, answer = server.open_stream({"prompt": [7] * 20, "max_tokens": 200}, headers={"X-Request-Id": "left"})
        answer.readline()
        answer.close()
        connection.close()
        server.wait_for_metric('request_success_total{finished_reason="abort"}', 1)
        first = server.post({"prompt": [9], "max_tokens": 9, "return_token_ids": True}, headers={"X-Request-Id": "stop"})
        token = first[1]["choices"][0]["token_ids"][0]
        server.post({"prompt": [9], "max_tokens": 9, "stop_token_ids": [token]}, headers={"X-Request-Id": "stop"})
        preemptions = server.metrics()["num_preemptions_total"]
        server.end()
        self.check_requests(truth, preemptions)
        self.check_steps()

    def check_requests(self, truth, preemptions):
        rows = {row["name"]: row for row in self.query(
            "served", "SELECT name, prompt_tokens, output_tokens, cached_tokens, preemptions, status FROM request")}
        self.assertEqual(len(rows), 27)
        for name, (prompt, output, cached, status) in truth.items():
            row = rows[name]
            self.assertEqual((row["prompt_tokens"], row["output_tokens"], row["cached_tokens"], row["status"]),
                             (prompt, output, cached, status), name)
        self.assertEqual(sum(row["preemptions"] for row in rows.values()), preemptions)
        self.assertEqual(rows["left"]["status"], "aborted")
        self.assertEqual((rows["stop"]["status"], rows["stop"]["output_tokens"]), ("length", 9))
        again = next(row for name, row in rows.items() if name.startswith("stop#"))  # the same id, another request
        self.assertEqual((again["status"], again["output_tokens"]), ("finished", 1))
        requests = self.report("served")["requests"]
        self.assertEqual([requests[key] for key in ("count", "finished", "failed", "unfinished")], [27, 26, 1, 0])
        self.assertEqual(requests["requests_ns"] + requests["engine_ns"], requests["steps_ns"])
        for each in requests["all"]:
            if each["ttft_ns"] is not None:
                self.assertEqual(each["queue_ns"] + each["prefill_ns"], each["ttft_ns"], each)
        self.assertIn("27 requests as the server's engine marked them: 26 finished, 1 failed",
                      " ".join(self.llmprof("report", "served").stdout.split()))
        self.llmprof("report", "served", "requests")

    def check_steps(self):
        steps = [json.loads(line) for line in (self.folder / "steps.jsonl").read_text().splitlines()]
        rows = self.query("served", """
            SELECT m.step_id, sum(m.time_ns) AS parts, any_value(s.end_ns - s.turn_ns) AS step,
              count(*) FILTER (m.request_id IS NOT NULL) AS members, sum(m.tokens) AS tokens,
              string_agg(q.name, ' ' ORDER BY q.name) AS names
            FROM step_member AS m JOIN step AS s ON s.id = m.step_id LEFT JOIN request AS q ON q.id = m.request_id
            GROUP BY m.step_id ORDER BY min(s.begin_ns)""")
        self.assertEqual(len(rows), len(steps))
        for row, step in zip(rows, steps):
            self.assertEqual(row["parts"], row["step"])  # to the nanosecond
            self.assertEqual((row["members"], row["tokens"]), (len(step["members"]), step["tokens"]))
            self.assertEqual(row["names"].split(), sorted(member[0] for member in step["members"]))


if __name__ == "__main__":
    unittest.main()
