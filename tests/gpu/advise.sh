#!/usr/bin/env bash
# What `llmprof advise` prints is run as it stands, with ranges and hot kernels of a run that was recorded before: each line
# must end well, and its files must be imported.
#   advise.sh LLMPROF        needs nsys and ncu on PATH; LLMPROF's folder is put there too, since the lines call llmprof
set -u
here=$(cd "$(dirname "$0")" && pwd)
llmprof=$1
export PATH=$(dirname "$llmprof"):$PATH
cd "$(mktemp -d)" || exit 1
sed 's/with Range("decode_step"):/with Range(f"decode_step_{_}"):/' "$here/agreement.py" >numbered.py  # a range per step
cp "$here/agreement.py" .
failed=0

run() {  # name, what is counted, advise's arguments…
  local name=$1 question=$2
  shift 2
  timeout 60 llmprof advise "$@" >"$name.sh" || failed=1
  timeout 150 sh -e "$name.sh" >"$name.out" 2>&1 || { failed=1; tail -n 5 "$name.out"; }
  local found
  found=$(timeout 30 llmprof query "$name" "$question" --csv | tail -n 1)
  echo "$name: $found"
  [ "${found:-0}" -gt 0 ] || failed=1
}

for program in agreement numbered; do
  timeout 60 llmprof record -q --no-peaks -o $program -- python3 $program.py eager 30 >/dev/null || failed=1
  run ${program}_nsys "SELECT count(*) AS kernels FROM kernel" nsys --run $program --stage decode -o ${program}_nsys -- python3 $program.py eager 30
  run ${program}_ncu "SELECT count(*) AS counters FROM counter" ncu --run $program --stage decode -o ${program}_ncu -- python3 $program.py eager 30
done
run products "SELECT count(*) AS joined FROM gemm WHERE kernel_id IS NOT NULL" cublas -o products -- python3 agreement.py eager 10
[ $failed -eq 0 ] && echo "advise: every line ran and was imported" || echo "advise: NOT every line ran"
exit $failed
