#!/usr/bin/env bash
# tools/bundle.sh BUILD: dist/llmprof-VERSION-linux-x86_64.tar.xz, an installation plus the few libraries the two programs
# need beyond glibc, found through $ORIGIN. Runs on any x86-64 Linux with glibc 2.36 or newer (injected libraries: 2.35).
# xz and not gzip: 28 MiB instead of 43, most of it DuckDB and OpenBLAS.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
version=$("$build"/bin/llmprof --version | awk '{print $2}')
name=llmprof-$version-linux-x86_64
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install "$build" --prefix "$stage/$name" --strip >/dev/null

# What the programs and DuckDB need and glibc does not bring: copied beside them.
libraries=$(for file in "$stage/$name"/bin/* "$stage/$name"/lib/llmprof/libduckdb.so; do ldd "$file"; done |
  awk '$3 ~ /^\// {print $3}' | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so')
for library in $libraries; do
  install -m 0644 "$(readlink -f "$library")" "$stage/$name/lib/llmprof/$(basename "$library")"
done
mkdir -p dist
tar c -C "$stage" "$name" | xz -T0 >"dist/$name.tar.xz"
bytes=$(stat -c %s "dist/$name.tar.xz")
echo "dist/$name.tar.xz: $((bytes / 1024 / 1024)) MiB"
[ "$bytes" -le $((35 * 1024 * 1024)) ] || { echo "bundle: over 35 MiB" >&2; exit 1; }
