import type { ExtentCopy, FieldSource, LoadBase, OuterCopy, RecordField } from '../../arch/index.js';
import { type Addr, addOffset, hex, highHalf, lowHalf } from '../../base/addr.js';
import type { AddressMap } from '../../base/address-map.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import {
  extentWords,
  type HitMemory,
  noteName,
  type PlannedExtent,
  type PlannedLoad,
  type PlannedReads,
  type PlannedWord,
  Reading,
  type ReadPlan,
} from '../../probes/index.js';
import type { SlotReader } from './late-records.js';
import { type PlacedLoad, RecordReadings } from './record-readings.js';
import type { WordCache } from './word-cache.js';

/**
 * The layout of a probe's records:
 *
 *      0 commit | 8 id (u32) | 12 small loads | 16 time | 24 stack pointer | 32 return address | 40 hart
 *      | registers | loads, the widest first | outer's bytes
 *
 * The hart's word exists only if records must name their harts. Small loads are the first ones of 4, 2, and 1 bytes
 * that fit. Entry and exit records of one probe differ; the id tells which it is.
 */
export interface RecordFormat {
  readonly fields: readonly RecordField[];
  readonly outerCopy: OuterCopy | undefined;
  readonly extents: readonly ExtentCopy[];
  /** Bytes used. */
  readonly size: number;
  /** Offset of the hart's word, if there is one. */
  readonly hartAt: number | undefined;
  readonly registers: ReadonlyMap<string, number>;
  /** Of these the ones that have no value where the word is all-ones. */
  readonly mayBeOff: ReadonlySet<string>;
  readonly blocks: readonly BlockFormat[];
  /** In the order of `extents`. */
  readonly extentsRead: readonly ExtentFormat[];
  /** Offset of the open outer Future's address. */
  readonly outerAt: number | undefined;
}

/** Memory behind one pointer: where the record has the pointer, and where it has each load. */
interface BlockFormat {
  readonly pointerAt: number;
  /** Bytes from the pointer's target to the object. */
  readonly from: number;
  readonly align: number;
  readonly size: number;
  readonly loads: readonly PlacedLoad[];
}

/** Where the record has a pointer, the number of elements, and the words that these lie in. */
interface ExtentFormat {
  readonly pointerAt: number;
  readonly countAt: number;
  readonly at: number;
  readonly shift: number;
  /** The most bytes. */
  readonly bytes: number;
}

export const recordOffset = { id: 8, small: 12, time: 16, stackPointer: 24, returnAddress: 32, hart: 40 } as const;

/** With one hart only, records need not name it. `inside`: ids of records that begin and end no call. */
export function slotReader(isOneHart: boolean, inside: ReadonlySet<number> = new Set()): SlotReader {
  return {
    hart(view, offset) {
      const at = offset + recordOffset.hart;
      return isOneHart ? 0 : view.getUint32(at, true) ^ view.getUint32(at + 4, true);
    },
    opens(view, offset) {
      const id = view.getUint32(offset + recordOffset.id, true);
      return inside.has(id) ? 0 : (id & 1) === 0 ? 1 : -1;
    },
  };
}

/** The most bytes that are copied out of an outer Future. */
const mostOuter = 24;

export interface RecordSources {
  readonly time: FieldSource & { readonly kind: 'time' };
  readonly hart: (FieldSource & { readonly kind: 'hart' }) | undefined;
  /** Floating-point registers, and whether a hart's unit may be off. */
  readonly floats: { readonly names: ReadonlySet<string>; readonly mayBeOff: boolean };
  /** The register that holds the return address at an entry, if one does. */
  readonly returnRegister: string | undefined;
  /** The address of the outer Future; undefined if harts would mix their Futures up. */
  readonly outer: (FieldSource & { readonly kind: 'control' | 'outer' }) | undefined;
}

/** Bytes for the copy of an outer Future, whichever of these Futures it is. */
export function outerRoom(plans: readonly ReadPlan[]): number {
  return plans.reduce((most, { outer }) => Math.max(most, outer ? copiedOffsets(outer).length : 0), 0);
}

/** Every byte's offset; none if there are more bytes than a record can hold. */
function copiedOffsets(outer: PlannedReads): number[] {
  const offsets = outer.loads.flatMap(({ offset, size }) => Array.from({ length: size }, (_, i) => offset + i));
  return offsets.length <= mostOuter ? offsets : [];
}

/** The record of a probe's entry, with `room` bytes for the copy of an outer Future. */
export function entryFormat(plan: ReadPlan, id: number, sources: RecordSources, room: number): RecordFormat {
  const taken = (plan.inside?.taken ?? []).map(noteName);
  const words = [
    ...plan.entryRegisters.map((name) => ({ name, from: registerSource(name, sources) })),
    ...taken.map((name, index) => ({ name, from: { kind: 'kept', index } as FieldSource })),
  ];
  const base = (pointer: string): LoadBase => {
    const index = taken.indexOf(pointer);
    return index < 0 ? { kind: 'register', name: pointer } : { kind: 'kept', index };
  };
  const extents = plan.entryExtents ?? [];
  const content = { words, reads: plan.entryReads, extents, base, room: plan.readsOuter ? room : 0 };
  const entry = format(id, sources, content, plan.inside === undefined);
  if (plan.inside || sources.returnRegister === undefined) return entry;
  if (entry.registers === noRegisters) return { ...entry, registers: onlyReturnAddress(sources.returnRegister) };
  const registers = new Map(entry.registers).set(sources.returnRegister, recordOffset.returnAddress);
  return { ...entry, registers };
}

// A kernel has a hundred thousand formats, and most are alike: what they have in common is made once.
const noNames: ReadonlySet<string> = new Set();
const noRegisters: ReadonlyMap<string, number> = new Map();
const withReturnAddress = new Map<string, ReadonlyMap<string, number>>();
const stackPointerField: RecordField = { at: recordOffset.stackPointer, size: 8, from: { kind: 'stack-pointer' } };
const returnAddressField: RecordField = { at: recordOffset.returnAddress, size: 8, from: { kind: 'return-address' } };

function onlyReturnAddress(register: string): ReadonlyMap<string, number> {
  let only = withReturnAddress.get(register);
  if (!only) {
    only = new Map([[register, recordOffset.returnAddress]]);
    withReturnAddress.set(register, only);
  }
  return only;
}

/** The record of its return. What the entry kept has the name `kept:` and its register's name. */
export function exitFormat(plan: ReadPlan, id: number, sources: RecordSources): RecordFormat {
  const { keep, registers, reads } = plan.exit;
  const words = [
    ...registers.map((name) => ({ name, from: registerSource(name, sources) })),
    ...keep.map((name, index) => ({ name: keptName(name), from: { kind: 'kept', index } as FieldSource })),
  ];
  const base = (name: string) => ({ kind: 'kept', index: keep.indexOf(name.slice(keptName('').length)) }) as const;
  const kept = reads.map((read) => ({ ...read, pointer: keptName(read.pointer) }));
  const { extents = [] } = plan.exit;
  return format(id, sources, { words, reads: kept, extents, base, room: 0 });
}

function registerSource(name: string, { floats: { names, mayBeOff } }: RecordSources): FieldSource {
  return names.has(name) ? { kind: 'float', name, mayBeOff } : { kind: 'register', name };
}

function keptName(register: string): string {
  return `kept:${register}`;
}

/** What the records of one probe have beside their head. */
interface RecordContent {
  /** Whole registers. */
  readonly words: readonly { readonly name: string; readonly from: FieldSource }[];
  readonly reads: readonly PlannedReads[];
  readonly extents: readonly PlannedExtent[];
  /** Where a trampoline finds the pointer of reads. */
  readonly base: (pointer: string) => LoadBase;
  /** Bytes for the copy of an outer Future. */
  readonly room: number;
}

function format(
  id: number,
  sources: RecordSources,
  { words, reads, extents, base, room }: RecordContent,
  isCall = true,
): RecordFormat {
  const o = recordOffset;
  const fields: RecordField[] = [
    { at: o.id, size: 4, from: { kind: 'constant', value: BigInt(id) } },
    { at: o.time, size: 8, from: sources.time },
    stackPointerField,
  ];
  if (isCall) fields.push(returnAddressField);
  if (sources.hart) fields.push({ at: o.hart, size: 8, from: sources.hart });
  let at = sources.hart ? o.hart + 8 : o.hart;
  const wordAt = at;
  const registers = words.length === 0 ? noRegisters : new Map(words.map(({ name }, i) => [name, wordAt + 8 * i]));
  for (const { from } of words) {
    fields.push({ at, size: 8, from });
    at += 8;
  }
  const outer = room > 0 ? sources.outer : undefined;
  const outerAt = outer && at;
  if (outer) {
    fields.push({ at, size: 8, from: outer });
    at += 8;
  }
  const wantedBlocks = byPointer(reads).map((read) => ({ ...read, placed: [] as PlacedLoad[] }));
  let small: number = o.small;
  const place = (width: number): number => {
    const isSmall = small + width <= o.time;
    const placed = isSmall ? small : at;
    if (isSmall) small += width;
    else at += width;
    return placed;
  };
  for (const width of [8, 4, 2, 1] as const) {
    for (const { pointer, through, from: start, loads, placed, align: aligned } of wantedBlocks) {
      const align = alignBefore(start, aligned);
      for (const load of loads) {
        if (load.size !== width) continue;
        const one = { ...load, at: place(width) };
        placed.push(one);
        const offset = start + load.offset;
        const from = { kind: 'load', base: { ...base(pointer), through }, offset, align } as const;
        fields.push({ at: one.at, size: width, from });
      }
    }
  }
  const blocks = wantedBlocks.map((block): BlockFormat => {
    const { align, size, from, placed: loads } = block;
    return { pointerAt: pointerTo(block, registers, wantedBlocks), from, align, size, loads };
  });
  const self = outer?.kind === 'outer' ? reads[0]?.pointer : undefined;
  const outerCopy = outer && { at, room, self };
  if (outerCopy) at += room;
  const copied = placeExtents(extents, at, (word) => pointerTo(asBlock(word), registers, wantedBlocks));
  // Without the room that a list has to grow.
  const shared = {
    fields: fields.slice(),
    outerCopy,
    size: copied.end,
    hartAt: sources.hart && o.hart,
    registers,
    mayBeOff: words.some(({ from }) => from.kind === 'float' && from.mayBeOff) ? sources.floats.names : noNames,
    blocks,
    outerAt,
  };
  return { ...shared, extents: copied.copies, extentsRead: copied.formats };
}

/** Lays extents out behind the rest of the record. `wordAt`: where the record has a word. */
function placeExtents(
  extents: readonly PlannedExtent[],
  from: number,
  wordAt: (word: PlannedWord) => number,
): { readonly end: number; readonly copies: readonly ExtentCopy[]; readonly formats: readonly ExtentFormat[] } {
  let end = extents.length > 0 ? Math.ceil(from / 8) * 8 : from;
  const copies: ExtentCopy[] = [];
  const formats: ExtentFormat[] = [];
  for (const { pointer, count, shift, bytes } of extents) {
    const words = extentWords(bytes);
    copies.push({ at: end, words, shift, from: placeOfExtent(pointer, count) });
    formats.push({ pointerAt: wordAt(pointer), countAt: wordAt(count), at: end, shift, bytes });
    end += 8 * words;
  }
  return { end, copies, formats };
}

function placeOfExtent(pointer: PlannedWord, count: PlannedWord): ExtentCopy['from'] {
  if (!pointer.behind || !count.behind) return { kind: 'registers', pointer: pointer.register, count: count.register };
  const { through, offset } = pointer.behind;
  return { kind: 'object', register: pointer.register, through, pointer: offset, count: count.behind.offset };
}

function asBlock({ register, behind }: PlannedWord): Pick<Block, 'pointer' | 'through'> {
  return { pointer: register, through: behind ? [...behind.through, behind.offset] : [] };
}

/** The alignment of a pointer, if it is aligned so many bytes further. */
function alignBefore(from: number, align: number): number {
  return from === 0 ? align : Math.min(align, from & -from);
}

type Block = PlannedReads & { readonly through: readonly number[]; readonly from: number };
type PlacedBlock = Block & { readonly placed: readonly PlacedLoad[] };

/** Where the record has the pointer to a block: in a register's word, or in the block before. */
function pointerTo(
  block: Pick<Block, 'pointer' | 'through'>,
  registers: ReadonlyMap<string, number>,
  blocks: readonly PlacedBlock[],
): number {
  const { pointer, through } = block;
  const outer = blocks.filter((each) => each.pointer === pointer && isSame(each.through, through.slice(0, -1)));
  const [inOuter] = outer.flatMap(({ placed, from }) =>
    placed.flatMap(({ offset, size, at }) => (from + offset === through.at(-1) && size === 8 ? [at] : [])),
  );
  const at = through.length === 0 ? registers.get(pointer) : inOuter;
  if (at === undefined) throw new RangeError(`The record does not have the pointer at ${pointer} ${through}`);
  return at;
}

/** What is read behind one pointer is one block, whoever wants it. */
function byPointer(reads: readonly PlannedReads[]): Block[] {
  const blocks: Block[] = [];
  for (const { through = [], from = 0, ...read } of reads) {
    const index = blocks.findIndex(
      (each) => each.pointer === read.pointer && each.from === from && isSame(each.through, through),
    );
    const known = blocks[index];
    if (!known) blocks.push({ ...read, through, from });
    else {
      const isNew = ({ offset, size }: PlannedLoad): boolean =>
        !known.loads.some((each) => each.offset === offset && each.size === size);
      const loads = [...known.loads, ...read.loads.filter(isNew)];
      const size = Math.max(known.size, read.size);
      blocks[index] = { ...known, align: Math.max(known.align, read.align), size, loads };
    }
  }
  return blocks;
}

function isSame(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((each, index) => each === other[index]);
}

/** What is copied of outer Futures of one type, if they have inner polls of their own. */
export class OuterReadings {
  /** Undefined if there are more places than a record can hold. */
  readonly #readings: RecordReadings | undefined;

  constructor(loads: readonly PlannedLoad[]) {
    let at = 0;
    const placed = loads.map((load): PlacedLoad => {
      const place = { ...load, at };
      at += load.size;
      return place;
    });
    this.#readings = at > mostOuter ? undefined : new RecordReadings(placed);
  }

  read(view: DataView, copy: number, length: number): Reading | undefined {
    return this.#readings?.read(view, copy, length);
  }
}

/** Finds the copy plan for the Future at an address, whose poll is open. */
export type Outers = Pick<AddressMap<OuterReadings>, 'get'>;

/** One record, read as registers and memory: what a stop would have answered. */
/** What a trampoline writes for a floating-point register while the unit is off; also a NaN that nothing computes. */
const OFF = 2n ** 64n - 1n;

export class RecordReader implements RegisterReader, HitMemory {
  readonly #format: RecordFormat;
  readonly #words: WordCache;
  readonly #outers: Outers;
  readonly #readings: readonly RecordReadings[];
  /** Of each block the bytes at its beginning that were all read. */
  readonly #covered: readonly number[];
  /** A few names only: comparing them costs less than a Map. */
  readonly #names: readonly string[];
  readonly #places: readonly number[];
  #view: DataView = new DataView(new ArrayBuffer(0));
  #offset = 0;

  constructor(format: RecordFormat, words: WordCache, outers: Outers) {
    this.#format = format;
    this.#words = words;
    this.#outers = outers;
    this.#readings = format.blocks.map(({ loads }) => new RecordReadings(loads));
    this.#covered = format.blocks.map(({ loads }) => coveredBytes(loads));
    this.#names = [...format.registers.keys()];
    this.#places = [...format.registers.values()];
  }

  /** Moves to the record at an offset, which all reads refer to until the next call. */
  turn(view: DataView, offset: number): this {
    this.#view = view;
    this.#offset = offset;
    return this;
  }

  register(name: string): bigint | undefined {
    const names = this.#names;
    for (let i = 0; i < names.length; i++) {
      if (names[i] !== name) continue;
      const word = this.word(this.#places[i] as number);
      return word === OFF && this.#format.mayBeOff.has(name) ? undefined : word;
    }
    return undefined;
  }

  halves(name: string, into: Uint32Array, at: number): boolean {
    const names = this.#names;
    for (let i = 0; i < names.length; i++) {
      if (names[i] !== name) continue;
      const place = this.#offset + (this.#places[i] as number);
      into[at] = this.#view.getUint32(place, true);
      into[at + 1] = this.#view.getUint32(place + 4, true);
      return true;
    }
    return false;
  }

  /** Every register that is in the record, as hex. */
  texts(): Record<string, string> {
    return Object.fromEntries(this.#names.map((name, i) => [name, hex(this.word(this.#places[i] as number))]));
  }

  word(at: number): bigint {
    return this.#words.at(this.#view, this.#offset + at);
  }

  /** A word as an unsigned number, exact below 2^53. */
  count(at: number): number {
    const view = this.#view;
    const offset = this.#offset + at;
    return view.getUint32(offset, true) + view.getUint32(offset + 4, true) * 2 ** 32;
  }

  /** Offset of the stack pointer, see `stackNumber`. */
  get stackPointer(): number {
    const view = this.#view;
    const offset = this.#offset + recordOffset.stackPointer;
    return view.getUint32(offset, true) + view.getInt32(offset + 4, true) * 2 ** 32;
  }

  /** Identifies the hart; 0 if records do not name harts. */
  get hart(): bigint {
    const { hartAt } = this.#format;
    return hartAt === undefined ? 0n : this.word(hartAt);
  }

  get returnAddress(): Addr {
    return this.word(recordOffset.returnAddress) as Addr;
  }

  /**
   * The part of memory that the record has: the bytes that were planned, with zeros between them. Undefined for any
   * other place.
   */
  at(address: Addr, length: number): Reading | undefined {
    const { blocks, outerAt, outerCopy } = this.#format;
    let found: Reading | undefined;
    for (let i = 0; i < blocks.length; i++) {
      const { pointerAt, from, align, loads } = blocks[i] as BlockFormat;
      const pointer = this.word(pointerAt);
      if (from === 0 ? pointer !== address : addOffset(pointer as Addr, from) !== address) continue;
      const low = this.#view.getUint32(this.#offset + pointerAt, true);
      if (pointer === 0n || low % alignBefore(from, align) !== 0) continue;
      if (found === undefined) found = this.#readings[i]?.read(this.#view, this.#offset, length);
      else found = this.#withLoads(found, loads);
    }
    if (found !== undefined) return found;
    if (outerAt === undefined || outerCopy === undefined || this.word(outerAt) !== address) return undefined;
    return this.#outers.get(address)?.read(this.#view, this.#offset + outerCopy.at, length);
  }

  bytes(address: Addr, length: number): Uint8Array | 'unreadable' {
    const { blocks, extentsRead } = this.#format;
    const view = this.#view;
    const [low, high] = [lowHalf(address), highHalf(address)];
    for (let i = 0; i < blocks.length; i++) {
      const { pointerAt, from, align, loads } = blocks[i] as BlockFormat;
      const at = this.#offset + pointerAt;
      const [lowest, highest] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
      const inside = (high - highest) * 2 ** 32 + (low - lowest);
      if (from !== 0 || inside < 0 || inside + length > (this.#covered[i] as number)) continue;
      if (lowest % align === 0 && (lowest !== 0 || highest !== 0)) return this.#loaded(loads, inside, length);
    }
    for (const { pointerAt, countAt, at, shift, bytes } of extentsRead) {
      if (length > bytes || length > this.count(countAt) * 2 ** shift || this.word(pointerAt) !== address) continue;
      return this.#copy(at + (low & 7), length);
    }
    return 'unreadable';
  }

  /** Bytes of an object that are all loaded, from `start` on. */
  #loaded(loads: readonly PlacedLoad[], start: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < loads.length; i++) {
      const { offset, size, at } = loads[i] as PlacedLoad;
      for (let k = Math.max(0, start - offset); k < size && offset + k < start + length; k++)
        bytes[offset + k - start] = this.#view.getUint8(this.#offset + at + k);
    }
    return bytes;
  }

  #copy(from: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = this.#view.getUint8(this.#offset + from + i);
    return bytes;
  }

  /** Two pointers have one value: the bytes of both blocks. */
  #withLoads({ bytes }: Reading, loads: readonly PlacedLoad[]): Reading {
    const both = Uint8Array.from(bytes);
    for (const { offset, size, at } of loads)
      for (let i = 0; i < size && offset + i < both.length; i++)
        both[offset + i] = this.#view.getUint8(this.#offset + at + i);
    return new Reading(both);
  }
}

/** Bytes from the beginning of an object that are loaded without a hole. */
function coveredBytes(loads: readonly PlacedLoad[]): number {
  let end = 0;
  for (const { offset, size } of loads.toSorted((a, b) => a.offset - b.offset)) {
    if (offset > end) break;
    end = Math.max(end, offset + size);
  }
  return end;
}

/** What `controlBlock.outerPlan` points to. */
export function outerPlan(outer: PlannedReads): Uint8Array {
  const offsets = copiedOffsets(outer);
  return new Uint8Array(Uint32Array.of(offsets.length, ...offsets, outer.size, 0).buffer);
}
