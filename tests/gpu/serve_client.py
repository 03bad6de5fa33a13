"""The client of serve.sh: loads the server, and holds what was recorded against what it saw and what the server wrote."""
import http.client
import json
import random
import sys
import threading
import time


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def ask(port, body, name):
    """Tokens, and when the request was sent and each event came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    sent_ns, tokens, events_ns = now_ns(), [], []
    connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True, "return_token_ids": True}),
                       {"X-Request-Id": name})
    for line in connection.getresponse():
        if not line.startswith(b"data: {"):
            continue
        events_ns.append(now_ns())
        tokens += json.loads(line[6:])["choices"][0]["token_ids"]
    connection.close()
    return {"name": name, "prompt": len(body["prompt"]), "tokens": tokens, "sent_ns": sent_ns, "events_ns": events_ns}


def together(port, bodies, at_once):
    answers, left, lock = [], list(enumerate(bodies)), threading.Lock()

    def work():
        while True:
            with lock:
                if not left:
                    return
                number, body = left.pop(0)
            answer = ask(port, body, f"client-{now_ns()}-{number}")
            with lock:
                answers.append((number, answer))

    threads = [threading.Thread(target=work) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answer for _, answer in sorted(answers, key=lambda each: each[0])]


def tokens(port, path):
    infer = json.load(open(path))
    bodies = [{"prompt": prompt, "max_tokens": infer["new_tokens"]} for prompt in infer["prompts"]]
    return all([answer["tokens"] for answer in together(int(port), bodies, len(bodies))] == infer["tokens"]
               for _ in range(2))  # the second time with beginnings in the cache


def preempted(port):
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return any(line.startswith("vllm:num_preemptions_total") and float(line.split()[-1]) > 0 for line in text.splitlines())


def load(port, count, at_once, path):
    draw = random.Random(1)
    bodies = [{"prompt": [draw.randrange(256) for _ in range(draw.randrange(8, 400))],
               "max_tokens": draw.randrange(4, 60)} for _ in range(int(count))]
    answers = together(int(port), bodies, int(at_once))
    json.dump(answers, open(path, "w"))
    return [len(answer["tokens"]) for answer in answers] == [body["max_tokens"] for body in bodies]


def conserved(steps_path, lines_path, report_path):
    row = json.load(open(steps_path))["rows"][0]
    written = sum(1 for _ in open(lines_path))
    requests = json.load(open(report_path))["requests"]
    print(f"     {row['steps']} steps, {row['ns']} ns: {requests['requests_ns']} ns of requests and "
          f"{requests['engine_ns']} ns of the engine; the server wrote {written} steps")
    return (row["steps"] == written and row["wrong"] == row["wrong_kinds"] == 0 and requests["unfinished"] == 0
            and requests["requests_ns"] + requests["engine_ns"] == requests["steps_ns"] == row["ns"])


def ttft(client_path, requests_path):
    inside = {row["name"]: row for row in json.load(open(requests_path))["rows"]}
    later = []
    for answer in json.load(open(client_path)):
        row = inside[answer["name"]]
        if not answer["sent_ns"] <= row["arrival_ns"] <= row["first_token_ns"] <= answer["events_ns"][0]:
            print(f"     {answer['name']} is out of order: {answer['sent_ns']} {row} {answer['events_ns'][0]}")
            return False
        if (row["prompt_tokens"], row["output_tokens"]) != (answer["prompt"], len(answer["tokens"])):
            return False
        later.append(answer["events_ns"][0] - answer["sent_ns"] - (row["first_token_ns"] - row["arrival_ns"]))
    later.sort()
    print(f"     the client's TTFT is later by {later[len(later) // 2] / 1e6:.3f} ms at the median, {later[-1] / 1e6:.3f} ms at most")
    return True


if __name__ == "__main__":
    sys.exit(0 if globals()[sys.argv[1]](*sys.argv[2:]) else 1)
