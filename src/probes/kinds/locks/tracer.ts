import { type Addr, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import {
  type AheadReads,
  type BlockEdge,
  type BlockKind,
  type Call,
  type CallKind,
  type CallSite,
  type HitMemory,
  type InstantKind,
  type InstantSite,
  inSameFrame,
  type MemoryRequest,
  type Moment,
  type OpenCall,
  type TracedCall,
} from '../../../calls/index.js';
import { lockArguments, stackText } from '../../../trace/index.js';
import { ValueTexts } from '../../value-texts.js';
import { CallEvents, type EventfulCall } from '../call-events.js';
import type { TracerContext } from '../kind.js';
import { type InlinedLock, type LockPlace, lockIn } from './inlined.js';
import { inlinedEdges } from './inlined-edges.js';
import { holds, LockBook } from './lock-book.js';
import type { KnownLock } from './lock-names.js';
import type { LockRole } from './names.js';
import type { FoundLocks, LockFunction, LockType } from './resolve.js';

const WORD = 8;
const none: readonly never[] = [];

/** What takes a lock: a function, or an inlined copy of one. */
interface Taker {
  readonly role: LockRole;
  /** Of Rust: one method may call another of the same lock. */
  readonly isMethod: boolean;
}

/** A call that takes a lock, or tries to. */
interface Taking extends EventfulCall {
  readonly taker: Taker;
  readonly lock: KnownLock;
  readonly result: ValueTexts | undefined;
}

type TakingCall = OpenCall<TracedCall> & { readonly payload: Taking };

/** A lock that is about to be taken. */
interface Wanted {
  readonly taker: Taker;
  readonly address: Addr;
  readonly type: LockType | undefined;
  readonly by: { readonly name: string; readonly address: Addr };
  readonly isPart: boolean;
  /** Where its function returns; undefined for an inlined copy. */
  readonly returnAddress: Addr | undefined;
  readonly result?: ValueTexts | undefined;
  readonly entryOnly?: boolean;
}

/**
 * Makes a call of each use of a lock, from the entry of the function that takes it to its return. A release is an
 * instant.
 */
export class LockTracer extends CallEvents implements CallKind, InstantKind {
  readonly #functions = new AddressMap<LockFunction>();
  readonly #results = new Map<LockFunction, ValueTexts>();
  readonly #book: LockBook;
  readonly #edges: ReturnType<typeof inlinedEdges>;
  readonly #copies: readonly InlinedLock[];
  readonly #releases = new AddressMap<LockPlace>();
  readonly ahead: AheadReads = {
    mayBegin: ({ pc }) => this.#takes(pc) !== undefined,
  };
  readonly blocks: BlockKind = {
    at: (pc) => this.#edges.at(pc),
    reads: ({ pc, registers }) => {
      const place = this.#edges.beginAt(pc)?.place.lock;
      const found = place && lockIn(place, registers);
      return found && 'word' in found ? [{ address: found.word, length: WORD }] : none;
    },
    begin: (at, edge, around, memory) => this.#beginBlock(at, edge, around, memory),
  };

  constructor({ functions, inlined, wants }: FoundLocks, context: TracerContext) {
    super(context.output);
    for (const fn of functions) this.#functions.set(fn.probe.address, fn);
    this.#edges = inlinedEdges(inlined);
    this.#copies = inlined;
    for (const { role, begins } of inlined)
      if (role.does === 'release') for (const { address, lock } of begins) this.#releases.set(address, lock);
    this.#book = new LockBook(wants, context);
  }

  isAt(pc: Addr): boolean {
    return this.#functions.get(pc) !== undefined || this.#releases.get(pc) !== undefined;
  }

  #takes(pc: Addr): LockFunction | undefined {
    const fn = this.#functions.get(pc);
    return fn?.role.does === 'release' ? undefined : fn;
  }

  entryReads({ pc }: Moment): readonly MemoryRequest[] | undefined {
    return this.#takes(pc) ? none : undefined;
  }

  begin(at: Moment, site: CallSite): Taking | undefined {
    const fn = this.#takes(at.pc);
    const word = fn && at.registers.register(fn.register);
    if (!fn || word === undefined || this.#isAgain(fn, addr(word), site)) return undefined;
    const { returnAddress, seesReturn, around } = site;
    const { type, probe, taken } = fn;
    const result = taken && madeOnce(this.#results, fn, () => new ValueTexts(taken, probe.result?.shape));
    const by = { name: probe.ref.name, address: probe.address };
    const found = { taker: fn, address: addr(word), type, by, isPart: false, returnAddress, result };
    return this.#taking(at, { ...found, entryOnly: !seesReturn }, around);
  }

  /** The function has jumped to its first instruction, and is not called again. */
  #isAgain(fn: LockFunction, address: Addr, site: CallSite): boolean {
    const open = inSameFrame(this, site)?.payload as Taking | undefined;
    return open !== undefined && open.taker === fn && holds(open.lock, address);
  }

  #beginBlock(at: Moment, edge: BlockEdge, around: Call | undefined, memory: HitMemory): Taking | undefined {
    const begin = this.#edges.beginAt(at.pc, edge.block)?.place;
    const found = begin && lockIn(begin.lock, at.registers);
    const copy = this.#copies[edge.block];
    if (!begin || !found || !copy) return undefined;
    const word = 'word' in found ? memory.at(found.word, WORD)?.word(0) : found.address;
    if (word === undefined) return undefined;
    const { address } = begin;
    const isPart = !('word' in found);
    const by = { name: copy.name, address };
    const taker = { role: copy.role, isMethod: true };
    return this.#taking(
      at,
      { taker, address: addr(word), type: copy.type, by, isPart, returnAddress: undefined },
      around,
    );
  }

  #taking({ pc, hart, time, space }: Moment, wanted: Wanted, around: Call | undefined): Taking | undefined {
    const { taker, returnAddress, result, entryOnly = false } = wanted;
    if (taker.isMethod && isWithin(wanted.address, around)) return undefined;
    const lock = this.#book.take({ ...wanted, space });
    if (!lock) return undefined;
    const actor = returnAddress === undefined ? this.#book.actor(pc, false) : this.#book.actor(returnAddress, true);
    const { does, isShared } = taker.role;
    const use = { lock: this.#book.text(lock, space), isShared, isAttempt: does === 'try', by: stackText([actor]) };
    const began = this.output.at(time);
    const values = lockArguments(use);
    return { kind: this, ref: lock.ref, taker, lock, values, result, began, hart, entryOnly, exit: undefined };
  }

  returning({ payload }: TakingCall, { hart, registers }: Moment, memory: HitMemory): void {
    const { result, taker } = payload;
    const text = result?.text(registers, memory);
    payload.exit = { hart, result: isTaken(text, taker) ? 'taken' : 'not taken' };
  }

  reads({ pc, registers }: Moment): readonly MemoryRequest[] | undefined {
    if (this.#releases.get(pc)) return none;
    const fn = this.#functions.get(pc);
    const word = fn?.role.does === 'release' ? registers.register(fn.register) : undefined;
    if (!fn || word === undefined) return undefined;
    return fn.through === undefined ? none : [{ address: addr(word), length: fn.through + WORD }];
  }

  /** A lock is released. */
  hit(at: Moment, { returnAddress, memory }: InstantSite): (() => void) | undefined {
    const { pc, hart, space } = at;
    const isCopy = this.#releases.get(pc) !== undefined;
    const released = isCopy ? this.#releasedIn(at) : this.#releasedBy(at, memory);
    const lock = released && this.#book.released(released.address, space, released.isPart);
    if (!lock) return undefined;
    const actor = isCopy ? this.#book.actor(pc, false) : this.#book.actor(returnAddress, true);
    const place = this.#book.releaseAt(lock, space, actor);
    return () => {
      this.output.emit({ type: 'place', time: this.output.time, hart, place });
    };
  }

  #releasedIn({ pc, registers }: Moment): { readonly address: Addr; readonly isPart: boolean } | undefined {
    const place = this.#releases.get(pc);
    const found = place && lockIn(place, registers);
    return found && 'address' in found ? { address: found.address, isPart: true } : undefined;
  }

  #releasedBy({ pc, registers }: Moment, memory: HitMemory) {
    const fn = this.#functions.get(pc);
    const self = fn?.role.does === 'release' ? registers.register(fn.register) : undefined;
    if (!fn || self === undefined) return undefined;
    const { through, isMethod } = fn;
    const word = through === undefined ? self : memory.at(addr(self), through + WORD)?.word(through);
    return word === undefined ? undefined : { address: addr(word), isPart: isMethod };
  }
}

/** Whether an open call takes the same lock: a method of Rust's calls another one of it. */
function isWithin(address: Addr, around: Call | undefined): boolean {
  for (let call = around; call; call = call.parent) {
    const { payload } = call;
    if (payload.kind instanceof LockTracer && holds((payload as Taking).lock, address)) return true;
  }
  return false;
}

/** `Some(..)`, `Ok(..)`, `true`, what is no zero; a result that is not known belongs to a function that never fails. */
function isTaken(result: string | undefined, { role }: Taker): boolean {
  if (role.does !== 'try' || result === undefined) return true;
  if (/^-?(0x)?[0-9a-f]+$/.test(result)) return /^-?(0x)?0+$/.test(result) === role.isZeroTaken;
  return !/^(None|Err|false)/.test(result);
}
