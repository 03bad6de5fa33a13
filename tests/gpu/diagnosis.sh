#!/usr/bin/env bash
# Records the variants of perf/workloads/diagnosis.py on the GPU of this machine, holds the diagnosis against what each
# change really saves, and checks `llmprof diff`: repeats of one program do not differ, a planted slowdown is named.
#   tests/gpu/diagnosis.sh LLMPROF FOLDER
set -uo pipefail
llmprof=$(realpath "$1"); mkdir -p "$2"; folder=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd); repo=$(cd "$here/../.." && pwd)
# The program needs the system's own libraries, whatever llmprof runs with.
program="env -u LD_LIBRARY_PATH python3 $repo/perf/workloads/diagnosis.py"
failed=0

record() {  # name, options of record, options of the program
  timeout 100 "$llmprof" record -q $2 -f -o "$folder/$1" -- $program $3 >"$folder/$1.out" 2>"$folder/$1.err" ||
    { echo "FAILED to record $1: $(tail -2 "$folder/$1.err")"; failed=1; }
  echo "$1 $(tail -n 1 "$folder/$1.out")"
}

for type in float32 bfloat16; do
  for batch in 1 32; do
    record ${type}_eager_b$batch "--gpu waits,memory" "--type $type --batch $batch"
    record ${type}_graph_b$batch "--gpu waits,memory" "--type $type --batch $batch --graph"
  done
done
for type in float32 bfloat16; do
  record ${type}_eager_b8 "--gpu waits,memory" "--type $type --batch 8 --layers 24 --prompt 1024"
  record ${type}_graph_b8 "--gpu waits,memory" "--type $type --batch 8 --layers 24 --prompt 1024 --graph"
done
record pageable "--gpu waits,memory" "--graph --pageable 16"
record fetch "--gpu waits,memory" "--fetch"
for i in 1 2 3; do
  record base_$i --modules --graph
  record slow_$i --modules "--graph --slow 3"
done

echo "== predicted and measured"
python3 "$repo/perf/diagnosis_gains.py" "$llmprof" "$folder" || failed=1

cd "$folder"
echo "== diff: the same program twice"
"$llmprof" diff base_1 base_2 --json >same.json || failed=1
"$llmprof" diff base_1,base_2,base_3 slow_1,slow_2,slow_3 | tee slow.txt | head -60
"$llmprof" diff base_1,base_2,base_3 slow_1,slow_2,slow_3 --json >slow.json || failed=1
"$llmprof" diff base_1 slow_1 --gate 'decode.tpot_p50 < +3%' >/dev/null 2>&1; [ $? -eq 4 ] || { echo "FAILED: the gate let 5 % pass"; failed=1; }
python3 - <<'PY' || failed=1
import json
same = [r for r in json.load(open("same.json"))["rows"] if r["significant"]]
slow = [r for r in json.load(open("slow.json"))["rows"] if r["significant"] and r["better"] == "worse"]
assert not same, f"the same program differs: {same}"
assert any(r["kind"] == "module" and r["name"].startswith("layers.7.mlp") for r in slow), f"not named: {slow}"
print("the same program: no significant change; slowed:", [r["name"] for r in slow if r["kind"] == "module"][:4])
PY
exit $failed
