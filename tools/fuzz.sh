#!/usr/bin/env bash
# Fuzzes every target of tests/fuzz. Each starts from its seeds, the saved corpus and all inputs that ever broke something
# (tests/fuzz/regressions/<target>/, which must pass first).
#   tools/fuzz.sh                    FUZZ_SECONDS (600) per target; what is new is kept in fuzz-corpus/<target>/ (ignored by git)
#   tools/fuzz.sh --smoke            seeds, regressions and FUZZ_SECONDS (4) per target; keeps nothing
#   tools/fuzz.sh [--smoke] NAME…    only these targets
# A finding stops its target: the input is left in build/fuzz/fuzz/findings/, the status is not 0. BUILD: another place than build/.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
preset=fuzz  # optimised
smoke=""
[ "${1:-}" = "--smoke" ] && { smoke=1 preset=asan; shift; }  # what make test has built already
folder=${BUILD:-build}/$preset
seconds=${FUZZ_SECONDS:-${smoke:+4}}
seconds=${seconds:-600}
limits="-rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=5 -max_len=16384"

cmake --preset $preset -B "$folder" >/dev/null
ninja -C "$folder" -j "$jobs" fuzz_targets >"$folder/build.log" 2>&1 || { tail -n 40 "$folder/build.log"; exit 1; }
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for program in "$folder"/fuzz/fuzz_*; do
    [ -x "$program" ] && targets+=("${program##*/fuzz_}")
  done
fi
mkdir -p "$folder/fuzz/findings"

fuzz_one() {  # target
  local name=$1 program=$folder/fuzz/fuzz_$1 scratch=$folder/fuzz/scratch/$1 regressions=tests/fuzz/regressions/$1
  local log=$folder/fuzz/$1.log
  rm -rf "$scratch" && mkdir -p "$scratch/new"
  "$program" --seeds "$scratch/seeds" || return 1
  if [ -d "$regressions" ] && ! "$program" $limits -runs=0 "$regressions" >"$log" 2>&1; then
    echo "fuzz: $name: a regression is back:"; tail -n 30 "$log"; return 1
  fi
  local corpus=$scratch/new
  [ -n "$smoke" ] || { corpus=fuzz-corpus/$name; mkdir -p "$corpus"; }
  local inputs=("$corpus" "$scratch/seeds")
  [ -d "$regressions" ] && inputs+=("$regressions")
  if ! "$program" $limits -max_total_time="$seconds" -dict="$scratch/seeds.dict" -print_final_stats=1 -reload=0 \
       -artifact_prefix="$folder/fuzz/findings/$name-" "${inputs[@]}" >"$log" 2>&1; then
    echo "fuzz: $name: FOUND SOMETHING:"
    grep -E 'ERROR|SUMMARY|runtime error|Test unit written|^ +#[0-9]+ .*llmprof' "$log" | head -n 30
    return 1
  fi
  local runs covered
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  covered=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
  echo "fuzz: $name: $runs inputs, $covered, nothing found"
  if [ -z "$smoke" ] && mkdir "$scratch/least" && "$program" -merge=1 $limits "$scratch/least" "$corpus" >>"$log" 2>&1; then
    rm -rf "$corpus" && mv "$scratch/least" "$corpus"  # inputs that reach nothing new are dropped
  fi
  rm -rf "$scratch"
}
export -f fuzz_one
export folder smoke seconds limits

echo "fuzz: ${#targets[@]} targets, $seconds s each, $jobs at a time"
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz_one {}'
