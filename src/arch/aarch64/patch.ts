import { type Addr, addOffset } from '../../base/addr.js';
import type { Displaced } from '../inject/displaced.js';
import { hopsOf } from '../inject/hops.js';
import { Assembler, farJumpBytes, pop, push, T0 } from './assembler.js';
import { decode } from './decode.js';
import { farTarget } from './disassembly.js';
import { authenticating } from './position.js';

export function patchTarget(code: Uint8Array, start: Addr): Addr | undefined {
  const first = decode(code);
  if (first?.form === 'jump') return first.link ? undefined : addOffset(start, first.imm);
  return farTarget(code, start, 0);
}

/** Undoes the landing pad that signed x30, which a trampoline wants as it was at the entry. */
export function unsign(assembler: Assembler, { signs }: Pick<Displaced, 'signs'>): void {
  if (signs !== undefined) assembler.emit(authenticating[signs]);
}

const FRAME = 16;

export const hops = hopsOf<Assembler>({
  ...{ create: (at) => new Assembler(at), far: T0, farBytes: farJumpBytes, frame: FRAME, unsign },
  save: (code) => code.emit(push(T0, FRAME)),
  restore: (code) => code.emit(pop(T0, FRAME)),
  target(code, at) {
    const first = decode(code)?.word;
    const skipped = first === authenticating.paciasp || first === authenticating.pacibsp ? 4 : 0;
    if (decode(code, skipped)?.word !== push(T0, FRAME)) return undefined;
    return farTarget(code, at, skipped + 4);
  },
});
