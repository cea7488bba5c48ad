#!/usr/bin/env bash
# Makes from tiny.rs, with DWARF 4 and 5: tiny4.elf.br; and with split debug info tiny4-split.elf.br and tiny4.dwo.br.
# Needs a rustc with a core for x86_64-unknown-linux-gnu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pack() {
  node -e 'const { brotliCompressSync } = require("node:zlib"), { readFileSync, writeFileSync } = require("node:fs");
    writeFileSync(process.argv[2], brotliCompressSync(readFileSync(process.argv[1])));' "$1" "$2.br"
}
for version in 4 5; do
  rm -f "$work"/*.dwo
  for split in off unpacked; do
    rustc --edition 2021 --target x86_64-unknown-linux-gnu --emit obj -C opt-level=1 -C debuginfo=2 -C panic=abort \
      -C codegen-units=1 -C relocation-model=static -C "dwarf-version=$version" -C "split-debuginfo=$split" -C save-temps \
      --remap-path-prefix "$PWD=/tiny" -o "$work/tiny.o" tiny.rs
    # Without libraries: their debug info is what makes a Rust program large.
    ld -static --unresolved-symbols=ignore-all --gc-sections -e _start -o "$work/tiny.elf" "$work/tiny.o"
    if [ $split = off ]; then pack "$work/tiny.elf" "tiny$version.elf"; continue; fi
    pack "$work/tiny.elf" "tiny$version-split.elf"
    pack "$work"/*.dwo "tiny$version.dwo"
  done
done
