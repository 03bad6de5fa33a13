"""llmprof report --html: one file, no network, no name that becomes markup. What strangers should not read is taken out."""
import base64
import hashlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import BIN, WORKLOAD, Case

HERE = pathlib.Path(__file__).resolve().parent
MAKE_HOSTILE = BIN.parent / "tests/make_hostile_run"
MOST_BYTES = 5_000_000


class Parser(html.parser.HTMLParser):
    """Elements, attributes and texts as a browser sees them; scripts and styles are raw text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.stack, self.texts = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "br"):
            self.stack.append((tag, dict(attributes).get("id")))

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.stack:
            key = self.stack[-1][1] or self.stack[-1][0]
            self.texts[key] = self.texts.get(key, "") + data


def source(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


class Page(Case):
    def page(self, run, *options):
        done = self.llmprof("report", run, "--html", "page.html", *options)
        self.assertIn("page.html", done.stdout)
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        self.assertLess(len(text.encode()), MOST_BYTES)
        return text, self.check(text)

    def check(self, text):
        """H1 and H2 of any page; its data."""
        parsed = Parser(text)
        tags = [tag for tag, _ in parsed.elements]
        self.assertEqual(tags.count("script"), 2, "the data and the application")
        self.assertEqual(tags.count("style"), 1)
        for tag in ("link", "img", "iframe", "object", "embed", "base", "form", "a", "svg"):
            self.assertNotIn(tag, tags)
        for tag, attributes in parsed.elements:
            self.assertFalse({"src", "href", "style", "srcset", "action"} & set(attributes), (tag, attributes))
            self.assertFalse([name for name in attributes if name.startswith("on")], (tag, attributes))
        policy = next(a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
        script = text[text.rindex("<script>") + 8:text.rindex("</script>")]
        self.assertEqual(policy, f"default-src 'none'; script-src {source(script)}; style-src {source(parsed.texts['style'])}; "
                                 "img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'")
        urls = {u for u in re.findall(r"https?://[\w.-]+", script + parsed.texts["style"])}
        self.assertLessEqual(urls, {"http://www.w3.org"}, "names of XML, loaded by nobody")
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1)
        for forbidden in ("<", ">", "&", "\u2028", "\u2029"):
            self.assertNotIn(forbidden, data)
        return json.loads(data)

    def test_of_the_embedded_workload_on_a_cpu(self):
        self.record("cpu", WORKLOAD, "infer", "--preset", "tiny-llama", "--prompt", "16", "--new", "8", options=())
        _, data = self.page("cpu")
        run = data["runs"][0]
        self.assertEqual(run["name"], "cpu")
        self.assertIsNone(run["thinned"])
        report = self.report("cpu")
        self.assertEqual([s["name"] for s in run["report"]["stages"]], [s["name"] for s in report["stages"]])
        self.assertEqual({d["stage"] for d in run["details"]}, {s["name"] for s in report["stages"]})
        self.assertGreater(run["flame"]["total"][1], 0)
        steps = self.query("cpu", "SELECT stage, count(*) AS n FROM step GROUP BY stage")
        self.assertEqual({s["stage"]: s["steps"] for s in run["steps"]}, {r["stage"]: r["n"] for r in steps})

    def test_of_an_h200(self):
        shutil.copytree(HERE.parent / "runs/h200_decode", self.folder / "gpu.llmprof", copy_function=shutil.copy)
        _, data = self.page("gpu")
        run = data["runs"][0]
        # GPU time by another way: kernels, and launches that were not recorded node by node by the shares of their nodes.
        expected = self.query("gpu", """
            SELECT (SELECT sum(k.end_ns - k.begin_ns) FROM kernel_all k JOIN device d ON d.id = k.device_id WHERE d.kind = 'gpu')
                 + (SELECT coalesce(sum(end_ns - begin_ns), 0) FROM graph_launch WHERE NOT nodes_recorded AND graph NOT IN
                    (SELECT graph FROM graph_node n JOIN node_share s ON s.graph_node_id = n.id)) AS ns""")[0]["ns"]
        total = run["flame"]["total"][0]
        self.assertAlmostEqual(total / expected, 1, places=5)
        self.assertAlmostEqual(sum(run["flame"]["self"][0]) / total, 1, places=6)
        busy = sum(b * (e - a) for lane in run["timeline"]["lanes"] if lane["kind"] == "stream"
                   for a, e, b in zip(lane["begin"], lane["end"], lane["busy"]))
        # `busy` is written with three digits; kernels that ran beside each other may be covered once.
        self.assertLessEqual(busy, expected * 1.002)
        self.assertGreater(busy, expected * 0.95)
        kinds = {lane["kind"] for lane in run["timeline"]["lanes"]}
        self.assertLessEqual({"stages", "stream", "idle"}, kinds)
        for lane in run["timeline"]["lanes"]:
            for column in ("begin", "end", "label", "stage", "count", "busy", "id", "estimated"):
                self.assertEqual(len(lane[column]), len(lane["begin"]))
            self.assertEqual(lane["begin"], sorted(lane["begin"]))
            self.assertTrue(all(e <= b for e, b in zip(lane["end"], lane["begin"][1:])), lane["name"])

    def test_requests(self):
        shutil.copytree(HERE.parent / "runs/serving", self.folder / "serving.llmprof", copy_function=shutil.copy)
        _, data = self.page("serving")
        run = data["runs"][0]
        requests, rows = run["requests"], run["requests"]["rows"]
        self.assertEqual(run["report"]["requests"]["all"], [])  # they are the columns
        self.assertEqual({len(column) for column in rows.values()}, {24})
        # Time in steps, by another way.
        states, expected = requests["states"], {row["request_id"]: row for row in self.query("serving", """
            SELECT m.request_id, count(*) AS steps, sum(m.time_ns) AS part, sum(s.end_ns - s.turn_ns) FILTER (m.prefill) AS prefill,
              sum(s.end_ns - s.turn_ns) FILTER (NOT m.prefill) AS decode, sum(m.attention_ns) AS attention
            FROM step_member AS m JOIN step AS s ON s.id = m.step_id WHERE m.request_id IS NOT NULL GROUP BY 1""")}
        for place, request in enumerate(rows["id"]):
            spent = {states[state]: ns for state, ns, _ in rows["in_states"][place]}
            want = expected[request]
            self.assertEqual(spent.get("prefill", 0), want["prefill"])
            self.assertEqual(spent.get("decode", 0) + spent.get("stalled", 0), want["decode"] or 0)
            self.assertEqual((rows["time_ns"][place], rows["attention_ns"][place]), (want["part"], want["attention"]))
            self.assertEqual(sum(steps for _, _, steps in rows["in_states"][place]), want["steps"])
        parts = requests["parts"]
        self.assertEqual(sum(parts["steps"]), sum(row["steps"] for row in expected.values()))
        self.assertIn("preempted", {states[state] for state in parts["state"]})
        self.assertEqual(sorted(requests["members"]["requests"]), sorted(rows["id"]))
        waiting = next(curve for curve in requests["curves"] if curve["name"] == "waiting")
        self.assertEqual(max(waiting["high"]), self.query("serving", """
            SELECT max(n) AS n FROM (SELECT (SELECT count(*) FROM request AS b WHERE b.arrival_ns <= a.arrival_ns AND a.arrival_ns <
              (SELECT min(s.turn_ns) FROM step_member AS m JOIN step AS s ON s.id = m.step_id WHERE m.request_id = b.id)) AS n
              FROM request AS a)""")[0]["n"])

    def test_hostile_names_stay_names(self):
        run = self.folder / "<img src=x onerror=window.hostile_ran=99>.llmprof"
        subprocess.run([MAKE_HOSTILE, run], check=True, timeout=600)
        names = [json.loads(line) for line in
                 subprocess.run([MAKE_HOSTILE, "--names"], check=True, capture_output=True, text=True, timeout=600).stdout.strip().split("\n")]
        self.assertEqual(len(names), 40)
        text, data = self.page(str(run))
        for name in names:
            if "<" in name:
                self.assertNotIn(name, text)
        everything = json.dumps(data, ensure_ascii=False)
        shown = data["runs"][0]
        labels = set(shown["timeline"]["names"]) | set(shown["flame"]["names"])
        for name in names:
            self.assertIn(name, labels)  # as data they are whole: the page shows them as text
        self.assertNotIn("hf_abcdefghijklmnopqrstuvwxyz123456", everything)
        self.assertNotIn("/home/ann", everything)
        self.assertIn("~/secret", everything)

    def test_two_runs_and_what_changed(self):
        for name in ("before", "after"):
            shutil.copytree(HERE.parent / "runs/h200_decode", self.folder / f"{name}.llmprof", copy_function=shutil.copy)
        _, data = self.page("after", "--against", "before")
        self.assertEqual([run["name"] for run in data["runs"]], ["after", "before"])
        flame = data["diffs"][0]["flame"]
        self.assertEqual(flame["before"], flame["after"])  # the same run twice
        self.assertGreater(sum(flame["before"][0]), 0)

    def test_runs_with_little_in_them(self):
        self.record("nothing", "/bin/true")
        _, data = self.page("nothing")
        self.assertEqual(data["runs"][0]["flame"]["total"][0], 0)
        self.assertTrue(data["runs"][0]["roofline"]["why"])

    def test_mistakes(self):
        self.assertIn("no_such_run", self.llmprof("report", "no_such_run", "--html", "x.html", status=2).stderr)
        self.assertFalse((self.folder / "x.html").exists())
        self.record("nothing", "/bin/true")
        (self.folder / "taken").mkdir()
        self.assertIn("taken", self.llmprof("report", "nothing", "--html", "taken", status=1).stderr)
        self.assertIn("nowhere", self.llmprof("report", "nothing", "--html", "nowhere/x.html", status=2).stderr)
        self.assertFalse([name for name in os.listdir(self.folder) if ".tmp" in name])

    def test_the_data_alone(self):
        self.record("nothing", "/bin/true")
        self.llmprof("report", "nothing", "--html", "page.json")
        data = json.loads((self.folder / "page.json").read_text())
        self.assertEqual(list(data), ["made_by", "runs", "diffs"])


if __name__ == "__main__":
    unittest.main()
