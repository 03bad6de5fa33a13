#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: everything that tests GPU capture there, in one go. Builds capture_plain where nvcc is.
# Usage: tests/gpu/capture.sh dist/llmprof-*.tar.xz | build/bin [options of capture.py]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
from=$(realpath "$1"); shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LLMPROF_CACHE_DIR=$scratch/cache
if [ -f "$from" ]; then
  tar xf "$from" -C "$scratch"
  from=$(echo "$scratch"/llmprof-*/bin)
fi
program=${CAPTURE_PLAIN:-$scratch/capture_plain}
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$program" ]; then
  "$nvcc" -std=c++17 -O2 -cudart shared -arch=sm_90 "$here/capture_plain.cu" -lcublas -L"$(dirname "$nvcc")/../lib" -o "$program" ||
    echo "capture_plain was not built: its parts will fail"
fi
timeout "${CAPTURE_LIMIT_S:-560}" python3 "$here/capture.py" "$from" --plain "$program" "$@"
