import { U32Column } from '../base/growable.js';
import { madeOnce } from '../base/made-once.js';
import { DW_AT, DW_TAG } from './constants.js';
import type { DebugInfo } from './debug-info.js';
import type { Die } from './die.js';

/** All inlined copies of functions, as columns of DIE offsets. */
export interface InlinedCopies {
  readonly at: Uint32Array;
  /** What each is a copy of. */
  readonly origin: Uint32Array;
  /** The function around it. */
  readonly into: Uint32Array;
}

const found = new WeakMap<DebugInfo, InlinedCopies>();

/** Found by a pass over all units, once for each program. */
export function inlinedCopies(debug: DebugInfo): InlinedCopies {
  return madeOnce(found, debug, () => read(debug));
}

/** All that was inlined into a function, or into a copy of one. */
export function inlinedInto(die: Die): Die[] {
  const found: Die[] = [];
  const cursor = die.subtree();
  while (cursor.next()) if (cursor.tag === DW_TAG.inlined_subroutine) found.push(cursor.die());
  return found;
}

function read(debug: DebugInfo): InlinedCopies {
  const none = new Uint32Array(0);
  const [at = none, origin = none, into = none] = debug.columns('inlined', () => {
    const columns = [new U32Column(), new U32Column(), new U32Column()] as const;
    /** The functions around, outermost first, and how deep they lie. */
    const hosts: number[] = [];
    const depths: number[] = [];
    debug.walk((cursor) => {
      while ((depths.at(-1) ?? -1) >= cursor.depth) {
        depths.pop();
        hosts.pop();
      }
      if (cursor.tag === DW_TAG.subprogram) {
        depths.push(cursor.depth);
        hosts.push(cursor.offset);
      } else if (cursor.tag === DW_TAG.inlined_subroutine) {
        const [origin, host] = [cursor.reference(DW_AT.abstract_origin), hosts.at(-1)];
        if (origin === undefined || host === undefined) return;
        columns[0].push(cursor.offset);
        columns[1].push(origin);
        columns[2].push(host);
      }
    });
    return columns.map((column) => column.rows());
  });
  return { at, origin, into };
}
