// One pass over a unit for the names that users ask for: types, functions, and variables with a place of their own.
// DWARF 5, section 6.1.1.1, says which entries an index has. This index leaves out names local to a function, and
// includes functions without code of their own (inlined everywhere). Names are not decoded: a name is hashed in
// place.
import { U32Column } from '../base/growable.js';
import type { AbbrevTable } from './abbrev.js';
import { DW_AT, DW_FORM, DW_TAG, tags } from './constants.js';
import { fixedSize, lebEnd, u32At, ulebAt } from './form-sizes.js';
import { damaged, readReference, stringOffset } from './forms.js';
import { nameOf } from './names.js';
import type { Unit } from './unit.js';

/** What an entry of an index names. */
export const KIND = { type: 1, function: 2, variable: 3 } as const;

/** The low bits of a row's hash give way to what the entry is. */
export const KIND_BITS = 2;
export const KIND_MASK = (1 << KIND_BITS) - 1;

/** Of each named entry the hash of its name, and its offset. */
export class NameRows {
  readonly hashes = new U32Column();
  readonly offsets = new U32Column();

  add(hash: number, offset: number, kind: number): void {
    this.hashes.push(((hash & ~KIND_MASK) | kind) >>> 0);
    this.offsets.push(offset);
  }
}

/**
 * A name is hashed up to its generic arguments, so that `Vec` and `Vec<u8>` have one place; and no further than this.
 */
const MAX_HASHED = 256;
const LESS = 0x3c;

/** FNV-1a of the zero-terminated name at an offset. */
function hashName(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  const stop = Math.min(end, start + MAX_HASHED);
  for (let at = start; at < stop; at++) {
    const byte = bytes[at] as number;
    if (byte === 0 || (byte === LESS && at > start)) break;
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash >>> 0;
}

export function hashText(name: string): number {
  const bytes = Buffer.from(name, 'utf8');
  return hashName(bytes, 0, bytes.length);
}

/** What to do with entries of each declaration; computed once for an abbreviation table. */
interface ScanPlan {
  readonly kind: Uint8Array;
  /** Bytes of its attributes, or -1 if they vary. */
  readonly size: Int32Array;
  /** Index of the attributes in the table's columns, or -1. */
  readonly name: Int32Array;
  readonly sibling: Int32Array;
  readonly origin: Int32Array;
}

const plans = new WeakMap<AbbrevTable, ScanPlan>();

function planOf(table: AbbrevTable): ScanPlan {
  const known = plans.get(table);
  if (known !== undefined) return known;
  const count = table.tag.length;
  const plan: ScanPlan = {
    kind: new Uint8Array(count),
    size: new Int32Array(count).fill(-1),
    name: new Int32Array(count).fill(-1),
    sibling: new Int32Array(count).fill(-1),
    origin: new Int32Array(count).fill(-1),
  };
  for (let row = 0; row < count; row++) {
    const first = table.attrStart[row] as number;
    const end = table.attrStart[row + 1] as number;
    let size = 0;
    let hidden = false;
    let placed = false;
    for (let i = first; i < end; i++) {
      const step = fixedSize(table.attrForm[i] as number, table.version);
      size = size < 0 || step < 0 ? -1 : size + step;
      switch (table.attrName[i]) {
        case DW_AT.name:
          if (plan.name[row] === -1) plan.name[row] = i;
          break;
        case DW_AT.sibling:
          if (plan.sibling[row] === -1) plan.sibling[row] = i;
          break;
        case DW_AT.abstract_origin:
        case DW_AT.specification:
          if (plan.origin[row] === -1) plan.origin[row] = i;
          break;
        case DW_AT.declaration:
          hidden = true;
          break;
        case DW_AT.location:
        case DW_AT.const_value:
          placed = true;
          break;
      }
    }
    plan.size[row] = size;
    const kind = kindOf(table.tag[row] as number);
    const named = plan.name[row] !== -1 || (kind !== KIND.type && plan.origin[row] !== -1);
    if (named && !hidden && (kind !== KIND.variable || placed)) plan.kind[row] = kind;
  }
  plans.set(table, plan);
  return plan;
}

const TYPES = tags(
  ...(['structure_type', 'class_type', 'union_type', 'enumeration_type', 'typedef', 'base_type'] as const),
  ...(['unspecified_type', 'pointer_type', 'template_alias'] as const),
);

/** What an entry with this tag counts as in an index; 0 for nothing. */
function kindOf(tag: number): number {
  if (tag === DW_TAG.subprogram) return KIND.function;
  if (tag === DW_TAG.variable) return KIND.variable;
  return TYPES.has(tag) ? KIND.type : 0;
}

/** Adds the unit's names. Throws `DWARF_DAMAGED` and the like; names found before the error were added. */
export function scanNames(unit: Unit, sink: NameRows): void {
  const { abbrevs: table, base, bytes } = unit;
  unit.budget.spend(unit.end - unit.offset, 'the names in .debug_info');
  const plan = planOf(table);
  const flat = unit.isFlat;
  const end = unit.end - base;
  let at = unit.header.firstDie - base;
  let level = 0;
  // Entries at this level and below are inside a function.
  let local = 0xffff_ffff;
  while (at < end) {
    let code = bytes[at] as number;
    let attrs = at + 1;
    if (code === 0) {
      at++;
      level--;
      if (level < local) local = 0xffff_ffff;
      if (level > 0) continue;
      break;
    }
    if (code >= 0x80) {
      code = ulebAt(bytes, at);
      attrs = lebEnd(bytes, at);
    }
    const row = table.row(code);
    if (row < 0) throw damaged(unit, at, `the abbreviation ${code} is not declared in its unit's table`);
    if (level < local) addName(sink, unit, plan, row, attrs, at + base);
    if (table.children[row] !== 0) {
      const tag = table.tag[row] as number;
      const isSkipped = level > 0 && (flat || level >= local || LEAVES.has(tag));
      const target = isSkipped ? unit.offset - base + siblingOf(unit, plan, row, attrs) : 0;
      if (target > at && target <= end) {
        at = target;
        continue;
      }
      level++;
      if (tag === DW_TAG.subprogram && level < local) local = level;
    }
    const size = plan.size[row] as number;
    at = size >= 0 ? attrs + size : table.skip(bytes, attrs, row);
  }
  if (at > end) throw damaged(unit, end, 'an entry reaches past the end of its unit');
}

function addName(sink: NameRows, unit: Unit, plan: ScanPlan, row: number, attrs: number, offset: number): void {
  const kind = plan.kind[row] as number;
  if (kind === 0) return;
  const hash = hashOf(unit, plan, row, attrs);
  if (hash >= 0) sink.add(hash, offset, kind);
}

/** Entries without names are skipped whole, if the file says where they end. */
const LEAVES = tags('subprogram', 'array_type', 'subroutine_type');

/** Where an entry's children end, from the unit's begin; 0 where it is not written: gcc writes it, rustc does not. */
function siblingOf(unit: Unit, plan: ScanPlan, row: number, attrs: number): number {
  const table = unit.abbrevs;
  const index = plan.sibling[row] as number;
  if (index < 0) return 0;
  const fixed = table.attrFixed[index] as number;
  const at = fixed !== 0xffff_ffff ? attrs + fixed : table.locate(unit.bytes, attrs, row, index);
  return table.attrForm[index] === DW_FORM.ref4 ? u32At(unit.bytes, at) : 0;
}

/** The hash of an entry's name; -1 if it has none. */
function hashOf(unit: Unit, plan: ScanPlan, row: number, attrs: number): number {
  const { abbrevs: table, bytes, header } = unit;
  const index = plan.name[row] as number;
  if (index < 0) {
    // An instance of something that has its name elsewhere.
    const origin = plan.origin[row] as number;
    const at = table.locate(bytes, attrs, row, origin);
    const target = readReference(unit, { form: table.attrForm[origin] as number, at, implicit: 0n });
    const die = target === undefined ? undefined : unit.debug.die(target);
    const name = die && nameOf(die);
    return name === undefined ? -1 : hashText(name);
  }
  const fixed = table.attrFixed[index] as number;
  const where = fixed !== 0xffff_ffff ? attrs + fixed : table.locate(bytes, attrs, row, index);
  const form = table.attrForm[index] as number;
  if (form === DW_FORM.string) return hashName(bytes, where, header.end - header.base);
  const section = form === DW_FORM.line_strp ? '.debug_line_str' : '.debug_str';
  const start = stringOffset(unit, { form, at: where, implicit: 0n });
  if (start === undefined) return -1;
  const strings = unit.sections.get(section);
  return hashName(strings, start, strings.length);
}
