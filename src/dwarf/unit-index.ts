import { U32Column } from '../base/growable.js';
import { type CodeAddress, IntervalIndex, IntervalList, lastNotAbove } from '../elf/index.js';
import { DW_AT, DW_TAG, tags } from './constants.js';
import type { DebugInfo } from './debug-info.js';
import { Die, DieCursor } from './die.js';
import type { Unit } from './unit.js';

/** In columns. */
const BYTES_OF_SCOPE = 12;
const MOST_SCANNED = 64 << 20;

/**
 * Scopes of a unit in the order of the file: first offset, offset behind the last entry, row of the scope around (0 is
 * the root's own). And its functions with code.
 */
export interface ScopeColumns {
  readonly start: Uint32Array;
  readonly end: Uint32Array;
  readonly parent: Uint32Array;
  readonly functions: Uint32Array;
}

/**
 * What one pass over a unit finds: which named scope each DIE stands in (DWARF has no way up), and which function
 * covers an address. Columns only; a DIE is read again when it is asked for.
 */
export class UnitIndex {
  readonly #unit: Unit;
  readonly #columns: ScopeColumns;
  #functions: IntervalIndex | undefined;

  constructor(unit: Unit, columns: ScopeColumns = scopesOf(unit)) {
    unit.budget.hold(columns.start.length * BYTES_OF_SCOPE, 'the scopes of .debug_info');
    this.#unit = unit;
    this.#columns = columns;
  }

  /** The innermost scope (namespace, type, function, unit) that a DIE stands in; undefined for the unit's root. */
  scopeOf(offset: number): Die | undefined {
    const { start, end, parent } = this.#columns;
    let row = lastNotAbove(start, start.length, offset);
    if (row >= 0 && start[row] === offset) {
      if (row === 0) return undefined;
      row = parent[row] as number;
    }
    // Scopes of a damaged file may be nested without end.
    for (; row > 0 && (end[row] as number) <= offset; row = parent[row] as number) {
      this.#unit.budget.spend(1, 'the scopes of .debug_info');
    }
    return row < 0 ? undefined : Die.at(this.#unit, start[row] as number);
  }

  /** The subprogram that covers an address. */
  functionAt(address: CodeAddress): Die | undefined {
    this.#functions ??= new IntervalIndex(this.#ranges());
    const offset = this.#functions.find(address);
    return offset < 0 ? undefined : Die.at(this.#unit, offset);
  }

  #ranges(): IntervalList {
    const found = new IntervalList();
    for (const offset of this.#columns.functions)
      for (const { low, high } of this.#unit.debug.rangesForTable(Die.at(this.#unit, offset)))
        found.add(low, high, offset);
    return found;
  }
}

/** The scopes of a unit, by one pass over it. */
function scopesOf(unit: Unit): ScopeColumns {
  const start = new U32Column();
  const end = new U32Column();
  const parent = new U32Column();
  const functions = new U32Column();
  const open: number[] = [];
  const depths: number[] = [];
  const cursor = DieCursor.of(unit);
  while (cursor.next()) {
    while (depths.length > 0 && cursor.depth <= (depths[depths.length - 1] as number)) {
      end.set(open.pop() as number, cursor.offset);
      depths.pop();
    }
    if (cursor.tag === DW_TAG.subprogram && (cursor.has(DW_AT.low_pc) || cursor.has(DW_AT.ranges)))
      functions.push(cursor.offset);
    if (!cursor.hasChildren || !SCOPES.has(cursor.tag)) continue;
    parent.push(open[open.length - 1] ?? 0);
    open.push(start.length);
    depths.push(cursor.depth);
    start.push(cursor.offset);
    end.push(unit.end);
  }
  const [starts, ends, parents] = [start, end, parent].map((column) => column.rows().slice()) as Three;
  return { start: starts, end: ends, parent: parents, functions: functions.rows().slice() };
}

type Three = [Uint32Array, Uint32Array, Uint32Array];

/** The indexes of all units, from columns that are kept. Of much debug info none: it is read unit by unit. */
export function allIndexes(debug: DebugInfo): Map<Unit, UnitIndex> {
  if (debug.sections.inPart('.debug_info').bytes.length > MOST_SCANNED) return new Map();
  const columns = debug.columns('scopes', () =>
    joined(debug.units.map((unit) => debug.attempt(unit, () => scopesOf(unit)))),
  );
  const all = [...separated(columns)];
  const found = debug.units.map((unit, i) => [unit, all[i]] as const);
  // One that has none may be damaged: it is read when it is asked for.
  return new Map(
    found.flatMap(([unit, each]) => (each && each.start.length > 0 ? [[unit, new UnitIndex(unit, each)]] : [])),
  );
}

/** The scopes of many units in six columns: how many scopes and functions each has, then theirs one after the other. */
function joined(units: readonly (ScopeColumns | undefined)[]): Uint32Array[] {
  const counts = [
    Uint32Array.from(units, (unit) => unit?.start.length ?? 0),
    Uint32Array.from(units, (unit) => unit?.functions.length ?? 0),
  ];
  const known = units.filter((unit) => unit !== undefined);
  return [...counts, ...fields.map((field) => concatenated(known.map((unit) => unit[field])))];
}

/** What was {@link joined}, as views. */
function* separated([scopes = none, functions = none, ...columns]: readonly Uint32Array[]): Generator<ScopeColumns> {
  const [start = none, end = none, parent = none, code = none] = columns;
  let [scope, fn] = [0, 0];
  for (const [i, count] of scopes.entries()) {
    const of = (column: Uint32Array): Uint32Array => column.subarray(scope, scope + count);
    const codeEnd = fn + (functions[i] as number);
    yield { start: of(start), end: of(end), parent: of(parent), functions: code.subarray(fn, codeEnd) };
    scope += count;
    fn = codeEnd;
  }
}

const fields = ['start', 'end', 'parent', 'functions'] as const;
const none = new Uint32Array();

function concatenated(all: readonly Uint32Array[]): Uint32Array {
  const whole = new Uint32Array(all.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const each of all) {
    whole.set(each, at);
    at += each.length;
  }
  return whole;
}

const SCOPES = tags(
  ...(['compile_unit', 'partial_unit', 'type_unit', 'skeleton_unit', 'namespace', 'module'] as const),
  ...(['structure_type', 'class_type', 'union_type', 'enumeration_type', 'subprogram'] as const),
);
