#!/usr/bin/env bash
# The long series. Every part runs, whatever the others say; the status is 1 if one failed.
#   SOAK_EVENTS   millions of events in one go (100)        SOAK_SECONDS  of the annotated loop (3600)
#   SOAK_ROUNDS   of the fault suite (3)                    FUZZ_SECONDS  per fuzz target (600)
#   SOAK_STRESS   times the usual stress under TSan and ASan (20: about a minute each)
#   SOAK_KERNELS  of a run that is reported on (10000000)      SOAK_MIB      of memory that this may take (1536)
#   SOAK_STEPS    kernels (100000000) of a run with ranges of steps only, SOAK_STEPS_MIB (2048)
#   SOAK_PARTS    which: "events loop faults stress fuzz viewers scale steps"
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
failed=()

part() {  # name, command…
  local name=$1 begin=$SECONDS
  shift
  case " ${SOAK_PARTS:-events loop faults stress fuzz viewers scale steps} " in *" $name "*) ;; *) return ;; esac
  echo; echo "== soak: $name: $*"
  if "$@"; then
    echo "== soak: $name passed in $((SECONDS - begin)) s"
  else
    echo "== soak: $name FAILED after $((SECONDS - begin)) s"
    failed+=("$name")
  fi
}

faults() {  # rounds
  for round in $(seq "$1"); do
    echo "faults: round $round of $1"
    (cd "$build" && LLMPROF_SOAK=1 ctest --output-on-failure --no-tests=error -L faults) || return 1
  done
}

viewers() {  # real ones: speedscope in chromium, Perfetto's trace_processor, go tool pprof where it is installed
  tests/viewers/setup.sh "$build/viewers" &&
    python3 tests/viewers/check.py "$build/bin/llmprof" tests/runs/h200_decode "$build/viewers" "$build/viewers/speedscope.png"
}

part events python3 tests/soak/events.py "${SOAK_EVENTS:-100}" "$build"
part loop python3 tests/soak/loop.py "${SOAK_SECONDS:-3600}" "$build"
part faults faults "${SOAK_ROUNDS:-3}"
part stress env LLMPROF_STRESS="${SOAK_STRESS:-20}" tools/sanitize.sh
part fuzz tools/fuzz.sh
part viewers viewers
part scale python3 perf/report_scale.py "$build/bin" "${SOAK_KERNELS:-10000000}" "${SOAK_MIB:-1536}"
part steps python3 perf/report_scale.py "$build/bin" "${SOAK_STEPS:-100000000}" "${SOAK_STEPS_MIB:-2048}" --steps-only
echo
[ ${#failed[@]} -eq 0 ] && echo "soak: all passed" || { echo "soak: FAILED: ${failed[*]}"; exit 1; }
