/*
 * The functions by which Futures are dropped. The compiler makes a `core::ptr::drop_in_place::<T>` for every type that
 * has something to drop; from Rust 1.97 on its name is `drop_glue`. Runtimes have functions of their own for tasks.
 */

import type { FutureSet, FutureType, TaskPlaces } from '../../../async/futures/index.js';
import type { Addr } from '../../../base/addr.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  genericsOf,
  inlinedCopies,
  rangesOf,
  typeName,
} from '../../../dwarf/index.js';

/** A Future that a function drops. */
export interface DropTarget {
  readonly future: FutureType;
  /** From the address in the function's first argument. */
  readonly offset: number;
}

/** A function that drops Futures. */
export interface DropFunction {
  readonly address: Addr;
  readonly size: number;
  readonly name: string;
  readonly targets: readonly DropTarget[];
  /** It drops only if one of these bits is set in the word at the address in its first argument. */
  readonly when: { readonly offset: number; readonly size: 1 | 2 | 4 | 8; readonly bits: bigint } | undefined;
  /** It may drop a task, not only what a task holds. */
  readonly ofTask: boolean;
}

interface DropFunctions {
  readonly functions: readonly DropFunction[];
  /** Futures of which some are dropped unseen: the function was inlined, or there is none. */
  readonly some: ReadonlySet<FutureType>;
  /** Those that may be a task, and be dropped unseen as one. */
  readonly tasks: ReadonlySet<FutureType>;
}

const glueNames = ['core::ptr::drop_in_place', 'core::ptr::drop_glue'];

/** The functions that drop Futures, by address. */
export function dropFunctions(debug: DebugInfo, futures: FutureSet, places: TaskPlaces): DropFunctions {
  const found = new Found(debug);
  const byType = new Map(futures.all.map((future) => [future.typeOffset, future]));
  const mayBeTask = ({ typeOffset, vtables }: FutureType): boolean =>
    vtables.length > 0 || places.offsets.has(typeOffset);
  /** What each `drop_in_place` drops, with code or without: others may have copies of it. */
  const glue = new Map<number, FutureType>();
  for (const die of glueOf(debug, futures, places)) {
    debug.attempt(die.unit, () => {
      const [type] = genericsOf(die).values();
      const own = type && futures.ofType(type);
      if (own) {
        glue.set(die.reference(DW_AT.abstract_origin) ?? die.offset, own);
        const target = { future: own, offset: 0 };
        found.add(die, { name: `drop of ${own.future}`, target, ofTask: mayBeTask(own), when: undefined });
      }
      const held = type && places.holders.get(typeName(type));
      const future = held && byType.get(held.future);
      if (!held || !future) return;
      const target = { future, offset: held.offset };
      found.add(die, { name: `drop of ${future.future}`, target, ofTask: true, when: undefined });
    });
  }
  for (const { die, name, future: key, offset, when } of places.enders) {
    const future = byType.get(key);
    if (future) debug.attempt(die.unit, () => found.add(die, { name, target: { future, offset }, ofTask: true, when }));
  }
  const hidden = hiddenDrops(debug, glue, found.dropped);
  const withGlue = new Set(glue.values());
  const probed = new Set([...found.dropped.values()].flatMap((each) => [...each]));
  for (const future of futures.all) {
    if (withGlue.has(future)) continue;
    hidden.some.add(future);
    if (!probed.has(future)) hidden.tasks.add(future);
  }
  return { functions: found.functions, ...hidden };
}

/** The functions of the language that drop a Future or what is around one: few of the thousands that a program has. */
function glueOf(debug: DebugInfo, futures: FutureSet, { holders }: TaskPlaces): Die[] {
  const isWanted = (die: Die): boolean => {
    const [type] = genericsOf(die).values();
    return type !== undefined && (futures.ofType(type) !== undefined || holders.has(typeName(type)));
  };
  // Where nobody says what is around Futures, fewer are wanted.
  const [offsets = []] = debug.columns(`drops-${holders.size}`, () => {
    const all = glueNames.flatMap((name) => debug.functionsNamed(name));
    return [
      Uint32Array.from(
        all.filter((die) => debug.attempt(die.unit, () => isWanted(die))),
        ({ offset }) => offset,
      ),
    ];
  });
  return [...offsets].flatMap((offset) => debug.die(offset) ?? []);
}

/** The functions found so far, one an address. */
class Found {
  readonly #debug: DebugInfo;
  readonly #functions = new Map<bigint, DropFunction>();
  /** By the offset of its DIE: what a function drops. */
  readonly dropped = new Map<number, Set<FutureType>>();

  constructor(debug: DebugInfo) {
    this.#debug = debug;
  }

  get functions(): readonly DropFunction[] {
    return [...this.#functions.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
  }

  add(
    die: Die,
    { name, target, ofTask, when }: Pick<DropFunction, 'name' | 'ofTask' | 'when'> & { readonly target: DropTarget },
  ): void {
    const { elf } = this.#debug;
    const [range] = rangesOf(die);
    if (!range || !elf.isLoaded(range.low)) return;
    const address = elf.codes.fromCode(range.low);
    const known = this.#functions.get(address);
    const isKnown = known?.targets.some(({ future, offset }) => future === target.future && offset === target.offset);
    const targets = isKnown ? known?.targets : [...(known?.targets ?? []), target];
    const size = Number(range.high - range.low);
    const isOfTask = ofTask || (known?.ofTask ?? false);
    this.#functions.set(address, { address, size, name, targets: targets ?? [], ofTask: isOfTask, when });
    const dropped = this.dropped.get(die.offset) ?? new Set();
    this.dropped.set(die.offset, dropped.add(target.future));
  }
}

/** The Futures whose function was inlined somewhere, and those where that is no function that drops them too. */
function hiddenDrops(
  debug: DebugInfo,
  copied: ReadonlyMap<number, FutureType>,
  probed: ReadonlyMap<number, ReadonlySet<FutureType>>,
): { readonly some: Set<FutureType>; readonly tasks: Set<FutureType> } {
  const some = new Set<FutureType>();
  const tasks = new Set<FutureType>();
  if (copied.size === 0) return { some, tasks };
  const { origin, into } = inlinedCopies(debug);
  origin.forEach((each, i) => {
    const future = copied.get(each);
    if (!future) return;
    some.add(future);
    if (!probed.get(into[i] as number)?.has(future)) tasks.add(future);
  });
  return { some, tasks };
}
