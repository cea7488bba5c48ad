import { U32Column } from '../base/growable.js';
import { type CodeAddress, IntervalIndex, IntervalList, lastNotAbove } from '../elf/index.js';
import { DW_AT, DW_TAG } from './constants.js';
import { Die, DieCursor } from './die.js';
import type { Unit } from './unit.js';

/** In columns. */
const BYTES_OF_SCOPE = 12;

/**
 * What one pass over a unit finds: which named scope each DIE stands in (DWARF has no way up), and which function
 * covers an address. Columns only; a DIE is read again when it is asked for.
 */
export class UnitIndex {
  readonly #unit: Unit;
  /**
   * Scopes in the order of the file: first offset, offset behind the last entry, row of the scope around (0 is the
   * root's own).
   */
  readonly #start: Uint32Array;
  readonly #end: Uint32Array;
  readonly #parent: Uint32Array;
  readonly #functions: IntervalIndex;

  constructor(unit: Unit) {
    this.#unit = unit;
    const start = new U32Column();
    const end = new U32Column();
    const parent = new U32Column();
    const functions = new IntervalList();
    const open: number[] = [];
    const depths: number[] = [];
    const cursor = DieCursor.of(unit);
    while (cursor.next()) {
      while (depths.length > 0 && cursor.depth <= (depths[depths.length - 1] as number)) {
        end.set(open.pop() as number, cursor.offset);
        depths.pop();
      }
      if (cursor.tag === DW_TAG.subprogram && (cursor.has(DW_AT.low_pc) || cursor.has(DW_AT.ranges))) {
        for (const { low, high } of unit.debug.rangesForTable(cursor)) functions.add(low, high, cursor.offset);
      }
      if (!cursor.hasChildren || !isScope(cursor.tag)) continue;
      parent.push(open[open.length - 1] ?? 0);
      open.push(start.length);
      depths.push(cursor.depth);
      start.push(cursor.offset);
      end.push(unit.end);
    }
    unit.budget.hold(start.length * BYTES_OF_SCOPE, 'the scopes of .debug_info');
    this.#start = start.rows().slice();
    this.#end = end.rows().slice();
    this.#parent = parent.rows().slice();
    this.#functions = new IntervalIndex(functions);
  }

  /** The innermost scope (namespace, type, function, unit) that a DIE stands in; undefined for the unit's root. */
  scopeOf(offset: number): Die | undefined {
    let row = lastNotAbove(this.#start, this.#start.length, offset);
    if (row >= 0 && this.#start[row] === offset) {
      if (row === 0) return undefined;
      row = this.#parent[row] as number;
    }
    // Scopes of a damaged file may be nested without end.
    for (; row > 0 && (this.#end[row] as number) <= offset; row = this.#parent[row] as number) {
      this.#unit.budget.spend(1, 'the scopes of .debug_info');
    }
    return row < 0 ? undefined : Die.at(this.#unit, this.#start[row] as number);
  }

  /** The subprogram that covers an address. */
  functionAt(address: CodeAddress): Die | undefined {
    const offset = this.#functions.find(address);
    return offset < 0 ? undefined : Die.at(this.#unit, offset);
  }
}

function isScope(tag: number): boolean {
  switch (tag) {
    case DW_TAG.compile_unit:
    case DW_TAG.partial_unit:
    case DW_TAG.type_unit:
    case DW_TAG.skeleton_unit:
    case DW_TAG.namespace:
    case DW_TAG.module:
    case DW_TAG.structure_type:
    case DW_TAG.class_type:
    case DW_TAG.union_type:
    case DW_TAG.enumeration_type:
    case DW_TAG.subprogram:
      return true;
    default:
      return false;
  }
}
