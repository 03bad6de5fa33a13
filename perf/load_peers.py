#!/usr/bin/env python3
"""`llmprof load` beside other clients on the same server, in turns. The server here answers by a schedule that is known
(a first token after so long, then one every so often), and notes when it read each request and wrote each token: what a
client says is held against what every client could have known, the server's own times.

  python3 perf/load_peers.py --llmprof build/bin/llmprof --aiperf VENV/bin/aiperf --guidellm VENV/bin/guidellm \\
      --tokenizer FOLDER [--rounds 5] [--only light]

Packages of the peers are installed by whoever runs this, in venvs outside of the tree. FOLDER holds a tokenizer.json
and a tokenizer_config.json; it needs no network."""
import argparse
import asyncio
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

FIRST_S, NEXT_S = 0.100, 0.020
# name: requests per second, requests, tokens of an answer
LOADS = {"light": (4, 40, 32), "heavy": (80, 800, 32)}


def percentile(values, share):
    """Linear between the two nearest, as numpy and every client here has it."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (at - low)


class Server:
    """OpenAI's completions, streamed, one token a message. One thread of its own, one timer for each token."""

    def __init__(self, model):
        self.model, self.requests, self.loop = model, [], asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self.run, args=(ready,), daemon=True).start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.connection, "127.0.0.1", 0, backlog=4096))
        self.url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    async def connection(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                read_s = time.monotonic()
                length = re.search(r"(?i)\r\ncontent-length: *(\d+)", head)
                body = await reader.readexactly(int(length.group(1))) if length else b""
                await self.answer(head.split(" ")[1], body, writer, read_s)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, path, body, writer, read_s):
        asked = json.loads(body) if body else {}
        if "prompt" not in asked:
            models = json.dumps({"object": "list", "data": [{"id": self.model, "object": "model", "max_model_len": 8192}]})
            writer.write(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
                b"200 OK" if path.startswith("/v1/models") or not body else b"422 Unprocessable", len(models), models.encode()))
            return
        count, written = asked.get("max_tokens") or asked.get("max_completion_tokens") or 16, []
        self.requests.append((read_s, written))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(count):
            due_s = read_s + FIRST_S + i * NEXT_S
            await asyncio.sleep(max(due_s - time.monotonic(), 0))
            message = {"id": "c", "object": "text_completion", "model": self.model,
                       "choices": [{"index": 0, "text": " the", "finish_reason": "length" if i + 1 == count else None}]}
            self.event(writer, json.dumps(message))
            written.append(time.monotonic())
        usage = {"prompt_tokens": 32, "completion_tokens": count, "total_tokens": 32 + count}
        self.event(writer, json.dumps({"id": "c", "object": "text_completion", "model": self.model, "choices": [], "usage": usage}))
        self.event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")

    @staticmethod
    def event(writer, text):
        data = b"data: " + text.encode() + b"\n\n"
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))

    def figures(self):
        """What it did itself, of the requests since the last call. The first of some clients are a probe or a warm-up:
        `wanted` of the last are taken."""
        done, self.requests = self.requests, []
        return done


def figures_of(served, wanted):
    served = served[-wanted:]
    ttft = [(written[0] - read) * 1e3 for read, written in served]
    tpot = [(written[-1] - written[0]) * 1e3 / (len(written) - 1) for _, written in served]
    span = max(written[-1] for _, written in served) - min(read for read, _ in served)
    return {"ttft p50 ms": percentile(ttft, 0.5), "ttft p99 ms": percentile(ttft, 0.99), "tpot p50 ms": percentile(tpot, 0.5),
            "tokens/s": sum(len(written) for _, written in served) / span}


def run(words, **more):
    began = os.times()
    done = subprocess.run(words, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TOKENIZERS_PARALLELISM": "false"}, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    ended = os.times()
    return done.stdout, ended.children_user + ended.children_system - began.children_user - began.children_system


def llmprof(options, url, folder, rate, requests, tokens):
    out, cpu_s = run([options.llmprof, "load", url, "--no-run", "--json", "--endpoint", "completions", "--rate", str(rate),
                      "--arrivals", "poisson", "--requests", str(requests), "--prompt", "32", "--new", str(tokens), "--seed", "7"])
    document = json.loads(out)
    rows = {row["metric"]: row for row in document["latency"] if row["span"] == "whole"}
    whole = next(row for row in document["spans"] if row["span"] == "whole")
    client = document["client"]
    return {"ttft p50 ms": rows["TTFT"]["p50_ns"] / 1e6, "ttft p99 ms": rows["TTFT"]["p99_ns"] / 1e6,
            "tpot p50 ms": rows["TPOT"]["p50_ns"] / 1e6, "tokens/s": whole["output_tokens_per_s"], "cpu s": cpu_s,
            "own schedule lag p99 ms": client["lag_p99_ns"] / 1e6}


def aiperf(options, url, folder, rate, requests, tokens):
    place = pathlib.Path(folder) / "aiperf"
    _, cpu_s = run([options.aiperf, "profile", "--model-names", "scripted", "--tokenizer", options.tokenizer, "--url", url,
                    "--endpoint-type", "completions", "--streaming", "--request-rate", str(rate), "--arrival-pattern", "poisson",
                    "--request-count", str(requests), "--synthetic-input-tokens-mean", "32", "--synthetic-input-tokens-stddev", "0",
                    "--output-tokens-mean", str(tokens), "--output-tokens-stddev", "0", "--use-server-token-count",
                    "--use-legacy-max-tokens", "--random-seed", "7", "--ui", "none", "--artifact-dir", str(place)], cwd=folder)
    found = json.loads(next(place.rglob("profile_export_aiperf.json")).read_text())
    return {"ttft p50 ms": found["time_to_first_token"]["p50"], "ttft p99 ms": found["time_to_first_token"]["p99"],
            "tpot p50 ms": found["inter_token_latency"]["p50"], "tokens/s": found["output_token_throughput"]["avg"], "cpu s": cpu_s}


def guidellm(options, url, folder, rate, requests, tokens):
    place = pathlib.Path(folder) / "guidellm.json"
    _, cpu_s = run([options.guidellm, "run", "--backend", f"kind=openai_http,target={url},model=scripted,request_format=/v1/completions",
                    "--profile", f"kind=poisson,rate={rate}", "--constraint", f"kind=max_requests,count={requests}",
                    "--tokenizer", f"kind=hf_auto,model={options.tokenizer}", "--data",
                    f"kind=synthetic_text,prompt_tokens=32,output_tokens={tokens}", "--output", f"kind=json,path={place}",
                    "--disable-console"], cwd=folder)
    found = json.loads(place.read_text())["benchmarks"][0]["metrics"]
    ttft, itl = found["time_to_first_token_ms"]["successful"], found["inter_token_latency_ms"]["successful"]
    return {"ttft p50 ms": ttft["median"], "ttft p99 ms": ttft["percentiles"]["p99"], "tpot p50 ms": itl["median"],
            "tokens/s": found["output_tokens_per_second"]["successful"]["mean"], "cpu s": cpu_s}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmprof", default="build/bin/llmprof")
    parser.add_argument("--aiperf", help="its program")
    parser.add_argument("--guidellm", help="its program")
    parser.add_argument("--tokenizer", help="a folder, for the peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=sorted(LOADS))
    options = parser.parse_args()
    options.llmprof = str(pathlib.Path(options.llmprof).resolve())
    clients = [llmprof] + [aiperf] * bool(options.aiperf) + [guidellm] * bool(options.guidellm)
    server = Server("scripted")
    for name, (rate, requests, tokens) in LOADS.items():
        if options.only not in (None, name):
            continue
        seen = {}
        for number in range(options.rounds):
            for client in clients:
                with tempfile.TemporaryDirectory() as folder:
                    said = client(options, server.url, folder, rate, requests, tokens)
                true = figures_of(server.figures(), requests)
                for key, value in said.items():
                    seen.setdefault((client.__name__, key), []).append((value, true.get(key)))
                print(json.dumps({"load": name, "round": number, "client": client.__name__, "said": said, "server": true}), flush=True)
        print(f"\n{name}: {rate} requests/s, Poisson, {requests} requests, {tokens} tokens each; medians of {options.rounds} rounds (least to most)")
        print("| client | figure | said | the server's own | difference |\n|---|---|---|---|---|")
        for (client, key), pairs in seen.items():
            values = [value for value, _ in pairs]
            text = f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"
            if pairs[0][1] is None:
                print(f"| {client} | {key} | {text} | | |")
                continue
            own = statistics.median(true for _, true in pairs)
            apart = statistics.median((value - true) / true for value, true in pairs)
            print(f"| {client} | {key} | {text} | {own:.3f} | {apart:+.2%} |")
        print(flush=True)


if __name__ == "__main__":
    main()
