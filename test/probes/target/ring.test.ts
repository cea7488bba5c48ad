// The ring's client side against a model of what trampolines do to memory: writers that claim, wait, are interrupted and come back.
// What must come out is known from the model alone: every record that was committed, once, in the order of the claims.
import fc from 'fast-check';
import t from 'tap';
import { controlBlock, type RingGeometry } from '../../../src/arch/index.js';
import { addr } from '../../../src/base/addr.js';
import type { OnRecords } from '../../../src/probes/target/late-records.js';
import { recordOffset, slotReader } from '../../../src/probes/target/record-format.js';
import { layOutRing, type RingLayout, RingReader } from '../../../src/probes/target/ring.js';

const control = addr(0x1000);
const memoryStart = 0x2000;

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

  claim(): number {
    const claim = this.word(controlBlock.head);
    this.view.setBigUint64(controlBlock.head, BigInt(claim + 2 ** this.#geometry.slotShift), true);
    return claim;
  }

  mayWrite(claim: number): boolean {
    return claim < this.word(controlBlock.limit);
  }

  /** Where a claim's record goes: looked up once, when it may write, as the trampoline does. */
  slotOf(claim: number): number {
    const { segmentShift, countShift } = this.#geometry;
    const index = Math.floor(claim / 2 ** segmentShift) % 2 ** countShift;
    return this.at(BigInt(this.word(controlBlock.segments + 8 * index))) + (claim % 2 ** segmentShift);
  }

  commit(claim: number, slot: number, value: number, hart = 0): void {
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

function ringOf(segments: number, garbage: number): { readonly target: Target; readonly reader: RingReader } {
  const layout = layOutRing(control, control, { address: addr(memoryStart), length: segments * 2 * slot }, 6);
  if (!layout) throw new Error('no room');
  const target = new Target(layout, memoryStart - 0x1000 + segments * 2 * slot, garbage);
  const reader = new RingReader(layout, slotReader(false));
  const start = reader.control(1);
  target.bytes.set(start.bytes, target.at(start.address));
  return { target, reader };
}

interface Writer {
  readonly claim: number;
  readonly value: number;
  slot: number | undefined;
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
  fc.assert(
    fc.property(
      fc.array(action, { maxLength: 800, size: 'max' }),
      fc.integer({ min: 32, max: 80 }),
      fc.constantFrom(0, 0xff, 0xa5),
      (actions, segments, garbage) => {
        const { target, reader } = ringOf(segments, garbage);
        const origin = target.word(controlBlock.head);
        const got: number[] = [];
        const drain = (most?: number): void => {
          const take = (view: DataView, start: number, end: number): void => {
            for (let at = start; at < end; at += slot) got.push(view.getUint32(at + recordOffset.id, true));
          };
          target.drain(reader, take, false, most);
        };
        const committed: number[] = [];
        let interrupted: Writer[] = [];
        let value = 0;
        const begin = (): Writer => {
          const claim = target.claim();
          const writer: Writer = { claim, value: value++, slot: undefined };
          if (target.mayWrite(claim)) writer.slot = target.slotOf(claim);
          else waited++;
          return writer;
        };
        const end = (writer: Writer): boolean => {
          if (writer.slot === undefined && target.mayWrite(writer.claim)) writer.slot = target.slotOf(writer.claim);
          if (writer.slot === undefined) return false;
          target.commit(writer.claim, writer.slot, writer.value);
          committed.push(writer.value);
          return true;
        };
        for (const { kind, pick } of actions) {
          // All that there is, or so many bytes of it.
          if (kind === 'drain') drain(pick % 3 === 0 ? undefined : pick);
          else if (kind === 'begin') interrupted.push(begin());
          else if (kind === 'write') {
            const writer = begin();
            if (!end(writer)) interrupted.push(writer);
          } else if (interrupted.length > 0) {
            const [writer] = interrupted.splice(pick % interrupted.length, 1) as [Writer];
            if (!end(writer)) interrupted.push(writer);
          }
        }
        for (let i = 0; i < 2000 && interrupted.length > 0; i++) {
          drain();
          interrupted = interrupted.filter((writer) => !end(writer));
        }
        drain();
        drain();
        laps = Math.max(laps, (target.word(controlBlock.head) - origin) / reader.capacity);
        const missing = reader.finish(() => got.push(-1));
        const wanted = [...committed].sort((a, b) => a - b);
        if (missing !== 0 || reader.outOfOrder !== 0) throw new Error(`missing ${missing}, late ${reader.outOfOrder}`);
        if (got.join() !== wanted.join()) throw new Error(`got ${got.join()} of ${wanted.join()}`);
      },
    ),
    { numRuns: 400, seed: 20 },
  );
  t.ok(laps > 3, `${laps} laps`);
  t.ok(waited > 1000, `${waited} claims had to wait`);
});

/** A call on a hart: what it writes, begin and end, and where that stands. */
interface Frame {
  readonly id: number;
  state: 'beginning' | 'open' | 'ending';
  claim: number;
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
      const claim = (): number => {
        const next = target.claim();
        for (let tries = 0; !target.mayWrite(next) && tries < 5; tries++) stop(false);
        if (!target.mayWrite(next)) throw new Error('the ring stays full');
        return next;
      };
      const goOn = (hart: number): void => {
        const stack = stacks[hart] as Frame[];
        const top = stack.at(-1);
        if (top?.state === 'open') {
          top.claim = claim();
          top.state = 'ending';
          return;
        }
        if (!top) return;
        const ends = top.state === 'ending' ? 1 : 0;
        target.commit(top.claim, target.slotOf(top.claim), top.id * 2 + ends, hart);
        if (ends) stack.pop();
        else top.state = 'open';
      };
      for (const { kind, hart, all } of actions) {
        // An interrupt may come anywhere, in the middle of a record too.
        if (kind === 'call' && (stacks[hart] as Frame[]).length < 6)
          stacks[hart]?.push({ id: calls++, state: 'beginning', claim: claim() });
        else if (kind === 'stop') stop(all);
        else goOn(hart);
      }
      for (const hart of stacks.keys()) while (stacks[hart]?.length) goOn(hart);
      stop(true);
      late += reader.outOfOrder;
      if (reader.finish(() => {}) !== 0) throw new Error('a record is missing');
      if (wrong.length > 0) throw new Error(wrong.join('\n'));
      if (seen !== 2 * calls) throw new Error(`${seen} records of ${calls} calls`);
    }),
    { numRuns: 400, seed: 21 },
  );
  t.ok(late > 1000, `${late} records came late`);
});

t.test('memory that is too small for a ring', async (t) => {
  t.equal(layOutRing(control, control, { address: addr(memoryStart), length: 511 }, 6), undefined);
  t.match(layOutRing(control, control, { address: addr(memoryStart), length: 512 }, 6), {
    geometry: { segmentShift: 7 },
  });
});
