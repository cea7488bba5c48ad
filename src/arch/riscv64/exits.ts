import { type Addr, addOffset } from '../../base/addr.js';
import { isRefusal, type Refusal } from '../../base/refusal.js';
import type { ExitOptions, FunctionExit } from '../inject/displaced.js';
import { Assembler, T0, T1 } from './assembler.js';
import type { Instruction } from './decode.js';
import { textOf } from './disassembly.js';
import { RA } from './registers.js';
import {
  decoded,
  type Move,
  moveOf,
  type Placed,
  patchLengths,
  reads,
  returnsFromTrap,
  type Target,
} from './relocate.js';

/** How an instruction leaves the function, if it does. */
type Way = { readonly kind: 'return' } | { readonly kind: 'tail'; readonly to: number } | Refusal | undefined;

/** See `ProbeCode.ends`. */
export function ends(code: Uint8Array, start: Addr, options: ExitOptions): readonly FunctionExit[] | Refusal {
  const { body, targets } = decoded(code);
  if (returnsFromTrap(body)) return { refused: 'it returns from a trap' };
  const last = body.findLast(({ instruction }) => !isNop(instruction));
  if (last !== undefined && !mayEnd(last.instruction)) return { refused: 'it may run into the code behind it' };
  const found: FunctionExit[] = [];
  let free = options.from;
  for (const [index, placed] of body.entries()) {
    const way = wayOut(placed, targets, code.length, start);
    if (way === undefined) continue;
    if ('refused' in way) return way;
    const end = endAt(body, index, way, { ...options, code, start, targets, free });
    if ('refused' in end) return end;
    found.push(end);
    free = Number(end.start - start) + end.patchLength;
  }
  return found;
}

/** What a compiler may put last: a jump, a noreturn call, or a trap. */
function mayEnd({ form }: Instruction): boolean {
  return form === 'jump' || form === 'jump-register' || form === 'system' || form === 'unknown';
}

function isNop(instruction: Instruction): boolean {
  return instruction.form === 'immediate' && instruction.op === 'addi' && instruction.rd === 0;
}

function wayOut({ instruction, offset }: Placed, targets: readonly Target[], size: number, start: Addr): Way {
  const isInside = (to: number): boolean => to >= 0 && to < size;
  const known = targets.find(({ from, link }) => from === offset && !link);
  const text = (): string => textOf(instruction, addOffset(start, offset));
  if (instruction.form === 'branch')
    return known && !isInside(known.to) ? { refused: `${text()} leads out of it` } : undefined;
  if (instruction.form !== 'jump' && instruction.form !== 'jump-register') return undefined;
  if (instruction.rd !== 0) return undefined;
  if (known) return isInside(known.to) ? undefined : { kind: 'tail', to: known.to };
  const isReturn = instruction.form === 'jump-register' && instruction.rs1 === RA && instruction.imm === 0;
  return isReturn ? { kind: 'return' } : { refused: `${text()} may lead anywhere` };
}

interface Surroundings extends ExitOptions {
  readonly code: Uint8Array;
  readonly start: Addr;
  readonly targets: readonly Target[];
  /** The first byte that is not patched yet. */
  readonly free: number;
}

/** What the trampoline carries out in place of the instructions that the jump for an exit overwrites. */
function movesOf(
  overwritten: readonly Placed[],
  { code, start, kind, room }: Pick<Surroundings, 'code' | 'start' | 'kind'> & { readonly room: number },
  where: string,
): readonly Move[] | Refusal {
  const moves: Move[] = [];
  for (const placed of overwritten) {
    const { instruction, offset } = placed;
    const text = textOf(instruction, addOffset(start, offset));
    const { form } = instruction;
    if (form === 'jump' || form === 'jump-register' || form === 'branch')
      return { refused: `${text} stands before ${where}` };
    if (kind === 'far' && reads(instruction, T0))
      return { refused: `${text} needs the register that the jump destroys` };
    const move = moveOf(placed, addOffset(start, offset), { kind, through: T0 }, code, room);
    if (typeof move === 'string') return { refused: `${text} ${move}` };
    moves.push(move);
  }
  return moves;
}

/** The jump for the exit at `index`: as late as it fits, followed by nops that are never run. */
function endAt(
  body: readonly Placed[],
  index: number,
  way: { readonly kind: 'return' } | { readonly kind: 'tail'; readonly to: number },
  { code, start, targets, free, kind, inRegisters }: Surroundings,
): FunctionExit | Refusal {
  const last = body[index] as Placed;
  const patchLength = patchLengths[kind];
  const at = addOffset(start, last.offset);
  const where = `the end ${last.offset} bytes into it`;
  const tail = way.kind === 'tail' ? addOffset(start, way.to) : undefined;
  if (tail !== undefined && !inRegisters(tail)) {
    return { refused: `${textOf(last.instruction, at)} leads to code that may take arguments on the stack` };
  }
  let room = last.offset + last.instruction.length;
  for (let next = index + 1; body[next] && isNop((body[next] as Placed).instruction); next++) {
    const { offset, instruction } = body[next] as Placed;
    if (targets.some(({ to }) => to === offset)) break;
    room = offset + instruction.length;
  }
  let first = index;
  while (first > 0 && (body[first] as Placed).offset + patchLength > room) first--;
  const from = (body[first] as Placed).offset;
  if (from + patchLength > room || from < free) return { refused: `there is no room for a jump at ${where}` };
  // Also behind the jump: a branch to the last instruction itself would leave unseen.
  const taken = Math.max(from + patchLength, last.offset + last.instruction.length);
  const inside = targets.find(({ to }) => to > from && to < taken);
  if (inside) return { refused: `a branch ${inside.from} bytes into it leads into the jump for ${where}` };
  const moves = movesOf(body.slice(first, index), { code, start, kind, room }, where);
  if (isRefusal(moves)) return moves;
  if (tail !== undefined && kind === 'far' && reads(last.instruction, T0))
    return { refused: `${textOf(last.instruction, at)} needs the register that the jump destroys` };
  const bytes = code.slice(last.offset, last.offset + last.instruction.length);
  return {
    kind,
    start: addOffset(start, from),
    patchLength,
    length: taken - from,
    tail,
    before(at) {
      const assembler = new Assembler(at);
      for (const move of moves) move(assembler);
      return assembler.finish();
    },
    leave(at) {
      const assembler = new Assembler(at);
      if (tail === undefined) return assembler.finish();
      // `tail` is auipc t1; jr t1. If the linker has relaxed it to one jump, t1 is free all the same.
      if (last.instruction.form === 'jump') assembler.jumpFar(tail, T1);
      else assembler.raw(bytes);
      return assembler.finish();
    },
  };
}
