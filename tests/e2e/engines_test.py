"""record --requests with engines that are stand-ins: packages with the names and shapes that the hooks use, of several versions
(tests/e2e/engines). Which requests each step worked for, and what became of them, is what the engine did; nothing else of the
program changes, and a hook that fails is gone."""
import json
import os
import pathlib
import sys
import unittest

from harness import BIN, Case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "engines"))
import standin_sglang  # noqa: E402
import standin_transformers  # noqa: E402
import standin_vllm  # noqa: E402

PYTHON = str(BIN.parent / "lib/llmprof/python")


class Engines(Case):
    def engine(self, files, program, **names):
        """The program, with the engine beside it."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self.write("serve.py", "".join(f"{name} = {value!r}\n" for name, value in names.items()) + program)

    def serve(self, files, program, options=("--requests",), **names):
        path = self.engine(files, program, **names)
        self.done = self.record("served", sys.executable, path, options=("--no-peaks", *options))
        return json.loads(self.done.stdout)

    def requests(self):
        rows = self.query("served", "SELECT * FROM request ORDER BY name")
        return {row["name"]: row for row in rows}

    def computed(self):
        """Tokens and sampled tokens of each request, over all steps of all processes."""
        rows = self.query("served", """SELECT q.name, sum(m.tokens) AS tokens, count(*) FILTER (m.sampled) AS sampled
            FROM step_member AS m JOIN request AS q ON q.id = m.request_id GROUP BY q.name""")
        return {row["name"]: (row["tokens"], row["sampled"]) for row in rows}

    def notes(self):
        return [row["text"] for row in self.query("served", "SELECT text FROM note WHERE subject = 'requests'")]

    def holds_together(self, steps, tokens):
        """Parts of every step add up to it, every step has its members and no step is inside another."""
        rows = self.query("served", """SELECT s.id, s.thread_id, s.begin_ns, s.end_ns - s.turn_ns AS step,
            sum(m.time_ns) AS parts, sum(m.tokens) FILTER (m.request_id IS NOT NULL) AS tokens
            FROM step AS s LEFT JOIN step_member AS m ON m.step_id = s.id GROUP BY ALL ORDER BY s.thread_id, s.begin_ns""")
        self.assertEqual(len(rows), steps)
        for row in rows:
            self.assertEqual(row["parts"], row["step"], row)
        self.assertEqual(sum(row["tokens"] for row in rows), tokens)

    def events(self, name):
        rows = self.query("served", f"""SELECT e.event FROM request_event AS e JOIN request AS q ON q.id = e.request_id
            WHERE q.name = '{name}' AND e.event NOT IN ('member', 'output') ORDER BY e.ts_ns""")
        return [row["event"] for row in rows]


class Transformers(Engines):
    def transformers(self, version="5.22.0", broken=False, own="", **more):
        files = {name: text.replace("{version!r}", repr(version)) for name, text in standin_transformers.FILES.items()}
        return self.serve(files, standin_transformers.PROGRAM, BREAK=broken, PYTHON=PYTHON, OWN=own, **more)

    def test_what_the_engine_did(self):
        truth = self.transformers()
        self.holds_together(truth["steps"], truth["tokens"])
        requests, computed = self.requests(), self.computed()
        self.assertEqual(sorted(requests), ["bad", "child", "r0", "r1", "r2", "r3", "r4"])  # and no warm-up
        for name, prompt in (("r0", 10), ("r1", 30), ("r2", 50)):
            self.assertEqual([requests[name][key] for key in ("prompt_tokens", "output_tokens", "status")], [prompt, 6, "length"])
            self.assertEqual(computed[name], (prompt + 5, 6), name)
        self.assertEqual((requests["child"]["cached_tokens"], computed["child"]), (10, (5, 5)))  # of the one it comes from
        self.assertEqual([requests["r3"]["status"], requests["bad"]["status"]], ["aborted", "error"])
        self.assertEqual((requests["r4"]["preemptions"], requests["r4"]["output_tokens"]), (1, truth["made"]["r4"] + truth["again"]))
        self.assertEqual(self.events("r4")[-1], "finished")
        self.assertEqual(self.query("served", "SELECT DISTINCT event, tokens, context FROM request_event WHERE request_id IS NULL "
                                              "ORDER BY event"),
                         [{"event": "blocks", "tokens": 16, "context": 64}, {"event": "padded", "tokens": 64, "context": 0}])
        self.assertEqual(self.report("served")["model"]["family"], "llama")  # declared by the hook
        self.assertEqual(self.done.stderr.count("requests"), 0, self.done.stderr)
        self.assertEqual(len(self.notes()), 1)
        self.assertIn("transformers 5.22.0: hooks in ContinuousBatchProcessor, RequestState", self.notes()[0])

    def test_steps_of_the_program_s_own_win(self):
        for own, stages in (("serve", {"other"}), ("decode", {"decode"})):
            truth = self.transformers(own=own, options=("--requests", "-f"))
            self.holds_together(truth["steps"], truth["tokens"])
            rows = self.query("served", "SELECT DISTINCT stage FROM step")
            self.assertEqual({row["stage"] for row in rows}, stages)

    def test_dormant_unless_asked(self):
        path = self.engine({name: text.replace("{version!r}", "'5.22.0'") for name, text in standin_transformers.FILES.items()},
                           standin_transformers.PROGRAM, BREAK=False, PYTHON=PYTHON, OWN="")
        alone = self.run_command([sys.executable, path])
        self.record("served", sys.executable, path, options=("--no-peaks", "--modules"))
        self.assertEqual((self.requests(), self.notes()), ({}, []))
        asked = self.record("again", sys.executable, path, options=("--no-peaks", "--requests"))
        self.assertEqual(asked.stdout, alone.stdout)

    def test_a_hook_that_fails_is_gone_and_the_engine_goes_on(self):
        truth = self.transformers(broken=True)
        self.assertEqual(truth["made"]["r2"], 6)  # the program did not notice
        self.assertEqual(self.done.stderr.count("llmprof: requests of transformers 5.22.0 are not recorded any more: AttributeError"), 1)
        self.assertTrue(any("hooks turned off" in note for note in self.notes()), self.notes())
        self.assertGreater(len(self.computed()), 3)  # what was said before stays

    def test_versions(self):
        self.transformers(version="5.3.1")
        self.assertEqual(self.computed(), {})
        self.assertIn("older than 5.12", self.done.stderr)
        self.record("served", sys.executable, str(self.folder / "serve.py"), options=("--no-peaks", "--requests", "-f"))
        (self.folder / "transformers/__init__.py").write_text("__version__ = '9.1.0.dev0'\n")
        self.record("served", sys.executable, str(self.folder / "serve.py"), options=("--no-peaks", "--requests", "-f"))
        self.assertEqual(len(self.computed()), 6)
        self.assertIn("newer than 5.23", self.notes()[0])


class Vllm(Engines):
    def vllm(self, version, broken=False, plugin="", **more):
        return self.serve(standin_vllm.files(version, PYTHON), standin_vllm.PROGRAM, BREAK=broken, PLUGIN=plugin, **more)

    def holds(self, truth):
        """Two workers: each has all steps."""
        self.holds_together(2 * truth["steps"], 2 * truth["tokens"])
        requests, computed = self.requests(), self.computed()
        self.assertEqual(sorted(requests), ["gone", "late", "one", "three", "two"])  # as the client calls them
        for name, prompt, made in (("one", 40, 5), ("two", 100, 4)):
            self.assertEqual([requests[name][key] for key in ("prompt_tokens", "output_tokens", "status", "preemptions")],
                             [prompt, made, "length", 0])
            self.assertEqual(computed[name], (2 * (prompt + made - 1), 2 * made))
        self.assertEqual((requests["three"]["preemptions"], requests["three"]["output_tokens"]), (1, 6))
        self.assertGreater(computed["three"][0], 2 * 15)
        self.assertEqual(self.events("three"), ["queued", "scheduled", "preempted", "scheduled", "finished"])
        self.assertEqual(requests["gone"]["status"], "aborted")
        self.assertEqual((requests["late"]["cached_tokens"], computed["late"]), (16, (2 * (20 - 16 + 1), 2 * 2)))
        padded = self.query("served", "SELECT count(*) AS n, count(*) FILTER (tokens % 32 = 0) AS right FROM request_event "
                                      "WHERE event = 'padded'")[0]
        self.assertEqual(padded, {"n": 2 * truth["steps"], "right": 2 * truth["steps"]})

    def test_versions(self):
        for version in ("0.11.0", "0.14.0", "0.19.0", "0.28.0"):
            with self.subTest(version):
                self.holds(self.vllm(version, options=("--requests", "-f")))
                self.assertNotIn("llmprof: requests", self.done.stderr)

    def test_as_a_plugin(self):
        self.vllm("0.28.0", plugin=PYTHON, options=())
        self.assertEqual(self.requests(), {})  # dormant
        self.environment["LLMPROF_REQUESTS"] = "1"
        self.holds(self.vllm("0.28.0", plugin=PYTHON, options=("-f",)))
        self.holds(self.vllm("0.28.0", plugin=PYTHON, options=("-f", "--requests")))  # both: marked once

    def test_a_hook_that_fails_is_gone_and_the_engine_goes_on(self):
        truth = self.vllm("0.19.0")
        broken = self.vllm("0.19.0", broken=True, options=("-f", "--requests"))
        self.assertEqual(broken, truth)
        self.assertEqual(self.done.stderr.count("requests of vllm 0.19.0 are not recorded any more"), 2)  # by each worker


class Sglang(Engines):
    def test_versions(self):
        for version, registry in (("0.5.9", False), ("0.5.18", True)):
            with self.subTest(version):
                truth = self.serve(standin_sglang.files(version, PYTHON, registry), standin_sglang.PROGRAM, REGISTRY=registry,
                                   options=("--requests", "-f"))
                self.holds_together(truth["steps"], truth["tokens"])
                requests, computed = self.requests(), self.computed()
                self.assertEqual(sorted(requests), ["gone", "one", "three", "two"])
                for name, prompt, made in (("two", 100, 4), ("three", 10, 6)):
                    self.assertEqual([requests[name][key] for key in ("prompt_tokens", "output_tokens", "status")],
                                     [prompt, made, "length"])
                    self.assertEqual(computed[name], (prompt + made - 1, made))
                self.assertEqual((requests["one"]["preemptions"], requests["one"]["output_tokens"]), (1, 5))
                self.assertEqual((requests["gone"]["status"], requests["gone"]["output_tokens"]), ("aborted", 2))
                self.assertNotIn("llmprof: requests", self.done.stderr)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
