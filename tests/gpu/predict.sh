#!/usr/bin/env bash
# Operators measured on this GPU, steps predicted from them, and what PyTorch then takes for the same steps.
#   tests/gpu/predict.sh LLMPROF OUT DECODE.PY
# DECODE.PY: a Llama of 1.24 G parameters that prints "DECODE {json}" with TPOT and TTFT (a functional model with a static KV cache).
set -uo pipefail
llmprof=$(realpath "$1") decode=$(realpath "$3"); mkdir -p "$2"; cd "$2" || exit 1
failed=0
check() { if eval "$2"; then echo "PASS $1"; else echo "FAIL $1"; failed=1; fi; }

begin=$SECONDS
"$llmprof" bench --for llama-3.2-1b --device cuda -o operators -f >bench.txt 2>bench.err
check "bench --for" "[ $? = 0 ]"
echo "bench --for took $((SECONDS - begin)) s"; tail -60 bench.txt; tail -3 bench.err
"$llmprof" query operators "SELECT op, status, count(*) AS n, any_value(reason) AS why FROM bench GROUP BY ALL ORDER BY ALL"
check "no point failed" "[ $("$llmprof" query operators --csv "SELECT count(*) FROM bench WHERE status = 'failed'" | tail -1) = 0 ]"
for batch in 1 8 32; do
  "$llmprof" predict llama-3.2-1b --batch $batch --prompt 512 --steps 128 --json >predicted.$batch.json || failed=1
  for way in --cudagraph ""; do
    OUT=. python3 "$decode" --impl mini $way --batch $batch --prompt 512 --steps 128 --no-nvtx >program.txt 2>&1
    python3 - "$batch" "${way:-eager}" <<'P'
import json, sys
batch, way = sys.argv[1:]
said = next(json.loads(line[7:]) for line in open("program.txt") if line.startswith("DECODE "))
got = json.load(open(f"predicted.{batch}.json"))
print("program", {k: v for k, v in said.items() if not isinstance(v, (list, dict))})
print(f"batch {batch} {way}: predicted TPOT {got['tpot_ns'] / 1e6:.3f} ms, TTFT {got['ttft_ns'] / 1e6:.3f} ms; measured % of decode's device time {got['stages'][-1]['measured']:.2f}, interpolated {got['stages'][-1]['interpolated']:.2f}")
P
  done
done
"$llmprof" predict llama-3.2-1b --batch 8 --prompt 512
"$llmprof" predict llama-3.2-1b --serving vllm@0.19 --rate 20
exit $failed
