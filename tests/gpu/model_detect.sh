#!/usr/bin/env bash
# On a machine with PyTorch and transformers: a Llama loaded from a folder is recognised without any flag, its operators are
# matched by shape, and the report has MFU and MBU per stage. The products run on the CPU.
# Usage: tests/gpu/model_detect.sh dist/llmprof-*.tar.xz [folder for the reports]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$(realpath "$1")
keep=$(realpath "${2:-.}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
tar xf "$bundle"
export LLMPROF_CACHE_DIR=$scratch/cache OMP_NUM_THREADS=4
llmprof=$(echo "$scratch"/llmprof-*/bin/llmprof)
passed=0
failed=0
check() {  # description, command…
  local what=$1; shift
  if "$@"; then echo "PASS $what"; passed=$((passed + 1)); else echo "FAIL $what"; failed=$((failed + 1)); fi
}
# Prints a value of the JSON report: expression over r, the report.
value() { "$llmprof" report "$1" --json | python3 -c "import json, sys; r = json.load(sys.stdin); s = {x['name']: x for x in r['stages']}; print($2)"; }

python3 "$here/model_detect.py" make model >/dev/null
python3 "$here/model_detect.py" run model >alone.txt
"$llmprof" record -o named -- python3 "$here/model_detect.py" run model >recorded.txt
check "the program prints the same under record" cmp alone.txt recorded.txt
"$llmprof" report named --full | tee "$keep/model_detect.txt" | head -150
check "the config in the folder is found by the command line" test "$(value named "r['model']['source'], 'named on the command line' in r['model']['origin']")" = "opened True"
check "weights are counted as they were loaded" test "$(value named "'counted in float32' in (r['model']['note'] or '')")" = True
check "one prefill of 48 tokens, 11 decode steps of 2" test "$(value named "s['prefill']['steps'], s['prefill']['tokens'], s['decode']['steps'], s['decode']['tokens']")" = "1 48 11 22"
check "MFU and floor of both stages" test "$(value named "all(s[n]['mfu'] and s[n]['floor_ns'] for n in ('prefill', 'decode'))")" = True
check "every projection of every layer is matched" test "$(value named "len({m['name'] for m in r['modules'] if m['stage'] == 'decode' and m['name'].endswith('_proj')})")" = 42
check "FLOPs by shapes equal the analysis for every weight product" test "$(value named "all(m['flops'] == m['flops_shapes'] for m in r['modules'] if m['name'].endswith('_proj') or m['name'] == 'lm_head')")" = True
MODEL_FOLDER=model "$llmprof" record -o mapped --no-host -- python3 "$here/model_detect.py" run >recorded.txt
check "a folder that only a variable names is found too" test "$(value mapped "r['model']['source']")" = opened
value mapped "r['model']['origin'], r['model']['note']"
"$llmprof" report mapped --full >"$keep/model_detect_mapped.txt"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
