#!/usr/bin/env bash
# The code that runs in other people's processes or reads their bytes, under sanitizers (clang, presets asan and tsan):
#   ASan+UBSan  the collector (linked into a stress test, and as the injected library), logs, runs, configs, checkpoints, stacks,
#               files of other tools, answers of servers, operators on a CPU;
#               the same build holds the fuzz targets, which run for a few seconds each
#   TSan        the collector, the workload's thread pool
#   both        GPU capture on the fakes of tests/fakes
# Only these: a sanitizer build of everything would take most of the test budget. --all: all unit tests under ASan+UBSan.
#   tools/sanitize.sh [--all] [JOBS]     LLMPROF_STRESS=N: N times the stress; BUILD: another place than build/
set -euo pipefail
cd "$(dirname "$0")/.."
all=""
[ "${1:-}" = "--all" ] && { all="workload_test hw_test analyze_test report_test"; shift; }
export jobs=${1:-$(nproc)} BUILD=${BUILD:-build}
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="die_after_fork=0 halt_on_error=1 second_deadlock_stack=1 suppressions=$PWD/tests/stress/tsan.supp"

build() {  # preset, targets…
  local preset=$1 begin=$SECONDS
  shift
  echo "sanitize: building $* ($preset)"
  cmake --preset "$preset" -B "$BUILD/$preset" >/dev/null
  ninja -C "$BUILD/$preset" -j "$jobs" "$@" >"$BUILD/$preset/build.log" 2>&1 || { tail -n 40 "$BUILD/$preset/build.log"; exit 1; }
  echo "sanitize: built in $((SECONDS - begin)) s"
}
check() {  # preset, test program, filter
  local output=$BUILD/$1/$2.out begin=$SECONDS leaks=1
  [ "$2" = stress_test ] && leaks=0  # its children end while threads run
  if ! ASAN_OPTIONS=detect_leaks=$leaks "$BUILD/$1/tests/$2" --gtest_filter="${3:-*}" --gtest_brief=1 >"$output" 2>&1; then
    tail -n 60 "$output"
    echo "sanitize: $2 ($1) FAILED"
    return 1
  fi
  echo "sanitize: $2 ($1) $(grep -o '[0-9]* tests\? from' "$output" | head -n 1 | cut -d' ' -f1) tests, $((SECONDS - begin)) s"
}
export -f check
each() { xargs -P "$jobs" -L 1 bash -c 'check "$@"' check; }  # lines of check's arguments

parsers="base_test wire_test model_test checkpoint_test trace_test host_test record_test bench_test importers_test load_test $all"
build asan $parsers stress_test stress_injected fakes_sanitized fuzz_targets
for test in stress_test $parsers; do echo "asan $test"; done | each
python3 tests/stress/injected.py "$BUILD/asan"
python3 tests/fakes/sanitized.py "$BUILD/asan"
JOBS=$jobs tools/fuzz.sh --smoke
# Not record_test: DuckDB's own threads work there, which are not instrumented, so its locks are not seen.
build tsan stress_test thread_pool_test fakes_sanitized
printf '%s\n' "tsan stress_test" "tsan thread_pool_test" | each
python3 tests/fakes/sanitized.py "$BUILD/tsan"
