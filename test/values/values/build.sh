#!/bin/sh
# Compiles values.rs into values.elf.br: rustc 1.95.0 for x86_64-unknown-linux-gnu, a fixed address, and only the sections that
# types and values need. The committed file was made by this; run it after a change of values.rs.
set -e
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
rustc +1.95.0 --edition 2021 -g -C relocation-model=static -C link-arg=-no-pie -C panic=abort -C lto=fat \
  --remap-path-prefix "$PWD=/values" -o "$out/values" values.rs
objcopy --compress-debug-sections=none -R .debug_line -R .debug_aranges -R .debug_ranges -R .debug_loc \
  -R .debug_gdb_scripts -R .debug_pubnames -R .debug_pubtypes "$out/values"
node -e '
  const { readFileSync, writeFileSync } = require("node:fs");
  const { brotliCompressSync, constants } = require("node:zlib");
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
  writeFileSync("values.elf.br", brotliCompressSync(readFileSync(process.argv[1]), { params }));
' "$out/values"
