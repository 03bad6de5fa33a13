#!/usr/bin/env bash
# What a real driver does with what is otherwise simulated: counters that are forbidden or held by another program, a second context,
# a fork and a device that fails while counters or stalls are read, Ctrl-C while peaks are measured. Programs end as they do alone.
#   tests/gpu/trouble.sh LLMPROF FOLDER
set -uo pipefail
llmprof=$(realpath "$1"); mkdir -p "$2"; folder=$(realpath "$2")
cd "$folder" || exit 1
set -f  # patterns are no file names
passed=0 failed=0
check() {  # description, command…
  local what=$1; shift
  if "$@"; then echo "PASS $what"; passed=$((passed + 1)); else echo "FAIL $what"; failed=$((failed + 1)); fi
}
value() { "$llmprof" query "$1" "$2" --csv 2>/dev/null | tail -n 1; }
is() { local got; got=$(value "$1" "$3"); [ "$got" = "$2" ] || { echo "  got '$got', wanted '$2'; $(value "$1" "SELECT string_agg(name || ' ' || coalesce(detail, ''), '; ') FROM loss")"; return 1; }; }
cat >trouble.py <<'PY'
import ctypes, os, sys, time
import torch
mode = sys.argv[1]
a = (torch.arange(1 << 20, device="cuda:0") % 7).reshape(1024, 1024).float()
torch.cuda.synchronize()


def step():
    with torch.cuda.nvtx.range("decode_step"):
        b = a @ a
        torch.cuda.synchronize()
    return float(b[3, 5])


def contexts():
    cuda, first, second, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuCtxGetCurrent(ctypes.byref(first)) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(second), 0, 0) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
    total = 0
    for i in range(10):
        assert cuda.cuCtxSetCurrent(first) == 0
        total += step()
        assert cuda.cuCtxSetCurrent(second) == 0
        with torch.cuda.nvtx.range("decode_step"):
            assert cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(i), ctypes.c_size_t(1 << 20)) == 0
            assert cuda.cuCtxSynchronize() == 0
    assert cuda.cuCtxDestroy_v2(second) == 0
    assert cuda.cuCtxSetCurrent(first) == 0
    return total + sum(step() for _ in range(5))


def fork():
    total = sum(step() for _ in range(5))
    with torch.cuda.nvtx.range("decode_step"):
        a @ a
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        torch.cuda.synchronize()
    return total + sum(step() for _ in range(5))


def fails():
    total = sum(step() for _ in range(5))
    print("before", total, flush=True)
    try:
        with torch.cuda.nvtx.range("decode_step"):
            a[torch.tensor([1 << 20], device="cuda:0")]
            torch.cuda.synchronize()
    except RuntimeError:
        print("the device failed", flush=True)
        os._exit(3)
    return "it did not fail"


def lasts():
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        step()
    return "done"


print("result", {"contexts": contexts, "fork": fork, "fails": fails, "lasts": lasts}[mode]())
PY

# As alone: what it prints and how it ends.
alone() { timeout 60 python3 trouble.py "$1" >"$1.alone" 2>/dev/null; echo "status $?" >>"$1.alone"; cat "$1.alone"; }
same() {  # mode, options of record…
  local mode=$1; shift
  timeout 90 "$llmprof" record -q -f --no-peaks "$@" -o "$mode" -- python3 trouble.py "$mode" >"$mode.out" 2>"$mode.err"
  echo "status $?" >>"$mode.out"
  diff "$mode.alone" "$mode.out" || { tail -n 3 "$mode.err"; return 1; }
}
for mode in contexts fork fails; do alone "$mode"; done
by_kernel=(--counters light --counters-kernels '*' --counters-budget 0)
check "a second context, counters of ranges" same contexts --counters light --counters-budget 0
check "its first context is measured" is contexts true "SELECT count(*) > 0 FROM counter WHERE scope = 'range'"
check "a second context, counters of kernels" same contexts "${by_kernel[@]}"
check "a second context, stalls" same contexts --stalls
check "a fork in mid-range, counters of ranges" same fork --counters light --counters-budget 0
check "a device that fails, counters of ranges" same fails --counters light --counters-budget 0
check "a device that fails, counters of kernels" same fails "${by_kernel[@]}"
check "a device that fails, stalls" same fails --stalls

# Root without CAP_SYS_ADMIN is who the driver forbids counters to, if it was loaded so.
if command -v setpriv >/dev/null && setpriv --bounding-set=-sys_admin true 2>/dev/null; then
  check "counters without the permission: the program ends well" timeout 90 setpriv --bounding-set=-sys_admin "$llmprof" record -q -f --no-peaks "${by_kernel[@]}" -o forbidden -- python3 trouble.py lasts 1
  if grep -q 'RmProfilingAdminOnly: 1' /proc/driver/nvidia/params 2>/dev/null; then
    check "it is said that they are forbidden" is forbidden true "SELECT count(*) = 1 FROM loss WHERE name = 'counters_forbidden'"
  else
    check "the driver permits them to all: they are read" is forbidden true "SELECT count(*) > 0 FROM counter"
  fi
else
  echo "no setpriv, or not root: forbidden counters were not tried"
fi

# Whether two clients get on with each other is the driver's business: values, or a word that there are none.
timeout 60 "$llmprof" record -q -f --no-peaks --counters light --counters-method sampled -o holder -- python3 trouble.py lasts 15 >holder.out 2>holder.err &
holder=$!
sleep 8
check "counters beside another client: the program ends well" timeout 90 "$llmprof" record -q -f --no-peaks "${by_kernel[@]}" -o held -- python3 trouble.py lasts 1
check "counters are read, or it is said that another holds them" is held true "SELECT (SELECT count(*) FROM counter) > 0 OR (SELECT count(*) FROM loss WHERE name = 'counters_held') > 0"
value held "SELECT (SELECT count(*) FROM counter) || ' values, losses: ' || (SELECT coalesce(string_agg(name, ' '), 'none') FROM loss)"
wait "$holder"

# Ctrl-C while peaks are measured: it ends by that signal or says 130, soon, and keeps nothing half measured.
export LLMPROF_CACHE_DIR=$folder/cache
timeout --signal=INT --kill-after=20 4 "$llmprof" roofline --device cuda:0 >roofline.out 2>roofline.err
status=$?
check "Ctrl-C ends a roofline (status $status)" test "$status" = 124 -o "$status" = 130
check "and no process of it is left" test -z "$(pgrep -x llmprof)"
echo "$passed passed, $failed failed"
exit "$((failed > 0))"
