// What a ring that was read while the target ran owes it at its next stop.
import t from 'tap';
import { addOffset, addr } from '../../src/base/addr.js';
import { Backlog } from '../../src/inject/backlog.js';
import { ControlWords } from '../../src/inject/control-words.js';
import { layOutRing, RingReader } from '../../src/inject/ring.js';
import { RingDrain } from '../../src/inject/ring-drain.js';
import { WaitLease } from '../../src/inject/wait-lease.js';

type Parts = ConstructorParameters<typeof RingDrain>[0];

/** A ring that nobody writes to, in shared memory; how often its reader has written there. */
function drainInto(queue: Backlog): { readonly drain: RingDrain; writes(): number } {
  const base = addr(0x1000n);
  const room = { address: addOffset(base, 0x1000), length: 0x8000 };
  const layout = layOutRing(base, addr(0n), room, 6);
  if (!layout) throw new Error('there is room for a ring');
  const ring = new RingReader(layout, {} as ConstructorParameters<typeof RingReader>[1]);
  const memory = new Uint8Array(1 << 16);
  memory.set(ring.control([]).bytes);
  let writes = 0;
  const shared = {
    endsWithTarget: false,
    read: (at: number, into: Uint8Array) => into.set(memory.subarray(at, at + into.length)),
    write(at: number, bytes: Uint8Array) {
      writes++;
      memory.set(bytes, at);
    },
  };
  const drain = new RingDrain({
    options: { scratch: { shared, data: { address: base } } } as unknown as Parts['options'],
    breakpoint: addr(0x5000n),
    control: new ControlWords(base, new WaitLease({ ticksPerMs: 1000, isLossless: true })),
    drained: { queue, add() {}, hasRoom: true, digestAll() {} } as unknown as Parts['drained'],
    ...({ ring, memory: {}, counters: {} } as Pick<Parts, 'ring' | 'memory' | 'counters'>),
  });
  return { drain, writes: () => writes };
}

t.test('a guest that is idle for long costs its next stop a few writes', async (t) => {
  const { drain, writes } = drainInto(new Backlog());
  for (let polls = 0; polls < 2000; polls++) drain.live();
  t.equal(writes(), 0, 'the target runs');
  drain.live({});
  t.ok(writes() > 0 && writes() < 20, `${writes()} writes`);
});

t.test('records that cannot be kept: the target has its room all the same', async (t) => {
  class Full extends Backlog {
    override settle(): void {
      throw new Error('the disk is full');
    }
  }
  const { drain, writes } = drainInto(new Full());
  t.throws(() => drain.live({}), { message: 'the disk is full' });
  t.ok(writes() > 0, `${writes()} writes`);
});
