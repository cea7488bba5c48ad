import { type Addr, addOffset, addr, hex } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { Displaced, DisplacedInside, InnerPatch, PatchKind } from '../inject/displaced.js';
import { type Moving, Taken } from '../inject/taken.js';
import { Assembler } from './assembler.js';
import { decode, type Flow, type Instruction } from './decode.js';
import { conditions } from './flags.js';

/**
 * Takes whole instructions out of a function's start, so that a `jmp rel32` fits there, and runs them elsewhere:
 *
 *     rip-relative operand     its displacement is counted from the new place
 *     jcc, jmp                 with 32 bits of distance
 *     call that comes last     push [original return address]; jmp: the callee returns past the patch, where
 *                              unwinders know the code
 *     anything else            as it is
 *
 * Refused are other calls, because unwinders do not know the moved code, and instructions that depend on their own
 * address in other ways: loop, jrcxz, system calls, traps, transactions, 16-bit jumps. `sti` stays right before its
 * `hlt`, because interrupts wait until the next instruction has run: one between them would be slept through.
 *
 * `endbr64` stays where it is, and the patch comes behind it, because an indirect call must find it where CR4.CET has
 * branches tracked.
 */
export const patchBytes = 5;

/** An instruction of the function, `offset` bytes behind its start. */
export interface Place {
  readonly offset: number;
  /** Address of the instruction behind it. */
  readonly next: Addr;
  readonly bytes: Uint8Array;
  readonly instruction: Instruction;
}

export type Writer = (code: Assembler) => void;

/** See `ProbeCode.displace`. The decoder must be loaded (`prepare`). */
export function displace(code: Uint8Array, start: Addr, kind: PatchKind): Displaced | Refusal {
  if (kind !== 'near') return { refused: 'the only patch for x86_64 is a jmp rel32' };
  const taken: Place[] = [];
  const before = padBytes(code);
  let length = 0;
  for (const place of instructions(code, start)) {
    if (length >= patchBytes) break;
    if (place.offset < before) continue;
    if (place.instruction.op === 'unknown') return { refused: `${describe(place)} is no known instruction` };
    taken.push(place);
    length += place.bytes.length;
  }
  if (length < patchBytes) return { refused: `its code is shorter than the jump (${length} of ${patchBytes} bytes)` };
  const end = before + length;
  if (holdsDistanceTo(code, 0, end)) {
    const places = [...instructions(code, start)];
    const unknown = places.find(({ instruction }) => instruction.op === 'unknown');
    if (unknown !== undefined) return { refused: `${describe(unknown)} is no known instruction` };
    const entering = places.find(({ instruction }) => enters(instruction, start, before, end));
    if (entering !== undefined) return { refused: `${describe(entering)} goes into the first ${end} bytes` };
  }
  const writers = writersOf(taken, addOffset(start, end));
  const all = { kind, patchLength: patchBytes, code: code.subarray(before), start: addOffset(start, before), length };
  return 'refused' in writers ? writers : new Taken(moving, all);
}

/** See `ProbeCode.displaceInside`. The decoder must be loaded (`prepare`). */
export function displaceInside(
  code: Uint8Array,
  start: Addr,
  place: number,
  { kind }: InnerPatch,
): DisplacedInside | Refusal {
  if (kind !== 'near') return { refused: 'the only patch for x86_64 is a jmp rel32' };
  const taken = [...instructions(code, start)];
  const unknown = taken.find(({ instruction }) => instruction.op === 'unknown');
  if (unknown !== undefined) return { refused: `${describe(unknown)} is no known instruction` };
  if (code.length < patchBytes) return { refused: `${code.length} bytes are shorter than the jump` };
  const [first] = taken;
  if (first && /^(hlt|mwait)$/.test(first.instruction.op))
    return { refused: `${describe(first)} may stand behind sti` };
  const before = taken.filter(({ offset }) => offset < place);
  const leaving = before.find(({ instruction }) => instruction.flow !== 'next') ?? taken.slice(0, -1).find(calls);
  if (leaving !== undefined) return { refused: `${describe(leaving)} cannot be carried out elsewhere` };
  const tail = writersOf(taken.slice(before.length), addOffset(start, code.length));
  if ('refused' in tail) return tail;
  const immovable = before.find((each) => writerOf(each, each === before.at(-1) ? each.next : undefined) === undefined);
  if (immovable) return { refused: `${describe(immovable)} cannot be carried out elsewhere` };
  return new Taken(moving, { kind, patchLength: patchBytes, code, start, length: code.length }, before.length);
}

function calls({ instruction: { flow } }: Place): boolean {
  return flow === 'call';
}

const moving: Moving<Place> = {
  decode: (code, start) => [...instructions(code, start)],
  text: ({ instruction }) => instruction.text,
  encode({ start, length }, places, at, goesOn) {
    const writers = goesOn
      ? writersOf(places, addOffset(start, length))
      : places.flatMap((place) => writerOf(place, undefined) ?? []);
    const code = new Assembler(at);
    // None was refused when they were taken.
    if (!('refused' in writers)) for (const write of writers) write(code);
    return code.finish();
  },
};

/** See `ProbeCode.loopsToStart`. The decoder must be loaded (`prepare`). */
export function loopsToStart(code: Uint8Array, start: Addr): boolean {
  const before = padBytes(code);
  if (!holdsDistanceTo(code, 0, before + 1)) return false;
  return [...instructions(code, start)].some(
    ({ instruction: { target, flow } }) => (target === start || target === addOffset(start, before)) && flow !== 'call',
  );
}

/** Bytes of the landing pad that a function begins with: `endbr64`, or none. */
function padBytes([a, b, c, d]: Uint8Array): 4 | 0 {
  return a === 0xf3 && b === 0x0f && c === 0x1e && d === 0xfa ? 4 : 0;
}

/**
 * Whether some bytes look like a jump, branch or call to one of the bytes from `low` to below `high`. In most
 * functions none do, and decoding all of a function is slow. The distance is at the end of such an instruction, right
 * behind the opcode (or, for `xbegin`, behind f8).
 */
function holdsDistanceTo(code: Uint8Array, low: number, high: number): boolean {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const goes = (to: number): boolean => to >= low && to < high;
  for (let at = 1; at < code.length; at++) {
    const opcode = code[at - 1] as number;
    const isShort = opcode >> 4 === 7 || opcode === 0xeb || (opcode >= 0xe0 && opcode <= 0xe3);
    if (isShort && goes(at + 1 + view.getInt8(at))) return true;
    const isNear =
      opcode === 0xe8 || opcode === 0xe9 || opcode === 0xf8 || (opcode >> 4 === 8 && code[at - 2] === 0x0f);
    if (isNear && at + 4 <= code.length && goes(at + 4 + view.getInt32(at, true))) return true;
  }
  return false;
}

export function* instructions(code: Uint8Array, start: Addr): Generator<Place> {
  for (let offset = 0; offset < code.length; ) {
    const instruction = decode(code, addOffset(start, offset), offset);
    if (instruction === undefined) return;
    const bytes = code.subarray(offset, offset + instruction.length);
    const at = offset;
    offset += bytes.length;
    yield { offset: at, next: addOffset(start, offset), bytes, instruction };
  }
}

export function describe({ offset, instruction }: Place): string {
  return `${instruction.text} at +${hex(offset)}`;
}

/**
 * Whether it goes behind the first of the displaced instructions, which lie from `before` to `end`. A jump to the first
 * itself would record an entry, and push a return hook, for every turn of a loop. A call of it is an entry.
 */
function enters({ target, flow }: Instruction, start: Addr, before: number, end: number): boolean {
  if (target === undefined) return false;
  const offset = BigInt.asUintN(64, target - start);
  return offset < BigInt(end) && !(flow === 'call' && (offset === 0n || offset === BigInt(before)));
}

/** `end` is where the function goes on behind the displaced instructions. */
function writersOf(taken: readonly Place[], end: Addr): Writer[] | Refusal {
  const writers: Writer[] = [];
  for (const [index, place] of taken.entries()) {
    const write = writerOf(place, index === taken.length - 1 ? end : undefined);
    if (write === undefined) return { refused: `${describe(place)} cannot be carried out elsewhere` };
    writers.push(write);
    if (place.instruction.flow === 'jump' || place.instruction.flow === 'return') {
      const foreign = taken.slice(index + 1).find(({ instruction }) => !isPadding.test(instruction.op));
      return foreign === undefined ? writers : { refused: `the function ends before ${describe(foreign)}` };
    }
  }
  return [...writers, (code) => code.jump(end)];
}

const isPadding = /^(nop|int3)$/;

/** See `ProbeCode.padding`. */
export function padding(bytes: Uint8Array): number {
  let length = 0;
  for (const { instruction, bytes: own } of instructions(bytes, addr(0n))) {
    if (!isPadding.test(instruction.op)) break;
    length += own.length;
  }
  return length;
}

const immovable = /^(loop\w*|j[er]?cxz|syscall|sysenter|int\w*|ud\d\w*|xbegin)$/;

/** Intel SDM volume 3, "Masking Exceptions and Interrupts When Switching Stacks"; STI in volume 2. */
export function holdsInterrupts({ op, operands: [to] }: Instruction): boolean {
  return op === 'sti' || (/^(mov|pop)$/.test(op) && to?.kind === 'register' && to.name === 'ss');
}

/** Writes the instruction elsewhere; undefined if that is impossible. `end` is given for the last instruction. */
export function writerOf({ instruction, bytes, next }: Place, end: Addr | undefined): Writer | undefined {
  const { op, flow, target } = instruction;
  if (flow === 'interrupt' || immovable.test(op)) return undefined;
  if (end !== undefined && holdsInterrupts(instruction)) return undefined;
  if (target !== undefined) return directWriter(flow, bytes, target, end);
  if (flow !== 'call') return wholeWriter(instruction, bytes, next);
  if (end === undefined) return undefined;
  const jump = jumpInstead(instruction, bytes);
  const write = jump && wholeWriter(instruction, jump, next);
  return (
    write &&
    ((code) => {
      code.push(code.literal(end));
      write(code);
    })
  );
}

function directWriter(flow: Flow, bytes: Uint8Array, target: Addr, end: Addr | undefined): Writer | undefined {
  const at = opcodeAt(bytes);
  if (at === undefined) return undefined;
  switch (flow) {
    case 'jump':
      return (code) => code.jump(target);
    case 'branch': {
      const condition = conditions[(bytes[bytes[at] === 0x0f ? at + 1 : at] ?? 0) & 15];
      return condition && ((code) => code.branch(condition, target));
    }
    case 'call':
      if (end === undefined) return undefined;
      return (code) => {
        code.push(code.literal(end));
        code.jump(target);
      };
    default:
      return undefined;
  }
}

/** The indirect call FF /2 as the jump FF /4; not if its operand is relative to rsp, which a push moves. */
function jumpInstead({ operands: [operand] }: Instruction, bytes: Uint8Array): Uint8Array | undefined {
  const at = opcodeAt(bytes);
  const modrm = at === undefined ? undefined : bytes[at + 1];
  if (at === undefined || modrm === undefined || bytes[at] !== 0xff || ((modrm >> 3) & 7) !== 2) return undefined;
  if (
    operand?.kind === 'memory'
      ? /^[er]sp$/.test(operand.base ?? '')
      : operand?.kind !== 'register' || operand.name === 'rsp'
  )
    return undefined;
  return bytes.with(at + 1, modrm ^ 0x30);
}

/**
 * Skips prefixes that have no meaning for a jump or call (segments, bnd, notrack, 67, REX). Undefined with 66, which
 * makes it one of 16 bits, and with F3, which the manual reserves there.
 */
function opcodeAt(bytes: Uint8Array): number | undefined {
  const at = bytes.findIndex(
    (byte) => ![0xf2, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67].includes(byte) && byte >> 4 !== 4,
  );
  return at < 0 || bytes[at] === 0x66 || bytes[at] === 0xf3 ? undefined : at;
}

/** Unchanged, except for a rip-relative displacement. */
function wholeWriter({ operands, displacementAt }: Instruction, bytes: Uint8Array, next: Addr): Writer | undefined {
  const operand = operands.find((each) => each.kind === 'memory' && each.base?.endsWith('ip') === true);
  if (operand?.kind !== 'memory') return (code) => code.raw(bytes);
  if (operand.base !== 'rip' || displacementAt === 0 || displacementAt + 4 > bytes.length) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getInt32(displacementAt, true) !== operand.displacement) return undefined;
  const target = addOffset(next, operand.displacement);
  return (code) => code.relocated(bytes, displacementAt, target);
}
