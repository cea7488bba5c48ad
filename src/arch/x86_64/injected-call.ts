// System V ABI AMD64, 3.2.2: arguments in rdi and rsi, the return address on the stack. A function that has just
// called has no red zone. The stack is aligned as in the program's own call, which in a kernel need not be to 16
// bytes.
//
//   rsp at the call:  stub | rdi | rsi | - | the program's own return address
//   stub:  mov rdi, [rsp] ; mov rsi, [rsp+8] ; lea rsp, [rsp+24] ; jmp entry
import { addOffset, addr } from '../../base/addr.js';
import type { InjectedCall } from '../inject/injected-call.js';

const FRAME = 32;
const taken = [0x48, 0x8b, 0x3c, 0x24, 0x48, 0x8b, 0x74, 0x24, 0x08, 0x48, 0x8d, 0x64, 0x24, 0x18, 0xe9];

export const injectedCall: InjectedCall = {
  stub(at, entry) {
    const bytes = new Uint8Array(taken.length + 4);
    const far = BigInt.asIntN(64, entry - addOffset(at, bytes.length));
    if (BigInt.asIntN(32, far) !== far) return undefined;
    bytes.set(taken);
    new DataView(bytes.buffer).setInt32(taken.length, Number(far), true);
    return bytes;
  },
  enter(registers, stub, [first, second]) {
    const [rsp, rdi, rsi] = ['rsp', 'rdi', 'rsi'].map((name) => registers.register(name));
    if (rsp === undefined || rdi === undefined || rsi === undefined || rsp % 8n !== 0n) return undefined;
    const low = addr(rsp - BigInt(FRAME));
    const bytes = new Uint8Array(FRAME);
    const view = new DataView(bytes.buffer);
    for (const [index, value] of [stub, rdi, rsi].entries()) view.setBigUint64(index * 8, value, true);
    return {
      registers: [
        { name: 'rsp', value: low },
        { name: 'rdi', value: first },
        { name: 'rsi', value: second },
      ],
      memory: [{ address: low, bytes }],
      stackPointer: addOffset(low, 8),
    };
  },
  changes: ['rsp', 'rdi', 'rsi'],
};
