#!/usr/bin/env bash
# What recording costs, measured by the recording itself: a decode loop, eager and as a CUDA graph, of which every other 60 ms is a
# rest, in which kernels are not recorded (graphs are: CUPTI makes them slower when it is told not to). Beside it the least that a profiler can do with CUPTI (perf/minimal_collector.cpp), which rests in the same way.
# Prints a table in Markdown; fails where an upper end of the 95 % interval is above its limit (OWN_COST_LIMITS=no: only says so).
#   tests/gpu/own_cost.sh LLMPROF FOLDER [SECONDS]
set -uo pipefail
llmprof=$(realpath "$1"); mkdir -p "$2"; folder=$(realpath "$2"); seconds=${3:-40}
here=$(cd "$(dirname "$0")" && pwd)
failed=0
table="$folder/own_cost.md"
echo "| decode step | recorded / not [95 %] | rests | steps in them |" >"$table"
echo "|---|---|---|---|" >>"$table"
one() {  # name, limit, options of record…; the workload's after --
  local name=$1 limit=$2; shift 2
  local options=() ; while [ "$1" != -- ]; do options+=("$1"); shift; done; shift
  local run=$folder/${name//[ ,]/_}
  "$llmprof" record -q -f --no-peaks --rests everything:60ms "${options[@]}" -o "$run" -- python3 "$here/../../perf/workloads/decode.py" \
    --impl mini --seconds "$seconds" --steps 128 "$@" >"$run.out" 2>"$run.err" || { echo "FAIL $name: $(tail -n 2 "$run.err")"; failed=1; return; }
  "$llmprof" report "$run" --json >"$run.json" 2>>"$run.err"
  if python3 - "$run.json" "$name" "$limit" >>"$table" <<'PY'
import json, os, sys
report, name, limit = json.load(open(sys.argv[1])), sys.argv[2], float(sys.argv[3])
stage = next((s for s in report["recording_cost"]["stages"] if s["name"] == "decode" and s["measured"]), None)
if stage is None:
    print(f"| {name} | not measured | | |")
    sys.exit(1)
m = stage["measured"]
print(f"| {name} | {m['ratio']:.4f} [{m['low']:.4f}, {m['high']:.4f}], wanted {limit:.3f} | {m['stretches']} | {m['steps']} |")
sys.exit(m["high"] > limit and os.environ.get("OWN_COST_LIMITS") != "no")
PY
  then echo "PASS $name"; else echo "FAIL $name"; failed=1; fi
  rm -rf "$run.llmprof"
}
least() {  # name, kinds of activity -- the workload's options
  local name=$1 kinds=$2 run=$folder/least; shift 3
  CUDA_INJECTION64_PATH=$folder/libminimal_collector.so MINIMAL_KINDS=$kinds MINIMAL_REST_MS=60 MINIMAL_OUT=$run.json python3 "$here/../../perf/workloads/decode.py" \
    --impl mini --seconds "$seconds" --steps 128 --step-times "$run.steps" "$@" >"$run.out" 2>"$run.err" || { echo "FAIL $name: $(tail -n 2 "$run.err")"; failed=1; return; }
  python3 "$here/../../perf/step_ratio.py" "$run.steps" 60 "$name" >>"$table" || failed=1
}
g++ -std=c++20 -O2 -shared -fPIC -I "$here/../.." "$here/../../perf/minimal_collector.cpp" -o "$folder/libminimal_collector.so" -ldl -lpthread || failed=1
one "eager, sampled" 1.03 --
one "eager, sampled, not watched" 1.03 --no-host --no-telemetry --
one "eager, all" 1.14 --kernels all --
least "eager, the least collector" 10 --
one "graph" 1.010 -- --graph
one "graph, not watched" 1.010 --no-host --no-telemetry -- --graph
cat "$table"
exit "$failed"
