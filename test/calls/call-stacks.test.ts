import fc from 'fast-check';
import t from 'tap';
import { CallStacks } from '../../src/calls/call-stacks.js';
import { type OpenCall, stackNumber } from '../../src/calls/open-call.js';

function enter<T>(stacks: CallStacks<T>, hart: number, returnAddress: bigint, stackPointer: number, payload: T) {
  return stacks.enter({ hart }, { returnAddress, stackPointer, isCall: false }, payload);
}

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

t.test('what was lost with the call around it is open no longer: a later call has the same places', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 0x1008, 'outer');
  enter(stacks, 0, 20n, 0x1000, 'inner');
  t.strictSame(payloads(stacks.leave({ hart: 0 }, 10n, 0x1008).lost), ['inner']);
  enter(stacks, 0, 10n, 0x1008, 'outer again');
  t.notOk(stacks.isOpen({ hart: 0 }, 20n, 0x1000));
  enter(stacks, 0, 20n, 0x1000, 'inner again');
  t.ok(stacks.isOpen({ hart: 0 }, 20n, 0x1000));
  t.strictSame(payloads(stacks.leave({ hart: 0 }, 20n, 0x1000).ended), ['inner again']);
});

const payloads = (calls: readonly OpenCall<string>[]): string[] => calls.map(({ payload }) => payload);

t.test('a stack pointer as a number', async (t) => {
  t.equal(stackNumber(0xffff_ffff_8000_0000n), -0x8000_0000);
  t.equal(stackNumber(0x8000_0000n), 0x8000_0000);
  // A window of LoongArch, where doubles have steps of 2 KiB: distances are exact, and other windows are far away.
  const [stack, below] = [stackNumber(0x9000_0000_0065_fb60n), stackNumber(0x9000_0000_0065_fb58n)];
  t.equal(stack - below, 8);
  t.equal(stack - 1 + 1, stack);
  for (const other of [0x8000_0000_0065_fb60n, 0x65_fb60n, 0xffff_0000_0065_fb60n])
    t.ok(Math.abs(stackNumber(other) - stack) >= 2 ** 44, other.toString(16));
});

t.test('a function that is called again at the same place, and did not return, was lost', async (t) => {
  const stacks = new CallStacks<string>();
  const place = { returnAddress: 10n, stackPointer: 1000, isCall: false };
  stacks.enter({ hart: 0 }, place, 'first');
  const asked: string[] = [];
  const isAgain = (payload: string): boolean => asked.push(payload) > 0;
  const { call, lost } = stacks.enter({ hart: 0 }, place, 'second', isAgain);
  t.strictSame([payloads(lost), asked], [['first'], ['first']]);
  t.match(call, { parent: undefined, depth: 0 });
  t.ok(stacks.awaits(10n));
  t.strictSame(payloads(stacks.leave({ hart: 0 }, 10n, 1000).ended), ['second']);
  t.notOk(stacks.awaits(10n));
});

t.test('a call that is near below is lost once, and said to have been when it returns', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 5000, 'outer');
  // 1,023 bytes apart is one stack, 1,024 may be two.
  enter(stacks, 0, 20n, 5000 - 1024, 'far');
  t.strictSame(payloads(enter(stacks, 0, 30n, 5000, 'next').lost), ['outer'], 'another return address at its place');
  const near = new CallStacks<string>();
  enter(near, 0, 10n, 5000, 'outer');
  enter(near, 0, 20n, 4000, 'near');
  const { lost } = near.leave({ hart: 0 }, 10n, 5000);
  t.strictSame(payloads(lost), ['near']);
  t.strictSame(
    near.leave({ hart: 0 }, 20n, 4000).ended.map(({ payload, wasLost }) => [payload, wasLost]),
    [['near', true]],
  );
  t.strictSame(payloads(near.clear()), []);
});

t.test(
  'calls that are far below may lie on another stack, and are told of as lost only when it is proven',
  async (t) => {
    const stacks = new CallStacks<string>();
    enter(stacks, 0, 10n, 9000, 'outer');
    enter(stacks, 0, 20n, 5000, 'elsewhere');
    t.strictSame(payloads(enter(stacks, 0, 30n, 8900, 'next').lost), []);
    t.ok(stacks.awaits(20n));
    // An untraced call at the same place has overwritten it.
    t.strictSame(payloads(stacks.overwrite({ hart: 0 }, 5000)), ['elsewhere']);
    t.notOk(stacks.awaits(20n));
    t.strictSame(stacks.overwrite({ hart: 0 }, 5000), []);
  },
);

t.test('once a stack has been left in the middle of a call and come back to, calls have threads', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 0x300000, 'first');
  t.equal(enter(stacks, 0, 20n, 0x100000, 'second').call.thread, undefined);
  // The first call is older: the hart has left the second in the middle.
  t.strictSame(payloads(stacks.leave({ hart: 0 }, 10n, 0x300000).ended), ['first']);
  const back = enter(stacks, 0, 30n, 0x2fff80, 'again').call.thread;
  const other = enter(stacks, 0, 40n, 0xfff00, 'inner').call.thread;
  t.ok(back && other);
  t.not(back?.stack, other?.stack);
  const moved = new CallStacks<string>();
  enter(moved, 0, 10n, 0x300000, 'outer');
  moved.leave({ hart: 1 }, 10n, 0x300000);
  t.ok(enter(moved, 1, 30n, 0x2fff80, 'next').call.thread, 'and so where another hart goes on with a call');
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

/** Where the size of stacks is known, a list for each stack is all that there is to it. */
class Model {
  readonly #stacks = new Map<string, { id: number; ra: bigint; sp: number; stops: boolean }[]>();

  at(space: number, sp: number) {
    const key = `${space} ${Math.floor((sp - 1) / size)}`;
    const calls = this.#stacks.get(key) ?? [];
    this.#stacks.set(key, calls);
    return calls;
  }

  get all() {
    return [...this.#stacks.values()].flat();
  }

  /** In the order of their oldest calls, innermost first. */
  ends() {
    const used = [...this.#stacks].filter(([, calls]) => calls.length > 0);
    const byAge = used.sort(([, a], [, b]) => (a[0]?.id ?? 0) - (b[0]?.id ?? 0));
    const spaces = [...new Set(this.#spaces)];
    return spaces.flatMap((space) =>
      byAge.filter(([key]) => key.startsWith(`${space} `)).flatMap(([, calls]) => calls.map(({ id }) => id).reverse()),
    );
  }

  readonly #spaces: number[] = [];

  sees(space: number): void {
    this.#spaces.push(space);
  }

  /** Removes the innermost calls as long as one is so. */
  drop(space: number, sp: number, isSo: (call: { id: number; ra: bigint; sp: number }) => boolean): number[] {
    const calls = this.at(space, sp);
    const gone: number[] = [];
    for (let last = calls.at(-1); last && isSo(last); last = calls.at(-1)) {
      calls.pop();
      gone.push(last.id);
    }
    return gone;
  }
}

const size = 0x4000;
const ids = (calls: readonly OpenCall<number>[]): number[] => calls.map(({ payload }) => payload);

t.test('stacks of a known size: each request has the answer that lists have', async (t) => {
  const step = fc.record({
    what: fc.constantFrom('enter', 'enter', 'enter', 'leave', 'leave', 'unwind', 'enclosing', 'ending'),
    space: fc.nat(1),
    hart: fc.nat(2),
    sp: fc.tuple(fc.integer({ min: 1, max: 3 }), fc.nat(12)).map(([stack, at]) => stack * size - at * 0x140),
    ra: fc.bigInt({ min: 10n, max: 13n }),
    isCall: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const stacks = new CallStacks<number>(size);
      const model = new Model();
      const same = (found: unknown, expected: unknown): void => {
        if (JSON.stringify(found) !== JSON.stringify(expected))
          throw new Error(`${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
      };
      let id = 0;
      for (const { what, space, hart, sp, ra, isCall } of steps) {
        const where = { space, hart };
        model.sees(space);
        const calls = model.at(space, sp);
        const isEnd = (call: { ra: bigint; sp: number }): boolean => call.ra === ra && call.sp === sp;
        if (what === 'enter') {
          const gone = model.drop(space, sp, (call) => call.sp < sp || (call.sp === sp && call.ra !== ra));
          const parent = calls.at(-1);
          const { call, lost } = stacks.enter(where, { returnAddress: ra, stackPointer: sp, isCall }, ++id);
          same(
            [ids(lost), call.parent?.payload, call.depth, call.hart, call.stops, call.wasLost],
            [gone, parent?.id, calls.length, hart, !isCall, false],
          );
          same(String(call.thread?.stack), String(Math.floor((sp - 1) / size) * size));
          calls.push({ id, ra, sp, stops: !isCall });
        } else if (what === 'leave') {
          const gone = calls.some(isEnd) ? model.drop(space, sp, (call) => call.sp < sp) : [];
          const { ended, lost } = stacks.leave(where, ra, sp);
          same([ids(ended), ids(lost)], [model.drop(space, sp, isEnd), gone]);
        } else if (what === 'unwind') {
          same(
            ids(stacks.unwind(where, sp)),
            model.drop(space, sp, (call) => call.sp <= sp),
          );
        } else if (what === 'enclosing') {
          same(stacks.enclosing(where, sp)?.payload, calls.findLast((call) => call.sp >= sp)?.id);
        } else {
          const ending = calls.filter(isEnd).map((call) => call.id);
          same(ids(stacks.endingAt(where, ra, sp)), ending.reverse());
        }
        same(
          stacks.awaits(ra),
          model.all.some((call) => call.stops && call.ra === ra),
        );
        same(
          stacks.awaitsAny,
          model.all.some((call) => call.stops),
        );
      }
      same(ids(stacks.clear()), model.ends());
      same(stacks.awaitsAny, false);
    }),
    { seed: 11, numRuns: 600 },
  );
  t.pass();
});

/** Calls that wait until it is known whether they are over: 16,384, then the older half is given up. */
const mostAside = 16_384;

t.test('of calls that may be on another stack the older half is lost when there are too many', async (t) => {
  const stacks = new CallStacks<number>();
  const lost: number[] = [];
  // Each is far above the one before, which may lie on another stack.
  for (let i = 0; i <= mostAside + 1; i++)
    lost.push(...ids(enter(stacks, 0, BigInt(i + 10), 0x1000 * (i + 1), i).lost));
  t.equal(lost.length, mostAside / 2);
  t.same(
    [...lost].sort((a, b) => a - b),
    Array.from({ length: mostAside / 2 }, (_, i) => i),
  );
  t.notOk(stacks.awaits(10n), 'the oldest');
  t.ok(stacks.awaits(BigInt(mostAside)), 'a young one');
  t.equal(ids(stacks.clear()).length, mostAside / 2 + 2, 'what was lost is not told again');
});

t.test('an untraced call proves which calls it has overwritten', async (t) => {
  const begun = (): CallStacks<string> => {
    const stacks = new CallStacks<string>();
    enter(stacks, 0, 10n, 9000, 'outer');
    enter(stacks, 0, 20n, 5000, 'inner');
    t.strictSame(payloads(enter(stacks, 0, 30n, 8900, 'next').lost), []);
    return stacks;
  };
  const above = begun();
  t.strictSame(payloads(above.overwrite({ hart: 0 }, 5000 + 1024)), [], 'too far above it');
  t.strictSame(payloads(above.overwrite({ hart: 1 }, 5000 + 1023)), [], 'by another hart');
  t.strictSame(payloads(above.overwrite({ hart: 0 }, 4999)), [], 'below it');
  t.strictSame(payloads(above.overwrite({ hart: 0 }, 5000 + 1023)), ['inner']);
  t.strictSame(payloads(above.overwrite({ hart: 0 }, 5000 + 1023)), [], 'it is told once');
  t.ok(above.awaits(20n), 'it may return all the same');
  t.strictSame(
    above.leave({ hart: 0 }, 20n, 5000).ended.map(({ payload, wasLost }) => [payload, wasLost]),
    [['inner', true]],
  );
  const same = begun();
  t.strictSame(payloads(same.overwrite({ hart: 1 }, 5000)), ['inner'], 'at its place it is gone, whoever is there');
  t.notOk(same.awaits(20n));
  t.strictSame(same.leave({ hart: 0 }, 20n, 5000), { ended: [], lost: [] });
});

t.test(
  'a traced call where one was set aside: with its return address it goes on there, else that is gone',
  async (t) => {
    const begun = (): CallStacks<string> => {
      const stacks = new CallStacks<string>();
      enter(stacks, 0, 10n, 0x9000, 'outer');
      enter(stacks, 0, 20n, 0x5000, 'aside');
      t.strictSame(payloads(enter(stacks, 0, 30n, 0x8f00, 'next').lost), []);
      return stacks;
    };
    const tail = begun();
    const { call, lost } = enter(tail, 1, 20n, 0x5000, 'tail');
    t.strictSame([payloads(lost), call.parent?.payload], [[], 'aside']);
    t.strictSame(payloads(tail.leave({ hart: 1 }, 20n, 0x5000).ended), ['tail', 'aside']);
    t.strictSame(payloads(tail.leave({ hart: 0 }, 30n, 0x8f00).ended), ['next']);
    t.strictSame(payloads(tail.leave({ hart: 0 }, 10n, 0x9000).ended), ['outer']);
    t.strictSame(tail.clear(), []);
    const other = begun();
    t.strictSame(payloads(enter(other, 1, 40n, 0x5000, 'other').lost), ['aside']);
    t.notOk(other.awaits(20n));
    t.strictSame(payloads(other.leave({ hart: 1 }, 40n, 0x5000).ended), ['other']);
  },
);

t.test('a call that another hart makes at the depth of a call is on a stack of its own', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 0x300000, 'first');
  const { call, lost } = enter(stacks, 1, 20n, 0x100000, 'second');
  t.strictSame([payloads(lost), call.parent, call.depth], [[], undefined, 0]);
  t.strictSame(payloads(stacks.leave({ hart: 1 }, 20n, 0x100000).ended), ['second']);
  // The stack went with its last call, so that the place is free.
  t.equal(enter(stacks, 2, 30n, 0x100100, 'third').call.parent, undefined);
  t.equal(enter(stacks, 0, 40n, 0x2fff80, 'inner').call.parent?.payload, 'first');
});

t.test('a call that was lost, and proved to be there by one inside it, is not lost again', async (t) => {
  const begun = (): CallStacks<string> => {
    const stacks = new CallStacks<string>();
    enter(stacks, 0, 10n, 5000, 'outer');
    enter(stacks, 0, 20n, 4000, 'near');
    enter(stacks, 0, 30n, 2000, 'far');
    t.strictSame(payloads(enter(stacks, 0, 40n, 4990, 'next').lost), ['near'], 'the one far from it may be elsewhere');
    t.strictSame(payloads(stacks.leave({ hart: 0 }, 30n, 2000).ended), ['far']);
    return stacks;
  };
  t.strictSame(payloads(enter(begun(), 0, 50n, 4000, 'at its place').lost), []);
  t.strictSame(payloads(enter(begun(), 0, 50n, 4100, 'right above it').lost), []);
  const { ended } = begun().leave({ hart: 0 }, 20n, 4000);
  t.strictSame(
    ended.map(({ payload, wasLost }) => [payload, wasLost]),
    [['near', true]],
  );
});

t.test('a call near below, of a hart that may still be in it, is not lost', async (t) => {
  const begun = (): CallStacks<string> => {
    const stacks = new CallStacks<string>();
    enter(stacks, 0, 10n, 5000, 'outer');
    enter(stacks, 1, 20n, 4500, 'of another hart');
    return stacks;
  };
  const there = begun();
  t.strictSame(payloads(enter(there, 0, 30n, 4900, 'next').lost), []);
  t.strictSame(payloads(there.leave({ hart: 1 }, 20n, 4500).ended), ['of another hart']);
  const away = begun();
  enter(away, 1, 40n, 0x300000, 'elsewhere');
  t.strictSame(payloads(enter(away, 0, 30n, 4900, 'next').lost), ['of another hart']);
});

t.test('a call far below the last one of a stack is on it, unless another hart is there', async (t) => {
  const begun = (): CallStacks<string> => {
    const stacks = new CallStacks<string>();
    enter(stacks, 1, 10n, 0x300000, 'first');
    return stacks;
  };
  const taken = begun();
  t.equal(enter(taken, 0, 20n, 0x300000 - 1023, 'near').call.parent?.payload, 'first');
  t.equal(enter(begun(), 0, 20n, 0x300000 - 1024, 'far').call.parent, undefined);
  const left = begun();
  enter(left, 1, 30n, 0x100000, 'elsewhere');
  t.equal(enter(left, 0, 20n, 0x300000 - 1024, 'far').call.parent?.payload, 'first');
  const own = begun();
  t.equal(enter(own, 1, 20n, 0x300000 - 1024, 'far').call.parent?.payload, 'first', 'of the same hart');
});

t.test('calls have no threads as long as every hart leaves stacks only when they are done', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 0x300000, 'outer');
  enter(stacks, 0, 20n, 0x2fff80, 'inner');
  stacks.leave({ hart: 0 }, 20n, 0x2fff80);
  t.equal(enter(stacks, 0, 30n, 0x2fff40, 'next').call.thread, undefined, 'a return on its own hart shows nothing');
  t.equal(enter(stacks, 0, 40n, 0x100000, "an interrupt's").call.thread, undefined);
  // A caught panic takes the hart back, where only an older call is left.
  t.strictSame(payloads(stacks.unwind({ hart: 0 }, 0x2fff40)), ['next']);
  t.strictSame(payloads(stacks.leave({ hart: 0 }, 40n, 0x100000).ended), ["an interrupt's"]);
  t.equal(enter(stacks, 0, 50n, 0x2fff00, 'last').call.thread, undefined);
});

t.test('what shows that calls belong to stacks: one that goes on where it was passed', async (t) => {
  const begun = (): CallStacks<string> => {
    const stacks = new CallStacks<string>();
    enter(stacks, 0, 10n, 0x9000, 'outer');
    enter(stacks, 0, 20n, 0x5000, 'aside');
    t.equal(enter(stacks, 0, 30n, 0x8f00, 'next').call.thread, undefined);
    return stacks;
  };
  const back = begun();
  back.leave({ hart: 0 }, 20n, 0x5000);
  const upper = enter(back, 0, 50n, 0x8e00, 'on the upper stack').call;
  const lower = enter(back, 0, 60n, 0x4f00, 'on the lower stack').call;
  t.strictSame([upper.parent?.payload, lower.parent], ['next', undefined]);
  t.ok(upper.thread && lower.thread && upper.thread.stack !== lower.thread.stack);
  const over = begun();
  t.equal(enter(over, 1, 40n, 0x5000, 'other').call.thread, undefined, 'another return address there shows nothing');
});

t.test('calls of an address space of its own have a thread from the first on', async (t) => {
  const stacks = new CallStacks<string>();
  const place = { returnAddress: 10n, stackPointer: 0x5000, isCall: false };
  t.equal(stacks.enter({ hart: 0 }, place, 'kernel').call.thread, undefined);
  t.ok(stacks.enter({ hart: 0, space: 1 }, place, 'process').call.thread);
});

t.test('calls inside one that turns out to be elsewhere lie on its stack, with their harts', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 0x9000, 'upper');
  enter(stacks, 0, 20n, 0x5000, 'lower');
  enter(stacks, 0, 30n, 0x8f00, 'upper again');
  const inner = enter(stacks, 0, 40n, 0x4e00, 'inside lower').call;
  t.equal(inner.parent?.payload, 'upper again', 'nothing says otherwise yet');
  // The lower call returns: the one that was entered below it is none of the upper stack's.
  t.strictSame(payloads(stacks.leave({ hart: 1 }, 20n, 0x5000).ended), ['lower']);
  t.equal(inner.parent, undefined);
  t.equal(enter(stacks, 0, 50n, 0x4d00, 'next').call.parent?.payload, 'inside lower');
  t.strictSame(payloads(stacks.leave({ hart: 2 }, 30n, 0x8f00).ended), ['upper again']);
  t.strictSame(payloads(stacks.clear()).sort(), ['inside lower', 'next', 'upper']);
});

t.test('of the calls that are given up none is lost twice', async (t) => {
  const stacks = new CallStacks<number>();
  enter(stacks, 0, 1n, 0x500, -3);
  enter(stacks, 0, 2n, 0x480, -2);
  const lost = ids(enter(stacks, 0, 3n, 0x4f0, -1).lost);
  t.strictSame(lost, [-2]);
  for (let i = 0; i <= mostAside; i++) lost.push(...ids(enter(stacks, 0, BigInt(i + 10), 0x1000 * (i + 1), i).lost));
  t.equal(new Set(lost).size, lost.length);
  t.equal(ids(stacks.clear()).filter((id) => lost.includes(id)).length, 0);
});

t.test('across a known bound no call overwrites another, however near', async (t) => {
  const stacks = new CallStacks<string>();
  enter(stacks, 0, 10n, 0x9000, 'upper');
  enter(stacks, 0, 20n, 0x5000, 'lower');
  enter(stacks, 0, 30n, 0x8f00, 'upper again');
  stacks.leave({ hart: 0 }, 20n, 0x5000);
  // A bound is between them now, at 0x8000. Below it hart 1 is in a call that hart 0 passes.
  enter(stacks, 1, 40n, 0x7f00, 'right below the bound');
  t.strictSame(payloads(enter(stacks, 0, 50n, 0x8000, 'at it').lost), []);
  t.strictSame(payloads(stacks.overwrite({ hart: 1 }, 0x8100)), []);
  t.strictSame(payloads(stacks.overwrite({ hart: 1 }, 0x7ff0)), ['right below the bound']);
});

t.test('a thread is named by the bound below its stack, or by a place near its top', async (t) => {
  const stacks = new CallStacks<string>();
  const place = { returnAddress: 10n, stackPointer: 0x5000, isCall: false };
  t.equal(stacks.enter({ hart: 0, space: 1 }, place, 'process').call.thread?.stack, 0x4c00n);
  enter(stacks, 0, 10n, 0x9000, 'upper');
  enter(stacks, 0, 20n, 0x5000, 'lower');
  enter(stacks, 0, 30n, 0x8f00, 'upper again');
  stacks.leave({ hart: 0 }, 20n, 0x5000);
  const upper = enter(stacks, 0, 40n, 0x8e00, 'above the bound').call.thread;
  t.equal(upper?.stack, 0x8000n);
  // Nothing says where this one ends, and the bound is the other's.
  const far = enter(stacks, 1, 50n, 0x300000, 'far above').call.thread;
  t.equal(far?.stack, 0x2ffc00n);
});

t.test('a lost call around one that came back is not lost once more at the end', async (t) => {
  const stacks = new CallStacks<string>();
  const lost: string[] = [];
  const begin = (hart: number, returnAddress: bigint, stackPointer: number, name: string): void => {
    const place = { returnAddress, stackPointer, isCall: false };
    lost.push(...payloads(stacks.enter({ hart }, place, name).lost));
  };
  begin(1, 3n, 0x2800, 'outermost');
  begin(1, 3n, 0x1f00, 'around');
  begin(0, 4n, 0x1e00, 'inner');
  t.same(payloads(stacks.leave({ hart: 1 }, 3n, 0x2800).ended), ['outermost']);
  begin(1, 4n, 0x2100, 'over it');
  t.same(lost, ['around']);
  begin(0, 4n, 0x1e00, 'called by inner at its end');
  lost.push(...payloads(stacks.clear()));
  t.same(lost.toSorted(), ['around', 'called by inner at its end', 'inner', 'over it']);
});
