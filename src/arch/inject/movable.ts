import type { Addr } from '../../base/addr.js';
import type { Displaced, PatchKind } from './displaced.js';
import type { FramedCode, LoadStore } from './framed-code.js';

export interface Placed<I> {
  readonly instruction: I;
  readonly offset: number;
}

/** Where a direct jump, branch or call leads. */
export interface Target {
  readonly from: number;
  /** Offset from the function's start. */
  readonly to: number;
  /** Whether it is a call. */
  readonly link: boolean;
}

/** How moved code jumps. A far jump destroys this register, as the patch did. */
export interface JumpKind {
  readonly kind: PatchKind;
  readonly through: number;
}

/** Writes one displaced instruction at its new place, in the same number of bytes everywhere. */
export type Move<Code> = (code: Code) => void;

/** An instruction that is taken out of `code`, whose first `displaced` bytes are overwritten or taken, too. */
export interface Leaving<I> extends Placed<I> {
  readonly at: Addr;
  readonly how: JumpKind;
  readonly code: Uint8Array;
  readonly displaced: number;
}

/** An instruction that a function begins with and where control may arrive: it stays, and the patch comes behind it. */
export interface LandingPad {
  readonly bytes: number;
  readonly signs: Displaced['signs'];
}

/** Forms that say something here: `branch`, `jump` and `jump-register`, calls among them. */
export interface Decodable {
  readonly form: string;
  readonly length: number;
}

/** What is true of an architecture's instructions, so that they can be taken out of a function and run elsewhere. */
export interface Instructions<I extends Decodable, Code extends FramedCode> {
  readonly create: (at: Addr) => Code;
  readonly is: LoadStore;
  readonly decode: (code: Uint8Array, offset: number) => I | undefined;
  readonly text: (instruction: I, at: Addr) => string;
  /** Bytes of a jump. A far one at a function's start goes through this register. */
  readonly patchLengths: Readonly<Record<PatchKind, number>>;
  readonly far: { readonly register: number; readonly name: string };
  /** How far a branch, jump or call leads from its own place; `before` may have a part of the distance. */
  readonly target: (
    placed: Placed<I>,
    before: Placed<I> | undefined,
  ) => { readonly distance: number; readonly link: boolean } | undefined;
  readonly reads: (instruction: I, register: number) => boolean;
  readonly writes: (instruction: I, register: number) => boolean;
  /** A call of another function: it may overwrite every register that the convention lets it. */
  readonly calls: (instruction: I) => boolean;
  readonly returnsFromTrap: (instruction: I) => boolean;
  /** The register through which it returns, if that is not the usual one. */
  readonly returnsBy: (instruction: I) => number | undefined;
  /** Code that sets its stack up starts without one. */
  readonly setsStackUp: (body: readonly Placed<I>[]) => boolean;
  /** Whether it changes sp by more than a number, by which a frame grows or shrinks. */
  readonly movesStack: (instruction: I) => boolean;
  readonly landingPad?: (first: I) => LandingPad | undefined;
  /** Whether an indirect jump may lead to it. */
  readonly mayArrive?: (instruction: I) => boolean;
  /** What must come before the instructions behind such a landing pad. */
  readonly sign?: (code: Code, signs: NonNullable<Displaced['signs']>) => void;
  /** The register that a jump inside a function may destroy, by its name; undefined if there can be none. */
  readonly farInside?: (free: string | undefined) => string | undefined;
  /** How it is run elsewhere, or the end of a sentence that says why it cannot be. */
  readonly move: (leaving: Leaving<I>) => Move<Code> | string;
  readonly isPadding: (instruction: I) => boolean;
  /** What a compiler may put last: a jump, a noreturn call, or a trap. */
  readonly mayEnd: (instruction: I) => boolean;
  /** Of a jump with no target that is known: it returns, or may lead anywhere. */
  readonly leaves: (instruction: I) => 'returns' | 'anywhere' | undefined;
  /** What a return does besides, written before it is left by the trampoline. */
  readonly beforeReturn?: (instruction: I) => readonly number[];
  /** A tail jump elsewhere. */
  readonly jumpOn: (code: Code, last: I, bytes: Uint8Array, to: Addr) => void;
}

export interface Decoded<I> {
  readonly body: readonly Placed<I>[];
  readonly targets: readonly Target[];
}

/** A jump that costs no more than the patch did. */
export function jumpTo(code: FramedCode, { kind, through }: JumpKind, to: Addr): void {
  if (kind === 'near') code.jumpNear(to);
  else code.jumpFar(to, through);
}
