/** Crates that come with the compiler. */
export const languageCrates: ReadonlySet<string> = new Set([
  'core',
  'alloc',
  'std',
  'proc_macro',
  'test',
  'compiler_builtins',
]);
