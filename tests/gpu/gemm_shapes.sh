#!/usr/bin/env bash
# On a machine with an NVIDIA GPU and PyTorch: cuBLAS calls are seen, their shapes right, their results unchanged.
# Usage: tests/gpu/gemm_shapes.sh FOLDER_OF_LIBRARIES COLLECT_DUMP_LOG
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
libraries=$(realpath "$1")
dump=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failed=0
python=$here/gemm_shapes.py
recorded() {  # folder, command…
  mkdir -p "$1"
  LLMPROF_CAPTURE_DIR=$scratch/$1 LD_PRELOAD=$libraries/libllmprof_blas.so "${@:2}"
}
export CUBLAS_WORKSPACE_CONFIG=:4096:8
for framework in torch jax; do
  python3 -c "import $framework" 2>/dev/null || { echo "no $framework here: left out"; continue; }
  run=run
  [ $framework = jax ] && run=jax
  echo "-- $framework alone"
  timeout 40 python3 "$python" $run ${framework}_alone.npz || failed=1
  # XLA chooses among kernels by their time in each process: what two runs alone give tells what can be asked of the third.
  [ $framework = jax ] && timeout 40 python3 "$python" jax jax_again.npz && echo "-- jax alone, twice" &&
    python3 "$python" compare jax_alone.npz jax_again.npz
  echo "-- $framework under the preload"
  recorded $framework timeout 40 python3 "$python" $run ${framework}_recorded.npz || failed=1
  python3 "$python" compare ${framework}_alone.npz ${framework}_recorded.npz || failed=1
  for log in $framework/*.log; do "$dump" "$log"; done >$framework.txt
  python3 "$python" check $framework.txt $framework || failed=1
  grep -A1 'kind 4 ' $framework.txt | head -4
done
exit $failed
