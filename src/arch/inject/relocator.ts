import { type Addr, addOffset } from '../../base/addr.js';
import { isRefusal, type Refusal } from '../../base/errors.js';
import type { Displaced, DisplacedInside, InnerPatch, PatchKind } from './displaced.js';
import type { FramedCode } from './framed-code.js';
import {
  type Decodable,
  type Decoded,
  type Instructions,
  type JumpKind,
  jumpTo,
  type LandingPad,
  type Move,
  type Placed,
  type Target,
} from './movable.js';
import { type Moving, Taken, type TakenCode } from './taken.js';

/** Takes instructions out of functions, so that they can be run elsewhere. */
export class Relocator<I extends Decodable, Code extends FramedCode> {
  readonly #parts: Instructions<I, Code>;
  readonly #moving: Moving<Placed<I>>;
  #last: { readonly code: Uint8Array; readonly found: Decoded<I> } | undefined;

  constructor(parts: Instructions<I, Code>) {
    this.#parts = parts;
    this.#moving = {
      decode: (code) => this.#decodeAll(code),
      text: (placed, start) => this.textAt(placed, start),
      encode: (taken, places, at, goesOn) => this.#encode(taken, places, at, goesOn),
    };
  }

  displace(code: Uint8Array, start: Addr, kind: PatchKind): Displaced | Refusal {
    const { patchLengths, setsStackUp, far } = this.#parts;
    const { body, targets } = this.decoded(code);
    const patchLength = patchLengths[kind];
    const pad = this.#padOf(body);
    const before = pad?.bytes ?? 0;
    const first: Placed<I>[] = [];
    let length = 0;
    for (const { instruction, offset } of body) {
      if (length >= patchLength) break;
      if (offset < before) continue;
      first.push({ instruction, offset: offset - before });
      length += instruction.length;
    }
    if (length < patchLength)
      return { refused: `its code is shorter than the jump (${length} of ${patchLength} bytes)` };
    const behindPad = addOffset(start, before);
    const reason =
      entered(targets, before, before + length) ??
      this.#arrival(first, behindPad) ??
      (setsStackUp(body) ? 'it sets the stack pointer up, so there may be no stack at its start' : undefined) ??
      (kind === 'far' ? this.#needsFar(body, first) : undefined);
    if (reason !== undefined) return { refused: reason };
    const taken = {
      ...{ kind, patchLength, start: behindPad, length },
      code: before === 0 ? code : code.subarray(before),
      through: kind === 'far' ? far.name : undefined,
      hookRefused: this.#hookRefusal(body, targets, before),
      signs: pad?.signs,
    };
    const moves = this.#movesOf(first, taken);
    return isRefusal(moves) ? moves : new Taken(this.#moving, taken);
  }

  displaceInside(code: Uint8Array, start: Addr, place: number, { kind, free }: InnerPatch): DisplacedInside | Refusal {
    const { patchLengths, farInside } = this.#parts;
    const through = kind === 'far' ? farInside?.(free) : undefined;
    if (kind === 'far' && through === undefined) return { refused: 'no register is free for a jump far away' };
    const taken = this.#decodeAll(code);
    const last = taken.at(-1);
    if (last === undefined || last.offset + last.instruction.length < code.length)
      return { refused: 'its code is not known' };
    if (code.length < patchLengths[kind]) return { refused: `${code.length} bytes are shorter than the jump` };
    const head = taken.filter(({ offset }) => offset < place);
    const leaving = head.find(({ instruction: { form } }) => /^(branch|jump|jump-register)$/.test(form));
    if (leaving) return { refused: `${this.textAt(leaving, start)} cannot be carried out elsewhere` };
    const arrival = this.#arrival(taken, start);
    if (arrival !== undefined) return { refused: arrival };
    const all = { kind, patchLength: patchLengths[kind], start, code, length: code.length, through };
    const moves = this.#movesOf(taken, all);
    return isRefusal(moves) ? moves : new Taken(this.#moving, all, head.length);
  }

  loopsToStart(code: Uint8Array): boolean {
    const { body, targets } = this.decoded(code);
    return targets.some(isLoop(this.#padOf(body)?.bytes ?? 0));
  }

  /** Kept for the last function, because several questions about one follow each other. Its bytes never change. */
  decoded(code: Uint8Array): Decoded<I> {
    if (this.#last?.code === code) return this.#last.found;
    const body = this.#decodeAll(code);
    const targets = body.flatMap((placed, index): Target[] => {
      const target = this.#parts.target(placed, body[index - 1]);
      return target ? [{ from: placed.offset, to: placed.offset + target.distance, link: target.link }] : [];
    });
    const found = { body, targets };
    this.#last = { code, found };
    return found;
  }

  textAt({ instruction, offset }: Placed<I>, start: Addr): string {
    return this.#parts.text(instruction, addOffset(start, offset));
  }

  returnsFromTrap(body: readonly Placed<I>[]): boolean {
    return body.some(({ instruction }) => this.#parts.returnsFromTrap(instruction));
  }

  /** From the start to where the bytes end or have no instruction of known length. */
  #decodeAll(code: Uint8Array): Placed<I>[] {
    const body: Placed<I>[] = [];
    for (let offset = 0; ; ) {
      const instruction = this.#parts.decode(code, offset);
      if (instruction === undefined) return body;
      body.push({ instruction, offset });
      offset += instruction.length;
    }
  }

  #padOf([first]: readonly Placed<I>[]): LandingPad | undefined {
    return first && this.#parts.landingPad?.(first.instruction);
  }

  #movesOf(placed: readonly Placed<I>[], taken: TakenCode): readonly Move<Code>[] | Refusal {
    const { start, code, length: displaced } = taken;
    const how = this.#howOf(taken);
    const moves: Move<Code>[] = [];
    for (const one of placed) {
      const move = this.#parts.movesStack(one.instruction)
        ? 'changes stacks, and the jump back may need one'
        : this.#parts.move({ ...one, at: addOffset(start, one.offset), how, code, displaced });
      if (typeof move === 'string') return { refused: `${this.textAt(one, start)} ${move}` };
      moves.push(move);
    }
    return moves;
  }

  #encode(taken: TakenCode, places: readonly Placed<I>[], at: Addr, goesOn: boolean): Uint8Array {
    const code = this.#parts.create(at);
    const moves = this.#movesOf(places, taken);
    if (taken.signs) this.#parts.sign?.(code, taken.signs);
    // None was refused when they were taken, and the code is the same.
    if (!isRefusal(moves)) for (const move of moves) move(code);
    if (goesOn) jumpTo(code, this.#howOf(taken), addOffset(taken.start, taken.length));
    return code.finish();
  }

  #howOf({ kind, through }: TakenCode): JumpKind {
    const { is, far } = this.#parts;
    return { kind, through: through === undefined ? far.register : is.registerNamed(through) };
  }

  /** A landing pad behind the first instruction is one of a jump table, or of a call that returns twice. */
  #arrival(placed: readonly Placed<I>[], start: Addr): string | undefined {
    const pad = placed.find(({ instruction }) => this.#parts.mayArrive?.(instruction));
    return pad && `${this.textAt(pad, start)} is where an indirect jump may arrive`;
  }

  /** Why the register of a far jump is in use: the caller passed something in it, or the first instructions set it. */
  #needsFar(body: readonly Placed<I>[], first: readonly Placed<I>[]): string | undefined {
    const { register, name } = this.#parts.far;
    if (this.returnsFromTrap(body)) return 'it returns from a trap, so every register is in use at its start';
    if (first.some(({ instruction }) => this.#parts.writes(instruction, register)))
      return `its first instructions set ${name}`;
    return this.#readsAtStart(body, register) ? `it uses ${name} as it was at its start` : undefined;
  }

  /** Other code would find a frame that is pushed for a return which never comes. */
  #hookRefusal(body: readonly Placed<I>[], targets: readonly Target[], before: number): string | undefined {
    if (this.returnsFromTrap(body)) return 'it returns from a trap, not to a return address';
    if (targets.some(isLoop(before)))
      return 'it loops to its first instruction, and every turn would push another frame';
    const others = body.flatMap(({ instruction }) => this.#parts.returnsBy(instruction) ?? []);
    return others.some((register) => this.#readsAtStart(body, register))
      ? 'it was called with its return address elsewhere than in the usual register'
      : undefined;
  }

  /**
   * Whether the register is read on some way from the start before it is written. A call counts as a write, by the
   * calling convention.
   */
  #readsAtStart(body: readonly Placed<I>[], register: number): boolean {
    const { reads, writes, calls, target } = this.#parts;
    if (!body.some(({ instruction }) => reads(instruction, register))) return false;
    const byOffset = new Map(body.map((placed) => [placed.offset, placed]));
    const seen = new Set<number>();
    const open = [0];
    for (let offset = open.pop(); offset !== undefined; offset = open.pop()) {
      const placed = byOffset.get(offset);
      if (placed === undefined || seen.has(offset)) continue;
      seen.add(offset);
      const { instruction } = placed;
      if (reads(instruction, register)) return true;
      if (calls(instruction) || writes(instruction, register)) continue;
      const distance = target(placed, undefined)?.distance;
      if (distance !== undefined) open.push(offset + distance);
      if (!/^jump/.test(instruction.form)) open.push(offset + instruction.length);
    }
    return false;
  }
}

function entered(targets: readonly Target[], low: number, high: number): string | undefined {
  const inside = targets.find(({ to }) => to > low && to < high);
  return inside && `a branch ${inside.from} bytes into it leads to byte ${inside.to}, which the jump overwrites`;
}

/** To the first instruction, or to the one behind its landing pad. */
const isLoop =
  (before: number) =>
  ({ to, link }: Target): boolean =>
    (to === 0 || to === before) && !link;
