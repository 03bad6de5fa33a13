#!/usr/bin/env python3
"""llmprof plot and report --explain: a run of an H200 (tests/runs/README.md), a recorded program, runs with little in them."""
import json
import shutil
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from harness import LLMPROF, Case

SAMPLE = Path(__file__).resolve().parents[1] / "runs" / "h200_decode"
PICTURES = ("roofline", "timeline", "flame", "waterfall", "steps")
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert(1)</script>\x1b[31m&\"'"


class Analysed(Case):
    """Each test has a copy of the run in which an earlier report has left its results: what a report costs is not asked here."""

    @classmethod
    def setUpClass(cls):
        cls.analysed = Path(tempfile.mkdtemp(prefix="llmprof-e2e-")) / "run.llmprof"
        cls.addClassCleanup(shutil.rmtree, cls.analysed.parent, ignore_errors=True)
        shutil.copytree(SAMPLE, cls.analysed)
        subprocess.run([LLMPROF, "report", str(cls.analysed)], stdout=subprocess.DEVNULL, check=True)

    def setUp(self):
        super().setUp()
        shutil.copytree(self.analysed, self.folder / "run.llmprof")


class Plot(Analysed):
    def svg(self, *words, name="picture.svg"):
        self.llmprof("plot", *words, "-o", name)
        return xml.parse(self.folder / name).getroot()

    def test_every_picture_is_an_svg_that_needs_nothing_else(self):
        for picture in PICTURES:
            root = self.svg("run", picture, name=f"{picture}.svg")
            self.assertEqual(root.tag, SVG + "svg")
            self.assertEqual(root.get("width"), "860")
            text = (self.folder / f"{picture}.svg").read_text()
            for forbidden in ("<script", "<image", "href", "@import", "url(", "prefers-color-scheme"):
                self.assertNotIn(forbidden, text)
            inside = [element.text or "" for element in root.iter(SVG + "text")]
            self.assertGreater(len(inside), 4, picture)
            width, height = float(root.get("width")), float(root.get("height"))
            for element in root.iter(SVG + "text"):  # nothing begins outside the picture
                self.assertTrue(0 <= float(element.get("x")) <= width and 0 <= float(element.get("y")) <= height, picture)

    def test_size_title_and_dark(self):
        root = self.svg("run", "steps", "--width", "500", "--title", HOSTILE, "--dark")
        self.assertEqual(root.get("width"), "500")
        self.assertIn("alert(1)", root.find(SVG + "title").text)
        self.assertIsNone(root.find(".//" + SVG + "script"))
        self.assertIn("#14171a", root.find(SVG + "style").text)

    def test_png(self):
        done = self.llmprof("plot", "run", "waterfall", "-o", "picture.png", status=None)
        if done.returncode != 0:  # only where librsvg is not there
            self.assertIn("librsvg", done.stderr)
            return
        head = (self.folder / "picture.png").read_bytes()[:24]
        self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">I", head[16:20])[0], 2 * 860)

    def test_in_the_terminal(self):
        for picture in ("roofline", "waterfall", "steps"):
            text = self.llmprof("plot", "run", picture).stdout
            self.assertGreater(len(text.splitlines()), 8, picture)
            self.assertLessEqual(max(map(len, text.splitlines())), 100)
            ascii_only = self.llmprof("plot", "run", picture, env={**self.environment, "LC_ALL": "C"}).stdout
            self.assertTrue(ascii_only.isascii(), picture)
        for picture in ("timeline", "flame"):
            self.assertIn(f"{picture}.svg", self.llmprof("plot", "run", picture, status=1).stderr)

    def test_the_numbers_as_json(self):
        steps = json.loads(self.llmprof("plot", "run", "steps", "--stage", "decode", "--json").stdout)
        self.assertEqual((steps["schema"], steps["picture"]), ("llmprof.plot", "steps"))
        (series,) = steps["data"]["series"]
        rows = self.query("run", "SELECT count(*) AS n FROM step WHERE stage = 'decode'")
        self.assertEqual(len(series["points"]), rows[0]["n"])
        for picture in ("roofline", "timeline", "flame", "waterfall"):
            self.assertTrue(json.loads(self.llmprof("plot", "run", picture, "--json").stdout)["data"], picture)

    def test_one_stage_and_a_window(self):
        whole = json.loads(self.llmprof("plot", "run", "timeline", "--json").stdout)["data"]
        stage = json.loads(self.llmprof("plot", "run", "timeline", "--stage", "decode", "--json").stdout)["data"]
        self.assertLess(stage["window"][1] - stage["window"][0], whole["window"][1] - whole["window"][0])
        begin = (stage["window"][0] - whole["run"][0]) // 1_000_000  # ms
        window = f"{begin + 10}ms:{begin + 20}ms"
        part = json.loads(self.llmprof("plot", "run", "timeline", "--window", window, "--json").stdout)["data"]
        self.assertEqual(part["window"], [whole["run"][0] + (begin + ms) * 1_000_000 for ms in (10, 20)])

    def test_what_cannot_be_asked(self):
        for words, says in ((("nowhere", "steps"), "nowhere"), (("run", "pie"), "pictures: roofline"),
                            (("run", "steps", "--stage", "dream"), "it has prefill, decode"),
                            (("run", "steps", "-o", "x.gif"), ".svg or .png"), (("run", "steps", "--width", "9"), "360"),
                            (("run", "timeline", "--window", "2s:1s"), "--window 1.5s:2s"),
                            (("run", "flame", "--weight", "love"), "gpu, cpu or bytes")):
            done = self.llmprof("plot", *words, status=None)
            self.assertIn(done.returncode, (1, 2), words)
            self.assertIn(says, done.stderr, words)
            self.assertEqual(done.stdout, "")

    def test_a_run_with_nothing_of_it_says_what_it_has(self):
        self.record("empty", "/bin/true", status=None)
        for picture in ("roofline", "waterfall", "steps"):
            done = self.llmprof("plot", "empty", picture, status=2)
            self.assertIn(f"no {picture} of", done.stderr)
            self.assertIn("hint:", done.stderr)

    def test_a_run_of_one_step_still_has_its_timeline(self):
        shutil.copytree(SAMPLE.parent / "v1_sample", self.folder / "old.llmprof")
        done = self.llmprof("plot", "old", "steps", status=2)
        self.assertIn("timeline", done.stderr)
        self.assertEqual(self.svg("old", "timeline").tag, SVG + "svg")


class Explain(Analysed):
    def test_a_measure(self):
        text = self.llmprof("report", "run", "--explain", "decode.mbu").stdout
        mbu = next(m for m in self.report("run")["measures"] if m["name"] == "decode.mbu")
        self.assertIn(f"decode.mbu = {100 * mbu['value']:.1f} %", text)
        for part in ("formula:", "source: analytic", mbu["of"][:10], "llmprof query"):
            self.assertIn(part, text)

    def test_the_rows_behind_measures_can_be_asked(self):
        measures = json.loads(self.llmprof("report", "run", "--explain", "list", "--json").stdout)["measures"]
        questions = {measure["rows"] for measure in measures if measure["rows"]}
        self.assertGreater(len(questions), 10)
        for sql in questions:
            self.llmprof("query", "run", sql, "--limit", "1")

    def test_a_rule(self):
        report = self.report("run")
        rules = {rule["rule"]: rule for rule in report["diagnosis"]["rules"]}
        for name, rule in list(rules.items())[:3]:
            self.assertIn(rule["outcome"], self.llmprof("report", "run", "--explain", name).stdout)
        found = report["diagnosis"]["findings"]
        if found:
            text = " ".join(self.llmprof("report", "run", "--explain", found[0]["rule"]).stdout.split())
            for evidence in found[0]["evidence"]:
                self.assertIn(evidence["name"], text)

    def test_without_a_run(self):
        self.assertIn("formula:", self.llmprof("report", "--explain", "mbu").stdout)
        names = json.loads(self.llmprof("report", "--explain", "list", "--json").stdout)
        self.assertIn("tpot_p50", [measure["name"] for measure in names["measures"]])
        self.assertIn("Using run.llmprof", self.llmprof("report").stderr)

    def test_near_names(self):
        self.assertIn("decode.mbu", self.llmprof("report", "run", "--explain", "decode.mbuu", status=1).stderr)
        self.assertIn("tpot_p50", self.llmprof("report", "run", "--explain", "tpot", status=1).stderr)
        self.assertIn("--explain list", self.llmprof("report", "run", "--explain", "zzzzzzzzzzzz", status=1).stderr)

    def test_the_diagnosis_comes_first(self):
        lines = self.llmprof("report", "run", "--full").stdout.splitlines()
        begin = lines.index("Diagnosis")
        self.assertLess(lines.index("Coverage"), begin)
        self.assertLessEqual(max(map(len, lines)), 100)
        full = self.llmprof("report", "run", "--diagnosis").stdout
        self.assertIn("Checks", full)
        self.assertNotIn("Matrix products by time", full)
        self.assertTrue(self.llmprof("report", "run", "--full", env={**self.environment, "LC_ALL": "C"}).stdout)


if __name__ == "__main__":
    unittest.main()
