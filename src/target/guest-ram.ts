/*
 * The RAM of a QEMU of this machine, read and written without packets while it runs:
 *
 *   /proc/net/*, /proc/PID/fd     the process behind the socket
 *   info mtree -f                 where the guest has RAM
 *   gpa2hva ADDRESS               where QEMU has it: "Host virtual address for 0x80000000 (NAME) is 0x7fef20000000"
 *   /proc/PID/maps, PID/fd        the file behind it, if it is a shared one: that outlives QEMU
 *   /proc/PID/mem                 all other memory
 *   /proc/PID/pagemap             what of it was ever touched (Documentation/admin-guide/mm/pagemap.rst): bit 63 of the
 *                                 8 bytes of a page: it is present; bit 62: it is swapped out
 *   /proc/PID/cmdline             -object memory-backend-file, where the process may not be looked into
 */

import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { type Addr, addr, hex } from '../base/addr.js';
import { isRefusal, messageOf, type Refusal } from '../base/errors.js';
import { readFully, writeFully } from '../base/file-bytes.js';
import { type Logger, silent } from '../base/logger.js';
import type { Session, TargetMemory } from '../rsp/index.js';
import { chunksOf, type MemoryPiece, type RamChunk, type RamRange, ramPieces } from './machine-ram.js';
import { type Mapping, mapsOf } from './process-memory.js';
import { keyValues, qemuOptions } from './qemu-options.js';

const PAGE = 4096;
/** Bytes that both ways of reading must agree about, at each place that is compared. */
const COMPARED = 256;
/** Places in each piece that are looked at for something other than zeros. */
const LOOKS = 512;
/** Pages that are asked for at once. */
const ENTRIES = 2 ** 16;

/** A piece of RAM, and the file that has it. */
interface Piece {
  /** Physical. */
  readonly start: bigint;
  readonly end: bigint;
  readonly file: number;
  /** Of the piece's first byte in the file. */
  readonly position: number;
  /** The file's name, for the user. */
  readonly name: string;
  /** It can be read when QEMU has ended. */
  readonly outlives: boolean;
  /** Of the first byte in QEMU's own address space, where that is known. */
  readonly host?: number;
}

/** RAM of a running machine. Its files are closed with it. */
export class GuestRam implements Disposable {
  readonly #pieces: readonly Piece[];
  readonly #word = new BigUint64Array(1);
  readonly #wordBytes = new Uint8Array(this.#word.buffer);
  readonly #pid: number;
  #open = true;

  constructor(pid: number, pieces: readonly Piece[]) {
    this.#pid = pid;
    this.#pieces = pieces;
  }

  /** The file of most of it, for the user: `/proc/123/mem`. */
  get source(): string {
    const [largest] = this.#pieces.toSorted((a, b) => Number(b.end - b.start - (a.end - a.start)));
    return largest?.name ?? '';
  }

  /**
   * Finds and checks it. The target is stopped. Undefined for a target that is no machine of QEMU, and if the wire is
   * recorded.
   */
  static async find(session: Session, logger: Logger = silent): Promise<GuestRam | Refusal | undefined> {
    if ((await session.stub()).name !== 'qemu-system') return undefined;
    const server = session.serverProcess('qemu');
    if (server === undefined) return undefined;
    const found = typeof server === 'number' ? await openRam(session, server) : noProcess(server);
    if (isRefusal(found)) logger.info({ why: found.refused }, "the guest's RAM is read by packets");
    else logger.info({ source: found.source }, "the guest's RAM is read past the wire");
    return found;
  }

  /** Fills `into` from a physical address on. False if not all of it is RAM, or if QEMU has ended. */
  read(physical: bigint, into: Uint8Array): boolean {
    return this.#moves(readFully, physical, into);
  }

  /** False if not all of it is RAM, or if QEMU has ended. Not for code: QEMU does not notice that it has changed. */
  write(physical: bigint, bytes: Uint8Array): boolean {
    return this.#moves(writeFully, physical, bytes);
  }

  #moves(move: typeof readFully, physical: bigint, bytes: Uint8Array): boolean {
    const piece = this.#pieceAt(physical, bytes.length);
    if (piece === undefined) return false;
    try {
      return move(piece.file, bytes, piece.position + Number(physical - piece.start));
    } catch {
      return false;
    }
  }

  /** Eight bytes, little-endian; undefined where there is no RAM. */
  word(physical: bigint): bigint | undefined {
    return this.read(physical, this.#wordBytes) ? this.#word[0] : undefined;
  }

  /** Whether RAM can be read when QEMU has ended. */
  outlives(physical: bigint): boolean {
    return this.#pieceAt(physical, 1)?.outlives ?? false;
  }

  /** Whether all of it is RAM, in one piece. */
  holds(physical: bigint, length: number): boolean {
    return this.#pieceAt(physical, length) !== undefined;
  }

  /** What may have been touched, whole pages: all of it where the process may not be looked into. */
  touched(): RamRange[] {
    return this.#pieces.flatMap(({ host, start, end }) => {
      const pages = host === undefined ? undefined : pagesOf(this.#pid, host, end - start);
      if (pages === undefined) return [{ start, end }];
      return pages.map(({ from, to }) => ({ start: start + BigInt(from), end: start + BigInt(to) }));
    });
  }

  /** The bytes of such ranges. */
  *chunks(ranges: readonly RamRange[]): Generator<RamChunk> {
    let chunk = new Uint8Array(0);
    for (const { at, length } of chunksOf(ranges)) {
      if (chunk.length < length) chunk = new Uint8Array(length);
      const bytes = chunk.subarray(0, length);
      if (this.read(at, bytes)) yield { start: at, bytes };
    }
  }

  [Symbol.dispose](): void {
    if (this.#open) for (const file of new Set(this.#pieces.map((piece) => piece.file))) closeSync(file);
    this.#open = false;
  }

  #pieceAt(physical: bigint, length: number): Piece | undefined {
    if (!this.#open) return undefined;
    return this.#pieces.find(({ start, end }) => physical >= start && physical + BigInt(length) <= end);
  }
}

interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** Which bytes' pages a process has, of so many bytes from an address on; undefined if it does not say. */
function pagesOf(pid: number, start: number, length: bigint): ByteRange[] | undefined {
  let file: number;
  try {
    file = openSync(`/proc/${pid}/pagemap`, 'r');
  } catch {
    return undefined;
  }
  const pages = Number(length / BigInt(PAGE));
  const entries = new Uint8Array(Math.min(pages, ENTRIES) * 8);
  const found: ByteRange[] = [];
  let from: number | undefined;
  try {
    for (let first = 0; first < pages; first += ENTRIES) {
      const part = entries.subarray(0, Math.min(ENTRIES, pages - first) * 8);
      if (!readFully(file, part, (start / PAGE + first) * 8)) return undefined;
      for (let index = 0; index < part.length / 8; index++) {
        const isThere = ((part[index * 8 + 7] as number) & 0xc0) !== 0;
        const at = (first + index) * PAGE;
        if (isThere) from ??= at;
        else if (from !== undefined) {
          found.push({ from, to: at });
          from = undefined;
        }
      }
    }
  } catch {
    return undefined;
  } finally {
    closeSync(file);
  }
  if (from !== undefined) found.push({ from, to: pages * PAGE });
  return found;
}

function noProcess({ refused }: Refusal): Refusal {
  return refused.includes('another user') ? { refused, wayOut: asOwner } : { refused };
}

const asOwner = 'run rsptrace as the user who started QEMU, outside of containers';
const withPermission =
  'allow it with `sysctl kernel.yama.ptrace_scope=0`, or start QEMU with `-object memory-backend-file,id=ram,share=on,size=SIZE,mem-path=/dev/shm/NAME -machine memory-backend=ram`, or with `rsptrace run`';

async function openRam(session: Session, pid: number): Promise<GuestRam | Refusal> {
  const physical = await session.physicalMemory();
  const pieces = await ramPieces(session);
  if (physical === undefined || pieces.length === 0) return { refused: 'QEMU does not say where its RAM is' };
  let opened: GuestRam | Refusal;
  try {
    opened = (await ofProcess(session, pid, pieces)) ?? ofCommandLine(pid, pieces);
  } catch (error) {
    return { refused: `the RAM of process ${pid} cannot be opened: ${messageOf(error)}`, wayOut: withPermission };
  }
  if (isRefusal(opened)) return opened;
  const wrong = await differs(physical, opened, pieces);
  if (wrong === undefined) return opened;
  opened[Symbol.dispose]();
  return { refused: `process ${pid}, which answers, has other bytes at ${hex(wrong)} than it gives by packets` };
}

/** Undefined if this user may not look into the process. */
async function ofProcess(
  session: Session,
  pid: number,
  pieces: readonly MemoryPiece[],
): Promise<GuestRam | Refusal | undefined> {
  let memory: number;
  try {
    memory = openSync(`/proc/${pid}/mem`, 'r+');
  } catch {
    return undefined;
  }
  const found: Piece[] = [];
  for (const { start, end } of pieces) {
    const host = await hostAddress(session, start, end);
    if (host === undefined) continue;
    found.push({ start, end, file: memory, position: host, host, name: `/proc/${pid}/mem`, outlives: false });
  }
  if (found.length === 0) {
    closeSync(memory);
    return { refused: 'QEMU does not say where it has the RAM (gpa2hva)' };
  }
  const readable = inFiles(pid, found);
  if (!readable.some(({ file }) => file === memory)) closeSync(memory);
  return new GuestRam(pid, readable);
}

/** Where QEMU has a piece of RAM; undefined if it does not say, or if the piece is not in one piece there. */
async function hostAddress(session: Session, start: bigint, end: bigint): Promise<number | undefined> {
  const places: bigint[] = [];
  for (const at of [start, end - BigInt(PAGE)]) {
    const text = (await session.monitor(`gpa2hva 0x${at.toString(16)}`)) ?? '';
    const found = /\bis (0x[0-9a-f]{1,16})/.exec(text)?.[1];
    if (found === undefined) return undefined;
    places.push(BigInt(found));
  }
  const [first = 0n, last = 0n] = places;
  return last - first === end - start - BigInt(PAGE) && last < 2n ** 53n ? Number(first) : undefined;
}

/** The same pieces, those in the files that QEMU has mapped there, shared with others. */
function inFiles(pid: number, pieces: readonly Piece[]): Piece[] {
  const maps = mapsOf(pid);
  const files = new Map<number, number | undefined>();
  return pieces.map((piece) => {
    const [from, to] = [BigInt(piece.position), BigInt(piece.position) + piece.end - piece.start];
    const mapped = maps.find((each) => each.permissions.endsWith('s') && each.start <= from && to <= each.end);
    if (mapped === undefined || mapped.inode === 0) return piece;
    const { inode, offset, start, path: name } = mapped;
    if (!files.has(inode)) files.set(inode, openMapped(pid, mapped));
    const file = files.get(inode);
    const position = offset + piece.position - Number(start);
    return file === undefined ? piece : { ...piece, file, position, name, outlives: true };
  });
}

/** A file that a process has open and mapped. Files of two devices, as a memfd and a disk, may share a number. */
function openMapped(pid: number, { inode, path: name }: Mapping): number | undefined {
  for (const each of readdirSync(`/proc/${pid}/fd`)) {
    const path = `/proc/${pid}/fd/${each}`;
    const isIt = statSync(path, { throwIfNoEntry: false })?.ino === inode && readlinkSync(path) === name;
    if (isIt) return openSync(path, 'r+');
  }
  return undefined;
}

/** The file of `memory-backend-file`, if QEMU writes to it. Any user may read a command line. */
function ofCommandLine(pid: number, pieces: readonly MemoryPiece[]): GuestRam | Refusal {
  const options = qemuOptions(commandLineOf(pid).slice(1));
  const files = new Map<string, string>();
  for (const { name, value } of options) {
    const pairs = keyValues(value, 'qom-type');
    const [id, path] = [pairs.get('id'), pairs.get('mem-path')];
    const isFile = name === 'object' && pairs.get('qom-type') === 'memory-backend-file';
    if (isFile && id !== undefined && path !== undefined && pairs.get('share') === 'on') files.set(id, path);
  }
  const named = pieces.filter(({ name }) => files.has(name));
  const [first] = named;
  const path = first && files.get(first.name);
  if (path === undefined)
    return { refused: `this user may not look into process ${pid} (ptrace)`, wayOut: withPermission };
  const file = openSync(path, 'r+');
  const found = named
    .filter(({ name }) => files.get(name) === path)
    .map(({ start, end, offset }) => ({ start, end, file, position: offset, name: path, outlives: true }));
  return new GuestRam(pid, found);
}

/** The words of a process's command line; empty if it has ended. */
export function commandLineOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** Compares both ends of each piece, and what is not zero. Returns a place that differs from what the stub gives. */
async function differs(
  physical: TargetMemory,
  ram: GuestRam,
  pieces: readonly MemoryPiece[],
): Promise<Addr | undefined> {
  const here = new Uint8Array(COMPARED);
  for (const { start, end } of pieces) {
    if (!ram.holds(start, PAGE)) continue;
    const places = [addr(start), addr(end - BigInt(COMPARED)), notZero(ram, start, end)];
    for (const at of places) {
      if (at === undefined) continue;
      const there = await physical.read(at, COMPARED);
      if (there === undefined || !ram.read(at, here) || Buffer.compare(here, there) !== 0) return at;
    }
  }
  return undefined;
}

/** Zeros are alike everywhere. Pages that were never touched are left so, because a look would make QEMU have them. */
function notZero(ram: GuestRam, start: bigint, end: bigint): Addr | undefined {
  const ranges = ram.touched().filter((each) => each.start >= start && each.end <= end);
  const pages = ranges.reduce((sum, each) => sum + (each.end - each.start) / BigInt(PAGE), 0n);
  const step = (pages / BigInt(LOOKS) + 1n) * BigInt(PAGE);
  const bytes = new Uint8Array(COMPARED);
  for (const range of ranges) {
    for (let at = range.start; at < range.end; at += step)
      if (ram.read(at, bytes) && bytes.some((byte) => byte !== 0)) return addr(at);
  }
  return undefined;
}
