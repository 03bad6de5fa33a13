"""`llmprof load` against the package tokenizers, and against servers that are not ours."""
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

from case import Ended
from packages import environment


def tokenizers(case):
    folder = case.folder / "tokenizers"
    folder.mkdir()
    made = case.alone("make_tokenizers.py", str(folder))
    expected = json.loads((folder / "expected.json").read_text())
    for name in made["tokenizers"]:
        done, _, _ = case.execute([case.llmprof, "load", "--tokenizer", str(folder / f"{name}.json"), "--count",
                                   str(folder / "texts.jsonl")])
        if done.returncode != 0:
            case.hold(f"the tokenizer '{name}' is read", False, done.stderr.strip()[-300:])
            continue
        ids = [each["ids"] for each in json.loads(done.stdout)["prompts"]]
        wrong = [i for i, (ours, theirs) in enumerate(zip(ids, expected[name])) if ours != theirs]
        case.hold(f"token ids of {made['texts']} random texts by '{name}' against those of the package tokenizers",
                  len(ids) == made["texts"] and not wrong,
                  f"{made['tokens'][name]} tokens" if not wrong else f"{len(wrong)} differ, the first is text {wrong[0]}")


class Server:
    """A program that serves on a port that was free a moment ago, until the end of the `with`."""

    def __init__(self, case, words, ready):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        self.case, self.url, self.ready = case, "http://127.0.0.1:" + port, ready
        self.words = [port if word == "PORT" else word for word in words]

    def __enter__(self):
        self.log = open(self.case.folder / "server.log", "w+")
        self.process = subprocess.Popen(self.words, cwd=self.case.folder, stdout=self.log, stderr=self.log,
                                        env={**environment(), "HF_HOME": str(self.case.folder / "hub")})
        end = time.monotonic() + 120
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.url + self.ready, timeout=5).read()
                return self
            except urllib.error.HTTPError:
                return self  # it answers
            except OSError:
                time.sleep(0.2)
        self.__exit__()
        raise Ended(f"the server did not begin to answer: {self.said()}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def said(self):
        with open(self.case.folder / "server.log") as log:
            return log.read()[-500:]


REQUESTS, NEW, PROMPT = 6, 8, 16


def load(case, server, *words):
    done, _, _ = case.execute([case.llmprof, "load", server.url, "--no-run", "--json", "--requests", str(REQUESTS),
                               "--concurrency", "2", "--prompt", str(PROMPT), "--new", str(NEW), *words])
    if done.returncode != 0:
        raise Ended(f"llmprof load ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def finished(case, document, endpoint):
    case.equal(f"{endpoint}: requests that finished, against those sent",
               [(row["status"], row["requests"]) for row in document["statuses"]], [("finished", REQUESTS)])
    rows = {row["metric"]: row for row in document["latency"] if row["span"] == "whole"}
    case.hold(f"{endpoint}: every request has a TTFT and an end, in this order",
              rows["TTFT"]["count"] == rows["E2E"]["count"] == REQUESTS and rows["TTFT"]["p50_ns"] <= rows["E2E"]["p50_ns"])
    return document["requests"]


def transformers_server(case):
    """transformers serve: no [DONE], usage beside the last choice, a model list that does not have the model served."""
    folder = case.folder / "served"
    folder.mkdir()
    made = case.alone("make_tokenizers.py", str(folder), "--few")
    model = str(folder / "tiny")
    case.equal("tokenizers made for the server", "mistral" in made["tokenizers"], True)
    case.alone("make_tiny_llama.py", str(folder / "mistral.json"), model)
    words = [case.venv.python, "-m", "transformers.cli.transformers", "serve", model, "--device", "cpu", "--host", "127.0.0.1",
             "--port", "PORT"]
    with Server(case, words, "/health") as server:
        both = ("--model", model, "--tokenizer", model + "/tokenizer.json")
        for endpoint in ("completions", "chat"):
            requests = finished(case, load(case, server, *both, "--endpoint", endpoint), endpoint)
            case.equal(f"{endpoint}: output tokens are counted by the server's usage",
                       {each["counted_by"] for each in requests}, {"usage"})
            case.hold(f"{endpoint}: output tokens of each against those asked for: as many, or fewer where it ended itself",
                      all(each["output_tokens"] == NEW or each["finish_reason"] == "stop" for each in requests),
                      [(each["output_tokens"], each["finish_reason"]) for each in requests])
            if endpoint == "completions":
                case.equal("prompt tokens by the server's usage against the random text's planned length",
                           [each["prompt_tokens"] for each in requests], [PROMPT] * REQUESTS)
        document = load(case, server, *both)
        case.equal("the endpoint that is found without being named", document["endpoint"], "completions")


def llama_server(case):
    """llama.cpp's server of its Python package: no usage in streams, messages without text, and a token may be several
    messages. It has no wheels, and compiling it takes minutes: it is tried with a Python that has it already."""
    python = os.environ.get("LLMPROF_LLAMA_PYTHON")
    if not python:
        case.skip("LLMPROF_LLAMA_PYTHON names no Python with llama-cpp-python[server]==0.3.36 and gguf==0.19.0, which are "
                  "compiled for minutes when they are installed")
        return
    file = str(case.folder / "tiny.gguf")
    done, _, _ = case.execute([python, str(case.command("make_tiny_gguf.py")[1]), file])
    if not case.hold("a GGUF file of random weights is made", done.returncode == 0, done.stderr[-300:]):
        return
    words = [python, "-m", "llama_cpp.server", "--model", file, "--host", "127.0.0.1", "--port", "PORT", "--n_ctx", "512",
             "--n_threads", "1", "--interrupt_requests", "false"]
    with Server(case, words, "/v1/models") as server:
        for endpoint in ("completions", "chat"):
            document = load(case, server, "--endpoint", endpoint, "--temperature", "0")
            requests = finished(case, document, endpoint)
            case.equal(f"{endpoint}: without usage and without a tokenizer, output tokens are counted by messages with text",
                       {each["counted_by"] for each in requests}, {"messages"})
            case.hold(f"{endpoint}: all of them say why they ended, so none was broken off",
                      all(each["finish_reason"] in ("length", "stop") for each in requests) and not document["notes"],
                      [(each["finish_reason"], each["messages"], each["output_tokens"]) for each in requests])
