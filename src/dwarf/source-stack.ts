import type { Addr } from '../base/addr.js';
import type { CodeAddress } from '../elf/index.js';
import { DW_AT, DW_TAG } from './constants.js';
import type { DebugInfo, SourcePosition } from './debug-info.js';
import type { Die } from './die.js';
import { functionName } from './function-names.js';
import { rangesOf } from './ranges.js';

/** One function of the source at an address. There are as many as the compiler inlined into each other there. */
export interface SourceFunction {
  /** With its modules, without generic arguments. */
  readonly name: string;
  /** Its code is inlined into the next function of the list. */
  readonly inlined: boolean;
  /**
   * The place in this function: for the innermost the line of the address, for the others the call of the one before.
   */
  readonly position: SourcePosition | undefined;
  readonly die: Die;
}

/** What is at a code address. */
export interface CodePlace {
  /** From the line table; assembly has a line without functions. */
  readonly position: SourcePosition | undefined;
  /** The innermost first, the one with code of its own last; empty if DWARF has no function there. */
  readonly functions: readonly SourceFunction[];
}

/** Nested deeper than the inlining of any compiler. */
const MAX_DEPTH = 256;

export function codePlace(debug: DebugInfo, address: Addr): CodePlace {
  const position = debug.lineAt(address);
  const functions: SourceFunction[] = [];
  let here = position;
  for (const die of functionsAt(debug, address)) {
    const inlined = die.tag === DW_TAG.inlined_subroutine;
    functions.push({ name: functionName(die), inlined, position: here, die });
    if (inlined) here = callSite(debug, die);
  }
  return { position, functions };
}

/** The functions that an address is in, the innermost first: those inlined there, and the one with code of its own. */
export function functionsAt(debug: DebugInfo, address: Addr): readonly Die[] {
  const outer = debug.functionAt(address)?.die;
  if (outer === undefined) return [];
  const found = debug.attempt(outer.unit, () => scopesAt(outer, debug.elf.codes.toCode(address))) ?? [outer];
  return found.filter(({ tag }) => tag !== DW_TAG.lexical_block).reverse();
}

/** The innermost function, inlined copy or block with variables of its own that an address is in. */
export function scopeAt(debug: DebugInfo, address: Addr): Die | undefined {
  const outer = debug.functionAt(address)?.die;
  return outer && (debug.attempt(outer.unit, () => scopesAt(outer, debug.elf.codes.toCode(address)))?.at(-1) ?? outer);
}

function callSite(debug: DebugInfo, die: Die): SourcePosition | undefined {
  const index = die.number(DW_AT.call_file);
  const file = index === undefined ? undefined : debug.fileName(die.unit, index)?.path;
  if (file === undefined) return undefined;
  return { file, line: die.number(DW_AT.call_line) ?? 0, column: die.number(DW_AT.call_column) ?? 0 };
}

/** A function, and the inlined ones and blocks at an address of it, the outermost first. */
function scopesAt(outer: Die, code: CodeAddress): Die[] {
  const found = [outer];
  const cursor = outer.subtree();
  // The blocks and functions entered so far contain the address; all others are skipped.
  let depth = 0;
  while (found.length < MAX_DEPTH && cursor.next()) {
    if (cursor.depth < depth) break;
    const block = cursor.tag === DW_TAG.lexical_block;
    if (!block && cursor.tag !== DW_TAG.inlined_subroutine) {
      cursor.skipChildren();
    } else if (rangesOf(cursor).some(({ low, high }) => code >= low && code < high)) {
      found.push(cursor.die());
      depth = cursor.depth + 1;
    } else cursor.skipChildren();
  }
  return found;
}
