import { type Addr, addOffset, addr, hex } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import {
  type HitMemory,
  type InstantKind,
  type InstantSite,
  type MemoryRequest,
  type Moment,
  stackNumber,
} from '../../../calls/index.js';
import type { CallBegin, FunctionRef, GuestNanos, ThreadRef } from '../../../trace/index.js';
import type { TracerContext } from '../kind.js';
import type { FoundSwitches, SwitchFunction } from './resolve.js';

const none: readonly never[] = [];
/** Threads that stacks have shown have lower keys. */
const firstThread = 1 << 16;

/** A thread that has had a hart. */
interface Thread {
  /** Where its context is saved; undefined until it leaves a hart, if it came by a stack pointer. */
  context: Addr | undefined;
  readonly ref: ThreadRef;
  /** What a hart's track has of it. */
  readonly shown: FunctionRef;
  /** It is asked for. */
  readonly isWanted: boolean;
}

/** A hart's thread, and the events that began with it: on the hart's track, and on the thread's. */
interface Stint {
  readonly thread: Thread;
  readonly begins: readonly CallBegin[];
  /** Switches may have been missed since. */
  isOld: boolean;
}

/** Makes slices of the times that threads have a hart: from one switch of the hart to the next. */
export class SwitchTracer implements InstantKind {
  readonly #context: TracerContext;
  readonly #found: FoundSwitches;
  readonly #at = new AddressMap<SwitchFunction>(8);
  /** By hart. */
  readonly #stints: (Stint | undefined)[] = [];
  readonly #threads = new Map<string, Thread>();
  /** Those that have left a hart, by the stack pointer that was saved. */
  readonly #parked = new Map<number, Thread>();
  readonly #harts: FunctionRef[] = [];
  #names = 0;

  constructor(found: FoundSwitches, context: TracerContext) {
    this.#found = found;
    this.#context = context;
    for (const each of found.functions) this.#at.set(each.address, each);
  }

  isAt(pc: Addr): boolean {
    return this.#at.get(pc) !== undefined;
  }

  get isOpen(): boolean {
    return this.#stints.some((stint) => stint !== undefined);
  }

  reads({ pc, registers }: Moment): readonly MemoryRequest[] | undefined {
    const known = this.#at.get(pc);
    const context = known?.to.isContext ? registers.register(known.to.register) : undefined;
    if (!known) return undefined;
    return context === undefined ? none : this.#found.names.reads(addr(context));
  }

  hit({ pc, hart, registers }: Moment, { memory, stackPointer }: InstantSite): (() => void) | undefined {
    const known = this.#at.get(pc);
    const [old, next] = [known?.from.register, known?.to.register].map((name) => registers.register(name ?? ''));
    if (!known || old === undefined || next === undefined) return undefined;
    const left = addr(old);
    const came = known.to.isContext
      ? this.#byContext(addr(next), memory)
      : this.#byStack(addOffset(addr(next), known.to.offset));
    const entered =
      stackPointer === undefined ? undefined : stackPointer - Number(this.#context.arch.stackPointerAfterReturn(0n));
    return () => {
      const stint = this.#stints[hart];
      if (stint) this.#leave(stint, hart, left, known);
      if (stint && entered !== undefined && !known.to.isContext)
        this.#parked.set(entered + known.from.saved, stint.thread);
      this.#stints[hart] = this.#begin(came, hart);
    };
  }

  missed(): void {
    for (const stint of this.#stints) if (stint) stint.isOld = true;
  }

  forget(): void {
    for (const [hart, stint] of this.#stints.entries()) if (stint) this.#end(stint, hart, 'call-lost');
    this.#stints.length = 0;
    this.#threads.clear();
    this.#parked.clear();
  }

  #leave(stint: Stint, hart: number, left: Addr, { to }: SwitchFunction): void {
    const { thread } = stint;
    if (!to.isContext) thread.context ??= left;
    const isOwn = thread.context === left && !stint.isOld;
    if (!isOwn) this.#found.seen.missed++;
    this.#end(stint, hart, isOwn ? 'call-end' : 'call-lost');
  }

  #byContext(context: Addr, memory: HitMemory): () => Thread {
    const { name, id, names } = this.#found.names.of(context, memory);
    return () => this.#thread(`${hex(context)} ${id} ${name}`, names, context, context);
  }

  #byStack(stack: Addr): () => Thread {
    const at = stackNumber(stack);
    return () => {
      const thread =
        this.#parked.get(at) ??
        this.#thread(`stack ${hex(stack)} ${this.#names}`, [`stack ${hex(stack)}`], stack, undefined);
      this.#parked.delete(at);
      return thread;
    };
  }

  /** `names`: what it is called, then what else a probe may name it by. */
  #thread(id: string, names: readonly string[], address: Addr, context: Addr | undefined): Thread {
    const known = this.#threads.get(id);
    if (known) return known;
    const [name = ''] = names;
    const isWanted = this.#found.wantsThread(names);
    if (!isWanted) this.#found.seen.others.add(name);
    const key = firstThread + this.#names++;
    const shown = refOf(this.#context.nextKey(), name, address);
    const thread = { context, ref: { key, stack: address, name }, shown, isWanted };
    this.#threads.set(id, thread);
    return thread;
  }

  #begin(came: () => Thread, hart: number): Stint {
    const thread = came();
    if (!thread.isWanted) return { thread, begins: none, isOld: false };
    const { time } = this.#context.output;
    this.#harts[hart] ??= refOf(this.#context.nextKey(), `on hart ${hart}`, thread.ref.stack);
    const common = { type: 'call-begin', time, hart, depth: 0, arguments: none } as const;
    const begins: readonly CallBegin[] = [
      { ...common, function: thread.shown },
      { ...common, function: this.#harts[hart], thread: thread.ref },
    ];
    for (const begin of begins) this.#context.output.emit(begin);
    return { thread, begins, isOld: false };
  }

  #end({ begins }: Stint, hart: number, type: 'call-end' | 'call-lost'): void {
    const { time } = this.#context.output;
    for (const begin of begins) {
      const { function: fn, thread, depth, time: began } = begin;
      this.#context.output.emit({ type, time, hart, thread, function: fn, depth, begin, began: began as GuestNanos });
    }
  }
}

function refOf(key: number, name: string, address: Addr): FunctionRef {
  return { key, name, instance: `thread ${name}`, address, file: undefined, line: undefined, kind: 'thread' };
}
