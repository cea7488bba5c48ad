import { type Addr, addOffset } from '../../base/addr.js';
import { isRefusal, type Refusal } from '../../base/refusal.js';
import type { ExitOptions, FunctionExit } from '../inject/displaced.js';
import { Assembler, T0 } from './assembler.js';
import type { Instruction } from './decode.js';
import { textOf } from './disassembly.js';
import { authenticating, reads, returnsFromTrap } from './position.js';
import { LR } from './registers.js';
import { decoded, type Move, moveOf, type Placed, patchLengths, type Target } from './relocate.js';

/** How an instruction leaves the function, if it does. */
type Way =
  | { readonly kind: 'return'; readonly signed?: keyof typeof authenticating }
  | { readonly kind: 'tail'; readonly to: number }
  | Refusal
  | undefined;

/** See `ProbeCode.ends`. */
export function ends(code: Uint8Array, start: Addr, options: ExitOptions): readonly FunctionExit[] | Refusal {
  const { body, targets } = decoded(code);
  if (returnsFromTrap(body.map(({ instruction }) => instruction))) return { refused: 'it returns from a trap' };
  const last = body.findLast(({ instruction }) => !isPadding(instruction));
  if (last !== undefined && !mayEnd(last.instruction)) return { refused: 'it may run into the code behind it' };
  const found: FunctionExit[] = [];
  let free = options.from;
  for (const [index, placed] of body.entries()) {
    const way = wayOut(placed, targets, code.length, start);
    if (way === undefined) continue;
    if ('refused' in way) return way;
    const end = endAt(body, index, way, { ...options, start, targets, free });
    if ('refused' in end) return end;
    found.push(end);
    free = Number(end.start - start) + end.patchLength;
  }
  return found;
}

/** What a compiler may put last: a jump, a noreturn call, or a trap. */
function mayEnd({ form }: Instruction): boolean {
  return form === 'jump' || form === 'jump-register' || form === 'trap';
}

function isPadding(instruction: Instruction): boolean {
  return (instruction.form === 'hint' && instruction.imm === 0) || instruction.word === 0;
}

function wayOut({ instruction, offset }: Placed, targets: readonly Target[], size: number, start: Addr): Way {
  const isInside = (to: number): boolean => to >= 0 && to < size;
  const text = (): string => textOf(instruction.word, addOffset(start, offset));
  const known = targets.find(({ from, link }) => from === offset && !link);
  if (instruction.form === 'branch')
    return known && !isInside(known.to) ? { refused: `${text()} leads out of it` } : undefined;
  if (instruction.form === 'jump') return known && !isInside(known.to) ? { kind: 'tail', to: known.to } : undefined;
  if (instruction.form !== 'jump-register' || instruction.op === 'blr') return undefined;
  if (instruction.op === 'br' || instruction.rn !== LR) return { refused: `${text()} may lead anywhere` };
  if (!instruction.isSigned) return { kind: 'return' };
  // retaa, retab.
  return { kind: 'return', signed: (instruction.word & 0x400) === 0 ? 'paciasp' : 'pacibsp' };
}

interface Surroundings extends ExitOptions {
  readonly start: Addr;
  readonly targets: readonly Target[];
  /** The first byte that is not patched yet. */
  readonly free: number;
}

/** What the trampoline carries out in place of the instructions that the jump for an exit overwrites. */
function movesOf(
  overwritten: readonly Placed[],
  { start, kind, room }: Pick<Surroundings, 'start' | 'kind'> & { readonly room: number },
  where: string,
): readonly Move[] | Refusal {
  const through = kind === 'far' ? T0 : undefined;
  const moves: Move[] = [];
  for (const placed of overwritten) {
    const { instruction, offset } = placed;
    const text = textOf(instruction.word, addOffset(start, offset));
    const { form } = instruction;
    if (form === 'jump' || form === 'jump-register' || form === 'branch')
      return { refused: `${text} stands before ${where}` };
    if (kind === 'far' && reads(instruction, T0))
      return { refused: `${text} needs the register that the jump destroys` };
    const move = moveOf(placed, addOffset(start, offset), { kind, through }, room);
    if (typeof move === 'string') return { refused: `${text} ${move}` };
    moves.push(move);
  }
  return moves;
}

/** The jump for the exit at `index`: as late as it fits, followed by nops that are never run. */
function endAt(
  body: readonly Placed[],
  index: number,
  way: Exclude<Way, Refusal | undefined>,
  { start, targets, free, kind, inRegisters }: Surroundings,
): FunctionExit | Refusal {
  const last = body[index] as Placed;
  const patchLength = patchLengths[kind];
  const where = `the end ${last.offset} bytes into it`;
  const tail = way.kind === 'tail' ? addOffset(start, way.to) : undefined;
  if (tail !== undefined && !inRegisters(tail)) {
    const text = textOf(last.instruction.word, addOffset(start, last.offset));
    return { refused: `${text} leads to code that may take arguments on the stack` };
  }
  let room = last.offset + 4;
  for (let next = index + 1; body[next] && isPadding((body[next] as Placed).instruction); next++) {
    const { offset } = body[next] as Placed;
    if (targets.some(({ to }) => to === offset)) break;
    room = offset + 4;
  }
  const first = Math.max(0, Math.min(index, Math.floor((room - patchLength) / 4)));
  const from = (body[first] as Placed).offset;
  if (from + patchLength > room || from < free) return { refused: `there is no room for a jump at ${where}` };
  // Also behind the jump: a branch to the last instruction itself would leave unseen.
  const taken = Math.max(from + patchLength, last.offset + 4);
  const inside = targets.find(({ to }) => to > from && to < taken);
  if (inside) return { refused: `a branch ${inside.from} bytes into it leads into the jump for ${where}` };
  const moves = movesOf(body.slice(first, index), { start, kind, room }, where);
  if (isRefusal(moves)) return moves;
  const signed = way.kind === 'return' ? way.signed : undefined;
  return {
    kind,
    start: addOffset(start, from),
    patchLength,
    length: taken - from,
    tail,
    before(at) {
      const assembler = new Assembler(at);
      for (const move of moves) move(assembler);
      if (signed) assembler.emit(authenticating[signed]);
      return assembler.finish();
    },
    leave(at) {
      const assembler = new Assembler(at);
      // A linker may let any jump go through code that changes x16.
      if (tail !== undefined) assembler.jumpFar(tail, T0);
      return assembler.finish();
    },
  };
}
