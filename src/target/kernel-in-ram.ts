/*
 * Where a kernel will run that its loader is still preparing, seen in a machine's RAM past the wire while it runs:
 *
 *   frames    pages of RAM that hold the code at the kernel's entry, at the same place within the page
 *   tables    entries that lead to such a frame, then entries that lead to the tables these are in, and so on to the
 *             root: each entry's index gives nine bits of the virtual address (arch/pages/page-walk.ts)
 *
 * What is found is a guess, because a loader may keep copies. The machine is to stop where it begins.
 */
import type { PageSearch } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import type { GuestRam } from './guest-ram.js';
import type { RamRange } from './machine-ram.js';

const PAGE = 4096;
/** Bytes of code at the entry that are looked for first. */
const FIRST = 16;
/** Bytes of the page around the entry, zeros not counted, that the ELF must have, to know it again. */
const LEAST = 64;
/** The share of equal bytes that makes it the page. */
const SAME = 0.75;
/** Bytes that are searched. Machines that run a loader have touched little more than it has loaded. */
const MOST = 2 ** 29;
/** For so long it is not asked anew which memory was touched, in milliseconds. */
const TOUCHED_MS = 200;
/** ELF64: e_shoff at 40, e_shentsize at 58, e_shnum at 60. */
const ELF_MAGIC = 0x7f454c46;
const ELF_HEADER = 64;
const SECTION_HEADER = 64;
/** Frames that are followed: the kernel's file, what a loader makes of it, and copies of both. */
const MOST_FRAMES = 8;

/** The code of the page around a kernel's entry: its bytes, and where they are within the page. */
interface EntryPage {
  readonly code: Uint8Array;
  readonly at: number;
  /** Of the entry within the page. */
  readonly entry: number;
  /** Where the page begins in the file; negative if only the segment begins there. */
  readonly inFile: number;
}

export class KernelInRam {
  readonly #ram: GuestRam;
  readonly #page: EntryPage;
  readonly #search: PageSearch | undefined;
  #touched: readonly RamRange[] = [];
  #touchedAt = Number.NEGATIVE_INFINITY;
  /** Physical addresses of the code's page. */
  #frames: readonly bigint[] = [];
  /** And of entries that lead to them. */
  readonly #seen = new Set<bigint>();

  private constructor(ram: GuestRam, page: EntryPage, search: PageSearch | undefined) {
    this.#ram = ram;
    this.#page = page;
    this.#search = search;
  }

  /** Undefined if too little code is around the kernel's entry to know it again. */
  static of(elf: ElfFile, ram: GuestRam, search: PageSearch | undefined): KernelInRam | undefined {
    const page = entryPage(elf);
    return page && new KernelInRam(ram, page, search);
  }

  /** Whether a loader has put the code somewhere, or mapped it, since this was last asked. */
  hasChanged(): boolean {
    if (performance.now() > this.#touchedAt + TOUCHED_MS) this.#touched = this.#touchedNow();
    const frames: bigint[] = [];
    const places: bigint[] = [];
    const known = new Set(this.#frames.map((frame) => Number(frame / BigInt(PAGE))));
    for (const { start, bytes } of this.#ram.chunks(this.#touched)) {
      for (const page of this.#pagesIn(bytes)) frames.push(start + BigInt(page));
      const entries = this.#search === undefined ? [] : entriesIn(bytes, known, this.#search);
      places.push(...entries.map(({ at }) => start + BigInt(at)));
    }
    this.#frames = frames.slice(0, MOST_FRAMES);
    const all = [...this.#frames, ...places];
    const isNew = all.some((place) => !this.#seen.has(place));
    for (const place of all) this.#seen.add(place);
    return isNew;
  }

  /** Whether a loader has the kernel in memory: its file to the end, or else its segments. It will start it soon. */
  get isLoaded(): boolean {
    return this.#frames.some((frame) => this.#isWhole(frame));
  }

  /**
   * Where the kernel's first instruction may be, the best guess first: addresses that page tables map to the code that
   * was seen, then physical ones.
   */
  entries(): Addr[] {
    this.#touched = this.#touchedNow();
    const mapped = this.#search === undefined ? [] : this.#virtual(this.#search);
    return [...mapped, ...this.#frames].map((page) => addr(page + BigInt(this.#page.entry)));
  }

  #touchedNow(): readonly RamRange[] {
    this.#touchedAt = performance.now();
    const touched = this.#ram.touched();
    return touched.reduce((sum, { start, end }) => sum + Number(end - start), 0) > MOST ? [] : touched;
  }

  /** Where pages with the kernel's code begin. */
  #pagesIn(bytes: Uint8Array): number[] {
    const { code, at, entry } = this.#page;
    const first = code.subarray(entry - at, entry - at + FIRST);
    const found: number[] = [];
    for (let page = 0; page + PAGE <= bytes.length; page += PAGE)
      if (isAt(bytes, page + entry, first) && isLike(bytes.subarray(page + at), code)) found.push(page);
    return found;
  }

  /** Whether the file around this frame is there to its end, where the section headers are. Else it is a segment's. */
  #isWhole(frame: bigint): boolean {
    const start = frame - BigInt(this.#page.inFile);
    const header = this.#bytes(start, ELF_HEADER);
    if (header?.getUint32(0) !== ELF_MAGIC) return true;
    const length = header.getUint16(58, true) * header.getUint16(60, true);
    if (length < SECTION_HEADER) return true;
    const last = this.#bytes(start + header.getBigUint64(40, true) + BigInt(length - SECTION_HEADER), SECTION_HEADER);
    return last === undefined || new Uint8Array(last.buffer).some((byte) => byte !== 0);
  }

  #bytes(start: bigint, length: number): DataView | undefined {
    const bytes = new Uint8Array(length);
    return this.#ram.read(start, bytes) ? new DataView(bytes.buffer) : undefined;
  }

  /** Virtual addresses of the pages that page tables map to the frames. */
  #virtual(search: PageSearch): bigint[] {
    let leads = new Map<number, readonly bigint[]>(this.#frames.map((frame) => [Number(frame / BigInt(PAGE)), [0n]]));
    const found = new Set<bigint>();
    for (let level = 0; level < Math.max(...search.levels) && leads.size > 0; level++) {
      leads = this.#above(leads, level, search);
      const bits = 12 + 9 * (level + 1);
      if (!search.levels.includes(level + 1)) continue;
      for (const address of [...leads.values()].flat()) found.add(BigInt.asUintN(64, BigInt.asIntN(bits, address)));
    }
    return [...found];
  }

  /** By the number of a table's page whose entries lead to these: the low bits of the virtual addresses. */
  #above(
    pages: ReadonlyMap<number, readonly bigint[]>,
    level: number,
    search: PageSearch,
  ): Map<number, readonly bigint[]> {
    const above = new Map<number, bigint[]>();
    const wanted = new Set(pages.keys());
    for (const { start, bytes } of this.#ram.chunks(this.#touched)) {
      for (const { at, page } of entriesIn(bytes, wanted, search)) {
        const table = Number(start / BigInt(PAGE)) + Math.floor(at / PAGE);
        const index = BigInt((at % PAGE) / 8) << BigInt(12 + 9 * level);
        const known = above.get(table) ?? [];
        if (known.length < MOST_FRAMES)
          above.set(table, [...known, ...(pages.get(page) ?? []).map((low) => low | index)]);
      }
    }
    return above;
  }
}

/**
 * Words that may be entries which lead to one of these pages: where, and to which. Every word of memory is looked at,
 * so nothing is allocated for others.
 */
function entriesIn(
  bytes: Uint8Array,
  pages: ReadonlySet<number>,
  { valid, shift, highBits }: PageSearch,
): { readonly at: number; readonly page: number }[] {
  const found: { at: number; page: number }[] = [];
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const scale = 2 ** (32 - shift);
  const mostHigh = Math.floor(Math.max(...pages) / scale);
  const leastHigh = Math.floor(Math.min(...pages) / scale);
  for (let at = 0; at < words.length; at += 2) {
    const low = words[at] as number;
    if ((low & valid) === 0) continue;
    const high = (words[at + 1] as number) & highBits;
    if (high > mostHigh || high < leastHigh) continue;
    const page = high * scale + (low >>> shift);
    if (pages.has(page)) found.push({ at: at * 4, page });
  }
  return found;
}

function isAt(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}

/** A loader may have left out what is no code, or have changed it. */
function isLike(bytes: Uint8Array, code: Uint8Array): boolean {
  let equal = 0;
  for (let i = 0; i < code.length; i++) if (bytes[i] === code[i]) equal++;
  return equal >= code.length * SAME;
}

/** What the ELF has of the page around its entry. */
function entryPage(elf: ElfFile): EntryPage | undefined {
  const { entry, loads } = elf;
  const segment = loads.find(({ address, fileSize }) => entry >= address && entry < address + BigInt(fileSize));
  if (segment === undefined) return undefined;
  const page = entry & ~BigInt(PAGE - 1);
  const start = page > segment.address ? page : segment.address;
  const end = [page + BigInt(PAGE), segment.address + BigInt(segment.fileSize)].reduce((a, b) => (a < b ? a : b));
  const code = elf.bytesAt(addr(start), Number(end - start));
  if (code === undefined || end - entry < FIRST || code.filter((byte) => byte !== 0).length < LEAST) return undefined;
  return {
    code,
    at: Number(start - page),
    entry: Number(entry - page),
    inFile: segment.offset + Number(page - segment.address),
  };
}
