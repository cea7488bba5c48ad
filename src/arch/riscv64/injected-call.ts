// RISC-V ELF psABI, "Procedure Calling Convention": arguments in a0 and a1, the return address in ra. The stack
// is aligned as in the program's own call.
//
//   stub:  ld ra, 0(sp) ; ld a0, 8(sp) ; ld a1, 16(sp) ; addi sp, sp, 32
//          auipc t1, entry ; jr t1               t1 is nobody's at a function's first instruction
import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { InjectedCall } from '../inject/injected-call.js';
import { addi, auipc, distance, jalr, ld, split, T1 } from './assembler.js';

const [RA, SP, A0, A1] = [1, 2, 10, 11] as const;
const FRAME = 32;
const JUMP_AT = 16;
const kept = ['ra', 'a0', 'a1'] as const;

export const injectedCall: InjectedCall = {
  stub(at, entry) {
    const to = split(distance(addOffset(at, JUMP_AT), entry));
    if (to === undefined) return undefined;
    const words = Uint32Array.of(
      ld(RA, SP, 0),
      ld(A0, SP, 8),
      ld(A1, SP, 16),
      addi(SP, SP, FRAME),
      auipc(T1, to.high),
      jalr(0, T1, to.low),
    );
    return new Uint8Array(words.buffer);
  },
  enter(registers, stub, [first, second]) {
    const sp = registers.register('sp');
    const values = kept.map((name) => registers.register(name));
    if (sp === undefined || sp % 8n !== 0n || values.some((value) => value === undefined)) return undefined;
    const stackPointer: Addr = addr(sp - BigInt(FRAME));
    const bytes = new Uint8Array(FRAME);
    values.forEach((value, index) => {
      new DataView(bytes.buffer).setBigUint64(index * 8, value ?? 0n, true);
    });
    return {
      registers: [
        { name: 'sp', value: stackPointer },
        { name: 'ra', value: stub },
        { name: 'a0', value: first },
        { name: 'a1', value: second },
      ],
      memory: [{ address: stackPointer, bytes }],
      stackPointer,
    };
  },
  changes: ['sp', ...kept],
};
