import type { Addr } from '../../base/addr.js';
import type { Displaced, FunctionExit, Hop } from './displaced.js';
import type { FramedCode } from './framed-code.js';

/** Jumps in place of instructions, and the pieces of code that lead on where a near one does not reach. */
export interface HopParts<Code extends FramedCode> {
  readonly create: (at: Addr) => Code;
  /** The register of far jumps, and their bytes. */
  readonly far: number;
  readonly farBytes: number;
  /** Bytes of stack that a hop takes: that register at the lowest. It is saved and restored in four bytes of code each. */
  readonly frame: number;
  readonly save: (code: Code) => void;
  readonly restore: (code: Code) => void;
  /** Undoes the landing pad that signed the return address, in four bytes, before sp moves: it is part of the signature. */
  readonly unsign?: (code: Code, displaced: Pick<Displaced, 'signs'>) => void;
  readonly target: Hop['target'];
}

/**
 *      (undo a signature)
 *      save the register
 *      jump far                 to the trampoline
 *      restore the register     back from it
 *      ...                      the displaced instructions, and the jump into the function
 */
export function hopsOf<Code extends FramedCode>({ create, far, farBytes, frame, ...parts }: HopParts<Code>) {
  const back = ({ signs }: Pick<Displaced, 'signs'>): number => 4 + farBytes + (signs === undefined ? 0 : 4);
  const head = (at: Addr, to: Addr, displaced: Pick<Displaced, 'signs'> = {}): Uint8Array => {
    const code = create(at);
    parts.unsign?.(code, displaced);
    parts.save(code);
    code.jumpFar(to, far);
    return code.finish();
  };
  const hop: Hop = {
    bytes: (displaced) => back(displaced) + 4 + displaced.relocate(displaced.start).length,
    encode(displaced, at, to) {
      if (displaced.kind !== 'near') throw new RangeError('A far patch comes through no hop');
      const code = create(at);
      code.raw(head(at, to, displaced));
      parts.restore(code);
      code.raw(displaced.relocate(code.here));
      return code.finish();
    },
    headBytes: 4 + farBytes + (parts.unsign ? 4 : 0),
    head: (at, to) => head(at, to),
    target: parts.target,
  };
  return {
    hop,
    /** What a trampoline has to know. */
    parts: { frame, back, begin: parts.save, end: parts.restore },
    /** The jump that replaces a function's start, or one of its exits. */
    patch(displaced: Displaced | FunctionExit, to: Addr): Uint8Array {
      const code = create(displaced.start);
      const through = 'through' in displaced ? displaced.through : undefined;
      if (displaced.kind === 'near') code.jumpNear(to);
      else code.jumpFar(to, through === undefined ? far : code.is.registerNamed(through));
      return code.finish();
    },
  };
}
