declare module 'gecko-profiler-demangle/index_bg.js' {
  export function demangle_any(name: string): string;
  export function __wbg_set_wasm(exports: object): void;
  export function __wbindgen_init_externref_table(): void;
}
