import { decode } from '../../src/arch/riscv64/decode.js';
import { ringTests } from './probe-ring.js';
import { target } from './riscv64-target.js';

function instructions(code: Uint8Array): readonly number[] {
  const offsets: number[] = [];
  for (let at = 0; at < code.length; at += decode(code, at)?.length ?? code.length) offsets.push(at);
  return offsets;
}

ringTests({
  ...target,
  instructions,
  reservation(trampoline) {
    const offsetOf = (op: string): number =>
      instructions(trampoline).find((at) => decode(trampoline, at)?.op === op) ?? -1;
    return [offsetOf('lr.d'), offsetOf('sc.d')];
  },
  loop: {
    loop: `
      1: mv a0,s1
         mv a2,s4
         call traced
         addi s1,s1,1
         bne s1,s5,1b
      2: li t0,1
         amoadd.d zero,t0,(s6)
      3: ld t0,0(s6)
         bne t0,s7,3b
      4: j 4b`,
    lastBytes: 2,
    registers: { called: 's1', pointer: 's4', calls: 's5', counter: 's6', harts: 's7' },
  },
  registersOf: (hart) => ({ tp: BigInt(hart) }),
});
