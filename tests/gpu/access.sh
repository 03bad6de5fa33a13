#!/usr/bin/env bash
# The counters of the set `access` on kernels that are built to use the memory well and badly (access.cu), and what the
# rules say of them. Fails where a counter is not what the kernel was built for, or a rule does not find its kernel.
#   tests/gpu/access.sh LLMPROF FOLDER
set -uo pipefail
llmprof=$(realpath "$1"); mkdir -p "$2"; folder=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
program=${ACCESS:-$folder/access}
if [ ! -x "$program" ]; then
  "$nvcc" -std=c++17 -O2 -cudart shared -arch=sm_90 "$here/access.cu" -o "$program" || { echo "FAILED: access was not built"; exit 1; }
fi
set -f  # patterns are no file names
timeout 60 "$llmprof" record -q -f --no-peaks -o "$folder/access" --counters access,bytes_per_load_sector --counters-method kernel \
  --counters-kernels "loads_*,shared_*,local_*" --counters-budget 0 -- "$program" 40 >"$folder/access.out" 2>"$folder/access.err" ||
  echo "FAILED: record: $(tail -n 3 "$folder/access.err")"
"$llmprof" report "$folder/access" --json >"$folder/access.json" || { echo "FAILED: report"; exit 1; }
"$llmprof" report "$folder/access" --full | sed -n '/^Kernels by hardware counters/,/^$/p;/sectors\/load/,/^$/p'
python3 - "$folder/access.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
kernels = {k["name"].split("(")[0]: k for k in report["counters"]}
wrong = []


def expect(kernel, key, low, high):
    value = kernels.get(kernel, {}).get(key)
    good = value is not None and low <= value <= high
    print(f"{kernel:<16} {key:<22} {'-' if value is None else format(value, '.4g'):>8}  built for {low:g} to {high:g}{'' if good else '  WRONG'}")
    if not good:
        wrong.append(f"{kernel} {key}")


expect("loads_narrow", "sectors_per_load", 3.95, 4.05)
expect("loads_wide", "sectors_per_load", 15.8, 16.2)
expect("loads_scattered", "sectors_per_load", 31.6, 32.4)
expect("loads_narrow", "sectors_per_store", 3.95, 4.05)
# Instrumented code counts those; where CUPTI gives nothing, nothing may be said.
for kernel, low, high in (("loads_narrow", 31.6, 32.4), ("loads_scattered", 3.9, 4.1)):
    if kernels.get(kernel, {}).get("bytes_per_load_sector") is not None:
        expect(kernel, "bytes_per_load_sector", low, high)
expect("shared_clean", "bank_conflicts", 0, 0.05)
expect("shared_one_bank", "bank_conflicts", 0.93, 0.98)
expect("local_array", "local_share", 0.5, 1)
expect("loads_narrow", "local_share", 0, 0.001)
for rule, kernel in (("uncoalesced_access", "loads_scattered"), ("bank_conflicts", "shared_one_bank"), ("local_memory", "local_array")):
    parts = [f.get("part") for f in report["diagnosis"]["findings"] if f["rule"] == rule]
    print(f"{rule}: {', '.join(map(str, parts)) or 'found nothing'}")
    if kernel not in parts:
        wrong.append(f"{rule} does not name {kernel}")
print("FAILED: " + "; ".join(wrong) if wrong else "every counter is what its kernel was built for")
sys.exit(1 if wrong else 0)
PY
