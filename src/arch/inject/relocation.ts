import { type Addr, addOffset } from '../../base/addr.js';
import { isRefusal, type Refusal } from '../../base/errors.js';
import type { ExitOptions, FunctionExit } from './displaced.js';
import type { FramedCode } from './framed-code.js';
import type { Decodable, Decoded, Instructions, Move, Placed, Target } from './movable.js';
import type { ProbeCode } from './probe-code.js';
import { Relocator } from './relocator.js';

/** A part of `ProbeCode`; and a function's instructions and where they lead. */
export type Relocation<I> = Pick<ProbeCode, 'displace' | 'displaceInside' | 'loopsToStart' | 'ends'> & {
  readonly decoded: (code: Uint8Array) => Decoded<I>;
};

/** Takes instructions out of functions, so that they can be run elsewhere. */
export function relocationOf<I extends Decodable, Code extends FramedCode>(
  parts: Instructions<I, Code>,
): Relocation<I> {
  const relocator = new Relocator(parts);
  const exits = new Exits(parts, relocator);
  return {
    displace: (code, start, kind) => relocator.displace(code, start, kind),
    displaceInside: (code, start, place, how) => relocator.displaceInside(code, start, place, how),
    loopsToStart: (code) => relocator.loopsToStart(code),
    ends: (code, start, options) => exits.of(code, start, options),
    decoded: (code) => relocator.decoded(code),
  };
}

/** How an instruction leaves the function, if it does. */
type Way = { readonly kind: 'return' } | { readonly kind: 'tail'; readonly to: number } | Refusal | undefined;

interface Surroundings extends ExitOptions {
  readonly code: Uint8Array;
  readonly start: Addr;
  readonly targets: readonly Target[];
  /** The first byte that is not patched yet. */
  readonly free: number;
}

/** The jumps for the exits of functions. */
class Exits<I extends Decodable, Code extends FramedCode> {
  readonly #parts: Instructions<I, Code>;
  readonly #relocator: Relocator<I, Code>;

  constructor(parts: Instructions<I, Code>, relocator: Relocator<I, Code>) {
    this.#parts = parts;
    this.#relocator = relocator;
  }

  of(code: Uint8Array, start: Addr, options: ExitOptions): readonly FunctionExit[] | Refusal {
    const { body, targets } = this.#relocator.decoded(code);
    if (this.#relocator.returnsFromTrap(body)) return { refused: 'it returns from a trap' };
    const last = body.findLast(({ instruction }) => !this.#parts.isPadding(instruction));
    if (last !== undefined && !this.#parts.mayEnd(last.instruction))
      return { refused: 'it may run into the code behind it' };
    const found: FunctionExit[] = [];
    let free = options.from;
    for (const [index, placed] of body.entries()) {
      const way = this.#wayOut(placed, targets, code.length, start);
      if (way === undefined) continue;
      if (isRefusal(way)) return way;
      const tail = way.kind === 'tail' ? addOffset(start, way.to) : undefined;
      const end = this.#endAt(body, index, tail, { ...options, code, start, targets, free });
      if (isRefusal(end)) return end;
      found.push(end);
      free = Number(end.start - start) + end.patchLength;
    }
    return found;
  }

  #wayOut(placed: Placed<I>, targets: readonly Target[], size: number, start: Addr): Way {
    const { instruction, offset } = placed;
    const known = targets.find(({ from, link }) => from === offset && !link);
    const text = (): string => this.#relocator.textAt(placed, start);
    if (known && known.to >= 0 && known.to < size) return undefined;
    if (instruction.form === 'branch') return known && { refused: `${text()} leads out of it` };
    if (known) return { kind: 'tail', to: known.to };
    const leaves = this.#parts.leaves(instruction);
    if (leaves === 'anywhere') return { refused: `${text()} may lead anywhere` };
    return leaves && { kind: 'return' };
  }

  /** What the trampoline carries out in place of the instructions that the jump for an exit overwrites. */
  #movesOf(
    overwritten: readonly Placed<I>[],
    { code, start, kind }: Surroundings,
    room: number,
    where: string,
  ): readonly Move<Code>[] | Refusal {
    const through = this.#parts.far.register;
    const moves: Move<Code>[] = [];
    for (const placed of overwritten) {
      const { instruction, offset } = placed;
      const text = this.#relocator.textAt(placed, start);
      if (/^(branch|jump|jump-register)$/.test(instruction.form)) return { refused: `${text} stands before ${where}` };
      if (kind === 'far' && this.#parts.reads(instruction, through))
        return { refused: `${text} needs the register that the jump destroys` };
      const at = addOffset(start, offset);
      const move = this.#parts.move({ ...placed, at, how: { kind, through }, code, displaced: room });
      if (typeof move === 'string') return { refused: `${text} ${move}` };
      moves.push(move);
    }
    return moves;
  }

  /** Where the instruction ends, and the padding behind it that no branch leads to. */
  #roomAt(body: readonly Placed<I>[], index: number, targets: readonly Target[]): number {
    const isFree = ({ instruction, offset }: Placed<I>): boolean =>
      this.#parts.isPadding(instruction) && !targets.some(({ to }) => to === offset);
    let last = index;
    for (let next = body[index + 1]; next !== undefined && isFree(next); next = body[last + 1]) last++;
    const { instruction, offset } = body[last] as Placed<I>;
    return offset + instruction.length;
  }

  /** The jump for the exit at `index`: as late as it fits, followed by nops that are never run. */
  #endAt(
    body: readonly Placed<I>[],
    index: number,
    tail: Addr | undefined,
    around: Surroundings,
  ): FunctionExit | Refusal {
    const { code, start, targets, free, kind, inRegisters } = around;
    const { create, patchLengths, far, reads, beforeReturn, jumpOn } = this.#parts;
    const last = body[index] as Placed<I>;
    const text = (): string => this.#relocator.textAt(last, start);
    const patchLength = patchLengths[kind];
    const where = `the end ${last.offset} bytes into it`;
    if (tail !== undefined && !inRegisters(tail))
      return { refused: `${text()} leads to code that may take arguments on the stack` };
    const room = this.#roomAt(body, index, targets);
    let first = index;
    while (first > 0 && (body[first] as Placed<I>).offset + patchLength > room) first--;
    const from = (body[first] as Placed<I>).offset;
    if (from + patchLength > room || from < free) return { refused: `there is no room for a jump at ${where}` };
    // Also behind the jump: a branch to the last instruction itself would leave unseen.
    const behind = last.offset + last.instruction.length;
    const taken = Math.max(from + patchLength, behind);
    const inside = targets.find(({ to }) => to > from && to < taken);
    if (inside) return { refused: `a branch ${inside.from} bytes into it leads into the jump for ${where}` };
    const moves = this.#movesOf(body.slice(first, index), around, room, where);
    if (isRefusal(moves)) return moves;
    if (tail !== undefined && kind === 'far' && reads(last.instruction, far.register))
      return { refused: `${text()} needs the register that the jump destroys` };
    const bytes = code.slice(last.offset, behind);
    return {
      ...{ kind, start: addOffset(start, from), patchLength, length: taken - from, tail },
      before(at) {
        const moved = create(at);
        for (const move of moves) move(moved);
        if (tail === undefined && beforeReturn) moved.emit(...beforeReturn(last.instruction));
        return moved.finish();
      },
      leave(at) {
        const moved = create(at);
        if (tail !== undefined) jumpOn(moved, last.instruction, bytes, tail);
        return moved.finish();
      },
    };
  }
}
