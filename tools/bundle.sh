#!/usr/bin/env bash
# dist/llmprof-VERSION-linux-x86_64.tar.gz: an installation plus the few libraries the two programs need beyond glibc,
# found through $ORIGIN. Runs on any x86-64 Linux with glibc 2.36 or newer (injected libraries: 2.35).
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(build/bin/llmprof --version | awk '{print $2}')
name=llmprof-$version-linux-x86_64
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install build --prefix "$stage/$name" --strip >/dev/null

# What the programs and DuckDB need and glibc does not bring: copied beside them.
libraries=$(for file in "$stage/$name"/bin/* "$stage/$name"/lib/llmprof/libduckdb.so; do ldd "$file"; done |
  awk '$3 ~ /^\// {print $3}' | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so')
for library in $libraries; do
  install -m 0644 "$(readlink -f "$library")" "$stage/$name/lib/llmprof/$(basename "$library")"
done
mkdir -p dist
tar czf "dist/$name.tar.gz" -C "$stage" "$name"
bytes=$(stat -c %s "dist/$name.tar.gz")
echo "dist/$name.tar.gz: $((bytes / 1024 / 1024)) MiB"
[ "$bytes" -lt $((45 * 1024 * 1024)) ] || { echo "bundle: over 45 MiB" >&2; exit 1; }
