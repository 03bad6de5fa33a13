#!/usr/bin/env bash
# The life of a PyTorch program, phase by phase, against its own clock: life.sh BUNDLE OUT. The run and its report go to OUT.
set -uo pipefail
bundle=$(realpath "$1") out=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work" && tar xf "$bundle" && llmprof=$(echo "$work"/llmprof-*/bin/llmprof)
export TORCHINDUCTOR_CACHE_DIR=$work/inductor  # compiled here, not found
python3 "$here/life.py" weights.pt
"$llmprof" record --no-peaks -o life -- python3 "$here/life.py" weights.pt 2>"$out/life.log" | tail -n 1 >"$out/life.times.json"
"$llmprof" report life --json >"$out/life.json"
"$llmprof" report life --full | sed -n '/^Life of the program/,/^Machine/p'
tar czf "$out/life.tar.gz" --exclude derived life.llmprof
python3 "$here/life.py" --check "$out/life.json" "$out/life.times.json"
