#!/usr/bin/env python3
"""What the diagnosis predicts against what the change then saved, on runs of perf/workloads/diagnosis.py.

diagnosis_gains.py LLMPROF FOLDER    FOLDER holds the runs that tests/gpu/diagnosis.sh records; prints Markdown tables.

The saving is that of the time per token as llmprof measured it in the two runs (TPOT p50); batching compares time per
token and sequence. Those of batch 8 (24 layers, prompts of 1024) were recorded after the rules were written. Fails if the top finding of a run is not one of those expected."""
import json
import pathlib
import subprocess
import sys

llmprof, folder = sys.argv[1], pathlib.Path(sys.argv[2])

# run: the rules that may stand first
EXPECTED = {
    "float32_eager_b1": {"launch_bound"},
    "float32_graph_b1": {"wide_weights", "small_batch"},
    "float32_eager_b32": {"launch_bound", "wide_weights", "idle_tensor_cores"},
    "float32_graph_b32": {"wide_weights", "idle_tensor_cores"},
    "bfloat16_eager_b1": {"launch_bound"},
    "bfloat16_graph_b1": {"unfused_chains", "bandwidth_floor", "small_batch"},
    "bfloat16_eager_b32": {"launch_bound"},
    "bfloat16_graph_b32": {"unfused_chains", "bandwidth_floor", "kv_cache_traffic"},
    "float32_eager_b8": {"launch_bound", "wide_weights"},
    "float32_graph_b8": {"wide_weights"},
    "bfloat16_eager_b8": {"launch_bound"},
    "bfloat16_graph_b8": {"unfused_chains", "bandwidth_floor", "kv_cache_traffic", "wide_weights"},
    "pageable": {"pageable_copies"},
    "fetch": {"launch_bound", "host_sync"},
}
# rule, the run it is found in, the run with the change made
CHANGES = [
    ("launch_bound", "float32_eager_b1", "float32_graph_b1"),
    ("launch_bound", "float32_eager_b32", "float32_graph_b32"),
    ("launch_bound", "bfloat16_eager_b1", "bfloat16_graph_b1"),
    ("launch_bound", "bfloat16_eager_b32", "bfloat16_graph_b32"),
    ("wide_weights", "float32_graph_b1", "bfloat16_graph_b1"),
    ("wide_weights", "float32_graph_b32", "bfloat16_graph_b32"),
    ("idle_tensor_cores", "float32_graph_b32", "bfloat16_graph_b32"),
    ("small_batch", "float32_graph_b1", "float32_graph_b32"),
    ("small_batch", "bfloat16_graph_b1", "bfloat16_graph_b32"),
    ("launch_bound", "float32_eager_b8", "float32_graph_b8"),
    ("launch_bound", "bfloat16_eager_b8", "bfloat16_graph_b8"),
    ("wide_weights", "float32_graph_b8", "bfloat16_graph_b8"),
    ("pageable_copies", "pageable", "bfloat16_graph_b1"),
    ("host_sync", "fetch", "bfloat16_eager_b1"),
]


def report(name):
    done = subprocess.run([llmprof, "report", str(folder / name), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


reports = {name: report(name) for name in EXPECTED if (folder / f"{name}.llmprof").exists()}


def decode(name):
    return next(stage for stage in reports[name]["stages"] if stage["name"] == "decode")


def batch(name):
    return int(name.rpartition("_b")[2]) if "_b" in name else 1


def gain_of(finding):
    gain = finding["gain"]
    if gain is None:
        return "–"
    return f"{'up to ' if gain['upper_bound'] else ''}{100 * gain['ns'] / gain['of_ns']:.0f} %"


def main():
    failed = []
    print("| run | TPOT p50, ms | headline | findings of decode, the largest gain first |\n|---|---|---|---|")
    for name, allowed in EXPECTED.items():
        if name not in reports:
            continue
        diagnosis = reports[name]["diagnosis"]
        found = [f for f in diagnosis["findings"]
                 if f["verdict"] == "found" and f["severity"] != "note" and f["stage"] == "decode"]
        listed = ", ".join(f"{f['rule']} ({gain_of(f)})" for f in found[:4]) or "none"
        print(f"| {name} | {decode(name)['tpot_p50_ns'] / 1e6:.3f} | {diagnosis['headline']} | {listed} |")
        if not found or found[0]["rule"] not in allowed:
            failed.append(f"{name}: {found[0]['rule'] if found else 'nothing'} stands first, not one of {sorted(allowed)}")
    print("\n| finding | run | predicted saving | after the change | measured saving |\n|---|---|---|---|---|")
    for rule, before, after in CHANGES:
        if before not in reports or after not in reports:
            continue
        findings = [f for f in reports[before]["diagnosis"]["findings"] if f["rule"] == rule and f["stage"] == "decode"]
        predicted = gain_of(findings[0]) if findings else "not found"
        saved = 1 - decode(after)["tpot_p50_ns"] / batch(after) / (decode(before)["tpot_p50_ns"] / batch(before))
        print(f"| {rule} | {before} | {predicted} | {after} | {100 * saved:.0f} % |")
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


sys.exit(main())
