#!/usr/bin/env bash
# Hits in the L2 cache by three witnesses: by construction (l2_hits.cu), by llmprof, and by Nsight Compute with the cache
# left alone and flushed before each replay. Fails if llmprof is off by more than 3 points for the reads of the SMs.
#   tests/gpu/l2_hits.sh LLMPROF FOLDER [NCU]
set -uo pipefail
llmprof=$(realpath "$1"); mkdir -p "$2"; folder=$(realpath "$2")
ncu=${3:-$(command -v ncu || ls -d /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | tail -n 1)}
here=$(cd "$(dirname "$0")" && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
program=${L2_HITS:-$folder/l2_hits}
if [ ! -x "$program" ]; then
  "$nvcc" -std=c++17 -O2 -cudart shared -arch=sm_90 "$here/l2_hits.cu" -o "$program" || { echo "FAILED: l2_hits was not built"; exit 1; }
fi
set -f  # patterns are no file names
kernels="stream_once twice_cold eight_cold again_warm"
hit=lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum miss=lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum
timeout 60 "$llmprof" record -q -f --no-peaks -o "$folder/ours" --counters "gpu_time_ns,dram_read_bytes,l2_hit_pct,$hit,$miss" \
  --counters-method kernel --counters-kernels "$(echo $kernels | tr ' ' ,)" --counters-budget 0 -- "$program" 24 \
  >"$folder/ours.out" 2>"$folder/ours.err" || echo "FAILED: record: $(tail -n 3 "$folder/ours.err")"
"$llmprof" query "$folder/ours" "SELECT k.name AS kernel, c.metric AS metric, avg(c.value) AS value, count(*)::BIGINT AS launches FROM counter AS c
  JOIN kernel AS k ON k.id = c.scope_id WHERE c.scope = 'kernel' GROUP BY ALL" --json >"$folder/ours.json" 2>>"$folder/ours.err"
for control in none all; do
  [ -x "${ncu:-}" ] || { echo "no Nsight Compute: two witnesses only"; break; }
  timeout 60 "$ncu" --csv --page raw --metrics "dram__bytes_read.sum,lts__t_sector_hit_rate.pct,$hit,$miss" --cache-control $control \
    --clock-control none --kernel-name "regex:$(echo $kernels | tr ' ' '|')" "$program" 3 >"$folder/ncu_$control.csv" 2>"$folder/ncu_$control.err" ||
    echo "ncu --cache-control $control failed: $(tail -n 2 "$folder/ncu_$control.err")"
done
python3 - "$folder" "$hit" "$miss" <<'PY'
import csv, json, pathlib, statistics, sys
folder, HIT, MISS = pathlib.Path(sys.argv[1]), *sys.argv[2:]
RATE, DRAM = "lts__t_sector_hit_rate.pct", "dram__bytes_read.sum"
KNOWN = {"stream_once": 0.0, "twice_cold": 50.0, "eight_cold": 87.5, "again_warm": 100.0}  # % of the SMs' reads
BYTES = {"stream_once": 1 << 30, "twice_cold": 8 << 20, "eight_cold": 8 << 20, "again_warm": 0}
SCALE = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def ours():
    table = {}
    for row in json.loads((folder / "ours.json").read_text())["rows"]:
        table.setdefault(row["kernel"], {})[row["metric"]] = row["value"]
    return table


def theirs(control):
    path = folder / f"ncu_{control}.csv"
    lines = path.read_text().splitlines() if path.is_file() else []
    lines = lines[next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines)):]
    rows = list(csv.DictReader(lines))
    values = {}
    for row in rows[1:]:  # the first has the units
        for metric in (RATE, HIT, MISS, DRAM):
            if row.get(metric):
                scale = SCALE.get(rows[0][metric], 1) if metric == DRAM else 1
                values.setdefault(row["Kernel Name"].split("(")[0], {}).setdefault(metric, []).append(float(row[metric].replace(",", "")) * scale)
    return {kernel: {metric: statistics.mean(all_) for metric, all_ in metrics.items()} for kernel, metrics in values.items()}


def reads(m):
    return 100 * m[HIT] / (m[HIT] + m[MISS]) if m.get(HIT) is not None and m.get(MISS) is not None and m[HIT] + m[MISS] else None


def text(value):
    return "-" if value is None else f"{value:.1f}"


witnesses = [("llmprof", ours()), ("ncu none", theirs("none")), ("ncu all", theirs("all"))]
print("hits of the SMs' reads / of all sectors (lts__t_sector_hit_rate), %; DRAM reads, MiB")
print("kernel       built for " + "".join(f"{name:>26}" for name, _ in witnesses))
wrong = []
for kernel, known in KNOWN.items():
    cells = ""
    for name, table in witnesses:
        m = table.get(kernel, {})
        dram = m.get(DRAM)
        cells += f"{text(reads(m)) + ' / ' + text(m.get(RATE)) + '; ' + text(None if dram is None else dram / 2**20):>26}"
    print(f"{kernel:<12} {known:5.1f}; {BYTES[kernel] >> 20:<5}{cells}")
    found = reads(witnesses[0][1].get(kernel, {}))
    if found is None or abs(found - known) > 3:
        wrong.append(f"{kernel}: {text(found)} instead of {known}")
print("FAILED: " + "; ".join(wrong) if wrong else "llmprof counts what the kernels were built for")
sys.exit(1 if wrong else 0)
PY
