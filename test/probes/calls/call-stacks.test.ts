import fc from 'fast-check';
import t from 'tap';
import { CallStacks } from '../../../src/probes/calls/call-stacks.js';

function enter<T>(stacks: CallStacks<T>, hart: number, returnAddress: bigint, stackPointer: number, payload: T) {
  return stacks.enter({ hart }, { returnAddress, stackPointer, isCall: false }, payload);
}

t.test('a tail call ends with the call that it replaced, innermost first', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 1000, 'outer');
  enter(stacks, 0, 20n, 900, 'inner');
  enter(stacks, 0, 20n, 900, 'tail');
  t.ok(stacks.awaits(20n));
  t.strictSame(
    stacks.endingAt({ hart: 0 }, 20n, 900).map((call) => call.payload),
    ['tail', 'inner'],
  );
  const { ended, lost } = stacks.leave({ hart: 0 }, 20n, 900);
  t.strictSame(
    ended.map((call) => call.payload),
    ['tail', 'inner'],
  );
  t.strictSame(lost, []);
  t.notOk(stacks.awaits(20n));
  t.equal(stacks.enclosing({ hart: 0 }, 900)?.payload, 'outer');
});

t.test('a return address shared by a call that is not traced ends nothing', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 1000, 'a');
  t.strictSame(stacks.leave({ hart: 0 }, 10n, 800), { ended: [], lost: [] });
  t.ok(stacks.awaits(10n));
});

t.test('a call whose stack was taken over is lost', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 1000, 'outer');
  enter(stacks, 0, 20n, 900, 'unwound');
  const { call, lost } = enter(stacks, 0, 30n, 950, 'next');
  t.strictSame(
    lost.map((gone) => gone.payload),
    ['unwound'],
  );
  t.equal(call.parent?.payload, 'outer');
  t.equal(call.depth, 1);
  // It may have been on another stack that ends there: then its return comes at a stop, and must have one.
  t.ok(stacks.awaits(20n));
  const { ended } = stacks.leave({ hart: 1 }, 20n, 900);
  t.strictSame(
    ended.map(({ payload, wasLost }) => [payload, wasLost]),
    [['unwound', true]],
  );
  t.notOk(stacks.awaits(20n));
});

t.test(
  'a tail call that another hart makes, which was on the stack below, is on the stack of the call that makes it',
  async (t) => {
    const stacks = new CallStacks<string>();
    enter(stacks, 0, 10n, 0x212ff0, 'below');
    enter(stacks, 2, 10n, 0x213ff0, 'outer');
    enter(stacks, 2, 20n, 0x213f80, 'inner');
    enter(stacks, 0, 20n, 0x213f80, 'tail');
    const { ended } = stacks.leave({ hart: 0 }, 20n, 0x213f80);
    t.strictSame(
      ended.map((call) => call.payload),
      ['tail', 'inner'],
    );
  },
);

t.test('calls left open inside one that returns are lost', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 1000, 'outer');
  enter(stacks, 0, 20n, 900, 'inner');
  const { ended, lost } = stacks.leave({ hart: 0 }, 10n, 1000);
  t.equal(ended[0]?.payload, 'outer');
  t.equal(lost[0]?.payload, 'inner');
  t.strictSame(stacks.clear(), []);
});

/** A machine with threads on stacks of their own that call, tail-call, return and are switched, over two harts. */
t.test('random programs: every return ends exactly its own calls, with the right parent', async () => {
  const step = fc.record({
    thread: fc.nat({ max: 3 }),
    hart: fc.nat({ max: 1 }),
    what: fc.constantFrom('call', 'call', 'tail', 'return'),
    frame: fc.integer({ min: 1, max: 40 }),
    site: fc.nat({ max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const stacks = new CallStacks<number>();
      // Stacks 2 MiB apart: no call of one reaches the next.
      const threads = [0, 1, 2, 3].map((i) => ({
        sp: (i + 1) << 21,
        frames: [] as { id: number; ra: bigint; sp: number; tails: number[] }[],
      }));
      let id = 0;
      let open = 0;
      for (const { thread, hart, what, frame, site } of steps) {
        const { frames } = threads[thread] as (typeof threads)[0];
        const top = frames.at(-1);
        const sp = (top?.sp ?? (threads[thread] as (typeof threads)[0]).sp) - frame * 16;
        if (what === 'call') {
          const ra = BigInt(1000 + site);
          const { call, lost } = enter(stacks, hart, ra, sp, ++id);
          if (lost.length > 0) return false;
          const parent = top && (top.tails.at(-1) ?? top.id);
          if (call.parent?.payload !== parent) return false;
          frames.push({ id, ra, sp, tails: [] });
          open++;
        } else if (what === 'tail' && top) {
          const { lost } = enter(stacks, hart, top.ra, top.sp, ++id);
          if (lost.length > 0) return false;
          top.tails.push(id);
          open++;
        } else if (what === 'return' && top) {
          frames.pop();
          const { ended, lost } = stacks.leave({ hart }, top.ra, top.sp);
          const expected = [...top.tails.toReversed(), top.id];
          if (lost.length > 0 || ended.map((call) => call.payload).join() !== expected.join()) return false;
          open -= expected.length;
        }
      }
      return stacks.clear().length === open;
    }),
    { seed: 7, numRuns: 400 },
  );
});
