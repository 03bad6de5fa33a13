#!/usr/bin/env bash
# What llmprof says of programs it was not made for, beside what they say themselves: any_program.sh BUNDLE OUT [KIND …].
set -uo pipefail
bundle=$(realpath "$1") out=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
shift 2
work=$(mktemp -d)
cd "$work" && tar xf "$bundle" && llmprof=$(echo "$work"/llmprof-*/bin/llmprof)
for kind in "${@:-train recompute lora bert moe t5 whisper vision assisted dit}"; do
  for each in $kind; do
    "$llmprof" record --no-peaks --gpu waits -o "$each" -- python3 "$here/any_program.py" "$each" >"$out/$each.txt" 2>&1
    "$llmprof" report "$each" --full >>"$out/$each.txt" 2>&1
    echo "== $each"
    grep '^{"program"' "$out/$each.txt" || tail -n 5 "$out/$each.txt"
    sed -n '/^Diagnosis/,/^What was recorded/p;/^Model/,/^Efficiency/p;/^Training/,/^Blocks/p;/^Idle time/,/^$/p' "$out/$each.txt"
  done
done
