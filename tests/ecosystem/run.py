#!/usr/bin/env python3
"""Real frameworks under `llmprof record`, on the CPU, held against their own figures. Makes a venv of pinned packages,
runs every case, prints one line per test, and `N passed, M failed, K skipped`. Where no package index can be reached, and
the venv is not there yet, it says so and is skipped."""
import argparse
import pathlib
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import case  # noqa: E402
import cases  # noqa: E402
import known_gaps  # noqa: E402
import packages  # noqa: E402


def say(text):
    print(text, flush=True)


def run_case(name, packages_needed, test, tally, llmprof, venv, folder):
    one = case.Case(name, tally, llmprof, venv, folder)
    missing = [package for package in packages_needed if not venv.has(package)]
    if missing:
        one.skip(f"{' and '.join(missing)} not installed: the torch that pip would take here is a build for CUDA, of several "
                 "GB; give pip one for CPUs (PIP_FIND_LINKS, PIP_EXTRA_INDEX_URL)")
        return False
    try:
        test(one)
        return True
    except case.Ended as why:
        one.hold(str(why), False, "the case ends here")
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the built tree: bin/ and lib/llmprof/")
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "build/ecosystem-venv", help="where the venv is kept")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name holds this")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leaves no scratch folder behind
    began = time.monotonic()
    llmprof = options.build.resolve() / "bin/llmprof"
    if not llmprof.exists():
        sys.exit(f"ecosystem: no {llmprof}: make build, or --build FOLDER")
    try:
        venv = packages.make(options.venv.resolve(), say)
    except packages.Unreachable as why:
        say(f"ecosystem: SKIPPED, no package index can be reached from here (pip: {why})")
        say(f"0 passed, 0 failed, {len(cases.CASES)} skipped")
        return 0
    except packages.Broken as why:
        say(f"ecosystem: the venv could not be made: {why}")
        say("0 passed, 1 failed, 0 skipped")
        return 1
    tally, whole, times = case.Tally(say), not options.only, []
    with tempfile.TemporaryDirectory(prefix="llmprof-ecosystem-") as scratch:
        for name, needed, test in cases.CASES:
            if options.only in name:
                start = time.monotonic()
                whole &= run_case(name, needed, test, tally, str(llmprof), venv, pathlib.Path(scratch))
                times.append(f"{name} {time.monotonic() - start:.0f}")
    for name in sorted(set(known_gaps.GAPS) - set(tally.gaps)) if whole else []:
        tally.failed += 1
        tally.line("FAIL", "known gaps", f"no test looks at {name}")
    say(f"ecosystem: {len(tally.gaps)} known gaps; {time.monotonic() - began:.0f} s ({', '.join(times)}), of CPU time "
        f"{case.children_cpu_s():.0f} s")
    say(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
