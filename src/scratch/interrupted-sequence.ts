// Linux, include/uapi/linux/rseq.h. While a thread is in a restartable sequence, its struct rseq names that:
//
//   struct rseq, aligned to 32:   u32 cpu_id_start | u32 cpu_id | u64 rseq_cs
//   struct rseq_cs:               u32 version | u32 flags | u64 start | u64 length | u64 abort
import { type Addr, addOffset, addr } from '../base/addr.js';
import type { RegisterBlock, Session } from '../rsp/index.js';
import { PAGE } from './scratch.js';

/** Where C libraries and programs have struct rseq: in pages around what the thread pointer points to. */
const [pagesBelow, pages] = [16, 18];

/**
 * The kernel leads a thread that has stood still in a restartable sequence to the sequence's abort, because another may
 * have had its CPU. But while it runs code of ours it is outside. So the kernel forgets the sequence.
 *
 * @param pc where the thread stands
 * @returns what puts the sequence back when the thread stands there again
 */
export async function keepSequence(
  session: Session,
  hart: string,
  registers: RegisterBlock,
  [pc, threadPointer]: readonly [string, string],
): Promise<() => Promise<void>> {
  const at = registers.register(pc) ?? 0n;
  const pointer = registers.register(threadPointer) ?? 0n;
  const first = addr((pointer & -BigInt(PAGE)) - BigInt(pagesBelow * PAGE));
  const read = async (): Promise<Map<Addr, bigint>> => {
    const batch = session.batch(hart);
    const starts = Array.from({ length: pages }, (_, page) => addOffset(first, page * PAGE));
    const replies = starts.map((start) => ({ start, reply: batch.readMemory(start, PAGE) }));
    await batch.send();
    return new Map(replies.flatMap(({ start, reply: { value } }) => (value ? wordsIn(start, value) : [])));
  };
  const before = pointer === 0n ? new Map<Addr, bigint>() : await read();
  return async () => {
    const memory = session.memory(hart);
    const after = before.size > 0 ? await read() : before;
    for (const [place, word] of before) {
      if (word === 0n || after.get(place) !== 0n) continue;
      const sequence = await memory.read(addr(word), 32);
      const view = sequence && new DataView(sequence.buffer, sequence.byteOffset, 32);
      if (view?.getUint32(0, true) !== 0) continue;
      if (BigInt.asUintN(64, at - view.getBigUint64(8, true)) >= view.getBigUint64(16, true)) continue;
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setBigUint64(0, word, true);
      await memory.write(place, bytes);
    }
  };
}

/** Each word of memory that may be an `rseq_cs`. */
function wordsIn(start: Addr, bytes: Uint8Array): [Addr, bigint][] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: Math.floor(bytes.length / 32) }, (_, i) => [
    addOffset(start, i * 32 + 8),
    view.getBigUint64(i * 32 + 8, true),
  ]);
}
