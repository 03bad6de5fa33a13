#!/usr/bin/env bash
# Two ranks on one GPU: a tensor parallel and a data parallel loop of PyTorch (two_ranks.py), recorded, against values derived by
# hand. Once the program says how it is divided, once nobody does: then the sizes of its matrix products must tell.
# Usage: tests/gpu/two_ranks.sh dist/llmprof-*.tar.xz [folder for the reports]; without a GPU it runs on the CPU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$(realpath "$1")
keep=$(realpath "${2:-.}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
if [ -d "$bundle" ]; then llmprof=$bundle/llmprof; else tar xf "$bundle"; llmprof=$(echo "$scratch"/llmprof-*/bin/llmprof); fi
export PYTHONPATH=$here/../../python${PYTHONPATH:+:$PYTHONPATH}
failed=0
for kind in tp dp; do
  for said in yes ""; do
    echo "== $kind, division $([ -n "$said" ] && echo declared || echo not declared)"
    SAY_GROUPS=$said "$llmprof" record -o "$kind$said" -- python3 "$here/two_ranks.py" run "$kind" || failed=1
    "$llmprof" report "$kind$said" --full >"$keep/two_ranks_$kind$said.txt"
    sed -n '/^Machine/,/^Stages/p' "$keep/two_ranks_$kind$said.txt"
    "$llmprof" report "$kind$said" --json >"$keep/two_ranks_$kind$said.json"
    python3 "$here/two_ranks.py" check "$kind" "$keep/two_ranks_$kind$said.json" || failed=1
  done
done
[ "$failed" -eq 0 ] && echo "all passed"
exit "$failed"
