#!/usr/bin/env bash
# Every figure of perf/, measured here. Run on an otherwise idle machine; results worth keeping go to perf/results/ with
# the machine's name.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores, $(uname -r)"
echo "commit: $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
for program in annotate_cost hook_cost writer_rate kill_loss start_cost; do
  echo; echo "== perf/$program"; build/perf/$program
done
echo; echo "== tests/soak/events.py"; python3 tests/soak/events.py 100 build || true
echo; echo "== perf/collector_cost.py"; python3 perf/collector_cost.py build/bin
echo; echo "== perf/ingest_rate"; build/perf/ingest_rate
echo; echo "== perf/gpu_ingest_rate"; build/perf/gpu_ingest_rate
echo; echo "== perf/import_rate.py"; python3 perf/import_rate.py build
echo; echo "== perf/export_rate, 10 M kernels to Perfetto"
exported=$(mktemp -d); build/perf/synthetic_run "$exported/x.llmprof" 10000000
build/perf/export_rate "$exported/x.llmprof" perfetto "$exported/x.pftrace"; rm -rf "$exported"
echo; echo "== perf/nsys_rate"; build/perf/nsys_rate 1000000 build/bin/llmprof
echo; echo "== perf/ncu_rate"; build/perf/ncu_rate 100
echo; echo "== perf/model_analysis"; build/perf/model_analysis
echo; echo "== perf/serving_rate"; build/perf/serving_rate
echo; echo "== perf/plan_rate"; build/perf/plan_rate
echo; echo "== perf/report_scale.py"; python3 perf/report_scale.py build/bin
echo; echo "== perf/overhead.py"; python3 perf/overhead.py build/bin
echo; echo "== perf/live_ingest.py"; python3 perf/live_ingest.py build/bin
echo; echo "== perf/host_cost.py"; python3 perf/host_cost.py build/bin
echo; echo "== perf/unwind_cost, a C program"; build/perf/unwind_cost 10 99 build/tests/host_victim chain
echo; echo "== perf/unwind_cost, Python"; build/perf/unwind_cost 10 99 /usr/bin/python3 libs/host/stacks/testing/python_burns.py
