#!/usr/bin/env bash
# Hardware counters on the GPU of this machine: each method records, values are what arithmetic says, rough programs
# come through unchanged. Then the figures: what it costs, values beside Nsight Compute's, unmixed against ranges.
#   tests/gpu/counters.sh LLMPROF FOLDER [quick]
set -uo pipefail
llmprof=$(realpath "$1"); mkdir -p "$2"; folder=$(realpath "$2"); quick=${3:-}
here=$(cd "$(dirname "$0")" && pwd); repo=$(cd "$here/../.." && pwd)
python="env -u LD_LIBRARY_PATH python3"  # the program needs the system's own libraries, whatever llmprof runs with
failed=0
fail() { echo "FAILED: $*"; failed=1; }

set -f  # a pattern among the options is no file name
record() {  # name, options of record, command…
  local name=$1 flags=$2; shift 2
  timeout 120 "$llmprof" record -f --no-peaks $flags -o "$folder/$name" -- "$@" >"$folder/$name.out" 2>"$folder/$name.err"
}
ask() { "$llmprof" query "$folder/$1" "$2" --json 2>>"$folder/ask.err"; }

echo "== rough programs"
for how in none exit _exit; do
  $python "$here/counters_rough.py" $how >"$folder/alone_$how.out" 2>&1; want=$?
  for flags in "--counters light" "--counters full --counters-budget 0" "--counters light --counters-method kernel --counters-kernels *" "--stalls" "--counters light --counters-method sampled"; do
    record rough "$flags" $python "$here/counters_rough.py" $how; got=$?
    [ $got -eq $want ] || fail "rough $how, $flags: exit $got, alone $want: $(tail -2 "$folder/rough.err")"
    diff <(grep checksum "$folder/alone_$how.out") <(grep checksum "$folder/rough.out") >/dev/null || fail "rough $how, $flags: $(cat "$folder/rough.out" | tail -3)"
  done
done

echo "== decode steps"
decode="$python $repo/perf/workloads/decode.py --impl mini --graph --steps 120 --repeat 6"
record light "--counters light" $decode || fail "light: $(tail -3 "$folder/light.err")"
record full "--counters full --counters-budget 10" $decode || fail "full: $(tail -3 "$folder/full.err")"
record sampled "--counters light --counters-method sampled --counters-period 200us" $decode || fail "sampled"
record stalls "--stalls-only" $decode || fail "stalls"
record eager "--counters full --counters-method kernel --counters-kernels *nvjet*,*elementwise* --counters-budget 20" $python "$repo/perf/workloads/decode.py" --impl mini --steps 60 --repeat 3 || fail "kernel"
for run in light full sampled stalls eager; do
  echo "-- $run"; grep -v "^llmprof: next" "$folder/$run.err" | tail -12
  "$llmprof" report "$folder/$run" --counters 2>&1 | head -60
done
for run in light full sampled eager; do "$llmprof" report "$folder/$run" --json >"$folder/$run.json" || fail "report $run"; done
python3 - "$folder" <<'PY' || failed=1
import json, sys
folder = sys.argv[1]
WEIGHTS = 2 * (16 * ((32 + 16) * 64 * 2048 + 2048 * 2048 + 3 * 8192 * 2048) + 128256 * 2048)  # bytes of bfloat16, each read once a step
wrong = []
for run, limit in (("light", 0.06), ("full", 0.06), ("sampled", 0.10)):
    counters = json.load(open(f"{folder}/{run}.json"))["hardware_counters"]
    stage = next(s for s in counters["stages"] if s["stage"] == "decode")
    read = next(v for v in stage["values"] if v["counter"] == "dram_read_bytes")
    print(f"{run}: {stage['measured']} of {stage['steps']} steps; DRAM read {read['value']:.4g} B a step, {read['value'] / WEIGHTS:.3f} of the weights, spread {read['spread']}")
    if not 1 - limit < read["value"] / WEIGHTS < 1 + limit:
        wrong.append(run)
sys.exit(f"FAILED: DRAM bytes are not those of the weights: {wrong}" if wrong else 0)
PY
"$llmprof" export "$folder/eager" -t roofline-csv -o "$folder/roofline.csv" && head -3 "$folder/roofline.csv" || fail "roofline-csv"
[ -n "$quick" ] && exit $failed

echo "== figures"
bin=$(dirname "$llmprof")
python3 "$repo/perf/counters_values.py" "$bin" "$folder/values" >"$folder/values.md" 2>"$folder/values.err" || fail "values: $(tail -3 "$folder/values.err")"
cat "$folder/values.md" | cut -c1-220
python3 "$repo/perf/counters_unmix.py" "$bin" "$folder/unmix" >"$folder/unmix.md" 2>"$folder/unmix.err" || fail "unmix: $(tail -3 "$folder/unmix.err")"
cat "$folder/unmix.md"
python3 "$repo/perf/counters_cost.py" "$bin" >"$folder/cost.md" 2>"$folder/cost.err" || fail "cost: $(tail -3 "$folder/cost.err")"
cat "$folder/cost.md"
exit $failed
