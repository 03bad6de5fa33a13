#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: the timers of libs/bench against kernels of known length, against each other, and
# against ncu's gpu__time_duration. Usage: tests/gpu/bench_timing.sh build/tests/gpu_bench_test [folder for results]
set -uo pipefail
test=$(realpath "$1")
keep=$(realpath "${2:-$(mktemp -d)}")
failed=0
cd "$keep"
timeout 120 "$test" --gtest_brief=1 ours.csv || failed=1
command -v ncu >/dev/null || { echo "no ncu here: not compared with it"; exit "$failed"; }
# ncu empties the caches before each kernel, as cold samples do, or leaves them, as hot ones do.
for cache in all none; do
  timeout 120 ncu --clock-control none --cache-control $cache --metrics gpu__time_duration.sum \
    --kernel-name 'regex:llmprof_spin_ns|residual_add' --csv --print-units base "$test" --for-ncu >ncu_$cache.csv 2>&1 ||
    { failed=1; tail -n 5 ncu_$cache.csv; }
done
grep -h 'under ncu' ncu_all.csv
python3 - <<'PYTHON' || failed=1
import csv, statistics, sys

def durations(cache):  # us, one per subject: the median of its five launches
    rows = [line for line in open(f"ncu_{cache}.csv") if line.startswith('"')]
    times = [float(row["Metric Value"].replace(",", "")) / 1e3 for row in csv.DictReader(rows)]
    return [statistics.median(times[i:i + 5]) for i in range(0, len(times), 5)]

# ncu's duration begins before the kernel and ends after it: what that adds is what it adds to the empty kernel, the first.
ours = [line.strip().split(",") for line in open("ours.csv")]
print(f'{"us":13} {"ncu":>9} {"cold":>9} {"less":>7} {"rest":>8}  {"ncu, warm":>9} {"hot":>9} {"less":>7} {"rest":>8}')
wrong, empty = 0, None
for (name, cold, hot), *ncu in zip(ours, durations("all"), durations("none")):
    less = [n - float(o) for n, o in zip(ncu, (cold, hot))]
    empty = empty or less
    rest = [a - b for a, b in zip(less, empty)]
    within = all(abs(r) <= max(0.5, 0.2 * n) for r, n in zip(rest, ncu))
    wrong += not within
    print(f"{name:13} {ncu[0]:9.3f} {float(cold):9.3f} {less[0]:7.3f} {rest[0]:8.3f}  {ncu[1]:9.3f} {float(hot):9.3f} {less[1]:7.3f} {rest[1]:8.3f}"
          + ("" if within else "  <- more than 0.5 us and 20 %"))
sys.exit(wrong > 0)
PYTHON
exit "$failed"
