// The ring's client side against a model of what trampolines do to memory: writers that claim, wait, are interrupted and come back.
// What must come out is known from the model alone: every record that was committed, once, in the order of the claims.
import fc from 'fast-check';
import t from 'tap';
import { controlBlock, type RingGeometry } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import type { OnRecords } from '../../src/inject/late-records.js';
import { slotReader } from '../../src/inject/record-format.js';
import { recordOffset } from '../../src/inject/record-layout.js';
import { layOutRing, type RingLayout, RingReader } from '../../src/inject/ring.js';
import { long } from '../support/long.js';

const control = addr(0x1000);
const memoryStart = 0x2000;

/** A slot that somebody may write. */
interface Claimed {
  readonly claim: number;
  /** Where it is in the target's bytes. */
  readonly slot: number;
}

/** The target's memory and the trampolines' side of the contract, one writer at a time as an emulator interleaves them. */
class Target {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly #geometry: RingGeometry;

  constructor(layout: RingLayout, size: number, garbage: number) {
    this.#geometry = layout.geometry;
    this.bytes = new Uint8Array(size).fill(garbage);
    this.view = new DataView(this.bytes.buffer);
  }

  at(address: bigint): number {
    return Number(address - control);
  }

  word(offset: number): number {
    return Number(this.view.getBigUint64(offset, true));
  }

  /** Undefined where the ring is full. The place is looked up at once, as the trampoline does: its entry may be another's later. */
  claim(): Claimed | undefined {
    const claim = this.word(controlBlock.head);
    if (claim >= this.word(controlBlock.limit)) return undefined;
    const { segmentShift, countShift, slotShift } = this.#geometry;
    const index = Math.floor(claim / 2 ** segmentShift) % 2 ** countShift;
    const segment = BigInt(this.word(controlBlock.segments + 8 * index));
    this.view.setBigUint64(controlBlock.head, BigInt(claim + 2 ** slotShift), true);
    return { claim, slot: this.at(segment) + (claim % 2 ** segmentShift) };
  }

  commit({ claim, slot }: Claimed, value: number, hart = 0): void {
    this.view.setUint32(slot + recordOffset.id, value, true);
    this.view.setUint32(slot + recordOffset.hart, hart, true);
    this.view.setBigUint64(slot, BigInt(claim), true);
  }

  /** What the client does at a stop, or beside the target. */
  drain(reader: RingReader, onRecords: OnRecords, all = false, most?: number): void {
    const pieces = reader.wanted(this.word(controlBlock.head), most);
    const fresh = pieces.filter(({ length }) => length > slot).length;
    if (most !== undefined && fresh > Math.ceil(most / slot)) throw new Error(`${fresh} pieces for ${most} bytes`);
    const read = pieces.map(({ address, length }) => {
      const from = this.at(address);
      if (from < memoryStart - 0x1000 || from + length > this.bytes.length) throw new Error('read outside');
      return this.bytes.slice(from, from + length);
    });
    for (const { address, bytes } of reader.accept(read, onRecords, all)) this.bytes.set(bytes, this.at(address));
  }
}

const slot = 64;

interface TestRing {
  readonly target: Target;
  readonly reader: RingReader;
  readonly layout: RingLayout;
}

function ringOf(segments: number, garbage: number): TestRing {
  const layout = layOutRing(control, control, { address: addr(memoryStart), length: segments * 2 * slot }, 6);
  if (!layout) throw new Error('no room');
  const target = new Target(layout, memoryStart - 0x1000 + segments * 2 * slot, garbage);
  const reader = new RingReader(layout, slotReader(false));
  const start = reader.control([]);
  target.bytes.set(start.bytes, target.at(start.address));
  return { target, reader, layout };
}

interface Writer {
  readonly claimed: Claimed;
  readonly value: number;
}

t.test('whatever the interleaving, every record comes out once and in order', async (t) => {
  const action = fc.oneof(
    { weight: 24, arbitrary: fc.constant({ kind: 'write' as const, pick: 0 }) },
    { weight: 2, arbitrary: fc.constant({ kind: 'begin' as const, pick: 0 }) },
    { weight: 2, arbitrary: fc.nat().map((pick) => ({ kind: 'go-on' as const, pick })) },
    { weight: 1, arbitrary: fc.nat({ max: 1000 }).map((pick) => ({ kind: 'drain' as const, pick })) },
  );
  let laps = 0;
  let waited = 0;
  let longest = 0;
  fc.assert(
    fc.property(
      fc.array(action, { maxLength: 800, size: 'max' }),
      fc.integer({ min: 32, max: 80 }),
      fc.constantFrom(0, 0xff, 0xa5),
      (actions, segments, garbage) => {
        const { target, reader, layout } = ringOf(segments, garbage);
        const count = layout.segments.length;
        const size = 2 ** layout.geometry.segmentShift;
        const origin = target.word(controlBlock.head);
        const got: number[] = [];
        const drain = (most?: number): void => {
          const take = (view: DataView, start: number, end: number): void => {
            for (let at = start; at < end; at += slot) got.push(view.getUint32(at + recordOffset.id, true));
          };
          target.drain(reader, take, false, most);
        };
        const committed: number[] = [];
        const interrupted: Writer[] = [];
        let value = 0;
        const begin = (): Writer | undefined => {
          let claimed = target.claim();
          if (!claimed) {
            waited++;
            const { full } = reader.counts;
            drain();
            if (reader.counts.full === full) throw new Error('it does not tell that a writer had to wait');
            claimed = target.claim();
          }
          if (claimed) return { claimed, value: value++ };
          // Half of it may be kept back for order's sake, and a segment by each that is not written.
          if (interrupted.length < count / 2 - 3) throw new Error(`full, for ${interrupted.length} of ${count}`);
          return undefined;
        };
        const end = (writer: Writer): void => {
          target.commit(writer.claimed, writer.value);
          committed.push(writer.value);
        };
        for (const { kind, pick } of actions) {
          // All that there is, or so many bytes of it.
          if (kind === 'drain') drain(pick % 3 === 0 ? undefined : pick);
          else if (kind === 'go-on') {
            for (const writer of interrupted.splice(pick % (interrupted.length + 1), 1)) end(writer);
          } else {
            const writer = begin();
            if (writer && kind === 'begin') interrupted.push(writer);
            else if (writer) end(writer);
          }
          longest = Math.max(
            longest,
            (target.word(controlBlock.head) - (interrupted[0]?.claimed.claim ?? origin)) / size,
          );
        }
        for (const writer of interrupted) end(writer);
        drain();
        drain();
        laps = Math.max(laps, (target.word(controlBlock.head) - origin) / reader.capacity);
        const missing = reader.finish(() => got.push(-1));
        const wanted = [...committed].sort((a, b) => a - b);
        if (missing !== 0 || reader.counts.outOfOrder !== 0)
          throw new Error(`missing ${missing}, late ${reader.counts.outOfOrder}`);
        if (got.join() !== wanted.join()) throw new Error(`got ${got.join()} of ${wanted.join()}`);
      },
    ),
    { numRuns: 400, seed: 20 },
  );
  t.ok(laps > 3, `${laps} laps`);
  t.ok(waited > 1000, `${waited} claims had to wait`);
  t.ok(longest > (long ? 150 : 100), `one was not written while ${longest} segments were claimed`);
});

/** A call on a hart: what it writes, begin and end, and where that stands. */
interface Frame {
  readonly id: number;
  state: 'beginning' | 'open' | 'ending';
  claimed: Claimed;
}

t.test('with stops in between, each hart has its calls in each other as they were made', async (t) => {
  const harts = 3;
  const action = fc.record({
    kind: fc.constantFrom('call', 'call', 'go on', 'go on', 'go on', 'stop' as const),
    hart: fc.nat({ max: harts - 1 }),
    all: fc.boolean(),
  });
  let late = 0;
  fc.assert(
    fc.property(fc.array(action, { maxLength: 600, size: 'max' }), (actions) => {
      const { target, reader } = ringOf(64, 0);
      const stacks: Frame[][] = Array.from({ length: harts }, () => []);
      const told: number[][] = Array.from({ length: harts }, () => []);
      const wrong: string[] = [];
      let seen = 0;
      const stop = (all: boolean): void =>
        target.drain(
          reader,
          (view, start, end) => {
            for (let at = start; at < end; at += slot, seen++) {
              const [word, hart] = [recordOffset.id, recordOffset.hart].map((offset) =>
                view.getUint32(at + offset, true),
              );
              const open = told[hart ?? -1] as number[];
              const id = (word ?? 0) >>> 1;
              if (((word ?? 0) & 1) === 0) open.push(id);
              else if (open.pop() !== id) wrong.push(`hart ${hart}: call ${id} ends, but is not the innermost`);
            }
          },
          all,
        );
      let calls = 0;
      const claim = (): Claimed => {
        const first = target.claim();
        if (first) return first;
        stop(false);
        const second = target.claim();
        if (!second) throw new Error('the ring stays full');
        return second;
      };
      const goOn = (hart: number): void => {
        const stack = stacks[hart] as Frame[];
        const top = stack.at(-1);
        if (top?.state === 'open') {
          top.claimed = claim();
          top.state = 'ending';
          return;
        }
        if (!top) return;
        const ends = top.state === 'ending' ? 1 : 0;
        target.commit(top.claimed, top.id * 2 + ends, hart);
        if (ends) stack.pop();
        else top.state = 'open';
      };
      for (const { kind, hart, all } of actions) {
        // An interrupt may come anywhere, in the middle of a record too.
        if (kind === 'call' && (stacks[hart] as Frame[]).length < 6)
          stacks[hart]?.push({ id: calls++, state: 'beginning', claimed: claim() });
        else if (kind === 'stop') stop(all);
        else goOn(hart);
      }
      for (const hart of stacks.keys()) while (stacks[hart]?.length) goOn(hart);
      stop(true);
      late += reader.counts.outOfOrder;
      if (reader.finish(() => {}) !== 0) throw new Error('a record is missing');
      if (wrong.length > 0) throw new Error(wrong.join('\n'));
      if (seen !== 2 * calls) throw new Error(`${seen} records of ${calls} calls`);
    }),
    { numRuns: 400, seed: 21 },
  );
  t.ok(late > 1000, `${late} records came late`);
});

t.test('at the end, what was claimed and never read is missing', async (t) => {
  for (const all of [false, true]) {
    const { target, reader } = ringOf(32, 0);
    const claims = Array.from({ length: 10 }, () => target.claim() as Claimed);
    for (const [number, claimed] of claims.entries()) if (number !== 4) target.commit(claimed, number);
    const got: number[] = [];
    const take = (view: DataView, start: number, end: number): void => {
      for (let at = start; at < end; at += slot) got.push(view.getUint32(at + recordOffset.id, true));
    };
    // The machine has ended while the fifth record was written.
    target.drain(reader, take, all);
    t.equal(reader.finish(take), all ? 1 : 6);
    t.same(got, all ? [0, 1, 2, 3, 5, 6, 7, 8, 9] : [0, 1, 2, 3]);
  }
});

t.test('memory that is too small for a ring', async (t) => {
  t.equal(layOutRing(control, control, { address: addr(memoryStart), length: 511 }, 6), undefined);
  t.match(layOutRing(control, control, { address: addr(memoryStart), length: 512 }, 6), {
    geometry: { segmentShift: 7 },
  });
});
