import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import type { Die } from '../../dwarf/index.js';
import { firstPointer, memberAt, numberAt, type Part, partCalled } from './layout.js';

/** Messages in a block; one that is there has its bit in `ready_slots`. tokio/src/sync/mpsc/block.rs */
const SLOTS = 32n;
/** Blocks of one channel that are read; a damaged list must end. */
const MOST = 64n;

/**
 * Where the messages lie that were sent to a channel of tokio and not received, `chan` being its `Chan`:
 *
 *   Chan { tx: list::Tx { tail_position, .. }, rx_fields: RxFields { list: list::Rx { head, index, .. }, .. }, .. }
 *   Block { header: { start_index, next, ready_slots, .. }, values: [T; 32] }
 */
export async function queuedMessages(memory: MemoryReader, chan: { readonly type: Die; readonly address: Addr }) {
  const [fields, tx] = [partCalled(chan.type, 'RxFields'), partCalled(chan.type, 'Tx')];
  const [head, index] = fields ? [memberAt(fields.type, 'list.head'), memberAt(fields.type, 'list.index')] : [];
  const tail = tx && memberAt(tx.type, 'tail_position');
  const block = firstPointer(head?.type)?.type;
  const values = block && memberAt(block, 'values');
  if (!fields || !tx || !head || !index || !tail || !block || !values) return [];
  const word = async (at: Addr, part: Part | undefined): Promise<bigint | undefined> => {
    const bytes = part && (await memory.read(addOffset(at, part.offset), 8));
    return bytes && numberAt(bytes, { offset: 0, size: 8 });
  };
  const header = (name: string): Part | undefined => memberAt(block, `header.${name}`) ?? memberAt(block, name);
  const list = addOffset(chan.address, fields.offset);
  const first = await word(list, index);
  const last = await word(addOffset(chan.address, tx.offset), tail);
  let at = (await word(list, head)) ?? 0n;
  const found: Addr[] = [];
  if (first === undefined || last === undefined) return found;
  for (let [i, blocks] = [first, 0n]; i < last && at !== 0n && blocks < MOST; blocks++) {
    const [start, next, ready] = [
      await word(addr(at), header('start_index')),
      await word(addr(at), header('next')),
      await word(addr(at), header('ready_slots')),
    ];
    if (start === undefined || next === undefined || ready === undefined || start > i) break;
    for (; i < start + SLOTS && i < last; i++) {
      const slot = i - start;
      const place = addOffset(addr(at), values.offset + Number(slot) * (values.size / Number(SLOTS)));
      if ((ready >> slot) & 1n) found.push(place);
    }
    at = next;
  }
  return found;
}
