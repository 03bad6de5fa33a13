#!/usr/bin/env bash
# The code that reads bytes from outside (logs, runs, configs, safetensors) under ASan+UBSan, and the threads under TSan.
# Only these: a sanitizer build of everything would take most of the test budget.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}

build() {  # preset, targets…
  local preset=$1
  shift
  cmake --preset "$preset" >/dev/null
  echo "sanitize: building $* ($preset)"
  ninja -C "build/$preset" -j "$jobs" "$@" >"build/$preset/build.log" 2>&1 || { tail -n 40 "build/$preset/build.log"; exit 1; }
}
check() {  # preset, test program, arguments…
  local preset=$1 test=$2
  shift 2
  echo "sanitize: $test ($preset)"
  "build/$preset/tests/$test" --gtest_brief=1 "$@"
}

tests="base_test wire_test model_test workload_test record_test trace_test"
build asan $tests
for test in $tests; do check asan "$test"; done
build tsan workload_test
check tsan workload_test --gtest_filter='ThreadPool.*'
