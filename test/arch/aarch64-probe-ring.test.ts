import { ldxr, stlxr } from '../../src/arch/aarch64/assembler.js';
import { EL1 } from './aarch64-machine.js';
import { target } from './aarch64-target.js';
import { ringTests } from './probe-ring.js';

ringTests({
  ...target,
  instructions: (code) => Array.from({ length: code.length / 4 }, (_, index) => 4 * index),
  reservation(trampoline) {
    const words = new DataView(trampoline.buffer, trampoline.byteOffset);
    const offsetOf = (word: number): number => {
      for (let at = 0; at < trampoline.length; at += 4) if (words.getUint32(at, true) === word) return at;
      return -1;
    };
    return [offsetOf(ldxr(10, 16)), offsetOf(stlxr(10, 17, 16))];
  },
  loop: {
    loop: `
      1: mov x0, x19
         mov x2, x20
         bl  traced
         add x19, x19, #1
         cmp x19, x21
         b.ne 1b
      2: ldaxr x0, [x22]
         add x0, x0, #1
         stlxr w1, x0, [x22]
         cbnz w1, 2b
      3: ldr x0, [x22]
         cmp x0, x23
         b.ne 3b
      4: b 4b`,
    lastBytes: 4,
    registers: { called: 'x19', pointer: 'x20', calls: 'x21', counter: 'x22', harts: 'x23' },
  },
  registersOf: () => ({ cpsr: EL1 }),
  chosen: ['near, laps, false'],
});
