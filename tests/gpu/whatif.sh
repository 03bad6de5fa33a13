#!/usr/bin/env bash
# Whether what `whatif` says a run would become is what the changed run is: the embedded program with other batches and prompts.
#   tests/gpu/whatif.sh LLMPROF LLMPROF-WORKLOAD OUT [cuda|cpu] [options of llmprof-workload infer]
# kv_heads=1 has no tables of its own here: its prediction is scaled.
set -uo pipefail
llmprof=$(realpath "$1") workload=$(realpath "$2"); mkdir -p "$3"; cd "$3" || exit 1
device=${4:-cuda}; shift $(($# < 4 ? $# : 4))
more=("$@"); [ "$device" = cuda ] && more+=(--cuda-graph)
record() { # NAME and options: three runs, of which the one with the median TPOT counts
  name=$1; shift
  for i in 1 2 3; do
    "$llmprof" record -f -o "$name-$i" --no-report -- "$workload" infer --device "$device" "${more[@]}" --new 64 "$@" >/dev/null || exit 1
  done
}
record base --batch 1 --prompt 256
record batch-8 --batch 8 --prompt 256
record batch-32 --batch 32 --prompt 256
record prompt-1024 --batch 1 --prompt 1024
record kv_heads-1 --batch 1 --prompt 256 --kv-heads 1
"$llmprof" report base-1 --json | python3 -c 'import json, sys; json.dump(json.load(sys.stdin)["model"]["config"], open("config.json", "w"))'
"$llmprof" bench --for config.json --device "$device" --max-tokens 8192 --max-batch 32 --max-context 2048 >bench.txt || exit 1
python3 - "$llmprof" <<'P'
import json, statistics, subprocess, sys
def said(*words):
    return json.loads(subprocess.run([sys.argv[1], *words, "--json"], capture_output=True, text=True, check=True).stdout)
def measured(name):
    stages = [{s["name"]: s for s in said("report", f"{name}-{i}")["stages"]} for i in (1, 2, 3)]
    ns = {"prefill": [s["prefill"]["ttft_ns"] for s in stages], "decode": [s["decode"]["tpot_p50_ns"] for s in stages]}
    return {key: (statistics.median(values), values.index(statistics.median(values)) + 1) for key, values in ns.items()}
base, inside, rows = measured("base"), 0, 0
for change in ("batch=8", "batch=32", "prompt=1024", "kv_heads=1"):
    real = measured(change.replace("=", "-"))
    sets = ["--set", change] + (["--set", "context=1056"] if change == "prompt=1024" else [])
    for row in said("whatif", f"base-{base['decode'][1]}", *sets)["expected"]:
        now, stage = real[row["stage"]][0], row["stage"]
        ok = row["least_ns"] <= now <= row["most_ns"]
        inside, rows = inside + ok, rows + 1
        ms = lambda ns: "-" if ns is None else f"{ns / 1e6:.3f}"
        print(f"{change} {stage}: measured {ms(row['measured_ns'])} ms, predicted {ms(row['predicted_before_ns'])} then {ms(row['predicted_after_ns'])}, expected {ms(row['expected_ns'])} "
              f"({ms(row['least_ns'])} to {ms(row['most_ns'])}, {row['by']}), real {ms(now)}{'' if ok else ' OUTSIDE'}")
print(f"{inside} of {rows} in the range")
P
