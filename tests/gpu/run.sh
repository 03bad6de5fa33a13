#!/usr/bin/env bash
# On a machine with an NVIDIA GPU, PyTorch and pip's numpy: the bundle, unpacked, profiles programs that use them and
# changes nothing about them. What is recorded of the GPU itself is counted by capture.sh.
# Usage: tests/gpu/run.sh dist/llmprof-*.tar.xz
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
tar xf "$bundle"
export LLMPROF_CACHE_DIR=$scratch/cache
llmprof=$(echo "$scratch"/llmprof-*/bin/llmprof)
passed=0
failed=0
check() {  # description, command…
  local what=$1; shift
  if "$@"; then echo "PASS $what"; passed=$((passed + 1)); else echo "FAIL $what"; failed=$((failed + 1)); fi
}
rows() { "$llmprof" query "$1" "$2" --csv | tail -n +2; }

"$llmprof" --version
"$llmprof" doctor || true
"$llmprof" devices
check "the demo runs and reports" "$llmprof" demo

python3 "$here/torch_stages.py" >alone.txt
"$llmprof" record -o torch -- python3 "$here/torch_stages.py" >recorded.txt
check "PyTorch on the GPU prints the same under record" cmp alone.txt recorded.txt
"$llmprof" report torch --full
check "17 NVTX ranges named prefill or decode" test "$(rows torch "SELECT count(*) FROM range WHERE name IN ('prefill', 'decode')")" = 17
check "136 module ranges inside" test "$(rows torch "SELECT count(*) FROM range WHERE name LIKE 'layers.%' AND depth = 1")" = 136
check "16 decode steps in the report" test "$("$llmprof" report torch --json | python3 -c 'import json,sys; print([s["steps"] for s in json.load(sys.stdin)["stages"] if s["name"]=="decode"][0])')" = 16
check "272 kernels at least: a product and a tanh in each of 8 layers of 17 passes" test "$(rows torch "SELECT count(*) >= 272 FROM kernel k JOIN range r ON r.thread_id = k.thread_id AND k.launch_begin_ns BETWEEN r.begin_ns AND r.end_ns WHERE r.name LIKE 'layers.%'")" = true
check "136 GPU products of 1024 x 1024" test "$(rows torch "SELECT count(*) FROM gemm WHERE greatest(m, n) = 1024 AND k = 1024")" = 136
check "nothing of the GPU is missing" test "$(rows torch "SELECT count(*) FROM loss WHERE name LIKE 'cupti%' OR name IN ('cuda_not_traced', 'zero_times', 'launch_lost', 'bad_time')")" = 0

code='import numpy as np; a = np.ones((300, 200), np.float32); b = np.ones((200, 100), np.float32); print((a @ b).sum(), (a.astype(float) @ np.ones(200)).sum())'
python3 -c "$code" >alone.txt
"$llmprof" record -o numpy -- python3 -c "$code" >recorded.txt
check "numpy from a wheel prints the same" cmp alone.txt recorded.txt
rows numpy "SELECT function, m, n, k, library FROM gemm"
check "its two products are seen (ILP64 names)" test "$(rows numpy "SELECT count(*) FROM gemm WHERE 2*m*n*k IN (12000000, 120000)")" = 2

"$llmprof" record -o cpu -- python3 -c 'import torch; print((torch.ones(64, 64) @ torch.ones(64, 64)).sum())'
"$llmprof" report cpu --full
check "torch's own BLAS on the CPU is seen or its absence is said" test "$(rows cpu "SELECT (SELECT count(*) FROM gemm) + (SELECT count(*) FROM loss WHERE name = 'blas_not_hooked') > 0")" = true
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
