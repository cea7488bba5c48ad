// Interrupts that come again and again at one place: a guest that does nothing else, and one that waits in a loop of one instruction.
import t from 'tap';
import { riscv64 } from '../../../src/arch/index.js';
import { addr } from '../../../src/base/addr.js';
import { TrapTracer } from '../../../src/probes/kinds/traps/tracer.js';

const [start, at, entry] = [0x8000_0000n, 0x8000_0100n, 0x8000_0010n];

/** Whether interrupts at one instruction, whose neighbours are nops, are taken for all that the guest does. */
function isStorm(code: readonly number[], others: readonly bigint[] = []): boolean {
  const text = Uint8Array.from({ length: 0x200 }, (_, i) => (i % 4 === 0 ? 0x13 : 0));
  text.set(code, Number(at - start));
  const bytesAt = (address: bigint, length: number): Uint8Array =>
    text.subarray(Number(address - start), Number(address - start) + length);
  let pc = at;
  const trap = () => ({
    ...{ kind: 'irq', name: 'supervisor_timer' },
    from: { pc, stackPointer: 0x8001_0000n, isUser: false },
  });
  const traps = { ...riscv64.traps, current: () => [{ address: entry, kind: 'irq', reads: () => [], trap }] };
  const elf = { path: 'k', symbols: Object.assign([], { named: () => [] }), sections: [], bytesAt };
  const seen = {
    others: new Set(),
    returnsAlone: 0,
    areIdle: false,
    isStorm: false,
  };
  const found = { setters: [], exits: [], mayWant: () => true, wants: () => true, seen };
  const output = { at: (time: number) => time, emit() {} };
  const rest = { spaces: { of: () => 0 }, values: true, nextKey: () => 0, output, served: () => undefined };
  type Given = ConstructorParameters<typeof TrapTracer>;
  const tracer = new TrapTracer(
    found as unknown as Given[0],
    { arch: { ...riscv64, traps }, elf, ...rest } as unknown as Given[1],
  );
  const registers = { register: () => 0n };
  tracer.current(registers);
  for (let i = 0; i < 60; i++)
    for (const [hart, place] of [at, ...others].entries()) {
      pc = place;
      const hit = { pc: addr(entry), registers, time: i * 10_000_000, hart, stackPointer: 0n };
      tracer.cross(
        hit as Parameters<typeof tracer.cross>[0],
        { bytes: () => 'unread' } as unknown as Parameters<typeof tracer.cross>[1],
      );
    }
  return seen.isStorm;
}

t.test('a jump to itself is a place to wait', async (t) => {
  t.equal(isStorm([0x13, 0, 0, 0]), true, 'a nop');
  t.equal(isStorm([0x6f, 0, 0, 0]), false, '`j .`');
  t.equal(isStorm([0x01, 0xa0, 0x01, 0x00]), false, '`c.j .`');
});

t.test('each hart is interrupted where it is', async (t) => {
  t.equal(isStorm([0x13, 0, 0, 0], [at + 0x20n]), true, 'two harts in turn');
});
