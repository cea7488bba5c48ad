// How fast the guest makes progress, by what it counts itself: words of its own statics that only ever grow, or the
// instructions that QEMU counts under -icount. They are read while the guest is stopped, so that nothing stops it
// while it runs.

import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { demangle } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';

/** Something that grows with the guest's work. */
export interface Counter {
  /** `labkern::exec::POLLS`, `labkern::stats::CALLS+0x48`, `minstret`. */
  readonly name: string;
  readonly address: Addr | undefined;
}

/** Counts at one moment. */
export type Counts = readonly number[];

export interface Meter {
  readonly counters: readonly Counter[];
  read(): Promise<Counts>;
  /** What was counted between two readings. */
  since(before: Counts, now: Counts, index: number): number;
}

interface Span {
  readonly start: Addr;
  readonly length: number;
}

const mostBytes = 512 * 1024;
const largestStatic = 4096;
const nearBytes = 64;
const mostCounters = 64;
const word = 4;

/** Instructions, if the stub's own count of them does not change while the guest is stopped: under QEMU's -icount. */
export async function instructionMeter(session: Session, arch: Architecture): Promise<Meter | undefined> {
  const counter = arch.systemRegisters?.instructionCounter;
  if (counter === undefined || session.target.register(counter) === undefined) return undefined;
  const ask = async (): Promise<bigint | undefined> => {
    const batch = session.batch();
    const reply = batch.readRegister(counter);
    await batch.send();
    return reply.value;
  };
  const [first, second, third] = [await ask(), await ask(), await ask()];
  if (first === undefined || first === 0n || first !== second || second !== third) return undefined;
  return {
    counters: [{ name: counter, address: undefined }],
    read: async () => [Number(BigInt.asUintN(52, (await ask()) ?? 0n))],
    since: (before, now) => (now[0] ?? 0) - (before[0] ?? 0),
  };
}

/**
 * Words of the program's statics that grew in each interval of `next`. Undefined if there are none, or if the statics
 * cannot be read at this stop. `next` returns false if the guest has ended.
 */
export async function staticsMeter(
  session: Session,
  elf: ElfFile,
  intervals: number,
  next: () => Promise<boolean>,
): Promise<Meter | undefined> {
  const spans = staticSpans(elf);
  const read = async (): Promise<Uint8Array | undefined> => {
    const parts: Uint8Array[] = [];
    for (const { start, length } of spans) {
      const bytes = await session.memory().read(start, length);
      if (bytes === undefined) return undefined;
      parts.push(bytes);
    }
    return Buffer.concat(parts);
  };
  const seen = [await read()];
  for (let i = 0; i < intervals; i++) {
    if (!(await next())) return undefined;
    seen.push(await read());
  }
  const views = seen.flatMap((bytes) =>
    bytes ? [new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)] : [],
  );
  if (views.length !== seen.length) return undefined;
  const found: { readonly address: Addr; readonly least: number }[] = [];
  let offset = 0;
  for (const { start, length } of spans) {
    for (let at = 0; at + word <= length; at += word) {
      const grown = growth(views, offset + at);
      if (isCounting(grown)) found.push({ address: addOffset(start, at), least: Math.min(...grown) });
    }
    offset += length;
  }
  if (found.length === 0) return undefined;
  const chosen = found.sort((a, b) => b.least - a.least).slice(0, mostCounters);
  return {
    counters: chosen.map(({ address }) => ({ name: nameOf(elf, address), address })),
    async read() {
      const batch = session.batch();
      const replies = chosen.map(({ address }) => batch.readMemory(address, word));
      await batch.send();
      return replies.map(({ value }) => (value ? new DataView(value.buffer, value.byteOffset).getUint32(0, true) : 0));
    },
    since: (before, now, index) => ((now[index] ?? 0) - (before[index] ?? 0)) >>> 0,
  };
}

/**
 * Statics with a size, small enough for one counter or a few. Near ones are joined; their total of bytes is limited.
 */
function staticSpans(elf: ElfFile): Span[] {
  const spans: { start: Addr; length: number }[] = [];
  let total = 0;
  for (const { type, address, size } of elf.symbols) {
    if (type !== 'object' || size < word || size > largestStatic || address % BigInt(word) !== 0n) continue;
    if (!isWritable(elf, address)) continue;
    const last = spans.at(-1);
    const end = addOffset(address, size);
    const gap = last === undefined ? Number.POSITIVE_INFINITY : Number(address - last.start) - last.length;
    if (last !== undefined && gap <= nearBytes) {
      const length = Math.max(last.length, Number(end - last.start));
      total += length - last.length;
      last.length = length;
    } else {
      spans.push({ start: address, length: size });
      total += size;
    }
    if (total > mostBytes) break;
  }
  return spans;
}

const PT_LOAD = 1;
const PF_W = 2;

function isWritable(elf: ElfFile, address: Addr): boolean {
  return elf.segments.some(
    ({ type, flags, address: start, memorySize }) =>
      type === PT_LOAD && (flags & PF_W) !== 0 && address >= start && address - start < BigInt(memorySize),
  );
}

function growth(views: readonly DataView[], offset: number): number[] {
  return views
    .slice(1)
    .map((view, i) => (view.getUint32(offset, true) - (views[i]?.getUint32(offset, true) ?? 0)) >>> 0);
}

/** It grew each time, not by chance, and about equally: the host may have let the guest run more or less. */
function isCounting(grown: readonly number[]): boolean {
  const [least, largest] = [Math.min(...grown), Math.max(...grown)];
  return least >= 10 && largest < 2 ** 31 && largest < 100 * least;
}

function nameOf(elf: ElfFile, address: Addr): string {
  const symbol = elf.symbols.at(address);
  if (symbol === undefined) return hex(address);
  const offset = address - symbol.address;
  return `${demangle(symbol.name, elf.budget)}${offset === 0n ? '' : `+${hex(offset)}`}`;
}
