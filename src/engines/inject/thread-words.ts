import { type Addr, addr } from '../../base/addr.js';
import type { Refusal } from '../../base/refusal.js';
import { pidOf, type Session } from '../../rsp/index.js';
import type { Site } from './sites.js';

/** How the records of a process tell its threads apart. */
export interface ThreadWords {
  /** Of the word in a thread's own block, from fs's base. */
  readonly offset: number;
  /** Two words of each thread's block that nobody uses, from fs's base; undefined: none are known. */
  readonly free: number | undefined;
  /** A record's word as the stub's name for the thread, `pPID.TID`; where only the block's address is known and nobody knows that, one of our own. */
  id(word: bigint): string;
}

/** How much of a thread's block is searched for its number; glibc has it at 720, musl at 48. */
const searched = 1024;
const headBytes = 16;
/**
 * glibc's control block (`tcbhead_t`) has 512 bytes at 128 that it says are kept unused. Whoever has its thread's number at 720 is glibc. Both
 * ends of them may be in use after all, by sanitizers or by glibc before 2.23, so they must be zero.
 */
const glibc = { threadNumber: 720, free: 624 } as const;

/**
 * Finds what tells threads apart from inside, while all of them stand: the thread's number, which C libraries keep in its control block (the
 * psABI has the block's own address in its first word); else that address.
 * @returns undefined while a thread has no such block yet
 */
export async function findThreadWords(session: Session): Promise<ThreadWords | Refusal | undefined> {
  const threads: { readonly id: string; readonly block: Addr; readonly bytes: DataView }[] = [];
  const harts = await session.harts();
  for (const { id } of harts) {
    const batch = session.batch(id);
    const base = batch.readRegister('fs_base');
    await batch.send();
    if (base.value === undefined) return { refused: 'the stub does not tell of the base of fs' };
    if (base.value === 0n) return undefined;
    const block = addr(base.value);
    const bytes = await session.memory(id).read(block, searched);
    if (!bytes) return { refused: 'the block of a thread cannot be read' };
    threads.push({ id, block, bytes: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) });
  }
  const [first] = threads;
  if (!first) return undefined;
  if (threads.some(({ block, bytes }) => bytes.getBigUint64(0, true) !== block)) {
    return {
      refused: 'its threads have no blocks as the psABI wants them, so that they cannot be told apart from inside',
    };
  }
  for (let offset = headBytes; offset + 8 <= searched; offset += 4) {
    if (!threads.every(({ id, bytes }) => bytes.getUint32(offset, true) === threadNumber(id))) continue;
    const process = pidOf(first.id);
    const isZero = ({ bytes }: { readonly bytes: DataView }): boolean =>
      bytes.getBigUint64(glibc.free) === 0n && bytes.getBigUint64(glibc.free + 8) === 0n;
    const free = offset === glibc.threadNumber && threads.every(isZero) ? glibc.free : undefined;
    return { offset, free, id: (word) => `p${process}.${BigInt.asUintN(32, word).toString(16)}` };
  }
  const known = new Map(threads.map(({ id, block }) => [block as bigint, id]));
  return { offset: 0, free: undefined, id: (word) => known.get(word) ?? `with block ${word.toString(16)}` };
}

/** `pPID.TID`, in hex. */
function threadNumber(id: string): number {
  return Number.parseInt(id.split('.')[1] ?? '', 16);
}

/** Sites whose records take what is the thread's own from there; where it has no free words, nothing is read of outer polls. */
export function withThreadWords(sites: readonly Site[], { offset, free }: ThreadWords): Site[] {
  const placed = (format: Site['entry']): Site['entry'] => ({
    ...format,
    fields: format.fields
      .filter(({ from }) => from.kind !== 'outer' || free !== undefined)
      .map((field) => (field.from.kind === 'hart' ? { ...field, from: { ...field.from, offset } } : field)),
    ...(free === undefined && { outerCopy: undefined, outerAt: undefined }),
  });
  return sites.map((site) => ({ ...site, entry: placed(site.entry), exit: placed(site.exit) }));
}
