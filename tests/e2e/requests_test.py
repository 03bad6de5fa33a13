"""Requests as an engine marks them: what a report says of them is what the engine did, and the parts of steps add up."""
import json
import pathlib
import sys
import unittest

from harness import Case

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"

# Continuous batching without a model: prompts in chunks of 64, at most 4 requests at once, one of them preempted.
ENGINE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import llmprof

class Request:
    def __init__(self, number, prompt, output):
        self.id, self.prompt, self.output, self.done, self.made = f"req-{number}", prompt, output, 0, 0
    def length(self): return self.prompt + self.made

requests = [Request(i, 40 + 100 * (i == 3), 6 + i % 3) for i in range(10)]
requests.append(Request(10, 30, 1))
waiting, running, truth, preempted, steps = list(requests), [], {}, False, 0
for request in requests: llmprof.request(request.id, "queued", request.prompt, request.output)
while waiting or running:
    if steps == 4 and not preempted:  # the last one loses its cache, and what it made has to be computed again
        victim = running.pop()
        victim.done, preempted = 0, True
        waiting.insert(0, victim)
        llmprof.request(victim.id, "preempted")
        truth["preempted"] = victim.id
    with llmprof.step("serve"):
        budget, members = 64, []
        while waiting and len(running) < 4: running.append(waiting.pop(0))
        for request in running:
            tokens = min(budget, request.length() - request.done)
            if tokens <= 0: continue
            if request.done == 0: llmprof.request(request.id, "scheduled", 0)
            budget -= tokens
            request.done += tokens
            members.append((request, tokens))
            llmprof.step_member(request.id, tokens, request.done)
        llmprof.request("", "padded", 64)
        llmprof.request("", "blocks", len(running), 8)
        until = time.perf_counter() + 0.002 + 0.00002 * sum(tokens for _, tokens in members)
        while time.perf_counter() < until: pass
    steps += 1
    for request, tokens in members:
        if request.done == request.length():
            request.made += 1
            llmprof.request(request.id, "output", 1)
        if request.made == request.output:
            running.remove(request)
            llmprof.request(request.id, "finished", 2 if request.id == "req-9" else 0, request.made)
truth["steps"] = steps
truth["requests"] = {request.id: [request.prompt, request.made] for request in requests}
print(json.dumps(truth))
"""


class Requests(Case):
    def setUp(self):
        super().setUp()
        engine = self.write("engine.py", ENGINE)
        done = self.record("served", sys.executable, engine, str(PYTHON))
        self.truth = json.loads(done.stdout)
        self.requests = self.report("served")["requests"]

    def test_what_the_engine_did(self):
        requests, truth = self.requests, self.truth
        self.assertEqual([requests[key] for key in ("source", "count", "finished", "failed", "unfinished")],
                         ["server", 11, 10, 1, 0])
        self.assertEqual({each["name"]: [each["prompt_tokens"], each["output_tokens"]] for each in requests["all"]},
                         truth["requests"])
        self.assertEqual([each["name"] for each in requests["all"] if each["preemptions"]], [truth["preempted"]])
        self.assertEqual(requests["preemptions"], 1)
        self.assertEqual(requests["steps"], truth["steps"])
        self.assertAlmostEqual(requests["kv_peak_share"], 0.5)
        by_name = {each["name"]: each for each in requests["all"]}
        one = by_name["req-10"]  # of one token: no time per token after it
        self.assertIsNone(one["tpot_ns"])
        for each in requests["all"]:
            self.assertEqual(each["queue_ns"] + each["prefill_ns"], each["ttft_ns"], each)
            self.assertEqual(each["ttft_ns"] + each["decode_ns"], each["e2e_ns"], each)
        # First come, first served, four at once.
        self.assertLess(by_name["req-3"]["scheduled_ns"], by_name["req-4"]["scheduled_ns"])

    def test_parts_of_a_step_add_up_to_it(self):
        rows = self.query("served", """
            SELECT m.step_id, sum(m.time_ns) AS parts, any_value(s.end_ns - s.turn_ns) AS step,
              sum(m.products_ns + m.weights_ns + m.attention_ns + m.head_ns + m.copies_ns + m.idle_ns + m.other_ns) AS kinds,
              count(*) FILTER (m.request_id IS NULL) AS engines, sum(m.tokens) AS rows
            FROM step_member AS m JOIN step AS s ON s.id = m.step_id GROUP BY m.step_id""")
        self.assertEqual(len(rows), self.truth["steps"])
        for row in rows:
            self.assertEqual(row["parts"], row["step"], row)
            self.assertEqual(row["kinds"], row["step"], row)
            self.assertEqual((row["engines"], row["rows"]), (1, 64), row)
        self.assertEqual(self.requests["requests_ns"] + self.requests["engine_ns"], self.requests["steps_ns"])
        self.assertEqual(sum(each["time_ns"] for each in self.requests["all"]), self.requests["requests_ns"])

    def test_tokens_of_members_are_those_computed(self):
        # Every token but the last is computed once; the preempted request computes what it had again.
        rows = self.query("served", """SELECT q.name, sum(m.tokens) AS tokens, count(*) FILTER (m.sampled) AS sampled
            FROM step_member AS m JOIN request AS q ON q.id = m.request_id GROUP BY q.name""")
        for row in rows:
            prompt, output = self.truth["requests"][row["name"]]
            self.assertEqual(row["sampled"], output, row)
            if row["name"] == self.truth["preempted"]:
                self.assertGreater(row["tokens"], prompt + output - 1, row)
            else:
                self.assertEqual(row["tokens"], prompt + output - 1, row)

    def test_what_ttft_is_made_of_adds_up(self):
        slow = self.requests["slow"]
        self.assertEqual(sum(part["ns"] for part in slow["parts"]), slow["total_ns"])
        self.assertEqual(sum(part["all_ns"] for part in slow["parts"]), slow["all_ns"])
        self.assertEqual(slow["all_ns"], sum(each["ttft_ns"] for each in self.requests["all"]))
        for one in slow["slowest"]:
            queue = [one[key] for key in ("prefills_ns", "blocks_ns", "sequences_ns", "budget_ns", "step_ns", "between_ns", "other_ns")]
            self.assertEqual(sum(queue), one["queue_ns"])
            self.assertEqual(one["queue_ns"] + one["own_ns"] + one["shared_ns"] + one["rest_ns"], one["ttft_ns"])
        # All came before the first step, four are served at once: the last ones wait for steps of others.
        self.assertGreater(sum(part["all_ns"] for part in slow["parts"] if part["part"].startswith("queued")), 0)
        self.assertRegex(slow["sentence"], r"^p99 TTFT .+ is \d+ % ")

    def test_preemption_is_paid_for(self):
        one = next(each for each in self.requests["all"] if each["preemptions"])
        computed = self.query("served", f"SELECT sum(tokens)::BIGINT AS tokens FROM step_member WHERE request_id = {one['id']}")[0]["tokens"]
        # Every token but the last output one is computed once; what is beyond that was computed before.
        self.assertEqual(one["recomputed_tokens"], computed - (one["prompt_tokens"] + one["output_tokens"] - 1))
        self.assertGreater(one["recomputed_tokens"], 0)
        self.assertGreater(one["preempted_ns"], 0)
        self.assertGreater(one["recomputed_ns"], 0)
        self.assertLess(one["recomputed_ns"], one["time_ns"])

    def test_a_price_is_asked_for(self):
        self.assertIsNone(self.requests["cost"])
        priced = json.loads(self.llmprof("report", "served", "--json", "--price", "3.6").stdout)["requests"]
        # 3.6 an hour are 1e-3 a second.
        self.assertAlmostEqual(priced["cost"]["steps"], priced["steps_ns"] * 1e-12, places=9)
        self.assertAlmostEqual(sum(each["cost"] for each in priced["all"]) + priced["cost"]["engine"], priced["cost"]["steps"], places=9)
        self.assertIn("price", self.llmprof("report", "served", "--price", "cheap", status=1).stderr)

    def test_an_engine_that_is_named_is_simulated(self):
        self.assertIn("did not say its settings", self.requests["replay"]["why"])
        engine = "vllm@0.11 max_num_batched_tokens=64 max_num_seqs=4 num_gpu_blocks=1000"
        replay = json.loads(self.llmprof("report", "served", "--json", "--engine", engine).stdout)["requests"]["replay"]
        self.assertEqual([each["metric"] for each in replay["back_test"]], ["TTFT p50", "TTFT p99", "TPOT p50"])
        self.assertEqual(replay["reproduces"], all(abs(each["error"]) <= 0.15 for each in replay["back_test"][:2]))
        self.assertEqual(bool(replay["changes"]), replay["reproduces"])
        self.assertIn("nobody", self.llmprof("report", "served", "--engine", "nobody", status=1).stderr)

    def test_gates_hold_requests(self):
        self.llmprof("diff", "served", "--gate", "requests.ttft_p99 > 0; requests.count > 10; requests.queue_p99 < 1min")
        self.llmprof("diff", "served", "--gate", "requests.preemptions < 1", status=4)
        self.assertIn("requests.tpot_p50", self.llmprof("report", "served", "--explain", "list").stdout)

    def test_the_report_says_it(self):
        text = self.llmprof("report", "served").stdout
        self.assertIn("11 requests as the server's engine marked them: 10 finished, 1 failed", text)
        self.assertLessEqual(len(text.splitlines()), 40)
        self.assertRegex(text.replace("\n", " "), r"[pP]99 TTFT .+ is \d+ %")
        part = self.llmprof("report", "served", "requests").stdout
        self.assertIn("What the longest times to first token are made of", part)
        for words in ("Latencies of requests", "Step time by kind of work and who it was for", "for requests +",
                      "Requests with the longest time to first token"):
            self.assertIn(words, part)


if __name__ == "__main__":
    unittest.main()
