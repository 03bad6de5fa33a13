#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: the embedded model on CUDA agrees with the CPU. One PASS or FAIL line per check.
# Usage: tests/gpu/workload.sh [BUILD]     BUILD holds bin/llmprof-workload and tests/gpu_workload_test (default: build)
set -uo pipefail
build=$(realpath "${1:-build}")
workload=$build/bin/llmprof-workload
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
passed=0
failed=0
check() {  # description, command…
  local what=$1; shift
  if "$@"; then echo "PASS $what"; passed=$((passed + 1)); else echo "FAIL $what"; failed=$((failed + 1)); fi
}
same_tokens() {  # two summaries
  python3 - "$@" <<'EOF'
import json, sys
a, b = (json.load(open(path))["tokens"] for path in sys.argv[1:])
sys.exit(a != b)
EOF
}
same_losses() {  # two summaries, tolerance
  python3 - "$@" <<'EOF'
import json, sys
a, b = ([step["loss"] for step in json.load(open(path))["steps"]] for path in sys.argv[1:3])
worst = max(abs(x - y) for x, y in zip(a, b))
print(f"     losses {a[0]:.4f} to {a[-1]:.4f}, apart by at most {worst:.1e}")
sys.exit(len(a) != len(b) or worst > float(sys.argv[3]))
EOF
}
infer() { timeout 60 "$workload" infer --json "$@"; }
train() { timeout 60 "$workload" train --json "$@"; }

# logits, tokens, gradients and losses of small models, in both types, by launches and as a graph
timeout 120 "$build/tests/gpu_workload_test" >units.txt 2>&1
sed -n 's/^\[       OK \] /PASS /p; s/^\[  FAILED  \] \(.*(.*ms)\)/FAIL \1/p' units.txt
passed=$((passed + $(grep -c '^\[       OK \]' units.txt)))
failed=$((failed + $(grep -c '^\[  FAILED  \].*ms)' units.txt)))
grep -q '^\[  PASSED  \]' units.txt || { tail -n 40 units.txt; failed=$((failed + 1)); }

for preset in tiny-llama tiny-gpt2; do
  infer --preset $preset --new 24 >cpu.json
  infer --preset $preset --new 24 --device cuda --type float32 >cuda.json
  infer --preset $preset --new 24 --device cuda --type float32 --cuda-graph >graph.json
  check "$preset in float32 generates the CPU's tokens" same_tokens cpu.json cuda.json
  check "$preset in float32 as a graph, too" same_tokens cpu.json graph.json
done
infer --preset tiny-llama --sampler topk --k 8 --seed 3 >cpu.json
infer --preset tiny-llama --sampler topk --k 8 --seed 3 --device cuda --type float32 --cuda-graph >cuda.json
check "top-k draws the CPU's tokens" same_tokens cpu.json cuda.json

train --preset tiny >cpu.json
train --preset tiny --device cuda >cuda.json
check "20 training steps have the CPU's losses" same_losses cpu.json cuda.json 1e-3

infer --device cuda --new 128 >eager.json
infer --device cuda --new 128 --cuda-graph >graph.json
check "demo-gpu in bfloat16: a graph generates what launches do" same_tokens eager.json graph.json
timeout 60 "$workload" infer --device auto --cuda-graph | sed 's/^/     /'
timeout 60 "$workload" infer --device cuda | sed -n 's/^\(prefill\|decode\)/     launches: \1/p'
train --device cuda --steps 6 >once.json
train --device cuda --steps 6 >twice.json
check "GPT-2 small: the same losses twice" same_losses once.json twice.json 0
timeout 60 "$workload" train --device cuda --steps 6 2>&1 | tail -n 3 | sed 's/^/     /'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
