import type { DebugInfo } from '../dwarf/index.js';
import type { FutureSet, FutureType } from '../futures/index.js';
import { isLibraryFile, languageCrates } from './library-crates.js';

/** The source of a program, not of a library, in the name that rustc gives a unit: `src/main.rs/@/app.5e1f-cgu.0`. */
const PROGRAM = /\/(?:main|bin\/[^/]+|bin\/[^/]+\/main)\.rs\/@\//;

/**
 * The Futures of the program's own crates: not the language's, not those that came from a registry or from a git
 * checkout. A program that itself came from there (`cargo install`) has the Futures of its package.
 */
export function ownFutures(debug: DebugInfo, futures: FutureSet): ReadonlySet<FutureType> {
  const written = futures.all.filter(({ crate }) => !languageCrates.has(crate));
  const own = written.filter((future) => !filesOf(future).some(isLibraryFile));
  if (own.length > 0) return new Set(own);
  // Cargo compiles such a package in its folder.
  const folders = new Set(
    debug.units.flatMap(({ name, compDir }) => (compDir && PROGRAM.test(name ?? '') ? [`${compDir}/`] : [])),
  );
  return new Set(
    written.filter((future) => [...folders].some((folder) => filesOf(future).some((file) => file.startsWith(folder)))),
  );
}

function filesOf({ file, polls }: FutureType): string[] {
  return [file, ...polls.map(({ declFile }) => declFile)].filter((each) => each !== undefined);
}
