#!/usr/bin/env bash
# Continuous batching of transformers on a GPU, a program without a word for llmprof, under record --requests: its results and the
# conservation of steps, by SQL.
#   tests/gpu/requests_transformers.sh LLMPROF FOLDER [PROGRAM.PY]
# PROGRAM.PY prints {"requests": …, "prompt_tokens": …, "out_tokens": …} as JSON in its last line; without it one that is here.
set -uo pipefail
llmprof=$(realpath "$1"); program=${3:+$(realpath "$3")}
mkdir -p "$2"; cd "$2" || exit 1
passed=0 failed=0
check() {  # description, what came out, what is wanted
  if [ "$2" = "$3" ]; then echo "PASS $1 ($2)"; passed=$((passed + 1)); else echo "FAIL $1: $2, wanted $3"; failed=$((failed + 1)); fi
}
if [ -z "$program" ]; then
  program=batching.py
  cat >batching.py <<'PY'
import json, torch, transformers
torch.manual_seed(0)
shape = transformers.Qwen3Config(hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16,
                                 num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=4096)
with torch.device("cuda"):
    model = transformers.AutoModelForCausalLM.from_config(shape, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
prompts = [torch.randint(10, 30000, (32 + 61 * i % 570,)).tolist() for i in range(24)]
done = model.generate_batch(inputs=prompts, progress_bar=False, generation_config=transformers.GenerationConfig(
    max_new_tokens=48, do_sample=False, eos_token_id=-1, pad_token_id=0))
print(json.dumps({"requests": len(done), "prompt_tokens": sum(map(len, prompts)),
                  "out_tokens": sum(len(each.generated_tokens) for each in done.values())}))
PY
fi
printed() { python3 -c 'import json, sys; print(json.loads(sys.stdin.read().strip().splitlines()[-1])[sys.argv[1]])' "$1"; }
value() { "$llmprof" query served "$1" --csv 2>/dev/null | tail -n 1; }
alone=$(timeout 200 python3 "$program" 2>alone.err | tail -n 1)
timeout 300 "$llmprof" record -f --no-peaks --requests -o served -- python3 "$program" >served.txt 2>served.err
recorded=$(tail -n 1 served.txt)
for key in requests prompt_tokens out_tokens; do
  check "$key of the program, recorded and alone" "$(printed $key <<<"$recorded")" "$(printed $key <<<"$alone")"
done
check "no hook gave up" "$(grep -c 'not recorded any more' served.err)" 0
check "requests that ended" "$(value "SELECT count(*) FROM request WHERE status IS NOT NULL")" "$(printed requests <<<"$recorded")"
check "tokens of their prompts" "$(value "SELECT sum(prompt_tokens) FROM request")" "$(printed prompt_tokens <<<"$recorded")"
check "output tokens" "$(value "SELECT sum(output_tokens) FROM request")" "$(printed out_tokens <<<"$recorded")"
check "steps without members" "$(value "SELECT count(*) FROM step AS s WHERE stage IN ('prefill', 'decode', 'mixed') AND NOT EXISTS
  (SELECT 1 FROM step_member AS m WHERE m.step_id = s.id AND m.request_id IS NOT NULL)")" 0
check "nanoseconds by which parts differ from their steps" "$(value "SELECT sum(abs(parts - step)) FROM (SELECT sum(m.time_ns) AS parts,
  any_value(s.end_ns - s.turn_ns) AS step FROM step_member AS m JOIN step AS s ON s.id = m.step_id GROUP BY m.step_id)")" 0
check "padding told: rows of a step below its tokens" "$(value "SELECT count(*) FROM (SELECT sum(tokens) FILTER (event = 'member') AS tokens,
  max(tokens) FILTER (event = 'padded') AS rows FROM (SELECT *, sum(CASE WHEN event = 'padded' THEN 1 ELSE 0 END) OVER (PARTITION BY
  thread_id ORDER BY ts_ns DESC) AS step FROM request_event WHERE event IN ('member', 'padded')) GROUP BY step) WHERE rows < tokens")" 0
# Where batches are prepared ahead, each request takes part in one step more than it has output tokens.
check "requests computed as long as they should be, or one token longer" "$(value "SELECT count(*) FROM (SELECT any_value(q.prompt_tokens) AS p,
  any_value(q.output_tokens) AS o, any_value(q.cached_tokens) AS c, any_value(q.preemptions) AS lost, sum(m.tokens) AS tokens FROM step_member AS m
  JOIN request AS q ON q.id = m.request_id GROUP BY q.id) WHERE lost = 0 AND tokens - (p - c + o - 1) NOT IN (0, 1)")" 0
"$llmprof" query served "SELECT stage, count(*) AS steps, sum(kernels) AS kernels FROM step GROUP BY ALL ORDER BY ALL"
"$llmprof" query served "SELECT sum(time_ns) FILTER (request_id IS NOT NULL) AS requests_ns, sum(time_ns) FILTER (request_id IS NULL) AS engine_ns,
  sum(idle_ns) AS idle_ns, sum(attention_ns) AS attention_ns FROM step_member"
"$llmprof" report served requests
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
