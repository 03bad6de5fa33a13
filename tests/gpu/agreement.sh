#!/usr/bin/env bash
# llmprof's own capture, torch.profiler and Nsight Systems on the same program: kernels, copies and their time must agree
# within 1 %; and what an export of our run reads back to. Each is a run of its own of the program.
#   agreement.sh LLMPROF [STEPS]     NSYS: path of nsys (else on PATH); OUT: where files are kept
set -u
here=$(cd "$(dirname "$0")" && pwd)
llmprof=$1 steps=${2:-200} out=${OUT:-$(mktemp -d)}
nsys=${NSYS:-nsys}
cd "$out" || exit 1
failed=0

# What the device did while prefill and decode steps ran: number and ns, estimated nodes included.
work="SELECT count(*) AS n, sum(ns)::BIGINT AS ns FROM (
  SELECT k.end_ns - k.begin_ns AS ns, k.launch_begin_ns AS t, k.begin_ns AS b FROM kernel_all k JOIN device d ON d.id = k.device_id WHERE d.kind = 'gpu'
  UNION ALL SELECT end_ns - begin_ns, launch_begin_ns, begin_ns FROM copy) w
  WHERE coalesce(t, b) BETWEEN (SELECT min(begin_ns) FROM range WHERE name = 'prefill') AND (SELECT max(end_ns) FROM range WHERE name = 'decode_step')"

sum() {  # run
  timeout 60 "$llmprof" query "$1" "$work" --csv | tail -n 1
}

for mode in eager graph; do
  program="python3 $here/agreement.py $mode $steps"
  timeout 120 "$llmprof" record -q --no-peaks -f -o own_$mode -- $program >/dev/null || failed=1
  timeout 120 "$llmprof" record -q --no-peaks --graphs all -f -o all_$mode -- $program >/dev/null || failed=1
  timeout 120 $program --kineto kineto_$mode.json >/dev/null || failed=1
  timeout 120 "$nsys" profile -t cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace=node --force-overwrite=true \
    --capture-range=cudaProfilerApi --capture-range-end=stop -o nsys_$mode $program >nsys_$mode.out 2>&1 || tail -n 5 nsys_$mode.out
  timeout 120 "$nsys" export -t sqlite --force-overwrite=true -o nsys_$mode.sqlite nsys_$mode.nsys-rep >/dev/null 2>&1
  timeout 60 "$llmprof" import -f -o from_kineto_$mode kineto_$mode.json 2>import_kineto_$mode.out || { [ $? -eq 3 ] || failed=1; }
  timeout 60 "$llmprof" import -f -o from_nsys_$mode nsys_$mode.sqlite 2>import_nsys_$mode.out || { [ $? -eq 3 ] || failed=1; }
  timeout 60 "$llmprof" export own_$mode -t chrome -f -o own_$mode.json 2>/dev/null
  timeout 60 "$llmprof" import -f -o again_$mode own_$mode.json 2>/dev/null
  reference=$(sum own_$mode)
  for run in own all from_kineto from_nsys again; do
    python3 - "$mode" "$run" "$reference" "$(sum ${run}_$mode)" <<'PY' || failed=1
import sys
mode, run, reference, found = sys.argv[1:]
count, ns = (float(x) for x in reference.split(","))
n, t = (float(x or 0) for x in found.split(",")) if "," in found else (0, 0)
print(f"{mode:6} {run:12} {n:8.0f} executions ({n / count - 1:+.3%})  {t / 1e6:10.3f} ms ({t / ns - 1:+.3%})")
sys.exit(abs(n / count - 1) > 0.01 or abs(t / ns - 1) > 0.01)
PY
  done
done
[ $failed -eq 0 ] && echo "agreement: all within 1 %" || echo "agreement: NOT all within 1 %"
exit $failed
