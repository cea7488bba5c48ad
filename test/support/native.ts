// Programs of this machine under a real gdbserver.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { type Addr, addr } from '../../src/base/addr.js';
import { type Running, scratchFolder, start } from './command.js';

type Test = Parameters<typeof scratchFolder>[0];

/** Compiles C with debug info, position-independent or not, and returns the program's path. */
export function compileC(t: Test, source: string, flags: readonly string[] = []): string {
  const program = join(scratchFolder(t), 'program');
  writeFileSync(`${program}.c`, source);
  execFileSync('gcc', ['-g', '-O1', '-pthread', ...flags, '-o', program, `${program}.c`]);
  return program;
}

/** Compiles a source of test/native (C++ by its extension) as it is released, with debug info, and returns the program's path. */
export function compileReleased(t: Test, name: string, flags: readonly string[] = []): string {
  const program = join(scratchFolder(t), 'program');
  const compiler = name.endsWith('.cpp') ? 'g++' : 'gcc';
  execFileSync(compiler, [
    '-g',
    '-O2',
    '-pthread',
    ...flags,
    '-o',
    program,
    join(import.meta.dirname, '../native', name),
  ]);
  return program;
}

/** gdbserver with a program, or attached to a process, listening at `address`; both are killed when the test ends. */
export async function gdbserver(t: Test, ...what: readonly string[]): Promise<Running & { readonly address: string }> {
  const [attach, rest] = what[0] === '--attach' ? [['--attach'], what.slice(1)] : [[], what];
  const server = start('gdbserver', ['--once', ...attach, '127.0.0.1:0', ...rest]);
  t.teardown(() => void server.process.kill('SIGKILL'));
  let text = '';
  server.process.stderr?.on('data', (piece: string) => {
    text += piece;
  });
  await server.shows('Listening on port');
  return { ...server, address: `127.0.0.1:${/port (\d+)/.exec(text)?.[1]}` };
}

/** The address that binutils give a symbol, before the program is loaded anywhere. */
export function symbolOf(program: string, name: string): Addr {
  const line = execFileSync('nm', ['-C', program], { encoding: 'utf8', maxBuffer: 64 << 20 })
    .split('\n')
    .find((each) => each.endsWith(` ${name}`));
  if (line === undefined) throw new Error(`no ${name} in ${program}`);
  return addr(BigInt(`0x${line.split(' ')[0]}`));
}

/** A committed Rust program of test/native, unpacked: position-independent, it counts its own polls. */
export function pollsProgram(t: Test, name: 'polls' | 'results-o0' | 'results-o2' = 'polls'): string {
  const program = join(scratchFolder(t), name);
  const packed = readFileSync(join(import.meta.dirname, `../native/${name}.elf.br`));
  writeFileSync(program, brotliDecompressSync(packed), { mode: 0o755 });
  return program;
}

/** What it prints of its polls, all its runs (an exec begins another) summed up. */
export function pollsPrinted(stdout: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [, line = ''] of stdout.matchAll(/^polls (.*)$/gm)) {
    for (const [, name = '', count] of line.matchAll(/(\w+)=(\d+)/g)) {
      sums.set(name, (sums.get(name) ?? 0) + Number(count));
    }
  }
  return sums;
}
