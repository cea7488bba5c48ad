#!/usr/bin/env bash
# Makes tiny4.elf.br and tiny5.elf.br from tiny.rs. Needs a rustc with a core for x86_64-unknown-linux-gnu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in 4 5; do
  rustc --edition 2021 --target x86_64-unknown-linux-gnu --emit obj -C opt-level=1 -C debuginfo=2 -C panic=abort \
    -C codegen-units=1 -C relocation-model=static -C "dwarf-version=$version" --remap-path-prefix "$PWD=/tiny" \
    -o "$work/tiny.o" tiny.rs
  # Without libraries: their debug info is what makes a Rust program large.
  ld -static --unresolved-symbols=ignore-all --gc-sections -e _start -o "$work/tiny.elf" "$work/tiny.o"
  node -e 'const { brotliCompressSync } = require("node:zlib"), { readFileSync, writeFileSync } = require("node:fs");
    writeFileSync(process.argv[2], brotliCompressSync(readFileSync(process.argv[1])));' "$work/tiny.elf" "tiny$version.elf.br"
done
