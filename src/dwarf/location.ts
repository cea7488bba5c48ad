// Where a variable or parameter lies: DW_AT.location as one expression, or as a list of expressions by address range in
// .debug_loc (DWARF 2-4) or .debug_loclists (DWARF 5, section 7.29). In .debug_loc.dwo the lists of GNU's DebugFission
// are those of DWARF 5 before it was one: lengths are words, expressions have two bytes of length.
//
// Expressions are handed on as bytes: expr.ts evaluates them.

import type { Addr } from '../base/addr.js';
import type { ByteReader } from '../base/byte-reader.js';
import { type BytesInPart, type CodeAddress, NO_ADDRESS } from '../elf/index.js';
import { DW_AT, DW_FORM } from './constants.js';
import type { Die, DieCursor } from './die.js';
import { evaluate } from './expr.js';
import { lebEnd, ulebAt } from './form-sizes.js';
import { readBlock, readNumber } from './forms.js';
import { DW_OP } from './op-codes.js';
import { type ListForm, listOffset, locationKinds, readList, readOldList } from './ranges.js';

/** One entry of a location list; `low` and `high` are infinite for an expression that holds everywhere. */
export interface LocationEntry {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
  readonly expression: Uint8Array;
}

/** All entries of a location attribute; empty when the entry has none. */
export function locationsOf(die: Die | DieCursor, attribute: number): LocationEntry[] {
  const found = die.locate(attribute);
  if (found === undefined) return [];
  const { unit } = die;
  const expression = readBlock(unit, found);
  if (expression !== undefined) return [{ ...EVERYWHERE, expression }];
  const value = readNumber(unit, found);
  if (value === undefined) return [];
  const entries: LocationEntry[] = [];
  const add = (low: CodeAddress, high: CodeAddress, r: ByteReader, need: BytesInPart['need']): void => {
    const length = unit.version < 5 ? r.u16() : r.uleb();
    need(r.offset, r.offset + length);
    entries.push({ low, high, expression: r.take(length) });
  };
  if (unit.version < 5) {
    if (unit.skeleton === undefined) readOldList(unit, '.debug_loc', value, add);
    else readList(unit, value, fission, add);
    return entries;
  }
  const { section } = dwarf5;
  const offset = found.form === DW_FORM.loclistx ? listOffset(unit, section, unit.bases.loclists, value) : value;
  readList(unit, offset, dwarf5, add);
  return entries;
}

/** The expression that is valid at an address; the default entry if no other one is. */
export function locationAt(die: Die | DieCursor, attribute: number, pc: CodeAddress): Uint8Array | undefined {
  const entries = locationsOf(die, attribute);
  const exact = entries.find((e) => pc >= e.low && pc < e.high && e.low !== Number.NEGATIVE_INFINITY);
  return (exact ?? entries.find((e) => e.low === Number.NEGATIVE_INFINITY))?.expression;
}

/** The DWARF register with a value, if its whole expression is one DW_OP.reg*; else undefined. */
export function plainRegister(expression: Uint8Array): number | undefined {
  const op = expression[0];
  if (op === undefined) return undefined;
  if (op >= DW_OP.reg0 && op <= DW_OP.reg31) return expression.length === 1 ? op - DW_OP.reg0 : undefined;
  if (op === DW_OP.regx && lebEnd(expression, 1) === expression.length) return ulebAt(expression, 1);
  return undefined;
}

const EVERYWHERE = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY } as const;

const dwarf5: ListForm = {
  ...{ section: '.debug_loclists', name: '.debug_loclists', of: 'location', kinds: locationKinds },
  distance: (r) => r.uleb(),
};
/** GNU's DebugFission before DWARF 5. */
const fission: ListForm = {
  ...{ section: '.debug_loc', name: '.debug_loc.dwo', of: 'location', kinds: locationKinds.slice(0, 5) },
  distance: (r) => r.u32(),
};

/** Where a static variable lies; undefined for one in registers, in thread-local storage, or without a place. */
export function staticAddress(variable: Die): Addr | undefined {
  const expression = variable.block(DW_AT.location);
  const found = expression && evaluate(expression, variable.unit, () => undefined);
  const location = found !== undefined && 'pieces' in found ? found.pieces[0]?.location : undefined;
  return location?.kind === 'memory' ? location.address : undefined;
}

/** The same as a code address; `NO_ADDRESS` without one. */
export function staticCode(variable: Die): CodeAddress {
  const address = staticAddress(variable);
  return address === undefined ? NO_ADDRESS : variable.unit.codes.toCode(address);
}
