// Where a variable or parameter lies: DW_AT.location as one expression, or as a list of expressions by address range in
// .debug_loc (DWARF 2-4) or .debug_loclists (DWARF 5, section 7.29). In .debug_loc.dwo the lists of GNU's DebugFission
// are those of DWARF 5 before it was one: lengths are words, expressions have two bytes of length.
//
// Expressions are handed on as bytes: expr.ts evaluates them.

import type { Addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { type CodeAddress, NO_ADDRESS } from '../elf/index.js';
import { DW_AT, DW_FORM } from './constants.js';
import type { Die, DieCursor } from './die.js';
import { evaluate } from './expr.js';
import { lebEnd, ulebAt } from './form-sizes.js';
import { indexedAddress, readBlock, readNumber } from './forms.js';
import { DW_LLE } from './list-codes.js';
import { DW_OP } from './op-codes.js';
import { firstBase, listOffset, RANGE, readAddress, readOldEntry } from './ranges.js';
import type { Unit } from './unit.js';

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
  if (unit.version < 5) return unit.skeleton === undefined ? readOldList(unit, value) : readList(unit, value, fission);
  const offset =
    found.form === DW_FORM.loclistx ? listOffset(unit, '.debug_loclists', unit.bases.loclists, value) : value;
  return readList(unit, offset, dwarf5);
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

function readOldList(unit: Unit, offset: number): LocationEntry[] {
  const section = unit.sections.get('.debug_loc');
  const r = new ByteReader(section, '.debug_loc', Math.min(offset, section.length));
  let base = firstBase(unit);
  const found: LocationEntry[] = [];
  for (;;) {
    unit.budget.spend(RANGE, '.debug_loc');
    const entry = readOldEntry(r, unit, base);
    if (entry === undefined) return found;
    if ('base' in entry) base = entry.base;
    else found.push({ ...entry, expression: r.take(r.u16()) });
  }
}

/** How a list of kinds and operands is spelt: DWARF 5's, or that of GNU's DebugFission before it. */
interface ListForm {
  readonly section: '.debug_loclists' | '.debug_loc';
  /** As errors name it. */
  readonly name: string;
  /** Kinds above it are not known. */
  readonly lastKind: number;
  /** A length, or a distance from the base. */
  readonly distance: (r: ByteReader) => number;
  readonly expressionSize: (r: ByteReader) => number;
}

const dwarf5: ListForm = {
  ...{ section: '.debug_loclists', name: '.debug_loclists', lastKind: DW_LLE.start_length },
  distance: (r) => r.uleb(),
  expressionSize: (r) => r.uleb(),
};
const fission: ListForm = {
  ...{ section: '.debug_loc', name: '.debug_loc.dwo', lastKind: DW_LLE.offset_pair },
  distance: (r) => r.u32(),
  expressionSize: (r) => r.u16(),
};

function readList(unit: Unit, offset: number, form: ListForm): LocationEntry[] {
  const { distance } = form;
  const section = unit.sections.get(form.section);
  const r = new ByteReader(section, form.name, Math.min(offset, section.length));
  let base = unit.lowPc;
  const found: LocationEntry[] = [];
  const add = (low: CodeAddress, high: CodeAddress): void => {
    found.push({ low, high, expression: r.take(form.expressionSize(r)) });
  };
  for (;;) {
    unit.budget.spend(RANGE, form.name);
    const kind = r.u8();
    if (kind > form.lastKind) throw unknownKind(r, kind);
    switch (kind) {
      case DW_LLE.end_of_list:
        return found;
      case DW_LLE.base_addressx:
        base = indexedAddress(unit, r.uleb());
        break;
      case DW_LLE.startx_endx:
        add(indexedAddress(unit, r.uleb()), indexedAddress(unit, r.uleb()));
        break;
      case DW_LLE.startx_length: {
        const low = indexedAddress(unit, r.uleb());
        add(low, low + distance(r));
        break;
      }
      case DW_LLE.offset_pair:
        add(base + distance(r), base + distance(r));
        break;
      case DW_LLE.default_location:
        add(EVERYWHERE.low, EVERYWHERE.high);
        break;
      case DW_LLE.base_address:
        base = readAddress(r, unit);
        break;
      case DW_LLE.start_end:
        add(readAddress(r, unit), readAddress(r, unit));
        break;
      case DW_LLE.start_length: {
        const low = readAddress(r, unit);
        add(low, low + distance(r));
        break;
      }
      default:
        throw unknownKind(r, kind);
    }
  }
}

function unknownKind(r: ByteReader, kind: number): Error {
  return r.truncated(`a location list entry of a known kind, found ${kind}`);
}

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
