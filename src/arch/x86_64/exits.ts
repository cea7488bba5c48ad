import { type Addr, addOffset, hex } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { ExitOptions, FunctionExit } from '../inject/displaced.js';
import { Assembler } from './assembler.js';
import { describe, holdsInterrupts, instructions, type Place, patchBytes, type Writer, writerOf } from './relocate.js';

/** How an instruction leaves the function, if it does. */
type Way = { readonly kind: 'return' } | { readonly kind: 'tail'; readonly to: Addr } | Refusal | undefined;

/** See `ProbeCode.ends`. The decoder must be loaded (`prepare`). */
export function ends(code: Uint8Array, start: Addr, options: ExitOptions): readonly FunctionExit[] | Refusal {
  const { kind, from, inRegisters } = options;
  if (kind !== 'near') return { refused: 'the only patch for x86_64 is a jmp rel32' };
  const ways: (readonly [number, Exclude<Way, Refusal | undefined>])[] = [];
  const places: Place[] = [];
  // The first objection ends it: decoding the rest takes long.
  for (const place of instructions(code, start)) {
    const { op } = place.instruction;
    if (op === 'unknown' || op === 'xbegin') return { refused: `${describe(place)} may lead anywhere` };
    const way = wayOut(place, start, code.length);
    if (way && 'refused' in way) return way;
    if (way?.kind === 'tail' && !inRegisters(way.to))
      return { refused: `${describe(place)} leads to code that may take arguments on the stack` };
    if (way) ways.push([places.length, way]);
    places.push(place);
  }
  const last = places.findLast((place) => !isPadding(place));
  if (last !== undefined && !mayEnd(last)) return { refused: 'it may run into the code behind it' };
  const found: FunctionExit[] = [];
  let free = addOffset(start, from);
  for (const [index, way] of ways) {
    const end = endAt(places, index, way.kind === 'tail' ? way.to : undefined, free);
    if ('refused' in end) return end;
    found.push(end);
    free = addOffset(end.start, patchBytes);
  }
  return found;
}

function isPadding({ instruction: { op } }: Place): boolean {
  return op === 'nop' || op === 'int3';
}

/** What a compiler may put last: a jump, a noreturn call, or a trap. */
function mayEnd({ instruction: { op, flow } }: Place): boolean {
  return flow === 'jump' || flow === 'return' || flow === 'call' || /^(ud\d\w*|hlt)$/.test(op);
}

function wayOut(place: Place, start: Addr, size: number): Way {
  const { flow, target, op, operands } = place.instruction;
  const isInside = target !== undefined && target >= start && target < addOffset(start, size);
  switch (flow) {
    case 'return':
      // Not a return with a number of bytes, nor from an interrupt or to another segment.
      return /^((repz?|bnd|notrack) )?ret$/.test(op) && operands.length === 0
        ? { kind: 'return' }
        : { refused: `${describe(place)} is no plain return` };
    case 'branch':
      return target !== undefined && isInside ? undefined : { refused: `${describe(place)} leads out of it` };
    case 'jump':
      if (isInside) return undefined;
      return target === undefined ? { refused: `${describe(place)} may lead anywhere` } : { kind: 'tail', to: target };
    default:
      return undefined;
  }
}

/** The jump for the exit at `index`: as late as it fits, followed by padding that is never run. */
function endAt(places: readonly Place[], index: number, tail: Addr | undefined, free: Addr): FunctionExit | Refusal {
  const last = places[index] as Place;
  const where = `the end at +${hex(last.offset)}`;
  const addressOf = (place: Place): Addr => addOffset(place.next, -place.bytes.length);
  const targets = places.flatMap((place) => (place.instruction.target === undefined ? [] : [place]));
  let room = last.next;
  for (let next = index + 1; places[next] && isPadding(places[next] as Place); next++) {
    const padding = places[next] as Place;
    if (targets.some(({ instruction }) => instruction.target === addressOf(padding))) break;
    room = padding.next;
  }
  const fits = (place: Place): boolean => addOffset(addressOf(place), patchBytes) <= room;
  let first = index;
  const isHeld = (at: number): boolean => holdsInterrupts((places[at - 1] as Place).instruction);
  while (first > 0 && (!fits(places[first] as Place) || isHeld(first))) first--;
  const start = addressOf(places[first] as Place);
  const end = addOffset(start, patchBytes);
  if (end > room || start < free) return { refused: `there is no room for a jump at ${where}` };
  // Also behind the jump: a branch to the last instruction itself would leave unseen.
  const isTaken = (at: bigint): boolean => at > start && (at < end || at < last.next);
  const entering = targets.find(({ instruction: { target = 0n } }) => isTaken(target));
  if (entering) return { refused: `${describe(entering)} leads into the jump for ${where}` };
  const writers: Writer[] = [];
  for (const place of places.slice(first, index)) {
    const write = place.instruction.flow === 'next' ? writerOf(place, undefined) : undefined;
    if (write === undefined) return { refused: `${describe(place)} stands before ${where}` };
    writers.push(write);
  }
  return {
    kind: 'near',
    start,
    patchLength: patchBytes,
    length: Math.max(patchBytes, Number(last.next - start)),
    tail,
    before(at) {
      const code = new Assembler(at);
      for (const write of writers) write(code);
      return code.finish();
    },
    leave(at) {
      const code = new Assembler(at);
      if (tail !== undefined) code.jump(tail);
      return code.finish();
    },
  };
}
