#!/usr/bin/env python3
"""What GPU capture costs, beside its peers, in one run: `perf/capture_overhead.py BIN [options] > table.md`.

All collectors' processes are alive at once and take turns on the GPU: a block of decode steps each, round by round, the
others stopped (SIGSTOP, recorder included) meanwhile. So every ratio is of two blocks a second apart. Ratios are medians
over all rounds with a 95 % interval by bootstrap (processes first, then rounds within them). Parts: graph (the decode
step as a CUDA graph), eager (transformers), rate (kernels as fast as they go), soak (one long replay under the default).
"""
import argparse
import json
import os
import pathlib
import random
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder of llmprof")
    parser.add_argument("--only", default="graph,eager,rate", help="parts: graph,eager,rate,soak")
    parser.add_argument("--collectors", default="", help="only these, beside none")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fleets", type=int, default=2, help="fresh sets of processes")
    parser.add_argument("--graph-steps", type=int, default=96)
    parser.add_argument("--eager-steps", type=int, default=32)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--budget", type=float, default=460, help="seconds for everything; rounds are cut short at it")
    parser.add_argument("--seconds", type=float, default=120, help="length of the soak")
    parser.add_argument("--workload", default=str(HERE / "workloads/decode.py"))
    parser.add_argument("--minimal", default="", help="libminimal_collector.so; built here with g++ if not given")
    parser.add_argument("--launch-rate", default="", help="the program launch_rate; built here with nvcc if not given")
    parser.add_argument("--kernels", type=int, default=1500000, help="of the rate part")
    parser.add_argument("--keep", default="", help="a folder to keep the runs in")
    parser.add_argument("--python", default=sys.executable)
    return parser.parse_args()


options = parse()
llmprof = str(pathlib.Path(options.bin).resolve() / "llmprof")
scratch = pathlib.Path(options.keep).resolve() if options.keep else pathlib.Path(tempfile.mkdtemp(prefix="llmprof-overhead-"))
scratch.mkdir(parents=True, exist_ok=True)
began = time.monotonic()
random.seed(0)


def say(text):
    print(f"[{time.monotonic() - began:5.0f} s] {text}", file=sys.stderr, flush=True)


def left():
    return options.budget - (time.monotonic() - began)


def built(given, source, words):
    """A program of ours: as given, or built here."""
    if given:
        return str(pathlib.Path(given).resolve())
    out = scratch / pathlib.Path(words[-1])
    words = [str(out) if word == words[-1] else word for word in words]
    try:
        done = subprocess.run([*words, str(HERE / source)], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{source}: {error}")
        return ""
    if done.returncode != 0:
        say(f"{source} was not built: {done.stderr[-300:]}")
        return ""
    return str(out)


def record(name, *flags):
    return [llmprof, "record", "-f", "-q", "--no-peaks", "--keep-capture", "-o", str(scratch / name), *flags, "--"]


def collectors(part):
    """Flags of record by the variables that they set. name -> (words before the program, words after it, environment, every how many rounds)."""
    minimal = {"CUDA_INJECTION64_PATH": minimal_library, "MINIMAL_OUT": str(scratch / f"{part}-minimal.json")}
    table = {"none": ([], [], {}, 1)}
    if minimal_library:
        table["minimal"] = ([], [], minimal, 1)
        if part == "graph":
            table["minimal, graph level"] = ([], [], dict(minimal, MINIMAL_KINDS="51"), 1)
    table["llmprof"] = (record(f"{part}-llmprof"), [], {}, 1)
    if part == "graph":
        table["llmprof --graphs all"] = (record("graph-all"), [], {"LLMPROF_GRAPHS": "2"}, 1)
        table["llmprof --graphs launch"] = (record("graph-launch"), [], {"LLMPROF_GRAPHS": "0"}, 1)
    table["llmprof --stacks python"] = (record(f"{part}-stacks"), [], {"LLMPROF_STACKS": "1"}, 1)
    table["torch.profiler"] = ([], ["--profile", "torch"], {}, 2)
    table["torch.profiler, full"] = ([], ["--profile", "torch_full"], {}, 4)
    table["Proton"] = ([], ["--profile", "proton"], {}, 1)
    nsys = shutil.which("nsys") or next((str(p) for p in pathlib.Path("/opt/nvidia").glob("nsight-systems/*/bin/nsys")), None)
    if nsys:
        for level in ("node", "graph") if part == "graph" else ("node",):
            table[f"nsys, {level}"] = ([nsys, "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none",
                                        f"--cuda-graph-trace={level}", "--force-overwrite=true", "-o",
                                        str(scratch / f"{part}-nsys-{level}")], [], {}, 1)
    if options.collectors:
        wanted = ["none", *options.collectors.split(",")]
        table = {name: row for name, row in table.items() if name in wanted}
    return table


class Player:
    """One collector's process tree."""

    def __init__(self, name, row, part):
        before, after, environment, self.every = row
        self.name, self.dead, self.blocks, self.rss, self.exit_s = name, "", [], None, None
        program = [options.python, "-u", options.workload, "--turns", "--layers", str(options.layers),
                   *(["--impl", "mini", "--graph"] if part == "graph" else ["--impl", "hf"]), *after]
        self.log = open(scratch / f"{part}-{name.replace(' ', '_')}.err", "w")
        self.process = subprocess.Popen([*before, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, env={**os.environ, **environment}, start_new_session=True, bufsize=0)
        self.pending = b""

    def answer(self, limit_s):
        """The next line of JSON the program prints."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            line, newline, rest = self.pending.partition(b"\n")
            if newline:
                self.pending = rest
                if line.startswith(b"{"):
                    return json.loads(line)
                continue
            if select.select([self.process.stdout], [], [], min(0.5, limit_s))[0]:
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                if not more:
                    break
                self.pending += more
        self.die("no answer" if self.process.poll() is None else f"ended with {self.process.returncode}")
        return None

    def die(self, why):
        self.log.flush()
        text = pathlib.Path(self.log.name).read_text(errors="replace").strip().splitlines()
        self.dead = f"{why}: {text[-1][:160] if text else ''}"
        say(f"{self.name}: {self.dead}")
        self.signal(signal.SIGKILL)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def tell(self, text):
        try:
            self.process.stdin.write(text.encode() + b"\n")
        except OSError as error:
            self.die(str(error))

    def block(self, steps):
        self.signal(signal.SIGCONT)
        self.tell(f"block {steps}")
        answer = None if self.dead else self.answer(60)
        self.signal(signal.SIGSTOP)
        return None if answer is None else statistics.median(answer["ms"])

    def end(self):
        """Time from the program's last statement to its end: what a profiler adds to it is the exit delay."""
        self.signal(signal.SIGCONT)
        self.tell("end")
        answer = None if self.dead else self.answer(60)
        if answer is None:
            return
        self.rss = answer["rss"]
        try:
            descriptor = os.pidfd_open(self.pid)
            select.select([descriptor], [], [], 60)
            os.close(descriptor)
        except OSError:
            pass
        self.exit_s = (time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - answer["end_ns"]) / 1e9


def play(part):
    """All blocks of one part: collector -> one list of medians per fleet, and what was seen at the ends."""
    steps = options.graph_steps if part == "graph" else options.eager_steps
    blocks, ends, dead = {}, {}, {}
    for fleet in range(options.fleets):
        if fleet > 0 and left() < 60:
            say("no time for another fleet")
            break
        players = [Player(name, row, part) for name, row in collectors(part).items()]
        for player in players:
            ready = player.answer(max(30, min(150, left())))
            player.pid = ready["ready"] if ready else 0
        for player in players:
            player.signal(signal.SIGSTOP)
        say(f"{part}: {sum(not p.dead for p in players)} of {len(players)} are ready")
        for number in range(options.rounds):
            if left() < 30:
                say(f"{part}: stopped after {number} rounds: the time is used up")
                break
            order = [p for p in players if not p.dead and number % p.every == 0]
            for player in order if number % 2 == 0 else reversed(order):
                median = player.block(steps)
                if median is not None:
                    player.blocks.append((number, median))
        for player in players:  # one after the other: an exit is timed, too
            if not player.dead:
                player.end()
            ends.setdefault(player.name, []).append((player.exit_s, player.rss))
            blocks.setdefault(player.name, []).append(dict(player.blocks))
            dead[player.name] = player.dead
        for player in players:
            try:
                player.process.wait(60)
            except subprocess.TimeoutExpired:
                player.die("did not end")
        say(f"{part}: fleet {fleet + 1} of {options.fleets} is done")
    return blocks, ends, dead


def interval(ratios_by_fleet, draws=2000):
    """Median of all ratios, and the 2.5 % and 97.5 % points of it under resampling."""
    fleets = [ratios for ratios in ratios_by_fleet if ratios]
    if not fleets:
        return None
    medians = []
    for _ in range(draws):
        picked = [random.choice(fleet) for fleet in random.choices(fleets, k=len(fleets)) for _ in fleet]
        medians.append(statistics.median(picked))
    medians.sort()
    return (statistics.median([r for fleet in fleets for r in fleet]), medians[int(0.025 * draws)], medians[int(0.975 * draws)])


def ratio(blocks, name, base):
    pairs = zip(blocks.get(name, []), blocks.get(base, []))
    return interval([[mine[n] / theirs[n] for n in mine if n in theirs] for mine, theirs in pairs])


def shown(value):
    return "-" if value is None else f"{value[0]:.3f} ({value[1]:.3f} - {value[2]:.3f})"


def print_part(part):
    blocks, ends, dead = play(part)
    title = "decode step as a CUDA graph" if part == "graph" else "eager, transformers"
    steps = options.graph_steps if part == "graph" else options.eager_steps
    rounds = sum(len(fleet) for fleet in blocks["none"])
    print(f"\n## {part}: {title}\n\n{rounds} rounds in {len(blocks['none'])} fleets, {steps} steps a block, medians; 95 % intervals.\n")
    versus = "minimal" if "minimal" in blocks else "none"
    print(f"| collector | ms/token | over none | over {versus} | over llmprof | exit, s | RSS over none, MiB |\n|---|---|---|---|---|---|---|")
    base_exit, base_rss = ends["none"][0]
    for name, fleets in blocks.items():
        times = [t for fleet in fleets for t in fleet.values()]
        if not times:
            print(f"| {name} | {dead[name]} | | | | | |")
            continue
        exits = [e for e, _ in ends[name] if e is not None]
        memory = [r for _, r in ends[name] if r is not None]
        exit_text = f"{statistics.median(exits):.2f}" if exits else "-"
        rss_text = f"{(statistics.median(memory) - base_rss) / 2**20:+.0f}" if memory and base_rss else "-"
        over_ours = shown(ratio(blocks, name, "llmprof")) if name.startswith("llmprof --") else ""
        print(f"| {name} | {statistics.median(times):.4f} | {shown(ratio(blocks, name, 'none'))} | "
              f"{shown(ratio(blocks, name, versus))} | {over_ours} | {exit_text} | {rss_text} |")
    print(f"\nExit: from the program's last statement to the end of its process; without a profiler "
          f"{'unknown' if base_exit is None else f'{base_exit:.2f} s'}.")
    print_runs([path.name for path in sorted(scratch.glob(f"{part}-*.llmprof"))])


def finished(words, limit_s, environment=None):
    """The command, done; None if it took too long."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=limit_s, env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        say(f"{' '.join(words)[:120]}: not done after {limit_s:.0f} s")
        return None


def query(run, sql):
    done = finished([llmprof, "query", str(scratch / run), sql, "--json"], 120)
    if done is None or done.returncode != 0:
        say(f"{run}: {sql[:60]}: {done.stderr.strip()[:200] if done else ''}")
        return None
    return json.loads(done.stdout)["rows"]


def listed(losses):
    return ", ".join(f"{loss['name']} {loss['n']}" for loss in losses or []) or "none"


def folder_bytes(path):
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.exists() else 0


SIZES = ("SELECT (SELECT count(*) FROM kernel) AS kernels, (SELECT count(*) FROM graph_launch) AS launches, "
         "(SELECT count(*) FROM copy) AS copies, (SELECT coalesce(sum(l.n * g.n), 0)::BIGINT FROM "
         "(SELECT graph, count(*) AS n FROM graph_launch WHERE NOT nodes_recorded GROUP BY graph) AS l JOIN "
         "(SELECT graph, count(*) AS n FROM graph_node WHERE kind = 'kernel' GROUP BY graph) AS g USING (graph)) AS in_graphs")
ATTRIBUTED = ("SELECT sum(time_ns) / 1e9 AS seconds, sum(time_ns) FILTER (stage IS NOT NULL AND stage <> 'other' AND known) / sum(time_ns) "
              "AS staged FROM work")


def print_runs(runs):
    """Sizes, losses and attribution of the recorded runs (of the last fleet)."""
    if not runs:
        return
    print("\n| run | executions | log, bytes each | tables of GPU work, bytes each | all tables | GPU time with a stage | losses |\n"
          "|---|---|---|---|---|---|---|")
    for run in runs:
        sizes = query(run, SIZES)
        if not sizes:
            print(f"| {run} | could not be read | | | | | |")
            continue
        row = sizes[0]
        executions = row["kernels"] + row["copies"] + row["in_graphs"]
        log, tables = folder_bytes(scratch / run / "capture"), folder_bytes(scratch / run / "tables")
        work = sum(file.stat().st_size for table in ("kernel", "copy", "graph_launch", "graph_node")
                   for file in (scratch / run / "tables").glob(f"{table}*.parquet"))
        staged = query(run, ATTRIBUTED)
        losses = query(run, "SELECT name, sum(count)::BIGINT AS n FROM loss WHERE severity <> 'info' GROUP BY name ORDER BY name")
        each = lambda n: f"{n / executions:.2f}" if executions else "-"
        share = f"{100 * staged[0]['staged']:.2f} %" if staged and staged[0]["staged"] is not None else "-"
        print(f"| {run} | {executions} ({row['kernels']} kernel rows, {row['launches']} graph launches) | {each(log)} | "
              f"{each(work)} | {each(tables)} | {share} | {listed(losses)} |")
        if not options.keep:
            shutil.rmtree(scratch / run / "capture", ignore_errors=True)


def run_program(words, environment=None, limit_s=120):
    """The program's line of JSON, and seconds from its end to the end of the command."""
    done = finished(words, limit_s, environment)
    if done is None:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        say(f"{words[:3]}: {done.returncode} {done.stderr.strip()[-200:]}")
        return None
    return json.loads(lines[-1])


def print_rate():
    program = built(options.launch_rate, "launch_rate.cu", [shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", "-O2",
                                                            "-cudart", "shared", "-o", "launch_rate"])
    if not program:
        return
    print("\n## rate: empty kernels\n\n| collector | threads | kernels/s | ns a launch | recorded | lost |\n|---|---|---|---|---|---|")
    for threads, pause_ns in ((1, 6600), (1, 0), (4, 0)):
        kernels = options.kernels // (2 if pause_ns else 1)
        arguments = [program, str(kernels), str(threads), str(pause_ns)]
        for name in ("none", "minimal", "llmprof"):
            if left() < 20 or (name == "minimal" and not minimal_library):
                continue
            run, out = f"rate-{threads}-{pause_ns}", scratch / "rate-minimal.json"
            environment = {"CUDA_INJECTION64_PATH": minimal_library, "MINIMAL_OUT": str(out)} if name == "minimal" else {}
            result = run_program([*(record(run) if name == "llmprof" else []), *arguments], environment)
            if result is None:
                continue
            recorded, lost = "", ""
            if name == "minimal" and out.exists():
                counts = json.loads(out.read_text())
                recorded, lost = f"{counts['kernels']} of {result['kernels']}", f"dropped {counts['dropped']}, zero times {counts['zero']}"
            if name == "llmprof":
                found = query(f"{run}.llmprof", "SELECT count(*) AS n FROM kernel WHERE name LIKE '%nothing%'")
                losses = query(f"{run}.llmprof", "SELECT name, sum(count)::BIGINT AS n FROM loss WHERE severity <> 'info' GROUP BY name")
                recorded = f"{found[0]['n'] if found else '?'} of {result['kernels']}"
                lost = listed(losses)
            what = "at 150 k/s" if pause_ns else "as fast as it goes"
            print(f"| {name} | {threads}, {what} | {result['kernels_per_s']:.0f} | {result['ns_per_launch']:.0f} | {recorded} | {lost} |", flush=True)
    print_runs([path.name for path in sorted(scratch.glob("rate-*.llmprof"))])


def print_soak():
    """One process replays for so long: does its memory grow, are its times valid?"""
    words = [options.python, "-u", options.workload, "--impl", "mini", "--graph", "--layers", str(options.layers), "--seconds",
             str(options.seconds)]
    say(f"soak: {options.seconds:.0f} s")
    result = run_program([*record("soak"), *words], limit_s=options.seconds + 120)
    if result is None:
        return
    memory = [(t, r) for t, r in result["memory"] if t > result["memory"][0][0] + options.seconds / 4]
    slope = statistics.linear_regression([t for t, _ in memory], [r for _, r in memory]).slope if len(memory) > 2 else 0
    bad = query("soak.llmprof", "SELECT coalesce(sum(count), 0)::BIGINT AS n FROM loss WHERE name IN ('zero_times', 'bad_time')")
    print(f"\n## soak: {options.seconds:.0f} s of graph replay under llmprof\n\n{result['rounds']} rounds of {result['steps']} steps, "
          f"{result['ms_per_token']:.4f} ms/token at the end. Resident memory of the program, last three quarters: "
          f"{slope * 60 / 2**20:+.2f} MiB a minute ({memory[0][1] / 2**20:.0f} to {memory[-1][1] / 2**20:.0f} MiB). "
          f"Executions without valid times: {bad[0]['n'] if bad else 'unknown'}.")
    print_runs(["soak.llmprof"])


minimal_library = built(options.minimal, "minimal_collector.cpp",
                        ["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", "-I", str(HERE.parent), "-ldl", "-o",
                         "libminimal_collector.so"])
gpu = subprocess.run("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader", shell=True, capture_output=True, text=True)
version = subprocess.run([llmprof, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
print(f"# What GPU capture costs\n\n{gpu.stdout.strip() or 'no GPU named'}; {version[0] if version else ''}; "
      f"{os.cpu_count()} cores; `{' '.join(map(os.path.basename, sys.argv[:1]))} {' '.join(sys.argv[2:])}`")
for part in options.only.split(","):
    try:
        {"graph": lambda: print_part("graph"), "eager": lambda: print_part("eager"), "rate": print_rate, "soak": print_soak}[part]()
    except Exception as error:  # one part must not take the others with it
        say(f"{part}: {type(error).__name__}: {error}")
    sys.stdout.flush()
if not options.keep:
    shutil.rmtree(scratch, ignore_errors=True)
