#!/usr/bin/env bash
# Predictions of given programs: kernels and their order from one recorded step, times from `bench --for RUN`; and what the
# programs, not recorded, then took.
#   tests/gpu/predict_program.sh LLMPROF OUT DECODE.PY [BATCHING.PY]
# DECODE.PY: a Llama of 1.24 G parameters that prints "DECODE {json}" with TPOT and TTFT (a functional model with a static KV
# cache). BATCHING.PY: continuous batching of transformers, prints {"total_s": …, "requests": …, "out_tokens": …}.
# PARTS: which parts (decode workload batching). SIZES: "batch:prompt …".
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
llmprof=$(realpath "$1") decode=$(realpath "$3") batching=${4:+$(realpath "$4")}; mkdir -p "$2"; cd "$2" || exit 1
workload=$(dirname "$llmprof")/llmprof-workload
parts=${PARTS:-decode workload batching} sizes=${SIZES:-1:128 1:512 1:4096 8:128 8:512 8:2048 32:128 32:512 32:1024}
failed=0
check() { if eval "$2"; then echo "PASS $1"; else echo "FAIL $1"; failed=1; fi; }
# Launches are to take what they take: nothing watches from outside.
rec() { "$llmprof" record --no-report --no-peaks --no-host --no-telemetry -f "$@" >record.txt 2>&1 || { echo "FAIL record $2"; head -5 record.txt; failed=1; }; }
took() { echo "  [$((SECONDS - begun)) s] $*"; }
begun=$SECONDS

if [[ " $parts " == *" decode "* ]]; then
  rec -o graph -- python3 "$decode" --impl mini --cudagraph --no-nvtx --batch 8 --prompt 512 --steps 64 --reps 2
  rec -o eager -- python3 "$decode" --impl mini --no-nvtx --batch 8 --prompt 512 --steps 64 --reps 2
  took recorded
  "$llmprof" bench --for graph --budget "${BUDGET:-200s}" >bench_graph.txt 2>bench_graph.err
  check "bench --for graph" "[ $? = 0 ]"; cat bench_graph.txt; tail -2 bench_graph.err
  took measured
  for size in $sizes; do
    batch=${size%:*} prompt=${size#*:}
    for way in graph eager; do
      flag=; [ $way = graph ] && flag=--cudagraph
      # eager decode is the host's: fewer sizes show it
      [ $way = eager ] && [[ $prompt != 512 ]] && continue
      OUT=. python3 "$decode" --impl mini $flag --batch "$batch" --prompt "$prompt" --steps 64 --reps 3 --no-nvtx >program.txt 2>&1
      "$llmprof" predict --from $way --batch "$batch" --prompt "$prompt" --steps 64 --json >predicted.$way.$batch.$prompt.json 2>predict.err || cat predict.err
      python3 "$here/predict_program.py" program.txt predicted.$way.$batch.$prompt.json "llama_decode $way" "$batch" "$prompt" | tee -a figures.txt
    done
  done
  took "llama_decode.py compared"
  # The same as a back-test that can be kept: recorded at other sizes, predicted from the first recording.
  others=
  for size in ${BACKTEST_SIZES:-1:128 1:2048 4:1024 8:2048 32:512 32:1024}; do
    rec -o "graph_${size/:/_}" -- python3 "$decode" --impl mini --cudagraph --no-nvtx --batch "${size%:*}" --prompt "${size#*:}" --steps 64 --reps 2
    others="$others graph_${size/:/_}"
  done
  "$llmprof" predict --from graph --measured $others --save steps_llama_decode -f >backtest_decode.txt 2>&1
  check "a back-test of steps is kept" "[ $? = 0 ]"; cat backtest_decode.txt
  "$llmprof" whatif graph --set batch=32 | tee whatif_decode.txt | head -30
  took "back-test kept"
fi

if [[ " $parts " == *" workload "* ]]; then
  rec -o workload -- "$workload" infer --device cuda --cuda-graph --batch 8 --prompt 512 --new 256
  "$llmprof" bench --for workload --budget "${BUDGET:-120s}" >bench_workload.txt 2>bench_workload.err
  check "bench --for workload" "[ $? = 0 ]"; cat bench_workload.txt; tail -2 bench_workload.err
  took "llmprof-workload measured"
  for size in ${WORKLOAD_SIZES:-1:300 1:4096 8:512 8:1500 32:128 32:700}; do
    batch=${size%:*} prompt=${size#*:}
    "$workload" infer --device cuda --cuda-graph --batch "$batch" --prompt "$prompt" --new 64 --json >program.txt 2>/dev/null
    "$llmprof" predict --from workload --batch "$batch" --prompt "$prompt" --steps 64 --json >predicted.workload.$batch.$prompt.json 2>predict.err || cat predict.err
    python3 "$here/predict_program.py" program.txt predicted.workload.$batch.$prompt.json workload "$batch" "$prompt" | tee -a figures.txt
  done
  took "llmprof-workload compared"
  others=
  for size in ${WORKLOAD_BACKTEST_SIZES:-1:1000 4:300 8:1500 32:700}; do
    rec -o "workload_${size/:/_}" -- "$workload" infer --device cuda --cuda-graph --batch "${size%:*}" --prompt "${size#*:}" --new 256
    others="$others workload_${size/:/_}"
  done
  "$llmprof" predict --from workload --measured $others --save steps_workload -f >backtest_workload.txt 2>&1
  check "a back-test of the workload's steps is kept" "[ $? = 0 ]"; cat backtest_workload.txt
fi

if [[ " $parts " == *" batching "* ]] && [ -n "$batching" ]; then
  rec -o batching -- python3 "$batching"
  tail -4 record.txt
  "$llmprof" bench --for batching --budget "${BUDGET:-150s}" >bench_batching.txt 2>bench_batching.err
  check "bench --for batching" "[ $? = 0 ]"; cat bench_batching.txt; tail -2 bench_batching.err
  took "continuous batching measured"
  for i in 1 2; do python3 "$batching" 2>/dev/null | tail -1 >truth.$i.json; cat truth.$i.json; done
  "$llmprof" report batching stages | head -20
  "$llmprof" predict --from batching --steps 47 --json >predicted.batching.json 2>predict.err || cat predict.err
  "$llmprof" predict --from batching --steps 47 >predicted.batching.txt
  python3 "$here/predict_program.py" truth.1.json predicted.batching.json batching 24 332 | tee -a figures.txt
  python3 "$here/predict_program.py" truth.2.json predicted.batching.json batching 24 332 | tee -a figures.txt
  took "continuous batching compared"
fi
echo "--- figures"; cat figures.txt
exit $failed
