#!/usr/bin/env bash
# On any x86-64 machine with CPython 3.11 or 3.12 and without a compiler: are the Python frames that llmprof reads from
# outside those that the interpreter reports itself? Reading needs process_vm_readv only; the tests that sample say SKIPPED
# where perf_event_open is not permitted.
# Usage: tests/gpu/python_frames.sh [host_test [python3]]   (host_test as built in build/tests/)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
test=${1:-$root/build/tests/host_test}
python=$("${2:-python3}" -c 'import os, sys; print(os.path.realpath(sys.executable))')
"$python" --version
export LLMPROF_TEST_PYTHONS=$python LLMPROF_TEST_SCRIPTS=$root/libs/host/stacks/testing
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$test" --gtest_filter='PythonMemory.*:PythonStacks.*' | tee "$out"
if grep -q 'SKIPPED.*PythonMemory' "$out"; then
  echo "FAIL: $python is not one that llmprof reads" && exit 1
fi
