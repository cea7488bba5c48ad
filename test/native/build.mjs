// Compiles polls.rs and results.rs with the rustc of this machine and keeps them, packed, as *.elf.br. The standard library's own debug info is left
// out: it would be nine tenths of the file.
//   node test/native/build.mjs
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const here = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), 'rsptrace-native-'));
try {
  const libraries = 'lib/rustlib/x86_64-unknown-linux-gnu/lib';
  const from = join(execFileSync('rustc', ['--print', 'sysroot'], { encoding: 'utf8' }).trim(), libraries);
  const to = join(folder, libraries);
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    if (!/\.r(lib|meta)$/.test(name)) continue;
    copyFileSync(join(from, name), join(to, name));
    if (name.endsWith('.rlib')) execFileSync('strip', ['--strip-debug', join(to, name)]);
  }
  for (const [name, source, level] of [
    ['polls', 'polls.rs', 0],
    ['results-o0', 'results.rs', 0],
    ['results-o2', 'results.rs', 2],
  ]) {
    const program = join(folder, name);
    const options = `--edition 2021 -C opt-level=${level} -C debuginfo=2 -C panic=abort -C codegen-units=1`.split(' ');
    const paths = ['--sysroot', folder, '--remap-path-prefix', `${here}=/native`, '-o', program, join(here, source)];
    execFileSync('rustc', [...options, ...paths], { stdio: 'inherit' });
    const elf = readFileSync(program);
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
    const packed = brotliCompressSync(elf, { params });
    writeFileSync(join(here, `${name}.elf.br`), packed);
    console.log(`${name}: ${elf.length} bytes, ${packed.length} packed`);
  }
  console.log(execFileSync('rustc', ['-V'], { encoding: 'utf8' }));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
