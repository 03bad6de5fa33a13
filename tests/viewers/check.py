#!/usr/bin/env python3
"""check.py LLMPROF RUN [VIEWERS [PICTURE]]: exports a run in every format of viewers and has each read by programs that are
not ours: protoc, Perfetto's trace_processor, Python's json with a JSON schema, speedscope in chromium, go tool pprof.
Counts and totals must equal those of the run, and what import makes of the Chrome trace too. VIEWERS is the folder that tests/viewers/setup.sh filled; readers that are
not there are named as skipped. Exit status 1 if any check failed."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
failed = 0


def check(what, got, want):
    global failed
    ok = got == want
    failed += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {what}: {got}" + ("" if ok else f", expected {want}"))


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def ask(llmprof, name, sql):
    return [int(x or 0) for x in run(llmprof, "query", name, sql, "--csv").splitlines()[1].split(",")]


def perfetto(file, facts, viewers):
    decoded = subprocess.run(["protoc", f"-I{HERE}", "--decode=llmprof.perfetto.Trace", f"{HERE}/perfetto.proto"],
                             stdin=open(file, "rb"), check=True, capture_output=True).stdout.decode()
    lines = [line.strip() for line in decoded.splitlines()]
    unknown = [line for line in lines if line[:1].isdigit()]  # protoc prints unknown fields by number
    check("perfetto, protoc: fields that the format does not have", len(unknown), 0)
    begins, ends = lines.count("type: TYPE_SLICE_BEGIN"), lines.count("type: TYPE_SLICE_END")
    check("perfetto, protoc: slices end as often as they begin", ends, begins)
    sent = Counter(line.split()[1] for line in lines if line.startswith("flow_ids:"))
    ended = Counter(line.split()[1] for line in lines if line.startswith("terminating_flow_ids:"))
    check("perfetto, protoc: flows that do not end exactly once", len(set(sent.items()) ^ set(ended.items())), 0)
    engine = os.path.join(viewers, "trace_processor")
    if not os.path.isdir(engine):
        return print("skip trace_processor: not in", viewers)
    answers = run("node", f"{HERE}/trace_processor.mjs", engine, file,
                  "SELECT count(*) AS n, coalesce(sum(dur), 0) AS ns FROM slice WHERE category = 'kernel'",
                  "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0",
                  "SELECT count(*) AS n FROM flow", "SELECT count(*) AS n FROM slice WHERE dur < 0",
                  "SELECT count(*) AS n FROM slice WHERE category = 'range'")
    kernels, errors, flows, unclosed, ranges = map(json.loads, answers.splitlines())
    check("perfetto, trace_processor: kernels and their ns", [kernels[0]["n"], kernels[0]["ns"]], facts["kernels"])
    check("perfetto, trace_processor: errors in its own statistics", errors, [])
    check("perfetto, trace_processor: slices without an end", unclosed[0]["n"], 0)
    check("perfetto, trace_processor: flows", flows[0]["n"], sum(sent.values()))
    check("perfetto, trace_processor: ranges", ranges[0]["n"], facts["ranges"][0])


def chrome(file, facts):
    def refuse(text):
        raise ValueError(f"{text} is not JSON")
    with open(file, encoding="utf-8") as stream:
        trace = json.load(stream, parse_float=Decimal, parse_constant=refuse)
    events = trace["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    check("chrome, json: kernels and their ns", [len(kernels), int(sum(e["dur"] for e in kernels) * 1000)], facts["kernels"])
    check("chrome, json: ranges", sum(e.get("cat") == "user_annotation" for e in events), facts["ranges"][0])
    begun = {e["id"] for e in events if e["ph"] == "s"}
    loose = [e for e in events if e["ph"] == "f" and e["id"] not in begun]
    check("chrome, json: flows that end but never begin", len(loose), 0)
    try:
        import jsonschema
    except ImportError:
        return print("skip jsonschema: not installed")
    with open(f"{HERE}/chrome_trace.schema.json") as stream:
        validator = jsonschema.Draft7Validator(json.load(stream))
    with open(file, encoding="utf-8") as stream:
        sample = json.load(stream)
    by_kind = {}
    for event in sample["traceEvents"]:  # a few of each kind: the validator takes a millisecond an event
        by_kind.setdefault((event["ph"], event.get("cat")), []).append(event)
    sample["traceEvents"] = [e for kind in by_kind.values() for e in kind[:200]]
    check("chrome, JSON schema: violations", [e.message for e in validator.iter_errors(sample)][:3], [])


def speedscope(file, facts, viewers, picture):
    with open(file, encoding="utf-8") as stream:
        profile = json.load(stream)
    gpu = [p for p in profile["profiles"] if p["name"] == "GPU time by stack"]
    if gpu:
        check("speedscope, json: GPU ns", sum(gpu[0]["weights"]), facts["gpu_ns"][0])
    schema = os.path.join(viewers, "node_modules/speedscope/dist/release/file-format-schema.json")
    if not os.path.exists(schema) or not shutil.which("chromium"):
        return print("skip speedscope: it or chromium is not installed")
    try:
        import jsonschema
        with open(schema) as stream:
            definition = json.load(stream)
        small = dict(profile, profiles=[dict(p, events=p["events"][:2000]) if "events" in p else p for p in profile["profiles"]])
        errors = [e.message[:200] for e in jsonschema.Draft7Validator(definition).iter_errors(small)]
        check("speedscope, its own JSON schema: violations", errors[:3], [])
    except ImportError:
        print("skip jsonschema: not installed")
    first = profile["profiles"][0]
    frames = profile["shared"]["frames"]
    if first["type"] == "sampled":  # the heaviest leaf is at the top of the table
        totals = Counter()
        for stack, weight in zip(first["samples"], first["weights"]):
            totals[stack[-1]] += weight
        name = frames[totals.most_common(1)[0][0]]["name"]
    else:
        name = frames[first["events"][0]["frame"]]["name"]
    print("    ", run("node", f"{HERE}/speedscope.mjs", viewers, file, picture, name[:24], timeout=180).strip())
    check("speedscope in chromium shows the heaviest frame", name[:24], name[:24])


def pprof(file, facts):
    plain = subprocess.run(["gzip", "-dc", file], check=True, capture_output=True).stdout
    decoded = subprocess.run(["protoc", f"-I{HERE}", "--decode=llmprof.pprof.Profile", f"{HERE}/profile.proto"],
                             input=plain, check=True, capture_output=True).stdout.decode()
    unknown = [line for line in decoded.splitlines() if line.strip()[:1].isdigit()]
    check("pprof, protoc: fields that the format does not have", len(unknown), 0)
    if not shutil.which("go"):
        return print("skip go tool pprof: not installed")
    raw = run("go", "tool", "pprof", "-raw", file)
    columns, total = None, Counter()
    for line in raw[raw.index("Samples:"):raw.index("Locations")].splitlines()[1:]:
        if columns is None:
            columns = [c.split("/")[0] for c in line.split()]
        elif ":" in line and line.split(":")[0].replace(" ", "").isdigit():
            for column, value in zip(columns, line.split(":")[0].split()):
                total[column] += int(value)
    check("pprof, go tool pprof: GPU ns", total["gpu_time"], facts["gpu_ns"][0])
    check("pprof, go tool pprof: CPU ns of samples", total["cpu_time"], facts["samples"][0])
    check("pprof, go tool pprof: bytes copied", total["copied"], facts["copied"][0])


def folded(file, facts):
    total = Counter()
    with open(file, encoding="utf-8") as stream:
        for line in stream:
            stack, value = line.rstrip("\n").rsplit(" ", 1)
            total[stack.split(";")[0]] += int(value)
    check("folded: GPU ns", total["gpu_time"], facts["gpu_ns"][0])
    check("folded: CPU ns of samples", total["cpu_time"], facts["samples"][0])


def round_trip(llmprof, file, facts, folder):
    shutil.copy(file, folder + "/back.json")
    back = folder + "/back.llmprof"
    done = subprocess.run([llmprof, "import", folder + "/back.json", "-o", back], capture_output=True, text=True)
    check("import of the Chrome trace: exit status 0, or 3 (with losses)", done.returncode in (0, 3), True)
    check("import of the Chrome trace: kernels and their ns",
          ask(llmprof, back, "SELECT count(*), sum(end_ns - begin_ns) FROM kernel"), facts["kernels"])
    check("import of the Chrome trace: ranges and their ns",
          ask(llmprof, back, 'SELECT count(*), sum(end_ns - begin_ns) FROM "range"'), facts["ranges"])


def main():
    llmprof, source = sys.argv[1:3]
    viewers = sys.argv[3] if len(sys.argv) > 3 else "no viewers"
    with tempfile.TemporaryDirectory() as folder:
        name = folder + "/run.llmprof"  # analysis writes into a run
        shutil.copytree(source, name)
        picture = sys.argv[4] if len(sys.argv) > 4 else os.path.join(folder, "speedscope.png")
        files = {}
        for kind, ending in (("perfetto", "pftrace"), ("chrome", "json"), ("speedscope", "speedscope.json"), ("pprof", "pb.gz"),
                             ("folded", "folded")):
            files[kind] = os.path.join(folder, "x." + ending)
            run(llmprof, "export", name, "-t", kind, "-o", files[kind])
        facts = {
            "kernels": ask(llmprof, name, "SELECT count(*), sum(end_ns - begin_ns) FROM kernel_all"),
            "gpu_ns": ask(llmprof, name, "SELECT sum(k.end_ns - k.begin_ns) FROM kernel_all AS k JOIN device AS d ON "
                                         "d.id = k.device_id WHERE d.kind = 'gpu'"),
            "ranges": ask(llmprof, name, 'SELECT count(*), sum(end_ns - begin_ns) FROM "range"'),
            "samples": ask(llmprof, name, "SELECT sum(weight_ns) FROM sample"),
            "copied": ask(llmprof, name, "SELECT sum(bytes) FROM copy"),
        }
        perfetto(files["perfetto"], facts, viewers)
        chrome(files["chrome"], facts)
        speedscope(files["speedscope"], facts, viewers, picture)
        pprof(files["pprof"], facts)
        folded(files["folded"], facts)
        round_trip(llmprof, files["chrome"], facts, folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
