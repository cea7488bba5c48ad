// The ring's client side against a model of what trampolines do to memory: writers that claim, wait, are interrupted and come back.
// What must come out is known from the model alone: every record that was committed, once, in the order of the claims.
import fc from 'fast-check';
import t from 'tap';
import { controlBlock, type RingGeometry } from '../../../src/arch/index.js';
import { addr } from '../../../src/base/addr.js';
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

  commit(claim: number, slot: number, value: number): void {
    this.view.setUint32(slot + 8, value, true);
    this.view.setBigUint64(slot, BigInt(claim), true);
  }
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
    { weight: 1, arbitrary: fc.constant({ kind: 'drain' as const, pick: 0 }) },
  );
  let laps = 0;
  let waited = 0;
  fc.assert(
    fc.property(
      fc.array(action, { maxLength: 800, size: 'max' }),
      fc.integer({ min: 32, max: 80 }),
      fc.constantFrom(0, 0xff, 0xa5),
      (actions, segments, garbage) => {
        const layout = layOutRing(control, control, { address: addr(memoryStart), length: segments * 128 }, 6);
        if (!layout) throw new Error('no room');
        const target = new Target(layout, memoryStart - 0x1000 + segments * 128, garbage);
        const reader = new RingReader(layout);
        const start = reader.control(1);
        target.bytes.set(start.bytes, target.at(start.address));
        const origin = target.word(controlBlock.head);
        const got: number[] = [];
        const drain = (): void => {
          const pieces = reader.wanted(target.word(controlBlock.head));
          const read = pieces.map(({ address, length }) => {
            const from = target.at(address);
            if (from < memoryStart - 0x1000 || from + length > target.bytes.length) throw new Error('read outside');
            return target.bytes.slice(from, from + length);
          });
          const take = (view: DataView, start: number, end: number): void => {
            for (let at = start; at < end; at += 64) got.push(view.getUint32(at + 8, true));
          };
          for (const { address, bytes } of reader.accept(read, take)) target.bytes.set(bytes, target.at(address));
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
          if (kind === 'drain') drain();
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

t.test('memory that is too small for a ring', async (t) => {
  t.equal(layOutRing(control, control, { address: addr(memoryStart), length: 1024 }, 6), undefined);
  t.match(layOutRing(control, control, { address: addr(memoryStart), length: 2048 }, 6), {
    geometry: { segmentShift: 7 },
  });
});
