#!/usr/bin/env bash
# Everything that one GPU can settle, in one go and within 15 minutes, with a table at the end.
#   tests/gpu/all.sh BUNDLE OUT [PART…]
# BUNDLE: dist/llmprof-*.tar.xz. Beside it may lie what was built elsewhere: gpu_operators_test, gpu_bench_test, gpu_workload_test
# (the tests of the operators, with CUDA's and cuBLAS's headers) and collect_dump_log. Logs and reports go to OUT.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); shift 2
beside=$(dirname "$bundle")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar xf "$bundle" -C "$scratch"
bin=$(echo "$scratch"/llmprof-*/bin) lib=$(echo "$scratch"/llmprof-*/lib/llmprof)
export LLMPROF_CACHE_DIR=$scratch/cache LLMPROF_LIBDIR=$lib
began=$SECONDS
table="$out/all.md"
printf '| part | result | passed | failed | seconds |\n|---|---|---|---|---|\n' >"$table"
wanted=("$@")
part() {  # name, limit in seconds, command…
  local name=$1 limit=$2; shift 2
  if [ "${#wanted[@]}" -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
  local log="$out/$name.txt" begin=$SECONDS rc=0
  timeout "$limit" "$@" >"$log" 2>&1 || rc=$?
  local passed failed
  passed=$(grep -cE '^ *(PASS|ok|\[       OK)' "$log"); failed=$(grep -cE '^ *(FAIL|\[  FAILED  \] .*\()' "$log")
  local result=passed
  [ "$rc" = 0 ] || result="failed ($rc)"
  grep -q 'Running 0 tests' "$log" && result="failed (no test)"
  [ "$rc" = 124 ] && result="cut off after $limit s"
  printf '| %s | %s | %s | %s | %s |\n' "$name" "$result" "$passed" "$failed" "$((SECONDS - begin))" >>"$table"
  tail -n 1 "$table"
  grep -E '^ *FAIL' "$log" | head -5
}
test_of() { [ -x "$beside/$1" ] && echo "$beside/$1" || echo false; }

part capture 200 "$here/capture.sh" "$bundle"
part graphs 100 env ROUNDS=3 "$here/graphs.sh" "$bundle" "$scratch"
part two_ranks 150 "$here/two_ranks.sh" "$bundle" "$out"
part verbs 200 "$here/verbs.sh" "$bin/llmprof" "$scratch/verbs"
part screen 150 "$here/screen.sh" "$bin/llmprof" "$out/screen"
part requests_transformers 300 "$here/requests_transformers.sh" "$bin/llmprof" "$scratch/requests"
part trouble 170 "$here/trouble.sh" "$bin/llmprof" "$scratch/trouble"
part own_cost 170 env OWN_COST_LIMITS=no "$here/own_cost.sh" "$bin/llmprof" "$out/own_cost" 10  # too short for its limits
part access 60 "$here/access.sh" "$bin/llmprof" "$scratch/access"
part l2_hits 100 "$here/l2_hits.sh" "$bin/llmprof" "$scratch/l2"
part gemm_shapes 100 "$here/gemm_shapes.sh" "$lib" "$beside/collect_dump_log"
part bench_points 90 "$(test_of gpu_operators_test)" --gtest_filter='CudaBench.*'
part workload 90 "$(test_of gpu_workload_test)"
part serve 200 "$here/serve.sh" "$bin/llmprof" "$scratch/serve"
echo "$((SECONDS - began)) s in all"
cat "$table"
! grep -qE '\| (failed|cut off)' "$table"
