import { U32Column } from '../../base/growable.js';
import { type DebugInfo, DieCursor, DW_AT, DW_LANG, DW_TAG, type Unit } from '../../dwarf/index.js';

/** The name that rustc gives the member that holds what a state awaits. */
export const AWAITEE = '__awaitee';
/** The variable of tokio's `select!`, captured by reference or by value. tokio/src/macros/select.rs */
const BRANCHES: ReadonlySet<string> = new Set(['_ref__futures', 'futures']);

/** The result of one pass over all Rust units, as columns of DIE offsets that are not yet interpreted. */
export class FutureScan {
  /** Structs with a nested struct `Unresumed`: the environments of coroutines. */
  readonly environments = new U32Column();
  /** Functions with a first parameter, and that parameter's type; 0 for an `async fn`'s that lists none. */
  readonly functions = new U32Column();
  readonly firstParameter = new U32Column();
  /** Out-of-line copies of functions that are inlined elsewhere, and the abstract function they are copies of. */
  readonly instances = new U32Column();
  readonly instanceOrigin = new U32Column();
  /** Variables named `<.. as ..Future>::{vtable}`. */
  readonly vtables = new U32Column();
  /** The types of what states await. */
  readonly awaited = new U32Column();
  /** The types of what closures keep as `futures`: in tokio's `select!` a tuple of its branches. */
  readonly branches = new U32Column();

  constructor(debug: DebugInfo) {
    const { environments, functions, firstParameter, instances, instanceOrigin } = this;
    const definitions = [environments, functions, firstParameter, instances, instanceOrigin];
    const all = [...definitions, this.vtables, this.awaited, this.branches];
    const found = debug.columns('futures', () => {
      for (const unit of debug.units) debug.attempt(unit, () => isRust(unit) && this.#scan(unit));
      return all.map((column) => column.rows());
    });
    for (const [i, column] of all.entries()) column.take(found[i] ?? new Uint32Array());
  }

  #scan(unit: Unit): void {
    const cursor = DieCursor.of(unit);
    // The function around the cursor, and its depth; functions nest in no Rust program.
    let current = 0;
    let currentDepth = -1;
    let parameterSeen = false;
    let isAsync = false;
    // Of the structs around, the last one at each depth.
    const structAt: number[] = [];
    // Which members of the last struct are Futures, and their depth.
    let futureMembers: FutureMembers | undefined;
    let memberDepth = 0;
    while (cursor.next()) {
      if (cursor.depth <= currentDepth) currentDepth = -1;
      switch (cursor.tag) {
        case DW_TAG.subprogram:
          current = cursor.offset;
          currentDepth = cursor.depth;
          parameterSeen = false;
          isAsync = cursor.name?.startsWith('{async_') === true;
          if (isAsync) add(this.functions, current, this.firstParameter, 0);
          add(this.instances, current, this.instanceOrigin, cursor.reference(DW_AT.abstract_origin));
          break;
        case DW_TAG.formal_parameter:
          if (currentDepth >= 0 && !parameterSeen && cursor.depth === currentDepth + 1) {
            parameterSeen = true;
            const type = cursor.reference(DW_AT.type);
            if (!isAsync) add(this.functions, current, this.firstParameter, type);
            else this.firstParameter.set(this.firstParameter.length - 1, type ?? 0);
          }
          break;
        case DW_TAG.structure_type:
          structAt.length = Math.min(structAt.length, cursor.depth);
          if (cursor.name === 'Unresumed') add(this.environments, structAt[cursor.depth - 1]);
          structAt[cursor.depth] = cursor.offset;
          futureMembers = membersOf(cursor.name);
          memberDepth = cursor.depth + 1;
          break;
        case DW_TAG.member:
          if (futureMembers !== undefined && cursor.depth === memberDepth) this.#member(cursor, futureMembers);
          break;
        case DW_TAG.namespace:
          structAt.length = Math.min(structAt.length, cursor.depth);
          break;
        case DW_TAG.variable:
          if (cursor.depth === 1 && cursor.name?.endsWith('::{vtable}')) this.vtables.push(cursor.offset);
          break;
      }
    }
  }

  #member(cursor: DieCursor, wanted: FutureMembers): void {
    const { name } = cursor;
    const isWanted = wanted === 'awaited' ? name === AWAITEE : name !== undefined && BRANCHES.has(name);
    const type = isWanted ? cursor.reference(DW_AT.type) : undefined;
    if (type !== undefined) this[wanted].push(type);
  }
}

/** Adds a row of one or two columns, if it is known. */
function add(column: U32Column, value: number | undefined, column2?: U32Column, value2?: number): void {
  if (value === undefined || (column2 && value2 === undefined)) return;
  column.push(value);
  if (value2 !== undefined) column2?.push(value2);
}

/** Which column the members of a struct that are Futures belong to. */
type FutureMembers = 'awaited' | 'branches';

function membersOf(struct: string | undefined): FutureMembers | undefined {
  if (struct?.startsWith('Suspend')) return 'awaited';
  return struct?.startsWith('{closure_env#') ? 'branches' : undefined;
}

function isRust(unit: Unit): boolean {
  const language = unit.language;
  return language === undefined || language === DW_LANG.Rust || language === DW_LANG.Rust_old;
}
