"""`llmprof roofline` on the CPU: what it measures, what it keeps, and who uses it."""
import json
import signal
import struct
import subprocess
import time
import unittest
import zlib

from harness import LLMPROF, SYSTEM_PYTHON, Case

STREAMS = ("read", "write", "copy", "triad")


def read_png(data):
    """Width, height and rows of 8-bit RGB or RGBA pixels, by the format's own rules."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
    at, packed, width, height, channels = 8, b"", 0, 0, 0
    while at < len(data):
        (length,) = struct.unpack(">I", data[at:at + 4])
        kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + length]
        (crc,) = struct.unpack(">I", data[at + 8 + length:at + 12 + length])
        assert crc == zlib.crc32(kind + body), kind
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6), (depth, colour)
            channels = 3 if colour == 2 else 4
        if kind == b"IDAT":
            packed += body
        at += 12 + length
    rows = zlib.decompress(packed)
    assert len(rows) == height * (1 + width * channels), (len(rows), width, height)
    return width, height, rows


class Roofline(Case):
    measured = None

    def setUp(self):
        super().setUp()
        self.environment["CUDA_VISIBLE_DEVICES"] = ""  # the same test with and without a GPU

    def stored(self):
        files = list((self.folder / "cache").glob("peaks-cpu-*.json"))
        return json.loads(files[0].read_text()) if files else None

    def store(self, float32=5e9, read=2e9, method="by hand"):
        """What an idle machine of the past measured."""
        if not Roofline.measured:  # once: only its form is used
            self.llmprof("roofline", "--device", "cpu", "--quick", "--dtype", "float32")
            path = next((self.folder / "cache").glob("peaks-cpu-*.json"))
            Roofline.measured = (path.name, path.read_text())
        (self.folder / "cache").mkdir(exist_ok=True)
        path = self.folder / "cache" / Roofline.measured[0]
        document = json.loads(Roofline.measured[1])
        document["peaks"] = [
            {"quantity": "flops", "type": "float32", "value": float32, "unit": "FLOP/s", "source": "measured", "method": method},
            {"quantity": "bandwidth", "type": "read", "value": read, "unit": "B/s", "source": "measured", "method": method},
            {"quantity": "bandwidth", "type": "triad", "value": 0.9 * read, "unit": "B/s", "source": "measured", "method": method}]
        path.write_text(json.dumps(document))

    def test_measures_keeps_and_shows(self):
        out = json.loads(self.llmprof("roofline", "--device", "cpu", "--quick", "--json").stdout)
        self.assertEqual((out["schema"], out["schema_version"]), ("llmprof.roofline", 1))
        device = out["devices"][0]
        self.assertEqual(device["device"]["kind"], "cpu")
        self.assertTrue(device["quick"])
        self.assertFalse(device["stored"])
        self.assertGreater(device["seconds"], 0)
        peaks = {(p["quantity"], p["type"]): p for p in device["peaks"]}
        self.assertEqual(len(peaks), len(device["peaks"]), "a peak is there twice")
        for type_ in ("float32", "float64"):
            for suffix in ("", ", one core", ", OpenBLAS", ", OpenBLAS, one core"):
                self.assertIn(("flops", type_ + suffix), peaks)
        for stream in STREAMS:
            for suffix in ("", ", one core"):
                self.assertIn(("bandwidth", stream + suffix), peaks)
        for peak in device["peaks"]:
            if peak["value"] is None:
                self.assertTrue(peak["why"], peak)
                continue
            self.assertGreater(peak["value"], 1e6, peak)
            self.assertEqual(peak["source"], "measured")
            self.assertTrue(peak["method"], peak)
            self.assertIsNone(peak["why"])
        float32 = peaks["flops", "float32"]
        fastest = max(peaks["bandwidth", stream + suffix]["value"] for stream in STREAMS for suffix in ("", ", one core"))
        self.assertAlmostEqual(float32["ridge_flops_per_byte"], float32["value"] / fastest)
        self.assertGreaterEqual(float32["value"], peaks["flops", "float32, one core"]["value"])
        # The store holds exactly what was measured.
        stored = {(p["quantity"], p["type"]): p["value"] for p in self.stored()["peaks"]}
        self.assertEqual(stored, {key: p["value"] for key, p in peaks.items() if p["value"] is not None})
        # Others see it without measuring.
        shown = json.loads(self.llmprof("roofline", "--device", "cpu", "--stored", "--json").stdout)["devices"][0]
        self.assertTrue(shown["stored"])
        self.assertEqual({(p["quantity"], p["type"]): p["value"] for p in shown["peaks"]}, stored)
        listed = json.loads(self.llmprof("devices", "--json").stdout)["devices"][0]
        self.assertEqual(len(listed["peaks"]), len(stored))
        text = self.llmprof("roofline", "--device", "cpu", "--stored").stdout
        for words in ("float32", "ridge", "memory, one core", "FLOP per byte"):
            self.assertIn(words, text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 100)

    def test_a_report_and_a_model_use_them(self):
        self.store()
        self.record("run", SYSTEM_PYTHON, "-c", "pass", options=())
        card = self.report("run")["devices"][0]
        self.assertEqual((card["peak_flops"], card["peak_flops_method"]), (5e9, "by hand"))
        self.assertEqual((card["peak_bandwidth"], card["peak_bandwidth_source"]), (2e9, "measured"))
        model = json.loads(self.llmprof("model", "llama3-8b", "--device", "cpu", "--json").stdout)
        self.assertEqual(model["device"]["bandwidth_peak"]["per_second"], 2e9)

    def test_record_measures_where_nothing_is_stored(self):
        self.record("run", SYSTEM_PYTHON, "-c", "pass", options=())
        self.assertEqual([p["type"] for p in self.stored()["peaks"]], ["float32", "float64", "read", "triad"])

    def test_some_types_replace_their_own(self):
        self.store(float32=1, read=2)
        self.llmprof("roofline", "--device", "cpu", "--quick", "--dtype", "float64")
        peaks = {p["type"]: p["value"] for p in self.stored()["peaks"] if p["quantity"] == "flops"}
        self.assertEqual(peaks["float32"], 1)
        self.assertGreater(peaks["float64"], 1e6)
        self.assertNotEqual({p["type"]: p["value"] for p in self.stored()["peaks"]}["read"], 2)

    def test_a_quick_measurement_lowers_nothing_that_is_stored(self):
        self.store(float32=1e15, read=2)
        text = self.llmprof("roofline", "--device", "cpu", "--quick", "--dtype", "float32").stdout
        self.assertIn("float32 (stored 1.00 PFLOP/s, now ", " ".join(text.split()))
        stored = {p["type"]: p for p in self.stored()["peaks"]}
        self.assertEqual((stored["float32"]["value"], stored["float32"]["method"]), (1e15, "by hand"))
        self.assertGreater(stored["read"]["value"], 2)
        self.assertIn("short measurement", stored["read"]["method"])

    def test_no_store(self):
        self.llmprof("roofline", "--device", "cpu", "--quick", "--dtype", "float32", "--no-store")
        self.assertIsNone(self.stored())

    def test_ctrl_c_leaves_the_store_as_it_was(self):
        self.store()
        before = self.stored()
        process = subprocess.Popen([LLMPROF, "roofline", "--device", "cpu"], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 130, error)
        self.assertIn("interrupted", error)
        self.assertEqual(self.stored(), before)

    def test_pictures(self):
        self.store(float32=64e9, read=8e9)
        self.llmprof("roofline", "--device", "cpu", "--stored", "--plot", "roof.svg")
        svg = (self.folder / "roof.svg").read_text()
        self.assertTrue(svg.startswith("<svg"))
        self.assertIn("float32: 8.00", svg)  # the ridge: 64 / 8
        done = self.llmprof("roofline", "--device", "cpu", "--stored", "--plot", "roof.png", status=None)
        if done.returncode != 0:
            self.assertIn("librsvg2-2", done.stderr)
            self.skipTest("no librsvg here")
        width, height, rows = read_png((self.folder / "roof.png").read_bytes())
        self.assertEqual((width, height), (2 * 860, 2 * 480))
        self.assertGreater(len(set(rows)), 20, "an empty picture")

    def test_a_type_that_is_not_measured_is_a_row_that_says_so(self):
        out = json.loads(self.llmprof("roofline", "--device", "cpu", "--quick", "--dtype", "bf16", "--json").stdout)
        row = next(p for p in out["devices"][0]["peaks"] if p["type"] == "bfloat16")
        self.assertIsNone(row["value"])
        self.assertIn("not measured on a CPU", row["why"])

    def test_bad_input(self):
        for words, status, expected in ((("--device", "tpu"), 1, "unknown device tpu"),
                                        (("--device", "cuda:x"), 1, "cuda:x"),
                                        (("--device", "cuda:7"), 2, "CUDA"),
                                        (("--dtype", "float5"), 1, "no type 'float5'"),
                                        (("--dtype", "bf16,"), 1, "no type ''"),
                                        (("--plot", "roof.gif"), 1, "roof.gif"),
                                        (("--all", "--device", "cpu"), 1, "--all and --device")):
            done = self.llmprof("roofline", *words, status=status)
            self.assertIn(expected, done.stderr)
            self.assertIn("hint: ", done.stderr)
            self.assertIsNone(self.stored())


if __name__ == "__main__":
    unittest.main()
