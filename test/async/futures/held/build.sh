#!/usr/bin/env bash
# Makes held.elf.br from held.rs. Needs a rustc with core and alloc for x86_64-unknown-linux-gnu, and cc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The libraries are linked without their own debug info: it is what makes a Rust program large.
cat > "$work/linker" <<'EOF'
#!/usr/bin/env bash
arguments=()
for argument; do
  if [[ $argument == *.rlib ]]; then
    plain=$(dirname "$0")/$(basename "$argument")
    objcopy -g "$argument" "$plain"
    argument=$plain
  fi
  arguments+=("$argument")
done
exec cc "${arguments[@]}"
EOF
chmod +x "$work/linker"
rustc --edition 2021 --target x86_64-unknown-linux-gnu -g -C opt-level=0 -C panic=abort -C codegen-units=1 \
  -C relocation-model=static -C linker="$work/linker" -C linker-flavor=gcc -C link-arg=-nostartfiles -C link-arg=-nostdlib \
  -C link-arg=-static --remap-path-prefix "$PWD=/held" -o "$work/held.elf" held.rs
node -e 'const { brotliCompressSync } = require("node:zlib"), { readFileSync, writeFileSync } = require("node:fs");
  writeFileSync(process.argv[2], brotliCompressSync(readFileSync(process.argv[1])));' "$work/held.elf" held.elf.br
