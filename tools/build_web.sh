#!/usr/bin/env bash
# Builds the page application of web/ into a folder (app.js, app.css): tools/build_web.sh OUT. `make web` gives web/dist,
# which is checked in. Without OUT it only installs the packages of web/package-lock.json into web/node_modules, where
# they are missing or others.
# Several builds may call it at once: one at a time gets to install.
set -euo pipefail
out=${1:+$(realpath -m "$1")}
cd "$(dirname "$0")/.."
# A Node.js of our own, where the system's is too old for vite (tools/setup.sh).
[ -x third_party/nodejs/bin/node ] && PATH=$PWD/third_party/nodejs/bin:$PATH
cd web
for program in node npm; do
  command -v $program >/dev/null || { echo "build_web: $program is missing: run tools/setup.sh --test" >&2; exit 1; }
done
installed=node_modules/.installed-lock.json

install() {
  cmp -s package-lock.json $installed && return
  echo "build_web: npm ci, the packages of web/package-lock.json"
  npm ci --ignore-scripts --loglevel=error --no-audit --no-fund >npm.log 2>&1 || {
    echo "build_web: npm could not install the packages of web/package-lock.json:" >&2
    grep -v '^npm error *$' npm.log | head -n 8 >&2
    exit 1
  }
  rm -f npm.log
  cp package-lock.json $installed
}
exec 9>.install-lock
flock 9
install
exec 9>&-
[ -z "$out" ] || node node_modules/vite/bin/vite.js build --logLevel warn --outDir "$out" --emptyOutDir
