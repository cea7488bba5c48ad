// Rust (legacy `_ZN...17h<hash>E` and v0 `_R...`) and C++ names, by Mozilla's WebAssembly build of rustc-demangle.
//
// The package is made for bundlers: its entry imports the .wasm file as a module, which Node does not do. So the
// module is instantiated here, on first use (4 ms), from the same files. If it cannot be loaded, that is an error,
// because Futures are found by demangled names.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import * as glue from 'gecko-profiler-demangle/index_bg.js';
import { Budget } from '../base/budget.js';
import { partMissing } from '../base/errors.js';

const PACKAGE = 'gecko-profiler-demangle';
/**
 * Names longer than this stay mangled, because they cost time and nobody reads them. Back references make short names
 * long.
 */
const MAX_LENGTH = 32_768;
const MAX_DEMANGLED = 0x1_0000;
/** Units of the budget: a letter of output takes some 0.2 us, a new instance after a trap 4 ms. */
const PER_LETTER = 4;
const PER_TRAP = 100_000;

// Node has WebAssembly; the types of the language without a browser's do not.
const wasm = (globalThis as unknown as { readonly WebAssembly: WasmApi }).WebAssembly;

interface WasmApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Exports };
}

interface Exports {
  readonly memory: { grow(pages: number): number };
  readonly __wbindgen_start: () => void;
}

/** Compiled once; an instance serves until a name traps. */
let compiled: object | undefined;
let instance: Exports | undefined;

/**
 * `labkern::work::leaf_io::{closure#0}` for a mangled name, without hashes; any other name is returned unchanged.
 * `budget` is that of the name's file. Throws `PART_MISSING`, `ELF_TOO_COSTLY`.
 */
export function demangle(name: string, budget = new Budget('a name', name.length)): string {
  if (name.length > MAX_LENGTH || !/^_?_?[RZ]/.test(name)) return name;
  budget.spend(PER_LETTER * name.length, 'mangled names');
  instance ??= instantiate();
  let text: string;
  try {
    text = glue.demangle_any(name);
  } catch {
    // A trap (a crafted name that exhausts the stack) leaves the instance in an unknown state: the next name gets a
    // new one. The glue renews its view of the memory only if the old one is detached, as it is after the memory has
    // grown.
    instance.memory.grow(0);
    instance = undefined;
    budget.spend(PER_TRAP, 'mangled names');
    return name;
  }
  budget.spend(PER_LETTER * text.length, 'mangled names');
  // A name that it cannot demangle is returned without its underscore, a custom of Mach-O.
  return text === name.slice(1) || text.length > MAX_DEMANGLED ? name : text;
}

function instantiate(): Exports {
  try {
    compiled ??= new wasm.Module(readFileSync(createRequire(import.meta.url).resolve(`${PACKAGE}/index_bg.wasm`)));
    const { exports } = new wasm.Instance(compiled, { './index_bg.js': { ...glue } });
    glue.__wbg_set_wasm(exports);
    exports.__wbindgen_start();
    return exports;
  } catch (cause) {
    throw partMissing(PACKAGE, 'names cannot be demangled', cause);
  }
}
