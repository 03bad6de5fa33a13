"""What real servers do differently (docs/manual/load.md, "Servers that were tried"), played by a scripted one; and the
tokens of a data set without a server."""
import json
import pathlib
import unittest
import uuid

from harness import Case
from load_test import Server, event, text

DATA = pathlib.Path(__file__).resolve().parents[2] / "libs/load/testing"


def delta(finish=None, usage=None, **fields):
    message = {"id": "x", "choices": [{"delta": fields, "index": 0, **({"finish_reason": finish} if finish else {})}]}
    return event({**message, "usage": usage} if usage else message)


class LoadServers(Case):
    def serve(self, answer, **options):
        server = Server(answer, **options)
        self.addCleanup(server.stop)
        return server

    def load(self, server, *words):
        done = self.llmprof("load", server.url, "--json", "--no-run", "--concurrency", "2", "--requests", "4", "--prompt", "8",
                            "--new", "4", *words)
        return json.loads(done.stdout)

    def statuses(self, result):
        return {row["status"]: row["requests"] for row in result["statuses"]}

    def test_transformers_ends_without_done_and_counts_beside_a_choice(self):
        parts = [delta(role="assistant"), delta(content="one"), delta(content=" two"), delta(content=" three"),
                 delta("length", {"completion_tokens": 4, "prompt_tokens": 14, "total_tokens": 18})]
        server = self.serve(lambda n, body: (200, parts), endpoints=("/v1/chat/completions",))
        result = self.load(server)
        self.assertEqual((result["endpoint"], self.statuses(result)), ("chat", {"finished": 4}))
        self.assertEqual(result["counted"], [{"counted_by": "usage", "requests": 4}])
        self.assertEqual({each["output_tokens"] for each in result["requests"]}, {4})

    def test_transformers_serves_a_model_that_its_list_does_not_have(self):
        answer = lambda n, body: (200, [event(text("a", "stop"))] if body.get("stream") else
                                  {"choices": [{"text": "a"}]}) if body["model"] == "/models/tiny" else \
            (404, {"error": {"message": "no such model"}})
        server = self.serve(answer, models=("cached/other",))
        result = self.load(server, "--model", "/models/tiny")
        self.assertEqual((result["model"], self.statuses(result)), ("/models/tiny", {"finished": 4}))
        self.assertEqual(len(server.requests), 5)  # one token was asked for first
        refused = self.llmprof("load", server.url, "--no-run", "--model", "tny", status=2)
        self.assertIn("has no model called tny", refused.stderr)
        self.assertIn("cached/other", refused.stderr)

    def test_transformers_refuses_fields_that_it_does_not_know(self):
        def answer(number, body):
            return (422, {"detail": "Unexpected fields in the request: {'ignore_eos'}"}) if "ignore_eos" in body else \
                (200, [event(text("a", "stop"))])
        server = self.serve(answer)
        self.assertEqual(self.statuses(self.load(server)), {"finished": 4})
        result = self.load(server, "--ignore-eos")
        self.assertEqual(self.statuses(result), {"http 422": 4})
        self.assertIn("ignore_eos", result["statuses"][0]["example"])

    def test_llama_cpp_breaks_answers_off_when_another_request_comes(self):
        whole = [event(text("a")), event(text("", "length")), event("[DONE]")]
        server = self.serve(lambda n, body: (200, whole if n == 3 else [event(text("a")), event("[DONE]")]))
        result = self.load(server)
        self.assertEqual(self.statuses(result), {"finished": 4})
        self.assertIn("3 of the finished answers ended with [DONE] and without a finish_reason", " ".join(result["notes"]))
        self.assertEqual(self.load(self.serve(lambda n, body: (200, whole)))["notes"], [])

    def test_llama_cpp_wants_uuids_as_ids(self):
        server = self.serve(lambda n, body: (200, [event(text("a", "stop"))]))
        self.load(server, "--warmup", "2")
        ids = [uuid.UUID(each["headers"]["x-request-id"]) for each in server.requests]
        self.assertEqual((len(set(ids)), {each.version for each in ids}), (6, {4}))

    def test_llama_cpp_sends_messages_without_text_and_no_usage(self):
        parts = [event(text(each)) for each in ("the", "", "", " queue")] + [event(text("", "length")), event("[DONE]")]
        server = self.serve(lambda n, body: (200, parts))
        result = self.load(server)
        self.assertEqual(result["counted"], [{"counted_by": "messages", "requests": 4}])
        self.assertEqual({each["output_tokens"] for each in result["requests"]}, {2})
        result = self.load(server, "--tokenizer", str(DATA / "gpt2.json"))
        self.assertEqual(result["counted"], [{"counted_by": "tokenizer", "requests": 4}])

    def test_prompts_have_the_tokens_of_the_tokenizer(self):
        server = self.serve(lambda n, body: (200, [event(text("a", "stop"))]))
        tokenizer = DATA / "llama2.json"
        self.load(server, "--tokenizer", str(tokenizer))
        sent = self.folder / "sent.jsonl"
        sent.write_text("".join(json.dumps({"prompt": each["body"]["prompt"]}) + "\n" for each in server.requests))
        counted = json.loads(self.llmprof("load", "--tokenizer", str(tokenizer), "--count", str(sent)).stdout)
        self.assertEqual([each["tokens"] for each in counted["prompts"]], [8] * 4)

    def test_counts_a_data_set_without_a_server(self):
        expected = json.loads((DATA / "expected.json").read_text())
        for name, ids in expected.items():
            words = ("load", "--tokenizer", str(DATA / f"{name}.json"), "--count", str(DATA / "texts.jsonl"))
            counted = json.loads(self.llmprof(*words).stdout)
            self.assertEqual([each["ids"] for each in counted["prompts"]], ids, name)
        self.assertIn("--tokenizer", self.llmprof("load", "--count", str(DATA / "texts.jsonl"), status=1).stderr)
        self.assertIn("which server", self.llmprof("load", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
