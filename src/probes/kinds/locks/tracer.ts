import { type Addr, addOffset, addr, hex } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import {
  type AheadReads,
  type Call,
  type CallKind,
  type CallSite,
  emittedAround,
  type HitMemory,
  type InstantKind,
  type InstantSite,
  type MemoryRequest,
  type Moment,
  type OpenCall,
  type TracedCall,
} from '../../../calls/index.js';
import {
  type CallBegin,
  type GuestNanos,
  type LockUse,
  lockArguments,
  lockText,
  type PlaceRef,
  releaseName,
  stackText,
} from '../../../trace/index.js';
import { ValueTexts } from '../../value-texts.js';
import type { TracerContext } from '../kind.js';
import { Callers } from '../poll/callers.js';
import { type KnownLock, LockNames } from './lock-names.js';
import type { FoundLocks, LockFunction } from './resolve.js';

const WORD = 8;
const none: readonly never[] = [];

/** A call that takes a lock, or tries to. */
interface Taking extends TracedCall {
  emitted?: CallBegin | undefined;
  readonly fn: LockFunction;
  readonly lock: KnownLock;
  readonly use: LockUse;
  readonly result: ValueTexts | undefined;
  readonly began: GuestNanos;
  readonly hart: number;
  exit: { readonly hart: number; readonly result: string } | undefined;
}

type TakingCall = OpenCall<TracedCall> & { readonly payload: Taking };

/** Locks that were taken: a guard leads into the one that it releases. */
class TakenLocks {
  readonly #byAddress = new AddressMap<KnownLock>();
  readonly #known: KnownLock[] = [];
  readonly #within = new AddressMap<KnownLock>();

  add(place: bigint, lock: KnownLock): void {
    if (this.#byAddress.get(place) === lock) return;
    this.#byAddress.set(place, lock);
    this.#known.push(lock);
    this.#within.clear();
  }

  /** `isPart`: the address may lie inside of the lock. */
  at(place: bigint, address: Addr, isPart: boolean): KnownLock | undefined {
    const known = this.#byAddress.get(place);
    if (known || !isPart) return known;
    const within = this.#within.get(place) ?? this.#known.findLast((each) => holds(each, address));
    if (within) this.#within.set(place, within);
    return within;
  }
}

function holds({ address: from, size }: KnownLock, address: Addr): boolean {
  return address >= from && address < from + BigInt(Math.max(size, 1));
}

/**
 * Makes a call of each use of a lock, from the entry of the function that takes it to its return, and an instant where
 * it is released.
 */
export class LockTracer implements CallKind, InstantKind {
  readonly #functions = new AddressMap<LockFunction>();
  readonly #results = new Map<LockFunction, ValueTexts>();
  readonly #context: TracerContext;
  readonly #names: LockNames;
  readonly #callers: Callers;
  readonly #taken = new TakenLocks();
  readonly #wants: FoundLocks['wants'];
  readonly #wanted = new Map<KnownLock, boolean>();
  readonly #places = new Map<string, PlaceRef>();
  readonly ahead: AheadReads = {
    entryReads: () => none,
    mayBegin: ({ pc }) => this.#takes(pc) !== undefined,
    exitReads: () => none,
  };

  constructor({ functions, wants }: FoundLocks, context: TracerContext) {
    for (const fn of functions) this.#functions.set(fn.probe.address, fn);
    this.#wants = wants;
    this.#context = context;
    this.#names = new LockNames(context);
    this.#callers = new Callers(context);
  }

  isAt(pc: Addr): boolean {
    return this.#functions.get(pc) !== undefined;
  }

  #takes(pc: Addr): LockFunction | undefined {
    const fn = this.#functions.get(pc);
    return fn?.role.does === 'release' ? undefined : fn;
  }

  entryReads({ pc }: Moment): readonly MemoryRequest[] | undefined {
    return this.#takes(pc) ? none : undefined;
  }

  begin({ pc, hart, time, registers, space }: Moment, site: CallSite): Taking | undefined {
    const fn = this.#takes(pc);
    const word = fn && registers.register(fn.register);
    if (!fn || word === undefined || isWithin(fn, addr(word), site)) return undefined;
    const lock = this.#names.of(addr(word), fn);
    if (!madeOnce(this.#wanted, lock, () => this.#wants(lock.names))) return undefined;
    this.#taken.add(this.#placeOf(lock.address, space), lock);
    const { does, isShared } = fn.role;
    const by = stackText([this.#callers.at(site.returnAddress)]);
    const use = {
      lock: lockText(lock.address, this.#context.spaces.root(space)),
      isShared,
      isAttempt: does === 'try',
      by,
    };
    const result = does === 'try' ? this.#resultOf(fn) : undefined;
    const began = this.#context.output.at(time);
    return { kind: this, fn, lock, use, result, began, hart, entryOnly: !site.seesReturn, exit: undefined };
  }

  #resultOf(fn: LockFunction): ValueTexts {
    return madeOnce(this.#results, fn, () => {
      const { result } = fn.probe;
      const [register = ''] = this.#context.arch.results;
      const word = { kind: 'registers', parts: [{ register, offset: 0, size: WORD }] } as const;
      return new ValueTexts(result?.where ?? word, result?.shape);
    });
  }

  #placeOf(address: Addr, space: number | undefined): bigint {
    return inSpace(address, this.#context.spaces.root(space));
  }

  began(call: TakingCall): void {
    const { payload, depth, thread } = call;
    const { hart, lock, use } = payload;
    const { output } = this.#context;
    const begin = {
      ...({ type: 'call-begin', time: output.time, hart, thread, function: lock.ref, depth } as const),
      around: emittedAround(call),
      arguments: lockArguments(use),
    };
    payload.emitted = begin;
    output.emit(begin);
  }

  exitReads(): readonly MemoryRequest[] {
    return none;
  }

  returning({ payload }: TakingCall, { hart, registers }: Moment, memory: HitMemory): void {
    const { result, fn } = payload;
    const text = result?.text(registers, memory);
    payload.exit = { hart, result: isTaken(text, fn) ? 'taken' : 'not taken' };
  }

  ended({ payload, depth, thread, wasLost }: TakingCall): void {
    const { lock, began, emitted, exit } = payload;
    if (!exit) return;
    const { time } = this.#context.output;
    const ended = { time, thread, function: lock.ref, depth, begin: emitted, began, wasLost, ...exit };
    this.#context.output.emit({ type: 'call-end', ...ended });
  }

  lost({ payload, depth, thread }: TakingCall, hart: number): void {
    const { lock, began, emitted } = payload;
    const { time } = this.#context.output;
    this.#context.output.emit({
      type: 'call-lost',
      time,
      hart,
      thread,
      function: lock.ref,
      depth,
      begin: emitted,
      began,
    });
  }

  reads({ pc, registers }: Moment): readonly MemoryRequest[] | undefined {
    const fn = this.#functions.get(pc);
    const word = fn?.role.does === 'release' ? registers.register(fn.register) : undefined;
    if (!fn || word === undefined) return undefined;
    return fn.through === undefined ? none : [{ address: addOffset(addr(word), fn.through), length: WORD }];
  }

  /** A lock is released. */
  hit({ pc, hart, registers, space }: Moment, { returnAddress, memory }: InstantSite): (() => void) | undefined {
    const fn = this.#functions.get(pc);
    const self = fn?.role.does === 'release' ? registers.register(fn.register) : undefined;
    if (!fn || self === undefined) return undefined;
    const { through } = fn;
    const word = through === undefined ? self : memory.at(addOffset(addr(self), through), WORD)?.word(0);
    if (word === undefined) return undefined;
    const lock = this.#taken.at(this.#placeOf(addr(word), space), addr(word), fn.isMethod);
    if (!lock) return undefined;
    const caller = this.#callers.at(returnAddress);
    const name = releaseName(lock.ref, this.#context.spaces.root(space));
    const place = madeOnce(this.#places, `${name} ${hex(lock.address)} ${stackText([caller])}`, () => {
      return { key: this.#places.size, name, category: 'lock', address: lock.address, by: caller };
    });
    return () => {
      const { output } = this.#context;
      output.emit({ type: 'place', time: output.time, hart, place });
    };
  }
}

/**
 * Whether an open call takes the same lock: a method of Rust's calls another one of it. Or the function has jumped to
 * its first instruction, which it was called at once.
 */
function isWithin({ probe, isMethod }: LockFunction, address: Addr, site: CallSite): boolean {
  for (let call: Call | undefined = site.around; call; call = call.parent) {
    const { payload } = call;
    if (!(payload.kind instanceof LockTracer)) continue;
    const { fn, lock } = payload as Taking;
    if (isMethod && holds(lock, address)) return true;
    const isSame = fn.probe === probe && lock.address === address;
    return isSame && call.returnAddress === site.returnAddress && call.stackPointer === site.stackPointer;
  }
  return false;
}

/** `Some(..)`, `Ok(..)`, `true`, what is no zero; a result that is not known belongs to a function that never fails. */
function isTaken(result: string | undefined, { role }: LockFunction): boolean {
  if (role.does !== 'try' || result === undefined) return true;
  if (/^-?(0x)?[0-9a-f]+$/.test(result)) return /^-?(0x)?0+$/.test(result) === role.isZeroTaken;
  return !/^(None|Err|false)/.test(result);
}
