import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { Budget } from '../../base/budget.js';
import type { U32Column } from '../../base/growable.js';
import { littleEndian } from '../../base/little-endian.js';
import { addTo } from '../../base/made-once.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  functionName,
  inlinedCopies,
  layoutOf,
  linkageNameOf,
  nameOf,
  staticCode,
} from '../../dwarf/index.js';
import type { CodeAddress } from '../../elf/index.js';
import { asyncKindOf } from '../../trace/index.js';
import { FutureCatalog } from './catalog.js';
import type { FutureEntry } from './entry.js';
import { HeldFutures, outputOfDyn } from './held-futures.js';
import type { FutureLookup } from './layout.js';
import { likePolls } from './like-polls.js';
import { pointerOf } from './pointers.js';
import {
  declaredPinTarget,
  environmentOf,
  isContext,
  isFuturePoll,
  pinTarget,
  pollTypeOf,
  readInlinedPoll,
  readPollFunction,
  returnsNothing,
} from './poll-functions.js';
import { FutureScan } from './scan.js';
import type { FutureSet, FutureType, HeldInPlace } from './types.js';

/**
 * Every type of Future in the debug info. Compiler-made ones are known by the shape of their environment (a variant
 * part with `Unresumed`). All others are known by a `poll` whose `self` is `Pin<&mut T>`, or because a state or a
 * `select!` awaits them. The same type has a DIE in
 * each unit that uses it: types are the same if full name and size are equal. Damaged parts are left out with a
 * warning.
 */
export function findFutures(debug: DebugInfo): FutureSet {
  return new Futures(debug);
}

class Futures implements FutureSet, FutureLookup {
  readonly contents: FutureLookup['contents'] = new Map();
  readonly held: HeldFutures;
  readonly futureOf = (type: Die): FutureEntry | undefined => this.#catalog.ofType(type);
  readonly #debug: DebugInfo;
  readonly #catalog = new FutureCatalog(this);
  readonly #byVtable = new Map<number, FutureEntry>();
  readonly #byPoll = new Map<number, FutureEntry>();
  readonly #byCopy = new Map<number, FutureEntry>();
  #byOutput: Map<string, FutureEntry[]> | undefined;
  /** Poll functions without code of their own. */
  readonly #without: { readonly future: FutureEntry; readonly symbol: string }[] = [];

  constructor(debug: DebugInfo) {
    this.#debug = debug;
    this.held = new HeldFutures(debug, this.futureOf);
    const scan = new FutureScan(debug);
    each(scan.environments, (offset) => this.#attempt(offset, (die) => this.#addEnvironment(die)));
    each(scan.awaited, (offset) => this.#attempt(offset, (type) => this.#addAwaited(type)));
    each(scan.branches, (offset) => this.#attempt(offset, (type) => this.#addBranches(type)));
    const polls = this.#findPolls(scan);
    for (const [offset, future] of polls) this.#attempt(offset, (fn) => this.#addPoll(future, fn));
    each(scan.instances, (offset, i) => {
      const future = polls.get(scan.instanceOrigin.at(i));
      if (future !== undefined) this.#attempt(offset, (fn) => this.#addPoll(future, fn));
    });
    const names = new Map<number, string>();
    const inlined = inlinedCopies(debug);
    inlined.origin.forEach((origin, i) => {
      const future = polls.get(origin);
      if (future === undefined) return;
      const offset = inlined.at[i] as number;
      this.#attempt(offset, (copy) => {
        const into = inlined.into[i] as number;
        const around = debug.die(into);
        if (around === undefined) return;
        if (!names.has(into)) names.set(into, functionName(around));
        const found = readInlinedPoll(debug, copy, around, names.get(into) ?? '?');
        if (found === undefined) return;
        future.polled.inlined.push(found);
        this.#byCopy.set(offset, future);
      });
    });
    each(scan.vtables, (offset) => this.#attempt(offset, (die) => this.#addVtable(die)));
    this.#addMerged();
  }

  get warnings(): readonly string[] {
    return this.#debug.warnings;
  }

  get budget(): Budget {
    return this.#debug.elf.budget;
  }

  get all(): readonly FutureType[] {
    return this.#catalog.all;
  }

  byPollAddress(address: Addr): FutureType | undefined {
    return this.#byPoll.get(this.#debug.elf.codes.toCode(address));
  }

  byVtable(address: Addr): FutureType | undefined {
    const code = this.#debug.elf.codes.toCode(address);
    const known = this.#byVtable.get(code);
    if (known !== undefined) return known;
    // A word that was no pointer may lead anywhere.
    const poll = Number.isNaN(code) ? undefined : this.#polledThrough(code);
    return poll === undefined ? undefined : this.#byPoll.get(poll);
  }

  behindDyn(typeName: string): readonly FutureType[] {
    const output = outputOfDyn(typeName);
    if (output === undefined) return [];
    if (this.#byOutput === undefined) {
      this.#byOutput = new Map();
      for (const future of this.#catalog.all) {
        if (future.vtables.length > 0 && future.output !== undefined) addTo(this.#byOutput, future.output, future);
      }
    }
    return this.#byOutput.get(output) ?? [];
  }

  inPlace(type: Die): readonly HeldInPlace[] {
    return this.held.in(type).flatMap(({ future, hops, offset, repeats, guards }) => {
      return future !== undefined && hops.length === 0 ? [{ future, offset, repeats, guards }] : [];
    });
  }

  ofCopy({ offset }: Pick<Die, 'offset'>): FutureType | undefined {
    return this.#byCopy.get(offset);
  }

  ofType(type: Die): FutureType | undefined {
    return this.#catalog.ofType(type);
  }

  #attempt(offset: number, read: (die: Die) => void): void {
    const unit = this.#debug.unitAt(offset);
    if (unit === undefined) return;
    this.#debug.attempt(unit, () => {
      const die = this.#debug.die(offset);
      if (die !== undefined) read(die);
    });
  }

  #addEnvironment(type: Die): void {
    const kind = asyncKindOf(nameOf(type) ?? '');
    // Generators have the same shape, but are never polled.
    if (kind !== undefined) this.#catalog.add(type, kind);
  }

  /** What is awaited is a Future, also if nothing is left of its poll. Of a pointer its target is one. */
  #addAwaited(type: Die): void {
    const pointer = pointerOf(type);
    const isOne = pointer !== undefined && pointer.vtable === undefined && pointer.length === undefined;
    const awaited = isOne ? pointer.target : type;
    if (awaited === undefined || (pointer !== undefined && !isOne)) return;
    if (awaited.tag !== DW_TAG.structure_type || awaited.flag(DW_AT.declaration)) return;
    if (pointerOf(awaited) === undefined && this.#catalog.ofType(awaited) === undefined)
      this.#catalog.add(awaited, 'impl');
  }

  /** The branches of a `select!`, in a tuple or behind a reference to one. */
  #addBranches(type: Die): void {
    const tuple = type.tag === DW_TAG.pointer_type ? type.follow(DW_AT.type) : type;
    if (!tuple?.name?.startsWith('(')) return;
    for (const { type: branch } of layoutOf(tuple).members) if (branch) this.#addAwaited(branch);
  }

  /** The functions that are polls, by DIE offset: with code or abstract. Which of all they are is kept. */
  #findPolls(scan: FutureScan): Map<number, FutureEntry> {
    const [rows = new Uint32Array()] = this.#debug.columns('polls', () => {
      const all = Uint32Array.from({ length: scan.functions.length }, (_, row) => row);
      const found = this.#pollsAmong(scan, all);
      return [all.filter((row) => found.has(scan.functions.at(row)))];
    });
    return this.#pollsAmong(scan, rows);
  }

  #pollsAmong(scan: FutureScan, rows: Uint32Array): Map<number, FutureEntry> {
    const targets = new Map<number, Die | undefined>([[0, undefined]]);
    const polls = new Map<number, FutureEntry>();
    /** Types that are declared, and rows of functions that have one: another unit defines the type. */
    const names = new Map<number, string>();
    const declared: number[] = [];
    /** Types of first parameters before which the Future is not listed; 0 where none is. */
    const contexts = new Set([0]);
    for (const row of rows) {
      const parameter = scan.firstParameter.at(row);
      if (!targets.has(parameter)) {
        targets.set(parameter, undefined);
        this.#attempt(parameter, (type) => {
          targets.set(parameter, pinTarget(type));
          const name = declaredPinTarget(type);
          if (name !== undefined) names.set(parameter, name);
          if (isContext(type)) contexts.add(parameter);
        });
      }
      const target = targets.get(parameter);
      if (target === undefined) {
        if (names.has(parameter)) declared.push(row);
        if (contexts.has(parameter)) this.#attempt(scan.functions.at(row), (fn) => this.#addWithoutSelf(fn, polls));
        continue;
      }
      const offset = scan.functions.at(row);
      this.#attempt(offset, (fn) => {
        const made = this.#catalog.ofType(target);
        if (made !== undefined && made.kind !== 'impl') {
          if (/^\{async_/.test(nameOf(fn) ?? '') && (pollTypeOf(fn) !== undefined || returnsNothing(fn)))
            polls.set(offset, made);
        } else if (isFuturePoll(fn)) {
          polls.set(offset, this.#catalog.add(target, 'impl'));
        }
        const polled = polls.get(offset)?.polled;
        if (polled !== undefined) polled.poll ??= fn;
      });
    }
    for (const row of declared) {
      const future = this.#catalog.named(names.get(scan.firstParameter.at(row)) ?? '');
      const offset = scan.functions.at(row);
      if (future !== undefined) {
        this.#attempt(offset, (fn) => {
          if (future.kind === 'impl' ? isFuturePoll(fn) : /^\{async_/.test(nameOf(fn) ?? '')) polls.set(offset, future);
        });
      }
    }
    return polls;
  }

  /** A poll function of which the debug info lists the context at most. */
  #addWithoutSelf(fn: Die, polls: Map<number, FutureEntry>): void {
    const type = environmentOf(fn);
    const future = typeof type === 'string' ? this.#catalog.named(type) : type && this.#catalog.ofType(type);
    if (future === undefined || future.kind === 'impl' || !(pollTypeOf(fn) || returnsNothing(fn))) return;
    polls.set(fn.offset, future);
    future.polled.poll ??= fn;
  }

  #addPoll(future: FutureEntry, fn: Die): void {
    const poll = readPollFunction(this.#debug, fn);
    if (poll === undefined) {
      const symbol = linkageNameOf(fn);
      if (symbol !== undefined) this.#without.push({ future, symbol });
      return;
    }
    const code = this.#debug.elf.codes.toCode(poll.address);
    const other = this.#byPoll.get(code);
    if (other === undefined) this.#byPoll.set(code, future);
    else if (other !== future) {
      this.#debug.warn(`${other.instance} and ${future.instance} have one poll function: the linker folded them`);
    }
    future.polled.add(code, poll);
  }

  #addVtable(variable: Die): void {
    const code = staticCode(variable);
    const vtable = variable.follow(DW_AT.type);
    const type = vtable?.follow(DW_AT.containing_type);
    const isFuture = variable.name?.endsWith(AS_FUTURE) === true;
    const polled = isFuture && !Number.isNaN(code) ? this.#polledThrough(code) : undefined;
    const future =
      type && (this.#catalog.ofType(type) ?? (polled === undefined ? undefined : this.#catalog.add(type, 'impl')));
    if (future === undefined || !this.#debug.elf.isLoaded(code) || this.#byVtable.has(code)) return;
    const words = (vtable?.number(DW_AT.byte_size) ?? 0) / WORD;
    if (!isFuture && !this.#holdsPoll(code, words, future)) return;
    if (polled !== undefined) this.#share(future, polled);
    this.#byVtable.set(code, future);
    future.polled.vtables.push(this.#debug.elf.codes.fromCode(code));
  }

  /** The known poll function that a vtable as `dyn Future` leads to: poll is the first method. */
  #polledThrough(vtable: CodeAddress): CodeAddress | undefined {
    const { codes } = this.#debug.elf;
    const word = this.#debug.elf.bytesAt(addOffset(codes.fromCode(vtable), HEAD * WORD), WORD);
    if (word === undefined) return undefined;
    const code = codes.toCode(addr(littleEndian(word)));
    return this.#byPoll.has(code) ? code : undefined;
  }

  /**
   * The poll function of another Future is this one's too: the compiler or the linker made one of two that are alike.
   */
  #share(future: FutureEntry, code: CodeAddress): void {
    const other = this.#byPoll.get(code);
    if (other === undefined || other === future) return;
    const { codes } = this.#debug.elf;
    const poll = other.polled.functions.find(({ address }) => codes.toCode(address) === code);
    if (poll !== undefined) future.polled.add(code, poll);
  }

  /**
   * Functions with the same code become one, and debug info names one of them. A symbol of the other may be left. Where
   * there is none, a Future without code may be polled by the code of one that looks like it.
   */
  #addMerged(): void {
    const { elf } = this.#debug;
    for (const { future, symbol } of this.#without)
      for (const { address } of elf.symbols.named(symbol)) this.#share(future, elf.codes.toCode(address));
    const [types = [], codes = []] = this.#debug.columns('merged', () => {
      const pairs = likePolls(this.#catalog.all);
      return [
        Float64Array.from(pairs, ({ future }) => future.typeOffset),
        Float64Array.from(pairs, ({ poll }) => elf.codes.toCode(poll.address)),
      ];
    });
    types.forEach((type, i) => {
      this.#attempt(type, (die) => {
        const future = this.#catalog.ofType(die);
        if (future) this.#share(future, codes[i] as CodeAddress);
      });
    });
  }

  /**
   * Whether a vtable is that of a trait that has `poll`: a Future is also `Any`, or an error, or what a crate wants.
   */
  #holdsPoll(vtable: CodeAddress, words: number, future: FutureEntry): boolean {
    const { codes } = this.#debug.elf;
    const methods = Math.min(words - HEAD, MOST_METHODS);
    if (!(methods > 0)) return false;
    const bytes = this.#debug.elf.bytesAt(addOffset(codes.fromCode(vtable), HEAD * WORD), methods * WORD);
    for (let offset = 0; bytes && offset < bytes.length; offset += WORD)
      if (this.#byPoll.get(codes.toCode(addr(littleEndian(bytes, offset, WORD)))) === future) return true;
    return false;
  }
}

/** How the names of vtables as `dyn Future` end. */
const AS_FUTURE = ' as core::future::future::Future>::{vtable}';
const WORD = 8;
/** Words of a vtable before those of the trait's methods: drop_in_place, size, align. */
const HEAD = 3;
const MOST_METHODS = 100;

function each(column: U32Column, visit: (offset: number, row: number) => void): void {
  for (let i = 0; i < column.length; i++) visit(column.at(i), i);
}
