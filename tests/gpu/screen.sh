#!/usr/bin/env bash
# The answer on one screen, of programs on a GPU: what a recording ends with, the parts of a report, attaching from outside, and top.
#   tests/gpu/screen.sh LLMPROF OUT
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
llmprof=$(realpath "$1"); mkdir -p "$2"; cd "$2" || exit 1
failed=0
check() { if eval "$2"; then echo "PASS $1"; else echo "FAIL $1"; failed=1; fi; }

export COLUMNS=80
"$llmprof" record -f -o decode python3 "$here/../../perf/workloads/diagnosis.py" --graph >program.txt 2>screen.txt
check "the program ran" "[ $? = 0 ]"
sed -n '/^decode/,$p' screen.txt >only_screen.txt
cat only_screen.txt
check "at most 40 lines" "[ $(wc -l <only_screen.txt) -le 40 ]"
check "at most 80 columns" "[ $(wc -L <only_screen.txt) -le 80 ]"
for word in 'exit status 0' 'NVIDIA' 'TPOT' 'TTFT' 'MBU' 'of the run' 'Lost: ' 'Recording cost: ' 'Next: llmprof report'; do
  check "says $word" "tr -s ' \n' ' ' <only_screen.txt | grep -q '$word'"
done
"$llmprof" report decode kernels >kernels.txt
check "the hottest kernel has its shape" "grep -m1 -q '\] x \[' kernels.txt"
head -12 kernels.txt
for part in stages operators gemms power memory host functions life diagnosis; do
  "$llmprof" report decode $part >$part.txt
  check "part $part" "[ $? = 0 ] && [ $(wc -l <$part.txt) -gt 5 ] && [ $(wc -L <$part.txt) -le 80 ]"
done

cat >loop.py <<'P'
import time, torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
end = time.time() + 40
while time.time() < end:
    for _ in range(50): b = a @ a
    torch.cuda.synchronize()
P
python3 loop.py & pid=$!
sleep 12
"$llmprof" top --pid $pid --count 3 >top.txt 2>&1
check "top" "[ $? = 0 ]"
cat top.txt | tail -40
check "top names the GPU" "grep -q 'NVIDIA' top.txt"
"$llmprof" record -f --pid $pid --duration 5s -o attached >attached.txt 2>&1
check "record --pid" "[ $? = 0 ]"
cat attached.txt
check "the program goes on" "kill -0 $pid"
check "nothing was loaded into it" "! grep -q llmprof /proc/$pid/maps"
"$llmprof" report attached power >power_attached.txt
check "power of the GPU" "grep -q 'mean' power_attached.txt"
kill $pid; wait $pid 2>/dev/null
exit $failed
