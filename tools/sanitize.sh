#!/usr/bin/env bash
# The code that runs in other people's processes or reads their bytes, under sanitizers (clang, presets asan and tsan):
#   ASan+UBSan  collector (linked into a stress test, and as the injected library), logs, runs, configs, safetensors;
#               the same build holds the fuzz targets, which run for a few seconds each
#   TSan        collector, ingest and writers of tables, the workload's thread pool
# Only these: a sanitizer build of everything would take most of the test budget.
#   tools/sanitize.sh [JOBS]     LLMPROF_STRESS=N: N times the stress
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="die_after_fork=0 halt_on_error=1 second_deadlock_stack=1 suppressions=$PWD/tests/stress/tsan.supp"

build() {  # preset, targets…
  local preset=$1 begin=$SECONDS
  shift
  cmake --preset "$preset" >/dev/null
  echo "sanitize: building $* ($preset)"
  nice ninja -C "build/$preset" -j "$jobs" "$@" >"build/$preset/build.log" 2>&1 || { tail -n 40 "build/$preset/build.log"; exit 1; }
  echo "sanitize: built in $((SECONDS - begin)) s"
}
check() {  # preset, test program, arguments…
  local preset=$1 test=$2 begin=$SECONDS
  shift 2
  "build/$preset/tests/$test" --gtest_brief=1 "$@" >"build/$preset/$test.out" 2>&1 ||
    { tail -n 60 "build/$preset/$test.out"; echo "sanitize: $test ($preset) FAILED"; exit 1; }
  echo "sanitize: $test ($preset) $(grep -o '[0-9]* tests\? from' "build/$preset/$test.out" | head -n 1 | cut -d' ' -f1) tests, $((SECONDS - begin)) s"
}

parsers="base_test wire_test model_test workload_test record_test trace_test"
build asan $parsers stress_test stress_injected fuzz_targets
for test in $parsers; do check asan "$test"; done
ASAN_OPTIONS=detect_leaks=0 check asan stress_test  # its children end with threads still running
python3 tests/stress/injected.py build/asan
JOBS=$jobs tools/fuzz.sh --smoke
build tsan stress_test record_test workload_test
check tsan stress_test
check tsan record_test --gtest_filter='Ingest.*:LogReader.*:Extremes.*'
check tsan workload_test --gtest_filter='ThreadPool.*'
