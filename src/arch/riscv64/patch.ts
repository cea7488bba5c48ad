import { type Addr, addOffset } from '../../base/addr.js';
import { hopsOf } from '../inject/hops.js';
import { Assembler, cAddiSp, cLdsp, cSdsp0, T0 } from './assembler.js';
import { decode } from './decode.js';
import { patchLengths } from './relocate.js';

export function patchTarget(code: Uint8Array, start: Addr): Addr | undefined {
  const first = decode(code);
  if (first === undefined || first.compressed) return undefined;
  if (first.form === 'jump') return first.rd === 0 ? addOffset(start, first.imm) : undefined;
  const second = decode(code, 4);
  if (first.op !== 'auipc' || second?.form !== 'jump-register' || second.compressed) return undefined;
  return second.rd === 0 && second.rs1 === first.rd ? addOffset(start, first.imm + second.imm) : undefined;
}

/** `addi sp,sp,-16; sd t0,0(sp)`, compressed; and back. */
const FRAME = 16;
const save = [cAddiSp(-FRAME), cSdsp0(T0)];
const restore = [cLdsp(T0, 0), cAddiSp(FRAME)];

export const hops = hopsOf<Assembler>({
  ...{ create: (at) => new Assembler(at), far: T0, farBytes: patchLengths.far, frame: FRAME },
  save: (code) => code.emitCompressed(...save),
  restore: (code) => code.emitCompressed(...restore),
  target(code, at) {
    const saves = new Uint8Array(Uint16Array.from(save).buffer);
    if (!saves.every((byte, i) => code[i] === byte)) return undefined;
    return patchTarget(code.subarray(saves.length), addOffset(at, saves.length));
  },
});
