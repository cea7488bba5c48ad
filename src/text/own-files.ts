/** The folder of a package that came from a registry, or of a repository that came by git, at a commit. */
const PACKAGE = /^.*\/(?:registry\/src\/[^/]+\/[^/]+-\d[^/]*|git\/checkouts\/[^/]+\/[^/]+)\//;
/** Where rustc says that the standard library's sources are, by its commit or version, or where they are installed. */
const LANGUAGE = /^\/rustc\/[\da-f.]+(?:-[\w.]+)?\/|\/rustlib\/src\/rust\//;
/** Pointers to what is awaited, by the names of their types. */
const POINTER = /^(?:alloc::boxed::Box|core::pin::Pin)(?:<|$)|^[&*]|^\(?dyn /;

/**
 * Finds the program's own source files among those that an await chain names, the outermost first: not the language's,
 * not a package's. If all are such, the program came from there itself: its own are then those of the outermost
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
  const [, self = '', trait, method] = /^<(.+) as (.+?)>::(.*)$/.exec(name) ?? [];
  if (trait !== undefined) return libraryName(`${self.includes('::') ? self : trait}::${method}`);
  const [plain = name] = /^[^<{]+(?=::[<{]|<|$)/.exec(name) ?? [];
  const [crate, ...parts] = plain.split('::');
  if (parts.length === 0) return plain;
  const type = parts.findIndex((part) => /^[A-Z]/.test(part));
  return `${crate} ${parts.slice(type < 0 ? -1 : type).join('::')}`;
}

/** A source file of the language's library, or of a package from a registry or a git checkout. */
export function isLibraryFile(file: string): boolean {
  return PACKAGE.test(file) || LANGUAGE.test(file);
}
