"""A real engine under requests: what a report answers about them adds up, and the run is simulated by the engine's own rules."""
import http.client
import json
import random
import signal
import subprocess
import threading
import time
import unittest

from harness import LLMPROF, WORKLOAD, Case

COUNT, OUTPUT = 24, 6


class Answers(Case):
    def serve_and_ask(self):
        """A recorded server with few places and a small budget; all requests at once, so that most of them wait."""
        port_file = self.folder / "port"
        server = subprocess.Popen(
            [LLMPROF, "record", "-o", "served", "--no-peaks", "--", WORKLOAD, "serve", "--preset", "tiny-llama", "--layers", "4", "--hidden", "256",
             "--intermediate", "704", "--threads", "1", "--port", "0",
             "--port-file", str(port_file), "--max-num-seqs", "4", "--max-num-batched-tokens", "64", "--no-enable-prefix-caching"],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            while not (port_file.exists() and port_file.read_text().endswith("\n")):
                self.assertIsNone(server.poll(), "the server ended")
                time.sleep(0.05)
            self.ask(int(port_file.read_text()))
        finally:
            server.send_signal(signal.SIGTERM)
            output, _ = server.communicate(timeout=300)
        self.assertEqual(server.returncode, 0, output)

    def ask(self, port):
        draw = random.Random(7)
        prompts = [[draw.randrange(1, 90) for _ in range(draw.randint(8, 100))] for _ in range(COUNT)]
        statuses = []

        def one(number):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            body = {"prompt": prompts[number], "max_tokens": OUTPUT, "ignore_eos": True}
            connection.request("POST", "/v1/completions", json.dumps(body),
                               {"Content-Type": "application/json", "X-Request-Id": f"req-{number}"})
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
            connection.close()

        threads = [threading.Thread(target=one, args=(number,)) for number in range(COUNT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [200] * COUNT)
        self.prompts = {f"req-{number}": len(prompt) for number, prompt in enumerate(prompts)}

    def test_requests_of_a_real_engine(self):
        self.serve_and_ask()
        requests = self.report("served")["requests"]
        by_name = {each["name"]: each for each in requests["all"]}
        self.assertEqual({name: each["prompt_tokens"] for name, each in by_name.items()}, self.prompts)
        self.assertEqual({each["output_tokens"] for each in by_name.values()}, {OUTPUT})
        # Every nanosecond of the steps is somebody's.
        self.assertEqual(requests["requests_ns"] + requests["engine_ns"], requests["steps_ns"])
        self.assertEqual(sum(each["time_ns"] for each in requests["all"]), requests["requests_ns"])
        # And every nanosecond of the TTFT is explained.
        slow = requests["slow"]
        self.assertEqual(sum(part["all_ns"] for part in slow["parts"]), sum(each["ttft_ns"] for each in requests["all"]))
        self.assertTrue(slow["rules"].startswith("vllm"), slow["rules"])
        self.assertRegex(slow["sentence"], r"^p99 TTFT .+ is \d+ % ")
        # The engine said its settings: the run is simulated, and what it takes is said whether it comes near or not.
        replay = requests["replay"]
        self.assertEqual(replay["engine"], slow["rules"])
        self.assertEqual(len(replay["back_test"]), 3)
        self.assertGreaterEqual(replay["fitted_steps"], 20)
        near = all(abs(each["error"]) <= 0.15 for each in replay["back_test"][:2])
        self.assertEqual(replay["reproduces"], near)
        self.assertEqual(bool(replay["changes"]), near, replay)
        self.assertEqual(replay["why"] is None, near)
        rules = {rule["rule"]: rule for rule in self.report("served")["diagnosis"]["rules"]}
        queue = sum(part["ns"] for part in slow["parts"] if part["part"].startswith("queued"))
        self.assertEqual(rules["queueing"]["outcome"] == "found", queue >= 0.5 * slow["total_ns"], rules["queueing"])
        self.assertEqual(rules["prefix_cache_misses"]["outcome"], "not applicable")  # it has none
        self.assertLessEqual(len(self.llmprof("report", "served").stdout.splitlines()), 40)


if __name__ == "__main__":
    unittest.main()
