/** The folder of a package that came from a registry. */
const PACKAGE = /^.*\/registry\/src\/[^/]+\/[^/]+\//;
/** Pointers to what is awaited, by the names of their types. */
const POINTER = /^(?:alloc::boxed::Box|core::pin::Pin)(?:<|$)|^[&*]|^\(?dyn /;

/**
 * Finds the program's own source files among those that an await chain names, the outermost first: not the language's,
 * not a package's. If all are such, the program came from a registry itself: its own are then those of the outermost
 * one's package.
 */
export function ownFiles(files: readonly (string | undefined)[]): (file: string | undefined) => boolean {
  const known = files.filter((file) => file !== undefined);
  if (!known.every(isLibraryFile)) return (file) => file !== undefined && !isLibraryFile(file);
  const [folder] = PACKAGE.exec(known[0] ?? '') ?? [];
  return (file) => folder !== undefined && (file?.startsWith(folder) ?? false);
}

/** One link of an await chain, as far as it says whose code it is. */
export interface CodeLink {
  /** `tokio::sync::mutex::Mutex::lock`. */
  readonly name: string;
  /** Of its await. */
  readonly file: string | undefined;
}

/** What of a library the program's own code awaits: the first below it that is no pointer. */
export function libraryBelow(
  own: string,
  below: readonly CodeLink[],
  isOwn: (file: string | undefined) => boolean,
): string | undefined {
  const crate = crateOf(own);
  const isLibrary = ({ name, file }: CodeLink): boolean =>
    !POINTER.test(name) && (file === undefined ? crateOf(name) !== crate : !isOwn(file));
  const found = below.find(isLibrary);
  // A Future of its own that awaits in a macro's file.
  const macro = found && crateOf(found.name) === crate ? macroOf(found.file) : undefined;
  return macro ?? found?.name;
}

/** `tokio::select!`, by the file of a package's macro, in which it awaits: `../tokio-1.54.1/src/macros/select.rs`. */
export function macroOf(file: string | undefined): string | undefined {
  const [, crate, macro] = /\/([\w-]+)-\d[^/]*\/src\/macros\/(\w+)\.rs$/.exec(file ?? '') ?? [];
  return crate === undefined ? undefined : `${crate.replaceAll('-', '_')}::${macro}!`;
}

/** `tokio`, of `<tokio::sync::Notify as ..>` too. */
export function crateOf(name: string): string | undefined {
  return /^<?(\w+)/.exec(name)?.[1];
}

/** `tokio Mutex::lock` for `tokio::sync::mutex::Mutex::lock::{async_block#0}`: the crate, and the type or function. */
export function libraryName(name: string): string {
  const [plain = name] = /^[^<{]+(?=::[<{]|<|$)/.exec(name) ?? [];
  const [crate, ...parts] = plain.split('::');
  if (parts.length === 0) return plain;
  const type = parts.findIndex((part) => /^[A-Z]/.test(part));
  return `${crate} ${parts.slice(type < 0 ? -1 : type).join('::')}`;
}

/** Up to the folder of a package: of a registry, or of a git repository. */
const PACKAGES = /^.*\/(?:registry\/src\/[^/]+|git\/checkouts)\//;
/** Up to the standard library's sources, as rustc names them, or where they are installed. */
const LIBRARY = /^(?:\/rustc\/[^/]+|.*\/rustlib\/src\/rust)\/(?=library\/)/;

/** A source file of the language's library, or of a package from a registry or a git checkout. */
export function isLibraryFile(file: string): boolean {
  return /\/(?:registry\/src|git\/checkouts|rustc|rustlib)\//.test(file);
}

/**
 * A source file as people read it: `tokio-1.54.1/src/sync/mutex.rs` for one of a registry's package, `library/core/..`
 * for one of the standard library, any other as it is. For text alone: JSON and traces have the whole path.
 */
export function shownFile(file: string): string {
  return file.replace(PACKAGES, '').replace(LIBRARY, '');
}

/** The same of each place that stands behind ` at ` in a line. */
export function shownPlaces(line: string): string {
  return line.includes('/registry/src/') || line.includes('/git/checkouts/') ? line.replace(PLACES, ' at ') : line;
}

const PLACES = / at \/(?:(?! at )[^:])*?\/(?:registry\/src\/[^/]+|git\/checkouts)\//g;

/** `tokio-1.54.1/src/sync/mutex.rs:455`: a place in a source file, by {@link shownFile}; `?` for an unknown line. */
export function shownPlace(file: string, line: number | undefined): string {
  return `${shownFile(file)}:${line ?? '?'}`;
}

/** `1 probe`, `2 probes`. */
export function plural(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
