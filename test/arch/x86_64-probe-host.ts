import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Addr, addr } from '../../src/base/addr.js';

/** Functions of assembler code, x86_64-probe-functions.s where no other is named, and a program that runs them beside code of ours on the real processor: see x86_64-probe-host.c. */
export interface ProbeHost {
  /** What the functions' file puts where, before anything is patched. */
  readonly loaded: readonly [text: Region, data: Region];
  readonly functions: ReadonlyMap<string, { readonly start: Addr; readonly code: Uint8Array }>;
  symbol(name: string): Addr;
  call(script: CallScript, regions: readonly Region[]): CallResults;
  ring(words: readonly bigint[], regions: readonly Region[]): Record<string, number>;
}

export interface Region {
  readonly address: Addr;
  readonly bytes: Uint8Array;
}

export interface CallScript {
  readonly watch: readonly { readonly address: Addr; readonly size: number }[];
  readonly interrupts?: Interrupts;
  readonly calls: readonly Call[];
}

/** Between these addresses `handler(count, rip, data)` is called after instructions of a call that has TF set in its flags. */
export interface Interrupts {
  readonly from: Addr;
  readonly to: Addr;
  /** 0 ends the call there. */
  readonly handler: Addr;
  readonly data: Addr;
  /** How often after the same instruction, in a call with no `interruptAt`. */
  readonly each: number;
}

export interface Call {
  /** All memory as it was at first. */
  readonly reset: boolean;
  /** Instead all as it was before the only interrupt of the call before, which differs by a lesser `interruptAt`. */
  readonly goesOn?: boolean;
  readonly start: Addr;
  readonly writes?: readonly { readonly address: Addr; readonly value: bigint }[];
  /** rax to r15 in instruction order; the return address is put where rsp points. */
  readonly registers: readonly bigint[];
  readonly flags?: bigint;
  /** The only interrupt comes after so many instructions, from 1; else there is one after all of them. */
  readonly interruptAt?: number;
}

export interface CallResults {
  /** Of the thread: the word at fs:0, and the number of its processor's APIC. */
  readonly fs: bigint;
  readonly apic: bigint;
  /** Of every call. */
  readonly returnAddress: bigint;
  readonly outcomes: readonly CallOutcome[];
}

export interface CallOutcome {
  readonly registers: readonly bigint[];
  readonly flags: bigint;
  readonly xmm: readonly bigint[];
  readonly interrupts: number;
  readonly watched: readonly Uint8Array[];
}

const TEXT = 0x1000_0000;
const DATA = TEXT + 0x8000;
const XMM = Array.from(
  { length: 32 },
  (_, index) => (0x0123_4567_89ab_cdefn * BigInt(index + 3)) & 0xffff_ffff_ffff_ffffn,
);

export function probeHost(functions = 'x86_64-probe-functions.s'): ProbeHost {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-probes-'));
  // Test files that one process runs share it.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string): string => join(folder, name);
  const source = (name: string): string => new URL(name, import.meta.url).pathname;
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { encoding: 'latin1', timeout: 600_000 });
  run('gcc', '-O2', '-pthread', '-o', file('host'), source('x86_64-probe-host.c'));
  run('as', '-o', file('f.o'), source(functions));
  run(
    'ld',
    '-e',
    '0',
    `-Ttext=0x${TEXT.toString(16)}`,
    `-Tdata=0x${DATA.toString(16)}`,
    '-o',
    file('f.elf'),
    file('f.o'),
  );
  const section = (name: string): Uint8Array => {
    run('objcopy', '-O', 'binary', '-j', name, file('f.elf'), file('section'));
    return new Uint8Array(readFileSync(file('section')));
  };
  const textBytes = section('.text');
  const loaded: ProbeHost['loaded'] = [
    { address: addr(TEXT), bytes: textBytes },
    { address: addr(DATA), bytes: section('.data') },
  ];
  const symbols = run('nm', '-n', file('f.elf'))
    .trim()
    .split('\n')
    .map((line) => line.split(' ') as [string, string, string])
    .map(([address, kind, name]) => ({ address: Number(`0x${address}`), kind, name }));
  const text = symbols.filter(({ kind }) => /t/i.test(kind));
  const byName = new Map(
    text.map(({ name, address }, index) => {
      const end = text[index + 1]?.address ?? TEXT + textBytes.length;
      return [name, { start: addr(address), code: textBytes.slice(address - TEXT, end - TEXT) }];
    }),
  );
  const host = (mode: string, script: readonly bigint[], regions: readonly Region[]): Buffer => {
    writeFileSync(file('script'), Buffer.from(BigUint64Array.from(script).buffer));
    const args = regions.map(({ address, bytes }, index) => {
      writeFileSync(file(`region${index}`), bytes);
      return `${address.toString(16)}:${file(`region${index}`)}`;
    });
    run(file('host'), mode, file('script'), file('output'), ...args);
    return readFileSync(file('output'));
  };
  return {
    loaded,
    functions: byName,
    symbol(name) {
      const found = symbols.find((each) => each.name === name);
      if (found === undefined) throw new Error(`There is no symbol ${name}`);
      return addr(found.address);
    },
    call(script, regions) {
      return readResults(script, host('call', callWords(script), regions));
    },
    ring: (words, regions) => JSON.parse(host('ring', words, regions).toString()),
  };
}

function callWords({ watch, interrupts, calls }: CallScript): bigint[] {
  return [
    BigInt(watch.length),
    ...watch.flatMap(({ address, size }) => [address, BigInt(size)]),
    ...(interrupts === undefined
      ? [0n, 0n, 0n, 0n, 0n]
      : [interrupts.from, interrupts.to, interrupts.handler, interrupts.data, BigInt(interrupts.each)]),
    BigInt(calls.length),
    ...calls.flatMap(({ reset, goesOn, start, writes = [], registers, flags = 0x202n, interruptAt = 0 }) => [
      goesOn ? 2n : reset ? 1n : 0n,
      start,
      BigInt(interruptAt),
      BigInt(writes.length),
      ...writes.flatMap(({ address, value }) => [address, value]),
      ...registers,
      flags,
      ...XMM,
    ]),
  ];
}

function readResults({ watch, calls }: CallScript, output: Buffer): CallResults {
  let at = 0;
  const bytes = (size: number): Buffer => {
    at += size;
    return output.subarray(at - size, at);
  };
  const word = (): bigint => bytes(8).readBigUInt64LE();
  const words = (count: number): bigint[] => Array.from({ length: count }, word);
  const [fs = 0n, apic = 0n, returnAddress = 0n] = words(3);
  const outcomes = calls.map(() => ({
    registers: words(16),
    flags: word(),
    xmm: words(32),
    interrupts: Number(word()),
    watched: watch.map(({ size }) => new Uint8Array(bytes(size))),
  }));
  return { fs, apic, returnAddress, outcomes };
}
