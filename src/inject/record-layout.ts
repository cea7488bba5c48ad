import type { ExtentCopy, FieldSource, LoadBase, OuterCopy, RecordField } from '../arch/index.js';
import {
  extentWords,
  type PlannedExtent,
  type PlannedLoad,
  type PlannedReads,
  type PlannedWord,
} from '../probes/index.js';
import type { PlacedLoad } from './record-readings.js';

/**
 * The layout of a probe's records:
 *
 *      0 commit | 8 id (u32) | 12 small loads | 16 time | 24 stack pointer | 32 return address | 40 hart
 *      | registers | loads, the widest first | outer's bytes
 *
 * The hart's word exists only if records must name their harts. Small loads are the first ones of 4, 2, and 1 bytes
 * that fit. Entry and exit records of one probe differ; the id says which it is.
 */
export interface RecordFormat {
  /** Without the id, which alone differs between probes that read the same: see {@link idField}. */
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
export interface BlockFormat {
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

export interface RecordSources {
  readonly hart: (FieldSource & { readonly kind: 'hart' }) | undefined;
  /** Floating-point registers, and whether a hart's unit may be off. */
  readonly floats: { readonly names: ReadonlySet<string>; readonly mayBeOff: boolean };
  /** The register that holds the return address at an entry, if one does. */
  readonly returnRegister: string | undefined;
  /** The address of the outer Future; undefined if harts would mix their Futures up. */
  readonly outer: (FieldSource & { readonly kind: 'control' | 'outer' }) | undefined;
}

const timeField: RecordField = { at: recordOffset.time, size: 8, from: { kind: 'time' } };
const noNames: ReadonlySet<string> = new Set();
const stackPointerField: RecordField = { at: recordOffset.stackPointer, size: 8, from: { kind: 'stack-pointer' } };
const returnAddressField: RecordField = { at: recordOffset.returnAddress, size: 8, from: { kind: 'return-address' } };

/** What the records of one probe have beside their head. */
export interface RecordContent {
  /** Whole registers. */
  readonly words: readonly { readonly name: string; readonly from: FieldSource }[];
  readonly reads: readonly PlannedReads[];
  readonly extents: readonly PlannedExtent[];
  /** Where a trampoline finds the pointer of reads. */
  readonly base: (pointer: string) => LoadBase;
  /** Bytes for the copy of an outer Future. */
  readonly room: number;
}

/** Lays a record out, field by field. */
class RecordLayout {
  readonly fields: RecordField[] = [];
  /** Where the next word goes. */
  at: number;
  /** Where the next small load goes, while there is room. */
  #small: number = recordOffset.small;

  constructor(at: number) {
    this.at = at;
  }

  /** Returns where it lies. */
  word(from: FieldSource): number {
    const { at } = this;
    this.fields.push({ at, size: 8, from });
    this.at += 8;
    return at;
  }

  /** Places all loads, the widest first, and small ones in the head. */
  loads(blocks: readonly Block[], base: RecordContent['base']): PlacedBlock[] {
    const placed = blocks.map((block) => ({ ...block, placed: [] as PlacedLoad[] }));
    for (const width of [8, 4, 2, 1] as const)
      for (const block of placed)
        for (const load of block.loads)
          if (load.size === width) block.placed.push(this.#load(block, load, width, base));
    return placed;
  }

  #load(block: Block, load: PlannedLoad, size: 1 | 2 | 4 | 8, base: RecordContent['base']): PlacedLoad {
    const { pointer, through, from: start, align: aligned } = block;
    const at = this.#place(size);
    const offset = start + load.offset;
    const align = alignBefore(start, aligned);
    this.fields.push({ at, size, from: { kind: 'load', base: { ...base(pointer), through }, offset, align } });
    return { ...load, at };
  }

  #place(width: number): number {
    const isSmall = this.#small + width <= recordOffset.time;
    const placed = isSmall ? this.#small : this.at;
    if (isSmall) this.#small += width;
    else this.at += width;
    return placed;
  }
}

export function layOut(
  sources: RecordSources,
  { words, reads, extents, base, room }: RecordContent,
  isCall = true,
): RecordFormat {
  const o = recordOffset;
  const layout = new RecordLayout(sources.hart ? o.hart + 8 : o.hart);
  const { fields } = layout;
  fields.push(timeField, stackPointerField);
  if (isCall) fields.push(returnAddressField);
  if (sources.hart) fields.push({ at: o.hart, size: 8, from: sources.hart });
  const registers = new Map(words.map(({ name, from }) => [name, layout.word(from)]));
  const outer = room > 0 ? sources.outer : undefined;
  const outerAt = outer && layout.word(outer);
  const placed = layout.loads(byPointer(reads), base);
  const blocks = placed.map((block): BlockFormat => {
    const { align, size, from, placed: loads } = block;
    return { pointerAt: pointerTo(block, registers, placed), from, align, size, loads };
  });
  const self = outer?.kind === 'outer' ? reads[0]?.pointer : undefined;
  const outerCopy = outer && { at: layout.at, room, self };
  const end = layout.at + (outer ? room : 0);
  const copied = placeExtents(extents, end, (word) => pointerTo(asBlock(word), registers, placed));
  return {
    fields,
    outerCopy,
    size: copied.end,
    hartAt: sources.hart && o.hart,
    registers,
    mayBeOff: words.some(({ from }) => from.kind === 'float' && from.mayBeOff) ? sources.floats.names : noNames,
    blocks,
    outerAt,
    extents: copied.copies,
    extentsRead: copied.formats,
  };
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
export function alignBefore(from: number, align: number): number {
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
