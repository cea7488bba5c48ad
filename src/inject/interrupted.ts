import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { firstWhere } from '../base/search.js';
import { isProcess, type Reply, type Session, standingMemory } from '../rsp/index.js';
import { inOrder, type Piece } from './ring.js';

/**
 * Bytes of a stack that are searched. An interrupt's frame lies near the top of the stack; a signal's above whatever
 * its handler keeps there.
 */
const looked = { machine: 4096, process: 64 << 10 };
const PAGE = 4096n;
/** The most pieces of stacks that are searched for one hart. */
const mostStacks = 4;

/** Bytes that change. Interrupted code resumes only where one of their instructions begins, if these are known. */
export interface ChangedCode extends Piece {
  readonly code?: Uint8Array;
}

interface Search {
  /** Functions keep frame pointers, which lead from a handler's own stack to the one before. */
  readonly chained?: boolean;
  /** Bytes of each stack that are searched. */
  readonly most?: number;
  /** The only one whose stack is searched. */
  readonly hart?: string | undefined;
}

/** The last of these pieces, in order, that begins below an address. */
export function pieceBefore<T extends Piece>(sorted: readonly T[], address: bigint): T | undefined {
  return sorted[firstWhere(sorted.length, (index) => (sorted[index] as T).address >= address) - 1];
}

/**
 * Finds places (named by their first address) in whose middle some interrupted code would resume. The evidence is the
 * return address of a trap in a register, or any word on a hart's stack that looks like such an address. A word that
 * only looks so costs a retry later. Words that other tasks have saved are missed.
 */
export async function interruptedInside(
  session: Session,
  arch: Architecture,
  places: readonly ChangedCode[],
  { chained = false, most = looked[isProcess(session.features) ? 'process' : 'machine'], hart }: Search = {},
): Promise<ReadonlySet<bigint>> {
  const sorted = inOrder(places);
  const found = new Set<bigint>();
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (!first || !last) return found;
  const end = addOffset(last.address, last.length);
  using here = isProcess(session.features) ? await standingMemory(session, first.address) : undefined;
  const look = (word: bigint): void => {
    if (word <= first.address || word >= end) return;
    const place = pieceBefore(sorted, word);
    if (place && word < place.address + BigInt(place.length) && beginsAt(arch, place, word)) found.add(place.address);
  };
  for (const { id } of hart === undefined ? await session.harts() : [{ id: hart }]) {
    const batch = session.batch(id);
    const stackPointer = batch.readRegister(arch.sp);
    const record = chained ? arch.privilege?.frameRecord : undefined;
    const framePointer = record && batch.readRegister(record.framePointer);
    const { registers = [], find } = arch.privilege?.trapReturns ?? {};
    const traps = new Map(
      registers
        .filter((name) => session.target.register(name) !== undefined)
        .map((name) => [name, batch.readRegister(name)]),
    );
    await batch.send();
    find?.({ register: (name) => traps.get(name)?.value }).forEach(look);
    let at = stackPointer.value;
    let frame = framePointer?.value;
    for (let stacks = 0; at !== undefined && stacks < mostStacks; stacks++) {
      const from = addr(at & ~7n);
      const words = wordsIn(here?.read(from, most) ?? (await stackBytes(session, id, from, most)));
      if (words === undefined) break;
      for (const word of words) look(word);
      frame = frame && record && frameBehind(words, from, frame, record.below);
      at = frame && record && frame - BigInt(record.below);
    }
  }
  return found;
}

/**
 * Whether an instruction begins there. A far jump leaves an address near its target in a register. So trampolines that
 * go back to the function make many words that lie in a patch. Few of these are at an instruction.
 */
function beginsAt({ codeFlow }: Architecture, { address, code }: ChangedCode, at: bigint): boolean {
  if (!code || !codeFlow) return true;
  const steps = codeFlow.steps(code, address);
  const last = steps.at(-1);
  // The bytes may end within an instruction, which is no step then. Of all that is no step any byte may begin one.
  const known = last ? last.address + BigInt(last.length) : address;
  return at >= known || steps.some((step) => step.address === at);
}

/**
 * Follows frame records: the caller's frame pointer is stored `below` bytes below a frame pointer. Returns the first
 * frame pointer of their chain that lies outside these words and can be a kernel's. It lies on the stack that the
 * interrupt has left, or higher up on this one.
 */
function frameBehind(words: BigUint64Array, from: Addr, frame: bigint, below: number): bigint | undefined {
  let next = frame;
  for (let frames = 0; frames < words.length; frames++) {
    if (next % 8n !== 0n || next >> 63n === 0n) return undefined;
    const index = (next - BigInt(below) - from) / 8n;
    if (index < 0n || index >= words.length) return frames === 0 ? undefined : next;
    next = words[Number(index)] ?? 0n;
  }
  return undefined;
}

function wordsIn(bytes: Uint8Array | undefined): BigUint64Array | undefined {
  return bytes && new BigUint64Array(Uint8Array.from(bytes).buffer);
}

/** As far up as there is memory. */
async function stackBytes(session: Session, hart: string, start: Addr, most: number): Promise<Uint8Array | undefined> {
  const batch = session.batch(hart);
  const replies: Reply<Uint8Array | undefined>[] = [];
  for (let at = 0; at < most; ) {
    const from = addOffset(start, at);
    const length = Math.min(most - at, Number(PAGE - (from % PAGE)));
    replies.push(batch.readMemory(from, length));
    at += length;
  }
  await batch.send();
  const pages: Uint8Array[] = [];
  for (const { value } of replies) {
    if (!value) break;
    pages.push(value);
  }
  return pages.length === 0 ? undefined : Buffer.concat(pages);
}
