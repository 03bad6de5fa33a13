#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: CUDA graphs whose nodes were added by hand, with child graphs and branches, updated, launched
# in bursts and by several threads: named, sampled, attributed, and nothing crashes. With JAX installed, a decode loop of XLA's
# command buffers too. Usage: tests/gpu/graphs.sh BUNDLE|BIN_FOLDER [OUT [JAX_PROGRAM]]. Runs and reports go to OUT.
# GRAPHS_PLAIN names the program if it was built elsewhere (graphs_plain.cpp says how); ROUNDS how often it is repeated (8).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
from=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$(realpath "${2:-$scratch}")
jax_program=${3:+$(realpath "$3")}
export LLMPROF_CACHE_DIR=$scratch/cache
if [ -f "$from" ]; then
  tar xf "$from" -C "$scratch"
  from=$(echo "$scratch"/llmprof-*/bin)
fi
llmprof=$from/llmprof
cd "$scratch" || exit 1
passed=0 failed=0
check() {  # description, command…
  local what=$1; shift
  if "$@"; then echo "PASS $what"; passed=$((passed + 1)); else echo "FAIL $what"; failed=$((failed + 1)); fi
}
rows() { "$llmprof" query "$1" "$2" --csv | tail -n +2; }
is() {  # run, wanted, SQL
  local got; got=$(rows "$1" "$3" | tr '\n' ' ' | sed 's/ $//')
  [ "$got" = "$2" ] || { echo "  got $got, wanted $2"; return 1; }
}

program=${GRAPHS_PLAIN:-$scratch/graphs_plain}
if [ ! -x "$program" ]; then
  cuda=$(dirname "$(dirname "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")
  g++ -std=c++17 -O2 -I"$cuda/include" "$here/graphs_plain.cpp" -ldl -lpthread -o "$program" || exit 1
fi

"$program" >alone.txt; check "the program runs alone" test $? = 0
export LLMPROF_GRAPHS_AFTER_MS=${HAND_AFTER_MS:-50}  # as it is by default; the others are over sooner
for part in hand nested updated threads; do
  "$program" $part >"$part.alone.txt"
  "$llmprof" record --no-peaks -o "$out/$part" -- "$program" $part >"$part.txt" 2>"$out/$part.record.txt"
  check "$part: it ends well, and says the same" cmp "$part.txt" "$part.alone.txt"
  launches=$(grep -o '"graph_launches": [0-9]*' "$part.alone.txt" | grep -o '[0-9]*$')
  run=$out/$part
  echo "  $launches launches; $(rows "$run" "SELECT count(*), count(*) FILTER (nodes_recorded), (SELECT count(*) FROM gap WHERE why = 'graph sampling') FROM graph_launch" | head -1): recorded, of these by node, gaps"
  check "$part: some launches are recorded node by node, most as a whole" is "$run" true "SELECT count(*) FILTER (nodes_recorded) BETWEEN 1 AND count(*) / 4 AND count(*) > 0.8 * $launches FROM graph_launch"
  check "$part: every kernel node has a name" is "$run" 0 "SELECT count(*) FROM graph_node WHERE kind = 'kernel' AND name IS NULL"
  # Threads make graphs that live for 160 launches, while the others keep the device busy.
  check "$part: next to no time is of unknown nodes" is "$run" true "SELECT coalesce(sum(time_ns) FILTER (name = 'nodes of an unknown graph'), 0) < $([ $part = threads ] && echo 0.5 || echo 0.02) * sum(time_ns) FROM work_sum"
  "$llmprof" report "$run" --full >"$out/$part.report.txt" 2>&1
  export LLMPROF_GRAPHS_AFTER_MS=0
done
# The nodes take 4, 8, 12 and 16 us at least, and what a launch takes is divided among them.
check "hand: all four handles are named" is "$out/hand" "hand_any hand_cast hand_function hand_kernel" "SELECT DISTINCT name FROM graph_node WHERE captured_node IS NULL AND name LIKE 'hand%' ORDER BY 1"
check "hand: the shares are 1 : 2 : 3 : 4" is "$out/hand" "1 2 3 4" "SELECT round(sum(time_ns) / sum(executions) / 4500) FROM work_sum WHERE name LIKE 'hand_%' AND source = 'estimated' GROUP BY name ORDER BY 1"
check "hand: 16 launches a step at most" is "$out/hand" 16 "SELECT max(n) FROM (SELECT count(*) AS n FROM graph_launch g JOIN range r ON r.thread_id = g.thread_id AND g.launch_begin_ns BETWEEN r.begin_ns AND r.end_ns GROUP BY r.id)"
check "nested: kernels of the child graph and of the branch are there" is "$out/nested" "branch_body child_a child_b outer_after outer_before" "SELECT DISTINCT name FROM kernel WHERE graph_launch_id IS NOT NULL ORDER BY 1"
echo "  nested, nodes:"; rows "$out/nested" "SELECT graph, node, captured_node, name, kind FROM graph_node ORDER BY id"
echo "  nested, kernels of one launch:"; rows "$out/nested" "SELECT k.name, n.node, n.graph, n.captured_ns IS NULL AS unknown FROM kernel k LEFT JOIN graph_node n ON n.id = k.graph_node_id WHERE graph_launch_id = (SELECT min(id) FROM graph_launch WHERE nodes_recorded) ORDER BY k.begin_ns"
echo "  nested, losses:"; rows "$out/nested" "SELECT name, count FROM loss"
check "updated: each kernel has the time of its launches" is "$out/updated" "update_one update_other update_third update_two" "SELECT DISTINCT name FROM work_sum WHERE name LIKE 'update%' ORDER BY 1"
rows "$out/updated" "SELECT name, sum(executions) AS n, sum(time_ns) AS ns FROM work_sum GROUP BY name ORDER BY name"
# A graph of another context is in flight while graphs are made and sampled. The last ones take 0.4 s: then a sample that
# is open cannot be closed, and stays; that must not crash either.
for round in $(seq "${ROUNDS:-8}"); do
  LLMPROF_GRAPHS_AFTER_MS=0 timeout 60 "$llmprof" record --no-peaks -f -o "$out/contexts" -- "$program" contexts >contexts.txt 2>contexts.log
  "$program" contexts >contexts.alone.txt
  check "contexts, round $round" cmp contexts.txt contexts.alone.txt || tail -n 3 contexts.log
  rows "$out/contexts" "SELECT count(*), count(*) FILTER (nodes_recorded), (SELECT string_agg(text, ' ') FROM note WHERE subject = 'graphs') FROM graph_launch"
done
# Kinds of activity are switched while other threads launch and make graphs: not once may it crash.
for round in $(seq "${ROUNDS:-8}"); do
  timeout 60 "$llmprof" record --no-peaks -o again -- "$program" >again.txt 2>again.log
  check "all at once, round $round" cmp again.txt alone.txt || tail -n 3 again.log
  rm -rf again.llmprof
done

unset LLMPROF_GRAPHS_AFTER_MS
if [ -n "$jax_program" ] && python3 -c 'import jax' 2>jax.log; then
  python3 "$jax_program" 2>&1 | tail -n 1 | tee "$out/jax.alone.txt"
  "$llmprof" record --no-peaks -o "$out/jax" -- python3 "$jax_program" >"$out/jax.txt" 2>&1
  tail -n 3 "$out/jax.txt"
  "$llmprof" report "$out/jax" --full >"$out/jax.report.txt" 2>&1
  rows "$out/jax" "SELECT count(*) AS launches, count(*) FILTER (nodes_recorded) AS by_node FROM graph_launch"
  rows "$out/jax" "SELECT kind, count(*), count(name) FROM graph_node GROUP BY kind"
  rows "$out/jax" "SELECT subject, text FROM note"
  check "jax: launches are recorded node by node" is "$out/jax" true "SELECT count(*) FILTER (nodes_recorded) > 0 FROM graph_launch"
  check "jax: kernel nodes have names" is "$out/jax" 0 "SELECT count(*) FROM graph_node WHERE kind = 'kernel' AND name IS NULL"
  check "jax: at most 1 % of the GPU time is of unknown nodes" is "$out/jax" true "SELECT coalesce(sum(time_ns) FILTER (name = 'nodes of an unknown graph'), 0) < 0.01 * sum(time_ns) FROM work_sum"
  sed -n '/^What was recorded/,/^Machine/p;/^Stages/,/^Efficiency/p;/^Kernels by GPU/,/^$/p' "$out/jax.report.txt"
else
  echo "SKIP jax: no program was named, or it is not installed"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
