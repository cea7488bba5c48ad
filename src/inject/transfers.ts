import { controlBlock } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import {
  type Batch,
  CoalescedReads,
  type Reply,
  type Session,
  type StandingMemory,
  standingMemory,
} from '../rsp/index.js';
import type { Scratch } from '../scratch/index.js';
import type { LetRun } from '../target/index.js';
import { inOrder, type Piece, type Write } from './ring.js';

/** Bytes of one write to the stub and of one read-back: enough to hide the round trip, few enough to keep in memory. */
const atOnce = 256 << 10;
/** A ring of at most this many bytes is always read as a whole. */
const mostUnasked = 8 << 10;
/** A gap between two writes may be filled with zeros if it has at most this many bytes. */
const mostBetween = 16;
const mostJoined = 64 << 10;

/** Reads all of these pieces of code; undefined for one that cannot be read. */
export async function readCode(
  session: Session,
  pieces: readonly Piece[],
): Promise<readonly (Uint8Array | undefined)[]> {
  const reads = new CoalescedReads(session);
  const replies = pieces.map(({ address, length }) => reads.readMemory(address, length));
  await reads.send();
  return replies.map(({ value }) => value);
}

/**
 * Writes all and reads it back, many packets at a time. Returns a write that the target did not keep; the writes
 * behind it may have been made too. With `letRun` the target runs on between two portions.
 */
export async function writeChecked(
  session: Session,
  writes: readonly Write[],
  letRun?: LetRun,
): Promise<Write | undefined> {
  const [first] = writes;
  using here = first && (await standingMemory(session, first.address));
  const write = async (some: readonly Write[]): Promise<Write | undefined> =>
    here ? refusedHere(here, some) : refused(session, some);
  return (
    (await firstFound(portions(writes), write, letRun)) ??
    firstFound(portions(writes), (some) => lost(session, some), letRun)
  );
}

function refusedHere(memory: StandingMemory, some: readonly Write[]): Write | undefined {
  return some.find(({ address, bytes }) => !memory.write(address, bytes));
}

async function refused(session: Session, some: readonly Write[]): Promise<Write | undefined> {
  const batch = session.batch();
  const replies = some.map(({ address, bytes }) => batch.writeMemory(address, bytes));
  await batch.send();
  return some.find((_, i) => !replies[i]?.value);
}

async function lost(session: Session, some: readonly Write[]): Promise<Write | undefined> {
  const kept = await readCode(
    session,
    some.map(({ address, bytes }) => ({ address, length: bytes.length })),
  );
  return some.find(({ bytes }, i) => !same(kept[i], bytes));
}

/** The answer to the first of these; while the stub works on it, the next one is prepared. */
async function firstFound<T, R>(
  all: Iterable<T>,
  ask: (one: T) => Promise<R | undefined>,
  letRun?: LetRun,
): Promise<R | undefined> {
  let before: Promise<R | undefined> | undefined;
  for (const one of all) {
    if (letRun && (await before) === undefined) await letRun();
    const now = ask(one);
    // If the one before failed, this one fails too.
    now.catch(() => {});
    const found = await before;
    if (found !== undefined) {
      await now;
      return found;
    }
    before = now;
  }
  return before;
}

interface RingMemory {
  readonly session: Session;
  readonly scratch: Pick<Scratch, 'data' | 'bulk'>;
  /** Where the ring's records are. */
  readonly memory: Piece;
}

/**
 * Reads the control block at the start of the data, and then the pieces of the ring that `wanted` asks for. A small
 * ring is read whole together with the control block, which saves a round trip.
 */
export async function readRing(
  { session, scratch, memory }: RingMemory,
  wanted: (control: Uint8Array) => readonly Piece[],
): Promise<Uint8Array[] | undefined> {
  const batch = session.batch();
  const head = batch.readMemory(scratch.data.address, controlBlock.segments);
  const isSmall = memory.length <= mostUnasked && scratch.bulk === undefined;
  const whole = isSmall ? batch.readMemory(memory.address, memory.length) : undefined;
  await batch.send();
  if (!head.value) return undefined;
  const pieces = wanted(head.value);
  const all = whole?.value;
  if (!all) return readPieces(session, pieces, scratch);
  return pieces.map(({ address, length }) => {
    const at = Number(address - memory.address);
    return all.subarray(at, at + length);
  });
}

/**
 * Reads all of these pieces of scratch memory, in as few round trips as possible; undefined if any of it cannot be
 * read.
 */
async function readPieces(
  session: Session,
  pieces: readonly Piece[],
  scratch: Pick<Scratch, 'data' | 'bulk'>,
): Promise<Uint8Array[] | undefined> {
  return (await readInBulk(pieces, scratch)) ?? readByAddress(session, pieces);
}

async function readInBulk(
  pieces: readonly Piece[],
  { data, bulk }: Pick<Scratch, 'data' | 'bulk'>,
): Promise<Uint8Array[] | undefined> {
  if (bulk === undefined) return undefined;
  const read: Uint8Array[] = [];
  for (const { address, length } of pieces) {
    const bytes = await bulk.read(Number(address - data.address), length);
    if (bytes === undefined) return undefined;
    read.push(bytes);
  }
  return read;
}

async function readByAddress(session: Session, pieces: readonly Piece[]): Promise<Uint8Array[] | undefined> {
  const read: Uint8Array[] = [];
  for (let next = 0; next < pieces.length; ) {
    const batch = session.batch();
    const replies: Reply<Uint8Array | undefined>[] = [];
    for (let size = 0; next < pieces.length && size < atOnce; next++) {
      const { address, length } = pieces[next] as Piece;
      replies.push(batch.readMemory(address, length));
      size += length;
    }
    await batch.send();
    for (const { value } of replies) {
      if (!value) return undefined;
      read.push(value);
    }
  }
  return read;
}

/** Writes all of them in order; false if any is refused. The promise never rejects unseen. */
export function writeAll(session: Session, writes: readonly Write[]): Promise<boolean> {
  const batch = session.batch();
  const replies = queue(batch, writes);
  const written = batch.send().then(() => replies.every((reply) => reply.value));
  written.catch(() => {});
  return written;
}

/** Adds all of them, in order, to what will be sent. */
export function queue(batch: Batch, writes: readonly Write[]): readonly Reply<boolean>[] {
  return touching(writes).map(({ address, bytes }) => batch.writeMemory(address, bytes));
}

interface Where {
  readonly session: Session;
  readonly scratch: Scratch;
}

/**
 * Reads scratch data while the target is stopped, or has ended and left the memory to us; undefined if it cannot be
 * read.
 */
async function readData({ session, scratch }: Where, piece: Piece): Promise<Uint8Array | undefined> {
  const { shared, data } = scratch;
  if (!shared) return session.memory().read(piece.address, piece.length);
  const bytes = new Uint8Array(piece.length);
  shared.read(Number(piece.address - data.address), bytes);
  return bytes;
}

/** A word of the control block; 0 where it cannot be read. */
export async function controlWord(where: Where, offset: number): Promise<number> {
  const bytes = await readData(where, { address: addOffset(where.scratch.data.address, offset), length: 8 });
  return bytes ? Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true)) : 0;
}

/** False if any of it is refused. */
export async function writeData({ session, scratch }: Where, writes: readonly Write[]): Promise<boolean> {
  const { shared, data } = scratch;
  if (!shared) return writeAll(session, writes);
  for (const { address, bytes } of writes) shared.write(Number(address - data.address), bytes);
  return true;
}

/** The same writes; a write that continues the one before is joined to it. */
function touching(writes: readonly Write[]): Write[] {
  const found: Write[] = [];
  for (const write of writes) {
    const last = found.at(-1);
    if (last === undefined || last.address + BigInt(last.bytes.length) !== write.address) found.push(write);
    else found[found.length - 1] = { address: last.address, bytes: Buffer.concat([last.bytes, write.bytes]) };
  }
  return found;
}

/**
 * The same writes, but fewer: inside one of these pieces of our own memory, writes that lie close together are
 * joined.
 */
export function joined(writes: readonly Write[], own: readonly Piece[]): Write[] {
  const sorted = inOrder(writes);
  const groups: { readonly writes: Write[]; length: number; end: bigint }[] = [];
  for (const write of sorted) {
    const { address, bytes } = write;
    const last = groups.at(-1);
    const between = last === undefined ? -1 : Number(address - last.end);
    const piece = own.find((one) => address >= one.address && address < one.address + BigInt(one.length));
    const near = last !== undefined && piece !== undefined && last.end > piece.address;
    if (near && between >= 0 && between <= mostBetween && last.length < mostJoined) {
      last.writes.push(write);
      last.length += between + bytes.length;
      last.end = addOffset(address, bytes.length);
    } else groups.push({ writes: [write], length: bytes.length, end: addOffset(address, bytes.length) });
  }
  return groups.map(({ writes: parts, length }) => {
    const [first] = parts as [Write];
    if (parts.length === 1) return first;
    const bytes = new Uint8Array(length);
    for (const part of parts) bytes.set(part.bytes, Number(part.address - first.address));
    return { address: first.address, bytes };
  });
}

function* portions(writes: readonly Write[]): Generator<readonly Write[]> {
  let some: Write[] = [];
  let size = 0;
  for (const { address, bytes } of writes) {
    for (let offset = 0; offset < bytes.length; offset += atOnce) {
      const part = bytes.subarray(offset, offset + atOnce);
      some.push({ address: addOffset(address, offset), bytes: part });
      size += part.length;
      if (size < atOnce) continue;
      yield some;
      [some, size] = [[], 0];
    }
  }
  if (some.length > 0) yield some;
}

export function same(found: Uint8Array | undefined, wanted: Uint8Array): boolean {
  return found !== undefined && Buffer.compare(found, wanted) === 0;
}

export function lostRing(address: Addr): RsptraceError {
  return new RsptraceError('RING_LOST', `the ring at ${hex(address)} can no longer be reached`, {
    hint: 'the target may have unmapped it; --engine stop needs no memory in the target',
  });
}
