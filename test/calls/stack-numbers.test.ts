// Stack pointers as numbers and back: canonical ones, of 57 bits at most, and those in LoongArch's windows, which bits 63:60 select
// (Reference Manual Volume 1, 5.2.1, Direct Mapped Address Translation Mode). Calls are matched alike wherever a stack lies.
import t from 'tap';
import { CallStacks } from '../../src/calls/call-stacks.js';
import { Spaces, ThreadsByStack } from '../../src/calls/hart-places.js';
import { stackNumber, stackPointerOf } from '../../src/calls/open-call.js';

const pointers = [
  [0x8001_ffe0n, 0x8001_c000n],
  [0x7ffc_1234_5678n, 0x7ffc_1234_4000n],
  [0x00ff_ffff_f000_0ff0n, 0x00ff_ffff_f000_0000n],
  [0xffff_ffc0_0123_3fe0n, 0xffff_ffc0_0123_0000n],
  [0xff10_0000_0000_4ff0n, 0xff10_0000_0000_4000n],
  [0x9000_0000_0123_3fe0n, 0x9000_0000_0123_0000n],
  [0x8000_ffff_ffff_fff0n, 0x8000_ffff_ffff_c000n],
  [0xe000_0000_0000_4008n, 0xe000_0000_0000_4000n],
] as const;

t.test('a number leads back to its stack pointer, and a thread is named by where its stack begins', async (t) => {
  for (const [pointer, stack] of pointers) {
    t.equal(stackPointerOf(stackNumber(pointer)), pointer);
    const space = new Spaces(16 << 10).at(0);
    t.equal(new ThreadsByStack().of(space, space.stacks.add(stackNumber(pointer))).stack, stack);
  }
});

for (const [pointer] of pointers) {
  const sp = stackNumber(pointer);
  const hart = 0;

  t.test(`a block inside a function, at 0x${pointer.toString(16)}`, async (t) => {
    const stacks = new CallStacks<string>();
    stacks.enter({ hart }, { returnAddress: 1n, stackPointer: sp, isCall: false }, 'function');
    for (let level = 1; level < 4; level++) {
      const block = { returnAddress: BigInt(-level), stackPointer: sp - level, isCall: true };
      t.same(stacks.enter({ hart }, block, 'block').lost, []);
    }
    for (let level = 3; level > 0; level--) t.equal(stacks.leave({ hart }, BigInt(-level), sp - level).ended.length, 1);
    t.equal(stacks.leave({ hart }, 1n, sp).ended.length, 1);
  });

  t.test(`a hart leaves a call and comes back to it, at 0x${pointer.toString(16)}`, async (t) => {
    const stacks = new CallStacks<string>();
    stacks.enter({ hart }, { returnAddress: 1n, stackPointer: sp, isCall: false }, 'one');
    stacks.enter({ hart }, { returnAddress: 2n, stackPointer: sp + 4080, isCall: false }, 'other');
    t.match(stacks.leave({ hart }, 2n, sp + 4080), { ended: [{ payload: 'other' }], lost: [] });
    t.match(stacks.leave({ hart }, 1n, sp), { ended: [{ payload: 'one' }], lost: [] });
    t.notOk(stacks.awaitsAny);
  });
}
