// What is one wake, on calls of wake functions told by hand.
import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { EventOutput } from '../../../../src/calls/follows.js';
import type { WakeFunction } from '../../../../src/probes/kinds/poll/wakers.js';
import { TaskBook, WakeTracer } from '../../../../src/probes/kinds/poll/wakes.js';
import type { TraceEvent, Wake } from '../../../../src/trace/index.js';

const [byValue, byRef] = [0x100, 0x200].map(
  (address) => ({ address: addr(address), size: 0x40, name: 'wake', box: undefined }) as unknown as WakeFunction,
) as [WakeFunction, WakeFunction];
const elsewhere = 0x900;

/** The wakers of the wakes that calls are told as: each of a function, with a waker, from where. */
function told(...calls: readonly (readonly [WakeFunction, number, number])[]): number[] {
  const wakers: number[] = [];
  const output = new EventOutput({ event: (event: TraceEvent) => wakers.push(Number((event as Wake).waker)) } as never);
  const context = {
    output,
    arch: { arguments: ['a0'] },
    elf: { code: [], symbols: { at: () => undefined } },
    debug: undefined,
  };
  const tracer = new WakeTracer([byValue, byRef], [], new TaskBook(new Map()), context as never);
  for (const [fn, waker, from] of calls) {
    const at = { pc: fn.address, hart: 0, registers: { register: () => BigInt(waker) }, space: 0 };
    tracer.hit(at as never, { around: undefined, returnAddress: addr(from), memory: {} } as never)?.();
  }
  return wakers;
}

t.test('a wake function that calls another one is one wake', async (t) => {
  t.same(told([byValue, 1, elsewhere], [byRef, 1, 0x120]), [1]);
  t.same(told([byValue, 1, elsewhere], [byRef, 2, 0x120]), [1, 2], 'of another task it is another one');
  t.same(told([byValue, 1, elsewhere], [byRef, 1, elsewhere]), [1, 1]);
  t.same(told([byValue, 1, elsewhere], [byRef, 1, 0x120], [byRef, 1, 0x130]), [1, 1]);
});

t.test('it stays one where an interrupt wakes another task in between', async (t) => {
  const [outer, inner] = [[byValue, 1, elsewhere] as const, [byRef, 1, 0x120] as const];
  t.same(told(outer, [byRef, 2, elsewhere], inner), [1, 2]);
  t.same(told(outer, [byValue, 2, elsewhere], [byRef, 2, 0x120], inner), [1, 2]);
});
