#!/usr/bin/env bash
# The libraries that parse bytes or run in somebody's process, under ASan+UBSan and TSan: collector, wire, parsers.
# Only these: a sanitizer build of everything would take most of the test budget.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
run() {  # preset, test programs…
  local preset=$1; shift
  cmake --preset "$preset" >/dev/null
  ninja -C "build/$preset" -j "$jobs" "$@" >"build/$preset/build.log" 2>&1 || { tail -40 "build/$preset/build.log"; exit 1; }
  for test in "$@"; do
    echo "== $preset: $test"
    "build/$preset/tests/$test" --gtest_brief=1
  done
}
run asan wire_test base_test
run tsan wire_test
