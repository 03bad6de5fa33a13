#!/usr/bin/env bash
# The embedded server on a GPU: its tokens are those of infer, and recorded under load every nanosecond of a step belongs to
# somebody. One PASS, FAIL or SKIP line per check.
#   tests/gpu/serve.sh LLMPROF OUT [DEVICE]    DEVICE: cuda, or cpu to try the script
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
llmprof=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); device=${3:-cuda}
workload=$(dirname "$llmprof")/llmprof-workload
export LLMPROF_NO_REPORT=1
cd "$out" || exit 1
passed=0
failed=0
check() {  # description, command…
  local what=$1; shift
  if "$@"; then echo "PASS $what"; passed=$((passed + 1)); else echo "FAIL $what"; failed=$((failed + 1)); fi
}
command -v python3 >/dev/null || { echo "SKIP python3 is missing: it is the client"; exit 0; }
client() { timeout 120 python3 "$here/serve_client.py" "$@"; }
server=
start() {  # command of the server, without --port
  rm -f port
  "$@" --device "$device" --port 0 --port-file port >server.txt 2>server-errors.txt &
  server=$!
  for _ in $(seq 600); do [ -s port ] && return 0; kill -0 "$server" 2>/dev/null || break; sleep 0.1; done
  cat server-errors.txt; echo "FAIL the server did not start"; exit 1
}
end() { kill -TERM "$server"; wait "$server"; }
trap '[ -n "$server" ] && kill "$server" 2>/dev/null' EXIT

# In float32 the choices of a GPU, of a CPU, alone or among others are the same; blocks are few, so that requests are preempted.
type=(); [ "$device" = cuda ] && type=(--type float32)
small=(--block-size 8 --num-gpu-blocks 30 --max-num-batched-tokens 32 --max-num-seqs 16)
for preset in tiny-llama tiny-gpt2; do
  run=(--preset $preset --batch 8 --prompt 40 --new 20 --json)
  timeout 60 "$workload" infer "${run[@]}" --device "$device" "${type[@]}" >alone.json
  timeout 60 "$workload" infer "${run[@]}" --device cpu >cpu.json
  start "$workload" serve --preset $preset "${type[@]}" "${small[@]}" --steps steps.jsonl
  check "$preset: requests served together get the tokens of infer" client tokens "$(cat port)" alone.json
  check "$preset: and those of the CPU" client tokens "$(cat port)" cpu.json
  check "$preset: some were preempted" client preempted "$(cat port)"
  check "$preset: the server ends with 0" end
done

# The model of the demo, recorded, under requests of many lengths; the client and the server read the same clock.
model=(); [ "$device" = cuda ] || model=(--preset tiny-llama)
start "$llmprof" record -f -o served --no-peaks -- "$workload" serve "${model[@]}" --steps steps.jsonl
check "64 requests, 8 at a time" client load "$(cat port)" 64 8 client.json
if "$llmprof" load --help >/dev/null 2>&1; then
  check "llmprof load: 100 requests at 20/s" timeout 120 "$llmprof" load "http://127.0.0.1:$(cat port)" --rate 20 --requests 100 -f -o load
else
  echo "SKIP llmprof load: this build does not have it"
fi
check "the recorded server ends with 0" end
server=
"$llmprof" report served --json >report.json
# Of every step: what it took, what its members and the engine were given of it, and how often these differ.
"$llmprof" query served --json "SELECT count(*) AS steps, sum(step) AS ns, count(*) FILTER (parts <> step) AS wrong,
    count(*) FILTER (kinds <> step) AS wrong_kinds FROM (
  SELECT any_value(s.end_ns - s.turn_ns) AS step, sum(m.time_ns) AS parts,
    sum(m.products_ns + m.weights_ns + m.attention_ns + m.head_ns + m.copies_ns + m.idle_ns + m.other_ns) AS kinds
  FROM step_member AS m JOIN step AS s ON s.id = m.step_id GROUP BY m.step_id)" >steps.json
"$llmprof" query served --json "SELECT name, arrival_ns, first_token_ns, prompt_tokens, output_tokens FROM request" >requests.json
check "every step is divided to the nanosecond" client conserved steps.json steps.jsonl report.json
check "the client's times to first token are the server's" client ttft client.json requests.json
"$llmprof" report served requests | sed 's/^/     /' | head -40
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
