/** Crates that come with the compiler. */
export const languageCrates: ReadonlySet<string> = new Set([
  'core',
  'alloc',
  'std',
  'proc_macro',
  'test',
  'compiler_builtins',
]);

/** A source file of the language's library, or of a crate from a registry or a git checkout. */
export function isLibraryFile(file: string): boolean {
  return /\/registry\/|\/git\/checkouts\/|\/rustc\/|\/library\//.test(file);
}
