/*
 * The functions by which tasks are woken: `wake` and `wake_by_ref` of each `RawWakerVTable` that the program has.
 * Whatever the executor is, its vtable is a constant of four functions, of which `clone` returns a `RawWaker`.
 */

import { pointerOf } from '../../../async/futures/index.js';
import { type Addr, addr } from '../../../base/addr.js';
import { madeOnce } from '../../../base/made-once.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  functionName,
  genericsOf,
  inlinedCopies,
  inlinedInto,
  layoutOf,
  parametersOf,
  qualifiedName,
  rangesOf,
  stripGenerics,
  through,
  typeName,
  typeOf,
} from '../../../dwarf/index.js';

/** One function of a vtable. Its first argument is what the waker points to. */
export interface WakeFunction {
  readonly address: Addr;
  readonly size: number;
  readonly name: string;
  /** Where the task that the waker points to has its `Box<dyn Future>`, if it has one. */
  readonly box: number | undefined;
  readonly die: Die;
}

const WORD = 8;
/** Functions that only return, as those of `Waker::noop`, may be folded with others. */
const leastSize = 5;
/** Vtables of other traits whose first function has such a name are few. */
const cloneName = /clone|waker|wake/i;
const mostNested = 8;

/** The wake functions of a program, by address; none if its debug info has no wakers. */
export function wakeFunctions(debug: DebugInfo): WakeFunction[] {
  const [type] = debug.typesNamed('core::task::wake::RawWakerVTable');
  if (!type) return [];
  const offsets = new Map(layoutOf(type).members.map(({ name, offset }) => [name, offset]));
  const found = new Map<bigint, WakeFunction>();
  const at = (name: string): number => offsets.get(name) ?? 0;
  for (const table of vtables(debug, at('clone'))) {
    const words = ['wake', 'wake_by_ref', 'drop'].map((name) => table(at(name)));
    // A runtime's own table may hold the same `clone`, and other functions and numbers behind it.
    if (!words.every((word) => mayTakeWaker(debug, word))) continue;
    for (const word of words.slice(0, 2)) {
      const fn = wakeFunction(debug, word);
      if (fn) found.set(fn.address, fn);
    }
  }
  for (const { address, size, name, die } of functionsNamed(debug, directNames)) {
    found.set(address, { address, size, name, box: undefined, die });
    // A waker's function that calls it is seen there; one with a copy of it is not.
    for (const [at, fn] of found) if (isCallerOf(fn, name)) found.delete(at);
  }
  return [...found.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
}

/** Where a build without optimisation calls them: these functions of the language say nothing of who wakes. */
const wakerMethods = ['core::task::wake::Waker::wake', 'core::task::wake::Waker::wake_by_ref'];

/** Those of them that have code of their own. */
export function callersOfWakes(debug: DebugInfo): Omit<WakeFunction, 'box'>[] {
  return functionsNamed(debug, wakerMethods);
}

/** Functions of runtimes that wake a task, without a waker too. Their first argument is what a waker points to. */
const directNames = ['embassy_executor::raw::wake_task', 'embassy_executor::raw::wake_task_no_pend'];

function functionsNamed(debug: DebugInfo, names: readonly string[]): Omit<WakeFunction, 'box'>[] {
  return names
    .flatMap((name) => debug.functionsNamed(name))
    .flatMap((die) => {
      const low = debug.attempt(die.unit, () => rangesOf(die)[0]?.low);
      if (low === undefined || !debug.elf.isLoaded(low)) return [];
      const address = debug.elf.codes.fromCode(low);
      const symbol = debug.elf.symbols.at(address);
      const name = functionName(die);
      return symbol?.address === address ? [{ address, size: symbol.size, name, die }] : [];
    });
}

/** Whether a wake function of the same crate calls another one, and has no copy of it. */
function isCallerOf({ name, die }: WakeFunction, called: string): boolean {
  if (crateOf(name) !== crateOf(called) || directNames.includes(name)) return false;
  return !inlinedInto(die).some((copy) => functionName(copy) === called);
}

function crateOf(name: string): string {
  return /^<?(\w+)/.exec(name)?.[1] ?? name;
}

/** Whether some wakes are not seen, because the compiler inlined a wake function into what is none. */
export function areInlined(debug: DebugInfo, functions: readonly WakeFunction[]): boolean {
  // Of a generic one also those for tasks whose waker is no constant of the program, because it is used in one place.
  const names = new Set([...directNames, ...functions.map(({ name }) => stripGenerics(name))]);
  const originals = [...functions.map(({ die }) => die), ...[...names].flatMap((name) => debug.functionsNamed(name))];
  const origins = new Set(originals.map((die) => die.reference(DW_AT.abstract_origin) ?? die.offset));
  const own = new Set(functions.map(({ die }) => die.offset));
  if (origins.size === 0) return false;
  const { origin, into } = inlinedCopies(debug);
  return origin.some((each, i) => origins.has(each) && !own.has(into[i] as number));
}

/** Reads the function at an offset of each vtable. */
function vtables(debug: DebugInfo, clone: number): ((offset: number) => Addr)[] {
  const areas = [...debug.elf.constants()];
  const find = (): Uint32Array[] => {
    const known = new Map<bigint, boolean>();
    const found = areas.flatMap(({ view }, area) => vtablesIn(debug, view, clone, known).map((at) => [area, at]));
    return [0, 1].map((i) => Uint32Array.from(found, (each) => each[i] as number));
  };
  const [area, start] = debug.columns('wakers', find) as [Uint32Array, Uint32Array];
  return [...start].map((at, i) => (offset) => {
    const { view } = areas[area[i] as number] as (typeof areas)[number];
    return addr(view.getBigUint64(at + offset, true));
  });
}

/** Where they begin. */
function vtablesIn(debug: DebugInfo, view: DataView, clone: number, known: Map<bigint, boolean>): number[] {
  const found: number[] = [];
  for (let at = 0; at + 4 * WORD <= view.byteLength; at += WORD) {
    const word = view.getBigUint64(at + clone, true);
    if (debug.elf.isCode(word) && madeOnce(known, word, () => returnsRawWaker(debug, addr(word)))) found.push(at);
  }
  return found;
}

function returnsRawWaker(debug: DebugInfo, address: Addr): boolean {
  const fn = cloneName.test(debug.elf.symbols.at(address)?.name ?? '') ? functionAt(debug, address) : undefined;
  const result = fn && typeOf(fn.die);
  return result !== undefined && qualifiedName(result) === 'core::task::wake::RawWaker';
}

/** The function that begins at an address, by its symbol and the debug info. */
function functionAt(debug: DebugInfo, address: Addr) {
  const symbol = debug.elf.symbols.at(address);
  const fn = symbol?.address === address ? debug.functionAt(address) : undefined;
  return symbol && fn?.low === address ? { size: symbol.size, name: fn.name, die: fn.die } : undefined;
}

/** Whether a word is code that may be `unsafe fn(*const ())`, as far as is known. */
function mayTakeWaker(debug: DebugInfo, address: Addr): boolean {
  if (!debug.elf.isCode(address)) return false;
  const fn = functionAt(debug, address);
  // The linker may have folded one that only returns with any other.
  if (!fn || fn.size < leastSize) return true;
  const returns = typeOf(fn.die) !== undefined;
  // A parameter without a name may be missing.
  return !returns && (through(fn.die, (die) => parametersOf(die).length || undefined) ?? 0) <= 1;
}

function wakeFunction(debug: DebugInfo, address: Addr): WakeFunction | undefined {
  const fn = functionAt(debug, address);
  if (!fn || fn.size < leastSize || /noop/.test(fn.name)) return undefined;
  // The type that a generic wake function was made for is what its waker points to.
  const [owner] = genericsOf(fn.die).values();
  return { address, ...fn, box: boxIn(owner, 0, 0) };
}

/** Where a type has a `Box<dyn Future>`: at any depth of structs and enums. */
function boxIn(type: Die | undefined, offset: number, depth: number): number | undefined {
  if (type?.tag !== DW_TAG.structure_type || depth > mostNested) return undefined;
  const words = pointerOf(type);
  if (words) {
    const isBox = words.vtable !== undefined && /\bdyn core::future::future::Future\b/.test(typeName(words.target));
    return isBox ? offset + words.pointer : undefined;
  }
  const { members, variantPart } = layoutOf(type);
  for (const member of [...members, ...(variantPart?.variants.flatMap((variant) => variant.members) ?? [])]) {
    const found = boxIn(member.type, offset + member.offset, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
