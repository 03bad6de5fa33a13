"""The runner of `make test-ecosystem` itself: when it is skipped, when it fails, what becomes of a known gap."""
import importlib.util
import os
import pathlib
import sys
import unittest
import unittest.mock

from harness import BIN, Case

ECOSYSTEM = pathlib.Path(__file__).resolve().parents[1] / "ecosystem"
sys.path.insert(0, str(ECOSYSTEM))
sys.dont_write_bytecode = True

import case  # noqa: E402
import known_gaps  # noqa: E402
import packages  # noqa: E402


class EcosystemTest(Case):
    def test_no_index_is_a_skip(self):
        environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:1/simple", "CI": "true",
                       "PIP_CACHE_DIR": str(self.folder / "cache"), "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
        if importlib.util.find_spec("ensurepip") is None:
            self.skipTest("this Python cannot make a venv")
        done = self.run_command([sys.executable, str(ECOSYSTEM / "run.py"), "--build", str(BIN.parent), "--venv",
                                 str(self.folder / "venv")], env=environment, timeout=600)
        self.assertIn("ecosystem: SKIPPED, no package index can be reached", done.stdout)
        self.assertRegex(done.stdout, r"\n0 passed, 0 failed, \d+ skipped\n$")
        self.assertFalse((self.folder / "venv").exists())

    def test_what_pip_says(self):
        self.assertTrue(packages.is_unreachable("ERROR: Could not find a version … mdurl==0.1.2 (from versions: none)"))
        self.assertFalse(packages.is_unreachable("ERROR: Could not find a version … mdurl==9 (from versions: 0.1.1, 0.1.2)"))

    def test_pins_are_exact(self):
        wanted = packages.pins()
        self.assertIn(packages.PROBE, wanted)
        self.assertTrue(all(version and version[0].isdigit() for version in wanted.values()), wanted)

    def test_a_closed_gap_fails(self):
        lines = []
        tally = case.Tally(lines.append)
        one = case.Case("x", tally, None, None, None)
        name = "a_gap"  # there may be none at the moment
        with unittest.mock.patch.dict(known_gaps.GAPS, {name: "something is not told"}):
            one.gap(name, False)
            self.assertEqual((tally.failed, lines[-1].split()[0]), (0, "gap"))
            one.gap(name, True)
            self.assertEqual((tally.failed, lines[-1].split()[0]), (1, "FAIL"))
            self.assertIn(f"{name} is closed", lines[-1])
            with self.assertRaises(KeyError):
                one.gap("a gap that is not listed", False)


if __name__ == "__main__":
    unittest.main()
