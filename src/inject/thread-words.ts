import { type Addr, addr } from '../base/addr.js';
import type { Refusal } from '../base/errors.js';
import { pidOf, registerOf, type Session } from '../rsp/index.js';
import type { RecordFormat } from './record-layout.js';
import type { Site } from './sites.js';

/** How the records of a process tell its threads apart. */
export interface ThreadWords {
  /** Offset from fs's base to this word in the thread's own block. */
  readonly offset: number;
  /** Offset from fs's base to two unused words in each thread's block; undefined if none are known. */
  readonly free: number | undefined;
  /** The process, in hex; undefined if the word is not the thread's number. */
  readonly process: string | undefined;
  /**
   * Turns a record's word into the stub's name for the thread, `pPID.TID`. If only the block's address is known and
   * matches no thread, rsptrace makes a name of its own.
   */
  id(word: bigint): string;
}

/** How many bytes of a thread's block are searched for its number: glibc has it at 720, musl at 48. */
const searched = 1024;
const headBytes = 16;
/**
 * glibc's control block (`tcbhead_t`) has 512 bytes at 128 that it declares unused. A C library that has the thread's
 * number at 720 is glibc. Sanitizers, or glibc before 2.23, may use either end of these bytes after all, so both must
 * be zero.
 */
const glibc = { threadNumber: 720, free: 624 } as const;

/**
 * Finds what tells threads apart from inside, while all of them are stopped. This is the thread's number, which C
 * libraries keep in the thread's control block; if it is not found, the block's own address. The psABI has that
 * address in the block's first word.
 * @returns undefined while a thread has no such block yet
 */
export async function findThreadWords(session: Session): Promise<ThreadWords | Refusal | undefined> {
  const threads: { readonly id: string; readonly block: Addr; readonly bytes: DataView }[] = [];
  const harts = await session.harts();
  for (const { id } of harts) {
    const base = await registerOf(session, 'fs_base', id);
    if (base === undefined) return { refused: 'the stub does not tell of the base of fs' };
    if (base === 0n) return undefined;
    const block = addr(base);
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
    return { offset, free, process, id: (word) => threadId(process, word) };
  }
  const known = new Map(threads.map(({ id, block }) => [block as bigint, id]));
  return { offset: 0, free: undefined, process: undefined, id: (word) => known.get(word) ?? threadId(undefined, word) };
}

/** The stub's name for a thread of a process; without that, a name of ours. */
export function threadId(process: string | undefined, word: bigint): string {
  return process === undefined
    ? `with block ${word.toString(16)}`
    : `p${process}.${BigInt.asUintN(32, word).toString(16)}`;
}

/** `pPID.TID`, in hex. */
function threadNumber(id: string): number {
  return Number.parseInt(id.split('.')[1] ?? '', 16);
}

/**
 * Sites whose records take the thread's own values from these words. If the thread has no unused words, outer polls
 * are not read.
 */
export function withThreadWords(sites: readonly Site[], words: ThreadWords): Site[] {
  const known = new Map<RecordFormat, RecordFormat>();
  const placed = (format: RecordFormat): RecordFormat => {
    const made = known.get(format) ?? formatWith(format, words);
    known.set(format, made);
    return made;
  };
  return sites.map((site) => ({ ...site, entry: placed(site.entry), exit: placed(site.exit) }));
}

function formatWith(format: RecordFormat, { offset, free }: ThreadWords): RecordFormat {
  return {
    ...format,
    fields: format.fields
      .filter(({ from }) => from.kind !== 'outer' || free !== undefined)
      .map((field) => (field.from.kind === 'hart' ? { ...field, from: { ...field.from, offset } } : field)),
    ...(free === undefined && { outerCopy: undefined, outerAt: undefined }),
  };
}
