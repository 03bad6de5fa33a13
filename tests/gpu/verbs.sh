#!/usr/bin/env bash
# Options and verbs that only a GPU can show: recording switched from outside and by the program, counters of the hottest kernels of
# an earlier run, replayed kernels, stalls with source lines, an operator's benchmark, sampled kernels beside all of them.
#   tests/gpu/verbs.sh LLMPROF FOLDER
set -uo pipefail
llmprof=$(realpath "$1"); mkdir -p "$2"; folder=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1
passed=0 failed=0
check() {  # description, command…
  local what=$1; shift
  if "$@"; then echo "PASS $what"; passed=$((passed + 1)); else echo "FAIL $what"; failed=$((failed + 1)); fi
}
value() { "$llmprof" query "$1" "$2" --csv 2>/dev/null | tail -n 1; }
is() { local got; got=$(value "$1" "$3"); [ "$got" = "$2" ] || { echo "  got '$got', wanted '$2'"; return 1; }; }
record() { local name=$1; shift; timeout 90 "$llmprof" record -q -f --no-peaks -o "$name" "$@" >"$name.out" 2>"$name.err" || { echo "  $(tail -n 2 "$name.err")"; return 1; }; }
cat >products.py <<'PY'
import os, sys, time
import torch
api = torch.cuda.cudart() if "api" in sys.argv else None
a = torch.randn(1024, 1024, device="cuda:0", dtype=torch.bfloat16)
for part in range(3):
    if api and part == 1:
        api.cudaProfilerStart()
    for _ in range(100):
        b = torch.relu(a @ a)
    torch.cuda.synchronize()
    if api and part == 1:
        api.cudaProfilerStop()
end = time.monotonic() + float(os.environ.get("LASTS", "0"))
while time.monotonic() < end:
    torch.relu(a @ a)
    torch.cuda.synchronize()
    time.sleep(0.001)
PY
check "--profiler-api records" record api --profiler-api -- python3 products.py api
check "between its calls: 100 products and their kernels" is api 100 "SELECT count(*) FROM kernel WHERE gemm_id IS NOT NULL"
check "and 100 of the other kernel" is api 100 "SELECT count(*) FROM kernel WHERE gemm_id IS NULL AND contains(name, 'elementwise')"

(LASTS=6 timeout 90 "$llmprof" record -q -f --no-peaks --control "$folder/control.sock" --start-stopped -o control -- python3 products.py >control.out 2>control.err) &
for _ in $(seq 100); do [ -S control.sock ] && break; sleep 0.2; done
sleep 5
"$llmprof" control "$folder/control.sock" start >control.said 2>&1; sleep 1
"$llmprof" control "$folder/control.sock" stop >>control.said 2>&1
wait
check "--control records what was asked for, not the 300 products before" is control true "SELECT count(*) BETWEEN 50 AND 3000 FROM gemm"
check "for about a second" is control true "SELECT (max(end_ns) - min(begin_ns)) / 1e9 BETWEEN 0.5 AND 2 FROM kernel"

check "a run to look into" record plain -- python3 products.py
check "--counters-hot of it, with the default budget" record hot --counters memory --counters-hot 1 --counters-from plain -- env LASTS=2 python3 products.py
"$llmprof" query hot "SELECT k.name, count(*) AS n, count(DISTINCT metric) AS metrics FROM counter c LEFT JOIN kernel k ON k.id = c.scope_id WHERE c.scope = 'kernel' GROUP BY ALL"
"$llmprof" query plain "SELECT name, sum(end_ns - begin_ns) AS ns FROM kernel GROUP BY ALL ORDER BY ns DESC LIMIT 3"
check "one kernel was measured, the hottest" is hot true "SELECT count(DISTINCT k.name) = 1 AND min(k.name) = (SELECT name FROM kernel WHERE device_id IN (SELECT id FROM device WHERE kind = 'gpu') GROUP BY name ORDER BY sum(end_ns - begin_ns) DESC LIMIT 1) FROM counter c JOIN kernel k ON k.id = c.scope_id WHERE c.scope = 'kernel'"
check "setting up is said, and no spelling of the kernel is missed" is hot true "SELECT count(*) FILTER (contains(text, 'setting up the counters')) > 0 AND count(*) FILTER (contains(text, 'no kernel')) = 0 FROM note"
"$llmprof" query hot "SELECT text FROM note WHERE subject = 'counters' UNION ALL SELECT detail FROM loss WHERE name LIKE 'counter%'"
check "--replay" record replay --counters full --counters-kernels '*' --replay -- python3 products.py
"$llmprof" query replay "SELECT scope, count(DISTINCT metric) AS metrics, count(*) AS n FROM counter GROUP BY ALL"; "$llmprof" query replay "SELECT name, count, detail FROM loss"
check "all counters of a product's kernel came in one replay" is replay true "SELECT count(DISTINCT metric) > 20 FROM counter WHERE scope = 'kernel'"
check "every value belongs to a kernel with a name and a time that is not 0" is replay true "SELECT count(*) > 0 AND count(*) = count(k.name) AND count(*) = count(*) FILTER (k.time_ns > 0) FROM counter c LEFT JOIN counted_kernel k ON k.id = c.scope_id WHERE c.scope = 'kernel'"
"$llmprof" query replay "SELECT name, time_source, count(*) AS launches, median(time_ns) AS ns FROM counted_kernel GROUP BY ALL"; "$llmprof" query replay "SELECT name, count(*) AS launches, median(end_ns - begin_ns) AS ns FROM kernel GROUP BY ALL"

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if "$nvcc" -std=c++17 -O2 -lineinfo -cudart shared -arch=sm_90 "$here/access.cu" -o access_lines; then
  check "--stalls" record stalls --stalls -- ./access_lines 2000
  check "stalls have source lines" is stalls true "SELECT count(*) FILTER (line > 0 AND file LIKE '%access.cu') > 0 FROM stall"
fi

check "mla_decode by its verb" timeout 120 "$llmprof" bench mla_decode --device cuda --batch 1 --context 1k -o mla >mla.out 2>mla.err
check "it was measured, and no point failed" is mla true "SELECT count(*) > 0 FROM bench WHERE op = 'mla_decode'"
tail -n 2 mla.err

# Sampled kernels: as many as there are, and the same time.
record sampled_all --kernels all -- python3 "$here/../../perf/workloads/decode.py" --impl mini --seconds 6 && mv sampled_all.out all.json
check "kernels sampled" record sampled -- python3 "$here/../../perf/workloads/decode.py" --impl mini --seconds 12
step="SELECT round(count(*)::DOUBLE / count(DISTINCT step_id), 3) FROM attribution WHERE stage = 'decode' AND step_id IN (SELECT id FROM paced_step WHERE steady)"
check "a step has as many kernels as with all of them timed" is sampled "$(value sampled_all "$step")" "$step"
check "most are estimated" is sampled true "SELECT count(*) FILTER (estimated) > 0.5 * count(*) FROM kernel"
check "their time is that of the timed ones, by 2 %" is sampled true "SELECT abs(avg(end_ns - begin_ns) FILTER (estimated) / avg(end_ns - begin_ns) FILTER (estimated IS NULL) - 1) < 0.02 FROM kernel k JOIN attribution a ON a.kernel_id = k.id WHERE a.stage = 'decode' AND a.step_id IN (SELECT id FROM paced_step WHERE steady)"
echo "$passed passed, $failed failed"
exit "$((failed > 0))"
