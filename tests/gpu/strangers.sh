#!/usr/bin/env bash
# Programs without a word for llmprof, recorded on a GPU: strangers.sh BUNDLE OUT. Reports and runs go to OUT, with what the programs say.
set -uo pipefail
bundle=$(realpath "$1") out=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work" && tar xf "$bundle" && llmprof=$(echo "$work"/llmprof-*/bin/llmprof)
for kind in gpt llama; do
  python3 "$here/train_loop.py" $kind 30 2>&1 | tail -n 1 >"$out/$kind.alone.txt"
  "$llmprof" record --no-peaks -o $kind -- python3 "$here/train_loop.py" $kind 30 >"$out/$kind.txt" 2>&1
  "$llmprof" report $kind --full >"$out/$kind.report.txt" 2>&1
  tar czf "$out/$kind.tar.gz" --exclude derived $kind.llmprof
  cat "$out/$kind.alone.txt" "$out/$kind.txt" | tail -n 5
  sed -n '/^Stages/,/^Efficiency/p;/^Training/,/^Blocks/p' "$out/$kind.report.txt"
done
