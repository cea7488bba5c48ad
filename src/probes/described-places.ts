import type { Architecture } from '../arch/index.js';
import { ByteReader } from '../base/byte-reader.js';
import { type Die, DW_AT, DW_OP, evaluate, type Location, locationAt } from '../dwarf/index.js';
import type { CodeAddress } from '../elf/index.js';
import { unavailable, type ValuePart, type ValuePlace } from './passing-registers.js';

const WORD = 8;

/** What the debug info says about a parameter at the function's first instruction. */
export type Described =
  | { readonly kind: 'place'; readonly place: ValuePlace }
  /**
   * In the frame, which the function's first instructions have not set up yet: the parameter is still at its
   * conventional place.
   */
  | { readonly kind: 'frame' /** The frame has its address. */; readonly byAddress: boolean }
  /** Nothing. `why`: it was optimised out, or is somewhere from a later instruction on. */
  | { readonly kind: 'nothing'; readonly why: string };

/** Reads a parameter's location at `entry`: registers, constants, or memory that a register points to. */
export function describedPlace(arch: Architecture, parameter: Die, entry: CodeAddress, size: number): Described {
  const constant = parameter.big(DW_AT.const_value);
  const expression = locationAt(parameter, DW_AT.location, entry);
  const [op] = expression ?? [];
  if (expression === undefined || op === undefined) {
    if (constant === undefined || size > WORD) return { kind: 'nothing', why: whyNowhere(parameter, expression) };
    return { kind: 'place', place: { kind: 'registers', parts: [{ constant, offset: 0, size }] } };
  }
  const register = baseOf(arch, op);
  if (op === DW_OP.fbreg || (register !== undefined && register === arch.sp))
    return { kind: 'frame', byAddress: pointerInFrame(expression) !== undefined };
  if (register !== undefined && expression.length === 2 && expression[1] === 0) {
    // Unoptimised code of gcc keeps it in a register that its first instructions fill.
    if (!arch.arguments.includes(register)) return { kind: 'frame', byAddress: true };
    return { kind: 'place', place: { kind: 'pointer', register } };
  }
  const masked = maskedRegister(arch, expression);
  if (masked) return { kind: 'place', place: { kind: 'registers', parts: [{ ...masked, offset: 0, size }] } };
  // No request is answered: a location that must ask the target is no plain register and no constant.
  const found = evaluate(expression, parameter.unit, () => undefined);
  if ('missing' in found) return { kind: 'place', place: unavailable };
  const parts: ValuePart[] = [];
  let offset = 0;
  for (const { location, bitSize, bitOffset } of found.pieces) {
    const bytes = bitSize === undefined ? size - offset : bitSize / 8;
    const part = partAt(arch, location);
    if (part === undefined || bitOffset !== 0 || !Number.isInteger(bytes)) return { kind: 'place', place: unavailable };
    parts.push({ ...part, offset, size: bytes });
    offset += bytes;
  }
  return { kind: 'place', place: { kind: 'registers', parts } };
}

function whyNowhere(parameter: Die, expression: Uint8Array | undefined): string {
  if (expression === undefined && parameter.has(DW_AT.location))
    return "its location list has no entry at the function's first instruction";
  return 'the compiler optimised it out: the debug info gives it no location';
}

/**
 * LLVM describes a `bool` as a register's lowest bit, and similarly anything narrower than a register: breg 0,
 * (constu, and)+, stack_value.
 */
function maskedRegister(arch: Architecture, expression: Uint8Array): { register: string; mask: bigint } | undefined {
  const r = new ByteReader(expression, 'a DWARF expression');
  const register = baseOf(arch, r.u8());
  if (register === undefined || r.remaining === 0 || r.u8() !== 0) return undefined;
  let mask = (1n << 64n) - 1n;
  while (r.remaining > 2 && r.u8() === DW_OP.constu) {
    mask &= r.uleb64();
    if (r.remaining === 0 || r.u8() !== DW_OP.and) return undefined;
  }
  const whole = r.remaining === 1 && r.u8() === DW_OP.stack_value;
  return whole ? { register, mask } : undefined;
}

function partAt(arch: Architecture, location: Location): { register: string } | { constant: bigint } | undefined {
  if (location.kind === 'value') return { constant: location.value };
  const register = location.kind === 'register' ? arch.dwarfRegister(location.register) : undefined;
  return register === undefined ? undefined : { register };
}

/** Of `fbreg N, deref, ...`: N. */
export function pointerInFrame(expression: Uint8Array | undefined): bigint | undefined {
  if (expression?.[0] !== DW_OP.fbreg) return undefined;
  const r = new ByteReader(expression, 'a DWARF expression');
  r.u8();
  const at = r.sleb64();
  return r.remaining > 0 && r.u8() === DW_OP.deref ? at : undefined;
}

/** The register of an operation that counts from one. */
function baseOf(arch: Architecture, op: number): string | undefined {
  return op >= DW_OP.breg0 && op <= DW_OP.breg31 ? arch.dwarfRegister(op - DW_OP.breg0) : undefined;
}
