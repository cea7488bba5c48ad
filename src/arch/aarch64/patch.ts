import { type Addr, addOffset } from '../../base/addr.js';
import type { Displaced, FunctionExit, Hop } from '../inject/displaced.js';
import { Assembler, farJumpBytes, pop, push, T0 } from './assembler.js';
import { decode } from './decode.js';
import { farTarget } from './disassembly.js';
import { authenticating } from './position.js';

/** The jump that replaces a function's start, or one of its exits. */
export function patch(displaced: Displaced | FunctionExit, to: Addr): Uint8Array {
  const assembler = new Assembler(displaced.start);
  if (displaced.kind === 'near') assembler.jumpNear(to);
  else assembler.jumpFar(to, T0);
  return assembler.finish();
}

export function patchTarget(code: Uint8Array, start: Addr): Addr | undefined {
  const first = decode(code);
  if (first?.form === 'jump') return first.link ? undefined : addOffset(start, first.imm);
  return farTarget(code, start, 0);
}

/** Bytes of stack that a hop takes: x16 at the lowest. */
export const HOP_FRAME = 16;

/** Undoes the landing pad that signed x30, which a trampoline wants as it was at the entry. */
export function unsign(assembler: Assembler, { signs }: Pick<Displaced, 'signs'>): void {
  if (signs !== undefined) assembler.emit(authenticating[signs]);
}

function head(at: Addr, to: Addr, displaced: Pick<Displaced, 'signs'> = {}): Uint8Array {
  const assembler = new Assembler(at);
  // Before sp moves: it is part of the signature.
  unsign(assembler, displaced);
  beginHop(assembler);
  assembler.jumpFar(to, T0);
  return assembler.finish();
}

/** Where the trampoline comes back to, as an offset from the hop's start. */
export function hopBack({ signs }: Pick<Displaced, 'signs'>): number {
  return 4 + farJumpBytes + (signs === undefined ? 0 : 4);
}

/** The state is again as it was before the hop. */
export function endHop(assembler: Assembler): void {
  assembler.emit(pop(T0, HOP_FRAME));
}

export function beginHop(assembler: Assembler): void {
  assembler.emit(push(T0, HOP_FRAME));
}

/**
 *      (autiasp)                behind a `paciasp`
 *      str   x16, [sp, -16]!
 *      adrp  x16, ...           to the trampoline
 *      add   x16, x16, ...
 *      ret   x16
 *      ldr   x16, [sp], 16      back from it
 *      ...                      the displaced instructions, and the jump into the function
 */
export const hop: Hop = {
  bytes: (displaced) => hopBack(displaced) + 4 + displaced.relocate(displaced.start).length,
  encode(displaced, at, to) {
    if (displaced.kind !== 'near') throw new RangeError('A far patch comes through no hop');
    const assembler = new Assembler(at);
    assembler.raw(head(at, to, displaced));
    endHop(assembler);
    assembler.raw(displaced.relocate(assembler.here));
    return assembler.finish();
  },
  headBytes: 4 + 4 + farJumpBytes,
  head: (at, to) => head(at, to),
  target(code, at) {
    const first = decode(code)?.word;
    const skipped = first === authenticating.paciasp || first === authenticating.pacibsp ? 4 : 0;
    if (decode(code, skipped)?.word !== push(T0, HOP_FRAME)) return undefined;
    return farTarget(code, at, skipped + 4);
  },
};
