import { U32Column } from '../base/growable.js';
import type { DebugInfo, Unit } from '../dwarf/index.js';
import { DieCursor, DW_AT, DW_LANG, DW_TAG } from '../dwarf/index.js';

/** The result of one pass over all Rust units, as columns of DIE offsets that are not yet interpreted. */
export class FutureScan {
  /** Structs with a nested struct `Unresumed`: the environments of coroutines. */
  readonly environments = new U32Column();
  /** Functions with a first parameter, and that parameter's type. */
  readonly functions = new U32Column();
  readonly firstParameter = new U32Column();
  /** Out-of-line copies of functions that are inlined elsewhere, and the abstract function they are copies of. */
  readonly instances = new U32Column();
  readonly instanceOrigin = new U32Column();
  /** Inlined copies, what they are copies of, and the function around. */
  readonly inlined = new U32Column();
  readonly inlinedOrigin = new U32Column();
  readonly inlinedInto = new U32Column();
  /** Variables named `<.. as ..Future>::{vtable}`. */
  readonly vtables = new U32Column();

  constructor(debug: DebugInfo) {
    for (const unit of debug.units) debug.attempt(unit, () => isRust(unit) && this.#scan(unit));
  }

  #scan(unit: Unit): void {
    const cursor = DieCursor.of(unit);
    // The function around the cursor, and its depth; functions nest in no Rust program.
    let current = 0;
    let currentDepth = -1;
    let parameterSeen = false;
    // Of the structs around, the last one at each depth.
    const structAt: number[] = [];
    while (cursor.next()) {
      if (cursor.depth <= currentDepth) currentDepth = -1;
      switch (cursor.tag) {
        case DW_TAG.subprogram: {
          current = cursor.offset;
          currentDepth = cursor.depth;
          parameterSeen = false;
          const origin = cursor.reference(DW_AT.abstract_origin);
          if (origin !== undefined) {
            this.instances.push(current);
            this.instanceOrigin.push(origin);
          }
          break;
        }
        case DW_TAG.formal_parameter:
          if (currentDepth >= 0 && !parameterSeen && cursor.depth === currentDepth + 1) {
            parameterSeen = true;
            const type = cursor.reference(DW_AT.type);
            if (type !== undefined) {
              this.functions.push(current);
              this.firstParameter.push(type);
            }
          }
          break;
        case DW_TAG.inlined_subroutine: {
          const origin = currentDepth < 0 ? undefined : cursor.reference(DW_AT.abstract_origin);
          if (origin !== undefined) {
            this.inlined.push(cursor.offset);
            this.inlinedOrigin.push(origin);
            this.inlinedInto.push(current);
          }
          break;
        }
        case DW_TAG.structure_type:
          structAt.length = Math.min(structAt.length, cursor.depth);
          if (cursor.depth > 0 && cursor.name === 'Unresumed') {
            const around = structAt[cursor.depth - 1];
            if (around !== undefined) this.environments.push(around);
          }
          structAt[cursor.depth] = cursor.offset;
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
}

function isRust(unit: Unit): boolean {
  const language = unit.language;
  return language === undefined || language === DW_LANG.Rust || language === DW_LANG.Rust_old;
}
