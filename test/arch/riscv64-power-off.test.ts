// Which code ends QEMU: what llvm makes of u16::count_ones loads the same numbers.
import t from 'tap';
import { powerOff } from '../../src/arch/riscv64/power-off.js';
import { assemble } from '../support/assembled.js';

/** The labels that places are at. */
function labelsIn(source: string): string[] {
  const { bytes, labels } = assemble({ name: 'riscv64' }, source);
  const names = new Map(labels.map(([label, at]) => [at, label]));
  return powerOff.places(bytes, []).map((at) => names.get(at) ?? `${at}`);
}

t.test('bits of a 16-bit number that are counted are no end of the machine', async (t) => {
  // rustc 1.95, bitmap_allocator 0.2.1, opt-level 3 and 0.
  const optimised = `lui a3, 5; lui a4, 3; five: addi a2, a3, 1365; three: addi a1, a4, 819
    srli a3, a5, 1; and a3, a3, a2; sub a5, a5, a3; and a3, a5, a1; srli a5, a5, 2; and a5, a5, a1`;
  const debug =
    'lui a2, 5; addi a2, a2, 1365; and a1, a1, a2; sub a1, a0, a1; lui a0, 3; addi a2, a0, 819; and a0, a1, a2';
  t.strictSame(labelsIn(optimised), []);
  t.strictSame(labelsIn(debug), []);
});

t.test('a number that is stored, passed on or combined may end it', async (t) => {
  t.strictSame(labelsIn('lui a1, 5; stored: addi a1, a1, 1365; lui a0, 0x100; sw a1, 0(a0)'), ['stored']);
  t.strictSame(labelsIn('lui a1, 3; code: addi a1, a1, 819; slli a0, a0, 16; or a0, a0, a1; and a2, a0, a1'), ['code']);
  t.strictSame(labelsIn('lui a1, 5; passed: addi a1, a1, 1365; jal 1f; 1: ret'), ['passed']);
  t.strictSame(labelsIn('lui a2, 5; other: addi a1, a2, 1365; and a3, a2, a0; sw a1, 0(a0)'), ['other']);
});
