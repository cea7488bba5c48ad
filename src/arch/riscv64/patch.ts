import { type Addr, addOffset } from '../../base/addr.js';
import type { Displaced, FunctionExit, Hop } from '../inject/displaced.js';
import { Assembler, cAddiSp, cLdsp, cSdsp0, T0 } from './assembler.js';
import { decode } from './decode.js';
import { registerNamed } from './registers.js';

/** The jump that replaces a function's start, or one of its exits. */
export function patch(displaced: Displaced | FunctionExit, to: Addr): Uint8Array {
  const assembler = new Assembler(displaced.start);
  if (displaced.kind === 'near') assembler.jumpNear(to);
  else assembler.jumpFar(to, throughOf(displaced));
  return assembler.finish();
}

function throughOf(displaced: Displaced | FunctionExit): number {
  const name = 'through' in displaced ? displaced.through : undefined;
  return name === undefined ? T0 : registerNamed(name);
}

export function patchTarget(code: Uint8Array, start: Addr): Addr | undefined {
  const first = decode(code);
  if (first === undefined || first.compressed) return undefined;
  if (first.form === 'jump') return first.rd === 0 ? addOffset(start, first.imm) : undefined;
  const second = decode(code, 4);
  if (first.op !== 'auipc' || second?.form !== 'jump-register' || second.compressed) return undefined;
  return second.rd === 0 && second.rs1 === first.rd ? addOffset(start, first.imm + second.imm) : undefined;
}

/** Bytes of stack that a hop takes: t0 at the lowest. */
export const HOP_FRAME = 16;
/** Where the trampoline comes back to, as an offset from the hop's start. */
export const HOP_BACK = 12;

function head(at: Addr, to: Addr): Uint8Array {
  const assembler = new Assembler(at);
  beginHop(assembler);
  assembler.jumpFar(to, T0);
  return assembler.finish();
}

export function beginHop(assembler: Assembler): void {
  assembler.emitCompressed(cAddiSp(-HOP_FRAME), cSdsp0(T0));
}

/** The state is again as it was before the hop. */
export function endHop(assembler: Assembler): void {
  assembler.emitCompressed(cLdsp(T0, 0), cAddiSp(HOP_FRAME));
}

/**
 *      addi  sp,sp,-16
 *      sd    t0,0(sp)
 *      auipc t0,...             to the trampoline
 *      jr    ...(t0)
 *      ld    t0,0(sp)           back from it
 *      addi  sp,sp,16
 *      ...                      the displaced instructions, and the jump into the function
 */
export const hop: Hop = {
  bytes: (displaced) => HOP_BACK + 4 + displaced.relocate(displaced.start).length,
  encode(displaced, at, to) {
    if (displaced.kind !== 'near') throw new RangeError('A far patch comes through no hop');
    const assembler = new Assembler(at);
    assembler.raw(head(at, to));
    endHop(assembler);
    assembler.raw(displaced.relocate(assembler.here));
    return assembler.finish();
  },
  headBytes: HOP_BACK,
  head,
  target(code, at) {
    const start = new Assembler(at);
    beginHop(start);
    const saves = start.finish();
    if (!saves.every((byte, i) => code[i] === byte)) return undefined;
    return patchTarget(code.subarray(saves.length), addOffset(at, saves.length));
  },
};
