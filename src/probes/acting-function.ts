import { isLibraryFile } from '../text/index.js';
import type { StackEntry } from '../trace/index.js';
import { languageCrates } from './library-crates.js';

const unknown: StackEntry = { function: undefined, file: undefined, line: undefined };

/**
 * Who acts at a place, of the functions that are inlined into each other there, innermost first. `fetch_add` is
 * everywhere, so the interesting function is its caller.
 */
export function actingFunction(inlined: readonly StackEntry[]): StackEntry {
  return inlined.find((entry) => !isLibrary(entry)) ?? inlined[0] ?? unknown;
}

function isLibrary({ function: name, file }: StackEntry): boolean {
  const crate = /^<?&?(?:mut )?(\w+)/.exec(name ?? '')?.[1];
  return (crate !== undefined && languageCrates.has(crate)) || (file !== undefined && isLibraryFile(file));
}
