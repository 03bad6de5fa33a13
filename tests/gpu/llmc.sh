#!/usr/bin/env bash
# llm.c's training, recorded with counters and beside Nsight Systems: llmc.sh BUNDLE OUT LLMC.tar.gz LLMC_DATA.py [NSYS].
# llm.c is its author's (MIT); it is built and run here, nothing of it is kept.
set -uo pipefail
bundle=$(realpath "$1") out=$(realpath "$2") source=$(realpath "$3") data=$(realpath "$4") nsys=${5:-}
work=$(mktemp -d)
cd "$work" && tar xf "$bundle" && llmprof=$(echo "$work"/llmprof-*/bin/llmprof)
tar xf "$source" && cd "$(dirname "$(find . -name train_gpt2.cu | head -n 1)")" || exit 1
nvcc -O3 -std=c++17 --use_fast_math -gencode arch=compute_90,code=sm_90 -DENABLE_BF16 train_gpt2.cu -lcublas -lcublasLt -lnvidia-ml -o train_gpt2cu || exit 1
python3 "$data" >/dev/null 2>&1
run=(./train_gpt2cu -i train.bin -j val.bin -e d12 -b 16 -t 1024 -d 16384 -x 40 -v 1000 -m 1 -s 10000 -o log)
"${run[@]}" | grep -E '^step' | tail -n 3
"$llmprof" record -o plain -- "${run[@]}" 2>&1 | grep -E '^step' | tail -n 1
"$llmprof" report plain --full >"$out/llmc.txt" 2>&1
"$llmprof" record --counters light --counters-range gpt2_forward --counters-range gpt2_backward_and_reduce --counters-range gpt2_update -o counted -- "${run[@]}" >"$out/llmc.counted.txt" 2>&1
"$llmprof" report counted --full >>"$out/llmc.counted.txt" 2>&1
sed -n '/^Hardware counters/,/^$/p' "$out/llmc.counted.txt" | head -n 60
if [ -n "$nsys" ]; then
  "$nsys" profile --trace cuda,nvtx -o seen --force-overwrite true "${run[@]}" | grep -E '^step' | tail -n 1
  "$nsys" stats --report nvtx_sum,cuda_gpu_kern_sum,nvtx_gpu_proj_sum seen.nsys-rep >"$out/llmc.nsys.txt" 2>&1
  head -n 60 "$out/llmc.nsys.txt"
fi
