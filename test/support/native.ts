// Programs of this machine under a real gdbserver.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { brotliDecompressSync } from 'node:zlib';
import type { Test as TapTest } from 'tap';
import { type Addr, addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { type Running, rsptrace, scratchFolder, start } from './command.js';

type Test = Parameters<typeof scratchFolder>[0];

/** Compiles C with debug info, position-independent or not, and returns the program's path. */
export function compileC(t: Test, source: string, flags: readonly string[] = []): string {
  const program = join(scratchFolder(t), 'program');
  writeFileSync(`${program}.c`, source);
  execFileSync('gcc', ['-g', '-O1', '-pthread', ...flags, '-o', program, `${program}.c`]);
  return program;
}

/** Programs that are made once, by what they are made of. */
const made = join(import.meta.dirname, '../../.cache/native');

/** A copy of a program of the test's own: its path is the test's alone. `make` is called where nobody has made it yet. */
function copyOf(t: Test, name: string, of: readonly (string | Buffer)[], make: (path: string) => void): string {
  const hash = createHash('sha1');
  for (const part of of) hash.update(part).update('\0');
  const kept = join(made, hash.digest('hex'));
  const program = join(scratchFolder(t), name);
  if (!existsSync(kept)) {
    mkdirSync(made, { recursive: true });
    make(program);
    // Others make it at the same time: each renames a whole one.
    const part = `${kept}.${process.pid}.${threadId}`;
    copyFileSync(program, part);
    renameSync(part, kept);
  } else copyFileSync(kept, program);
  return program;
}

/** Compiles a source of test/native (C++ by its extension) as it is released, with debug info, and returns the program's path. */
export function compileReleased(t: Test, name: string, flags: readonly string[] = []): string {
  const compiler = name.endsWith('.cpp') ? 'g++' : 'gcc';
  const source = join(import.meta.dirname, '../native', name);
  const of = [...compilerVersion(), source, readFileSync(source), ...flags];
  return copyOf(t, 'program', of, (program) => {
    execFileSync(compiler, ['-g', '-O2', '-pthread', ...flags, '-o', program, source]);
  });
}

let version: readonly string[] | undefined;

/** Of the compiler, and of the C library by its date. */
function compilerVersion(): readonly string[] {
  const said = (option: string): string => execFileSync('gcc', [option], { encoding: 'utf8' }).trim();
  version ??= [said('--version'), String(statSync(said('-print-file-name=libc.a')).mtimeMs)];
  return version;
}

export interface Server extends Running {
  readonly address: string;
  /** Of the program. */
  readonly pid: number;
}

/** gdbserver with a program, or attached to a process, listening at `address`; both are killed when the test ends. */
export async function gdbserver(t: Test, ...what: readonly string[]): Promise<Server> {
  const [attach, rest] = what[0] === '--attach' ? [['--attach'], what.slice(1)] : [[], what];
  return listening(t, ['--once', ...attach, '127.0.0.1:0', ...rest]);
}

/** A program that has said that it is ready, what it has printed, and what `rsptrace tasks` says of it at a gdbserver. */
export async function waitingProgram(t: Test & Pick<TapTest, 'equal'>, elf: string, words: readonly string[] = []) {
  const program = start(elf, words);
  t.teardown(() => void program.process.kill('SIGKILL'));
  let printed = '';
  program.process.stdout?.on('data', (text: string) => {
    printed += text;
  });
  await program.shows('ready');
  const pid = String(program.process.pid);
  const tasks = async (...options: string[]): Promise<string> => {
    const server = await gdbserver(t, '--attach', pid);
    const { status, stdout, stderr } = await rsptrace('tasks', ...options, '-r', server.address, elf).ended;
    t.equal(status, 0, stderr);
    return stdout;
  };
  return { process: program.process, pid, printed, tasks };
}

/** gdbserver that listens again when its client has gone. */
export function lastingGdbserver(t: Test, ...what: readonly string[]): Promise<Server> {
  return listening(t, ['127.0.0.1:0', ...what]);
}

async function listening(t: Test, words: readonly string[]): Promise<Server> {
  const server = start('gdbserver', words);
  t.teardown(() => void server.process.kill('SIGKILL'));
  let text = '';
  server.process.stderr?.on('data', (piece: string) => {
    text += piece;
  });
  await server.shows('Listening on port');
  const [pid, port] = [/pid = (\d+)/, /port (\d+)/].map((pattern) => pattern.exec(text)?.[1]);
  return { ...server, address: `127.0.0.1:${port}`, pid: Number(pid) };
}

/** How many bytes of a running process's code are not its file's. */
export function changedCode(pid: number, program: string): number {
  const elf = ElfFile.parse(readFileSync(program), program);
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
  const [, base] = /^([0-9a-f]+)-/.exec(maps.find((line) => line.endsWith(program)) ?? '') ?? [];
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  let different = 0;
  for (const { type, flags, address, fileSize } of elf.segments) {
    if (type !== 1 || (flags & 1) === 0) continue;
    const bytes = elf.bytesAt(address, fileSize) ?? new Uint8Array(1);
    const there = new Uint8Array(bytes.length);
    readSync(memory, there, 0, there.length, BigInt(`0x${base}`) + address);
    for (const [i, byte] of bytes.entries()) if (there[i] !== byte) different++;
  }
  closeSync(memory);
  return different;
}

/** What nm says of each program; one is compiled into a folder of its own and stays as it is. */
const symbolsOf = new Map<string, readonly string[]>();

/** The address that binutils give a symbol, before the program is loaded anywhere. */
export function symbolOf(program: string, name: string): Addr {
  let lines = symbolsOf.get(program);
  lines ??= execFileSync('nm', ['-C', program], { encoding: 'utf8', maxBuffer: 64 << 20 }).split('\n');
  symbolsOf.set(program, lines);
  const line = lines.find((each) => each.endsWith(` ${name}`));
  if (line === undefined) throw new Error(`no ${name} in ${program}`);
  return addr(BigInt(`0x${line.split(' ')[0]}`));
}

type Committed =
  | 'polls'
  | 'installed'
  | 'results-o0'
  | 'results-o2'
  | 'panics-o0'
  | 'panics-o2'
  | 'promoted'
  | `compilers-${'1.70' | '1.90' | '1.92'}-o${0 | 3}`
  | 'never-o0'
  | 'never-o2'
  | 'merged'
  | 'names'
  | 'tokio'
  | 'live-tokio-o0'
  | 'live-tokio-o3'
  | 'live-smol-o3'
  | 'orders'
  | 'tasks'
  | 'tokio-faults-o0'
  | 'tokio-faults-o3'
  | 'cancels-o0'
  | 'cancels-o3'
  | 'blocked-o0'
  | 'blocked-o3'
  | 'adapters'
  | 'futures-waits-o0'
  | 'futures-waits-o3'
  | 'roots-o0'
  | 'roots-o3'
  | 'nested-o0'
  | 'nested-o3'
  | 'embassy-08-o3'
  | 'embassy-09-o0'
  | 'executor'
  | 'rings'
  | 'cassettes-o0'
  | 'cassettes-o3'
  | 'local-tasks-o0'
  | 'local-tasks-o3'
  | 'faults'
  | 'texts';

/** A committed Rust program of test/native, unpacked: position-independent, it counts its own polls. */
export function pollsProgram(t: Test, name: Committed = 'polls'): string {
  const packed = readFileSync(join(import.meta.dirname, `../native/${name}.elf.br`));
  return copyOf(t, name, [packed], (program) => writeFileSync(program, brotliDecompressSync(packed), { mode: 0o755 }));
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
