"""One program of tests/ecosystem/programs: run alone and recorded, and what came out held against what is true."""
import json
import pathlib
import resource
import subprocess
import time

import known_gaps
from packages import environment

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
PATIENCE_S = 300  # only against programs that hang


class Ended(Exception):
    """The rest of a case makes no sense."""


class Tally:
    """Prints one line per test and counts them; keeps what programs printed alone, which several cases need."""

    def __init__(self, say):
        self.say, self.passed, self.failed, self.skipped, self.gaps, self.alone = say, 0, 0, 0, set(), {}

    def line(self, word, case, text):
        self.say(f"{word:<5} {case}: {text}")


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Run:
    """A recorded run, and what its program printed."""

    def __init__(self, path, llmprof, own, wall_s, cpu_s):
        self.path, self.llmprof, self.own, self.wall_s, self.cpu_s = path, llmprof, own, wall_s, cpu_s
        self.report = json.loads(self.ask("report", self.path, "--json"))
        self.text = self.ask("report", self.path, "--full")
        self.sentences = " ".join(self.text.split())
        self.stages = {stage["name"]: stage for stage in self.report["stages"]}
        self.process = self.report["host"]["processes"][0] if self.report["host"]["processes"] else None

    def ask(self, *words):
        done = subprocess.run([self.llmprof, *words], capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**environment(), "LLMPROF_CACHE_DIR": str(pathlib.Path(self.path).parent / "cache")})
        if done.returncode != 0:
            raise Ended(f"llmprof {words[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def query(self, sql):
        return json.loads(self.ask("query", self.path, sql, "--json", "--limit", "1000000"))["rows"]

    def products(self):
        """{(m, n, k): calls} of the matrix products that were seen."""
        rows = self.query("select m, n, k, sum(batch) as calls from gemm group by all")
        return {(row["m"], row["n"], row["k"]): int(row["calls"]) for row in rows}


class Case:
    def __init__(self, name, tally, llmprof, venv, folder):
        self.name, self.tally, self.llmprof, self.venv, self.folder = name, tally, llmprof, venv, folder

    # What is true, and what is said.
    def hold(self, what, good, seen=""):
        """One test: `what` was held against what, `seen` what came out."""
        if good:
            self.tally.passed += 1
            self.tally.line("ok", self.name, what + (f" ({seen})" if seen != "" else ""))
        else:
            self.tally.failed += 1
            self.tally.line("FAIL", self.name, what + f"; seen: {seen}")
        return good

    def equal(self, what, left, right):
        shown = str(left) if len(str(left)) <= 120 else f"{len(left)} rows"
        return self.hold(what, left == right, shown if left == right else f"{left} instead of {right}")

    def within(self, what, left, right, share, extra=0.0):
        """`left` is `right`, but for a share of it and an extra."""
        return self.hold(f"{what}, within {share:.0%}" + (f" and {extra:g}" if extra else ""),
                         abs(left - right) <= share * abs(right) + extra, f"{left:.4g} and {right:.4g}")

    def gap(self, name, good, seen=""):
        """A test that fails today, and is known to; when it begins to pass, its entry must go."""
        text = known_gaps.GAPS[name]
        self.tally.gaps.add(name)
        if good:
            self.tally.failed += 1
            self.tally.line("FAIL", self.name, f"the known gap {name} is closed: hold it with hold(), and take it out of "
                                               f"known_gaps.py: {text}")
        else:
            self.tally.line("gap", self.name, f"{name}: {text}" + (f" ({seen})" if seen != "" else ""))

    def skip(self, what):
        self.tally.skipped += 1
        self.tally.line("skip", self.name, what)

    # Programs.
    def execute(self, words):
        began, before = time.monotonic(), children_cpu_s()
        try:
            done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**environment(), "LLMPROF_CACHE_DIR": str(self.folder / "cache")})
        except subprocess.TimeoutExpired:
            raise Ended(f"did not end within {PATIENCE_S} s: {' '.join(words)}") from None
        return done, time.monotonic() - began, children_cpu_s() - before

    def command(self, program, *words):
        return [self.venv.python, str(PROGRAMS / program), *words]

    def alone(self, program, *words, status=0):
        if (program, words) not in self.tally.alone:
            done, _, _ = self.execute(self.command(program, *words))
            if done.returncode != status:
                raise Ended(f"the program alone ended with {done.returncode}: {done.stderr.strip()[-500:]}")
            self.tally.alone[program, words] = json.loads(done.stdout.splitlines()[-1])
        return self.tally.alone[program, words]

    def recorded(self, program, *words, options=(), status=0):
        path = str(self.folder / f"{pathlib.Path(program).stem}{len(options)}{len(words)}")
        done, wall_s, cpu_s = self.execute([self.llmprof, "record", "-f", "--no-peaks", "-o", path, *options, "--",
                                     *self.command(program, *words)])
        if not self.hold(f"exit status of {program} under record is its own", done.returncode == status, done.returncode):
            raise Ended(done.stderr.strip()[-500:])
        return Run(path, self.llmprof, json.loads(done.stdout.splitlines()[-1]), wall_s, cpu_s)

    def same_output(self, alone, run, keys):
        """What the program computed is the same to the last bit, recorded or not."""
        for key in keys:
            self.hold(f"{key} printed under record against those printed alone, to the last bit",
                      alone[key] == run.own[key], f"{alone[key]} alone, {run.own[key]} recorded"
                      if alone[key] != run.own[key] else f"{len(alone[key])} values" if isinstance(alone[key], list) else "")

    def whole(self, run, alone, same_threads=True):
        """What holds for every program: nothing lost, one process, its memory, CPU time and threads, its life."""
        self.hold("no data loss in the run, and llmprof check finds nothing",
                  run.report["coverage"]["data_losses"] == 0 and run.ask("check", run.path) != "")
        images = run.query("select pid, exit_status, injected from process")
        self.equal("process, its pid and exit status against the program's own", images,
                   [{"pid": run.own["pid"], "exit_status": 0, "injected": True}])
        seen, own = run.process, run.own
        self.within("peak memory seen from outside against getrusage's, bytes", seen["peak_rss_bytes"],
                    own["peak_kib"] * 1024, 0.03, 4e6)
        cpu_s = (seen["user_ns"] + seen["system_ns"]) / 1e9
        self.hold("CPU time seen from outside lies between the program's own before its end and that of the whole command, s",
                  own["cpu_s"] * 0.98 - 0.05 <= cpu_s <= run.cpu_s + 0.05, f"{own['cpu_s']:.2f}, {cpu_s:.2f}, {run.cpu_s:.2f}")
        self.hold("threads seen from outside against those the program counts at its end: at least as many",
                  seen["most_threads"] >= own["threads"], f"{seen['most_threads']} and {own['threads']}")
        if same_threads:
            self.hold("threads under record against those alone: ours is at most one more",
                      0 <= own["threads"] - alone["threads"] <= 1, f"{own['threads']} and {alone['threads']}")
        life_s = seen["wall_ns"] / 1e9
        self.hold("life of the process lies between the program's own time and that of the whole command, s",
                  own["elapsed_s"] * 0.998 <= life_s <= run.wall_s, f"{own['elapsed_s']:.2f}, {life_s:.2f}, {run.wall_s:.2f}")
        stacks = run.report["stacks"]
        if stacks["why"] or not stacks["samples"]:
            self.skip(f"CPU time of the stack samples: {stacks['why'] or 'no samples'}")
        else:
            self.within("CPU time of the stack samples against that seen from outside, s", stacks["sampled_ns"] / 1e9, cpu_s,
                        0.20, 0.3)
