// Rust (legacy `_ZN...17h<hash>E` and v0 `_R...`) and C++ names, by Mozilla's WebAssembly build of rustc-demangle.
//
// The package is made for bundlers: its entry imports the .wasm file as a module, which Node does not do. So the module is
// instantiated here, on first use (4 ms), from the same files.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import * as glue from 'gecko-profiler-demangle/index_bg.js';

/** Names longer than this stay as they are: they cost time and no one reads them. */
const MAX_LENGTH = 32_768;

// Node has WebAssembly; the types of the language without a browser's do not.
const wasm = (globalThis as unknown as { readonly WebAssembly: WasmApi }).WebAssembly;

interface WasmApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Record<string, unknown> };
}

let ready: boolean | undefined;

/** `labkern::work::leaf_io::{closure#0}` for a mangled name, without hashes; any other name comes back as it is. */
export function demangle(name: string): string {
  if (name.length > MAX_LENGTH || !/^_?_?[RZ]/.test(name)) return name;
  ready ??= instantiate();
  if (!ready) return name;
  try {
    const text = glue.demangle_any(name);
    // What it cannot demangle comes back without its underscore, a custom of Mach-O.
    return text === name.slice(1) ? name : text;
  } catch {
    // A trap (a crafted name that exhausts the stack) leaves the instance in an unknown state: the next name gets a new one.
    ready = undefined;
    return name;
  }
}

function instantiate(): boolean {
  try {
    const path = createRequire(import.meta.url).resolve('gecko-profiler-demangle/index_bg.wasm');
    const { exports } = new wasm.Instance(new wasm.Module(readFileSync(path)), { './index_bg.js': { ...glue } });
    glue.__wbg_set_wasm(exports);
    (exports.__wbindgen_start as () => void)();
    return true;
  } catch {
    return false;
  }
}
