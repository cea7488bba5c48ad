import type { FutureSet, FutureType } from '../async/futures/index.js';
import type { DebugInfo } from '../dwarf/index.js';
import { isLibraryFile } from '../text/index.js';

/** The source of a program, not of a library, in the name that rustc gives a unit: `src/main.rs/@/app.5e1f-cgu.0`. */
const PROGRAM = /\/(?:main|bin\/[^/]+|bin\/[^/]+\/main)\.rs\/@\//;
/** The crate in the name of a unit. */
const CRATE = /\/@\/(\w+)\./;

/**
 * The Futures of the program's own crates: not the language's, not those that came from a registry or from a git
 * checkout. A program that itself came from there (`cargo install`) has the Futures of its package.
 */
export function ownFutures(debug: DebugInfo, futures: FutureSet): ReadonlySet<FutureType> {
  const written = futures.all.filter(({ crate }) => !languageCrates.has(crate));
  const crates = ownCrates(debug);
  const own = written.filter((future) => {
    const files = filesOf(future);
    // Of a type whose poll was inlined everywhere only the crate is known.
    return files.length > 0 ? !files.some(isLibraryFile) : crates.has(future.crate);
  });
  if (own.length > 0) return new Set(own);
  // Cargo compiles such a package in its folder.
  const folders = new Set(
    debug.units.flatMap(({ name, compDir }) => (compDir && PROGRAM.test(name ?? '') ? [`${compDir}/`] : [])),
  );
  return new Set(
    written.filter((future) => [...folders].some((folder) => filesOf(future).some((file) => file.startsWith(folder)))),
  );
}

/** Crates that have code of their own, and were not compiled from a registry or a git checkout. */
function ownCrates(debug: DebugInfo): Set<string> {
  return new Set(
    debug.units.flatMap(({ name = '', compDir = '' }) => {
      const crate = CRATE.exec(name)?.[1];
      return crate !== undefined && !isLibraryFile(name) && !isLibraryFile(`${compDir}/`) ? [crate] : [];
    }),
  );
}

function filesOf({ file, polls }: FutureType): string[] {
  return [file, ...polls.map(({ declFile }) => declFile)].filter((each) => each !== undefined);
}

/** Crates that come with the compiler. */
export const languageCrates: ReadonlySet<string> = new Set([
  'core',
  'alloc',
  'std',
  'proc_macro',
  'test',
  'compiler_builtins',
]);
