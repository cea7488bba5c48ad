import type { CodeRange, Confidence, FrameAt, FrameModel, FunctionFrames } from '../../arch/index.js';
import type { Addr } from '../../base/addr.js';
import type { CallFrames } from '../../dwarf/index.js';
import type { CodeAddress, CodeSpace } from '../../elf/index.js';
import type { CodeMap } from './code-map.js';
import type { Found, Picked, Place, Unwinder, UnwinderName } from './frame.js';

/** How many analysed functions are kept: the functions of a few thousand stacks. */
const MAX_FUNCTIONS = 20_000;

/** What the code itself says about a place; shared by the two unwinders that read code. */
export class CodeFrames {
  readonly #model: FrameModel;
  readonly #code: CodeMap;
  readonly #codes: CodeSpace;
  readonly #functions = new Map<CodeAddress, FunctionFrames>();
  readonly #exact = new Map<CodeAddress, FrameAt | undefined>();
  readonly #behind = new Map<CodeAddress, FrameAt | undefined>();

  constructor(model: FrameModel, code: CodeMap, codes: CodeSpace) {
    this.#model = model;
    this.#code = code;
    this.#codes = codes;
  }

  at({ pc, exact }: Place): FrameAt | undefined {
    const known = exact ? this.#exact : this.#behind;
    let found = known.get(pc);
    if (found !== undefined || known.has(pc)) return found;
    const frames = this.#framesOf(exact ? pc : pc - 1);
    const address = this.#codes.fromCode(pc);
    found = exact ? frames?.at(address) : frames?.behindCall(address);
    if (known.size >= 4 * MAX_FUNCTIONS) known.clear();
    known.set(pc, found);
    return found;
  }

  /** The function at an address, and those that it jumps to, directly or by others. */
  joinedTo(address: CodeAddress, most: number): readonly CodeAddress[] {
    const found: CodeAddress[] = [];
    const wanted = [address];
    for (let next = wanted.pop(); next !== undefined && found.length < most; next = wanted.pop()) {
      const low = this.#code.functionAt(next)?.low;
      if (low === undefined || found.includes(low)) continue;
      found.push(low);
      wanted.push(...(this.#framesOf(low)?.callersFrame().jumps ?? []).map((to) => this.#codes.toCode(to)));
    }
    return found;
  }

  #framesOf(address: CodeAddress): FunctionFrames | undefined {
    const code = this.#code.functionAt(address);
    if (code === undefined || this.#model.code === undefined) return undefined;
    let frames = this.#functions.get(code.low);
    if (frames === undefined) {
      frames = this.#model.code.analyse(code.ranges, (to) => this.#restAt(to));
      if (this.#functions.size >= MAX_FUNCTIONS) this.#functions.clear();
      this.#functions.set(code.low, frames);
    }
    return frames;
  }

  #restAt(address: Addr): readonly CodeRange[] {
    const low = this.#codes.toCode(address);
    const code = this.#code.functionAt(low);
    const { mayReturnFromTrap } = this.#model.code ?? {};
    if (code?.low !== low || !mayReturnFromTrap) return [];
    return code.ranges.some(({ bytes }) => mayReturnFromTrap(bytes)) ? code.ranges : [];
  }
}

const noReturnAddress: Found = { kind: 'end', reason: 'own-stack' };

/** Call frame information. */
export function cfiUnwinder(frames: CallFrames): Unwinder {
  return ({ pc, exact }) => {
    const row = frames.row(exact ? pc : pc - 1);
    return row && { kind: 'row', row, confidence: 'sure' };
  };
}

/**
 * The frame pointer, if the code keeps one. It is still the caller's before a prologue has set it up, behind an
 * epilogue, and in a leaf without one. If a frame is about to run on there, the code says where the return address
 * is.
 */
export function framePointerUnwinder(model: FrameModel, code: CodeFrames): Unwinder {
  const chained = (confidence: Confidence): Found => ({ kind: 'row', row: model.framePointerRow, confidence });
  return (place) => {
    const frame = code.at(place);
    // Code of which nothing is known may keep one.
    if (frame === undefined) return chained('guess');
    if (frame.kind === 'bottom') return noReturnAddress;
    if (frame.kind === 'unknown') return undefined;
    if (frame.framePointer) return chained(frame.confidence);
    return place.exact || frame.row.interrupted ? frame : undefined;
  };
}

/** What the function's code has done to the stack. */
export function prologueUnwinder(code: CodeFrames): Unwinder {
  return (place) => {
    const frame = code.at(place);
    if (frame?.kind === 'bottom') return noReturnAddress;
    return frame?.kind === 'row' ? frame : undefined;
  };
}

/**
 * The first unwinder that knows, in the order of their trustworthiness. A frame that is about to run on may be at an
 * instruction where call frame information is wrong. Examples are between the push and the pop of inline assembly,
 * and in an epilogue that the compiler did not describe. Another is behind a return address that was overwritten for
 * a noreturn call. There the code is believed, if it is sure. In an epilogue likely is enough: code that a jump
 * table leads to is assumed to have a frame, and that frame was seen to be freed.
 */
export function pick(
  place: Place,
  unwinders: Readonly<Record<UnwinderName, Unwinder>>,
  code: CodeFrames,
  model: FrameModel,
): Picked | undefined {
  const covered = unwinders.cfi(place);
  const refuted = covered !== undefined && place.exact && refutes(code.at(place), covered, model);
  if (covered !== undefined && !refuted) return { name: 'cfi', found: covered };
  const frame = code.at(place);
  const keepsPointer = frame?.kind === 'row' && frame.framePointer;
  for (const name of keepsPointer ? (['fp', 'prologue'] as const) : (['prologue', 'fp'] as const)) {
    const found = unwinders[name](place);
    if (found !== undefined) return { name, found };
  }
  return undefined;
}

/**
 * The code shows that a row cannot be right. Its distance to the CFA is another, its CFA comes from a register that has
 * the caller's value (again), or the return address is lost.
 */
function refutes(frame: FrameAt | undefined, claim: Found, model: FrameModel): boolean {
  if (frame?.kind !== 'row' || frame.confidence === 'guess' || claim.kind !== 'row') return false;
  const { preserved, stackPointer, cfaAtEntry } = model;
  const [known, claimed] = [frame.row, claim.row];
  if (known.cfa.kind !== 'register' || claimed.cfa.kind !== 'register' || known.interrupted) return false;
  const isCallers = preserved.includes(claimed.cfa.register) && !known.registers.has(claimed.cfa.register);
  if (isCallers && known.cfa.register !== claimed.cfa.register) return true;
  const isGone = known.cfa.register === stackPointer && known.cfa.offset === cfaAtEntry;
  if (frame.confidence === 'likely' && !isGone) return false;
  if (known.cfa.register === claimed.cfa.register && known.cfa.offset !== claimed.cfa.offset) return true;
  const kept = claimed.registers.get(claimed.returnAddress)?.kind ?? 'same';
  return kept === 'same' && known.registers.get(known.returnAddress)?.kind === 'undefined';
}
