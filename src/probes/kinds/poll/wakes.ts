import type { FutureType, KnownTask, TaskPlaces } from '../../../async/futures/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import type { EventOutput, InstantKind, InstantSite, MemoryRequest, Moment } from '../../../calls/index.js';
import { placeOf, type RootRef } from '../../../trace/index.js';
import { entryPlan, type ReadPlan } from '../../read-plan.js';
import { Callers, type InstantContext } from './callers.js';
import { pollAround } from './traced-poll.js';
import type { WakeFunction } from './wakers.js';

const WORD = 8;

/** What a runtime has said of a task: words, and what these mean. */
interface LogEntry {
  readonly words: readonly bigint[];
  readonly taskOf: (words: readonly bigint[]) => KnownTask;
}

/** A task that is not over. */
interface PolledTask {
  readonly root: RootRef;
  /** Its last poll has said that it is not ready. */
  isPending: boolean;
  /** Events behind that poll are missing: it may be over. */
  isOld: boolean;
}

/**
 * The tasks that were polled, by what wakers point to and by their Futures' addresses: the newest of each. Addresses
 * are those of an address space: see {@link inSpace}.
 */
export class TaskBook {
  readonly #offsets: TaskPlaces['offsets'];
  readonly #byHeader = new AddressMap<RootRef>();
  readonly #byFuture = new AddressMap<RootRef>();
  /** By header: the newest. */
  readonly #seen = new AddressMap<LogEntry>();
  /** Those that are not over, as far as the last poll of each says. */
  readonly #polled = new AddressMap<PolledTask>();

  constructor(offsets: TaskPlaces['offsets']) {
    this.#offsets = offsets;
  }

  /** Where its header lies; undefined if its runtime is not known. */
  headerOf({ typeOffset }: FutureType, self: Addr, space: Addr | undefined): bigint | undefined {
    const offset = this.#offsets.get(typeOffset);
    return offset === undefined ? undefined : inSpace(addOffset(self, -offset), space);
  }

  /** A runtime polls the task at a header now. Words of a task stay the same as long as it lives. */
  saw(header: bigint, words: readonly bigint[], taskOf: LogEntry['taskOf']): void {
    const known = this.#seen.get(header);
    const isSame = known?.taskOf === taskOf && known.words.every((word, i) => word === words[i]);
    if (!isSame) this.#seen.set(header, { words, taskOf });
  }

  /** What its runtime knows of a task that is polled now. */
  about(header: bigint): KnownTask | undefined {
    const seen = this.#seen.get(header);
    return seen?.taskOf(seen.words);
  }

  add(root: RootRef, header: bigint | undefined): void {
    if (header !== undefined) this.#byHeader.set(header, root);
    this.#byFuture.set(placeOf(root), root);
  }

  /** A poll of it has ended. `over`: it will not be polled again. `unknown`: nothing says whether it will. */
  polled(root: RootRef, result: 'pending' | 'unknown' | 'over'): void {
    const place = placeOf(root);
    const known = this.#polled.get(place);
    if (known?.root !== root) {
      if (result !== 'over') this.#polled.set(place, { root, isPending: result === 'pending', isOld: false });
    } else if (result === 'over') this.#polled.delete(place);
    else Object.assign(known, { isPending: result === 'pending', isOld: false });
  }

  /** Events are missing. */
  missed(): void {
    for (const known of this.#polled.values()) known.isOld = true;
  }

  /** The task whose Future lies there and that is not over. */
  polledAt(place: bigint): Readonly<PolledTask> | undefined {
    return this.#polled.get(place);
  }

  withHeader(header: bigint): RootRef | undefined {
    return this.#byHeader.get(header);
  }

  withFuture(place: bigint): RootRef | undefined {
    return this.#byFuture.get(place);
  }

  forget(): void {
    this.#byHeader.clear();
    this.#byFuture.clear();
    this.#seen.clear();
    this.#polled.clear();
  }
}

/** A call of a method of `Waker`, which calls a wake function. */
interface Through {
  readonly fn: Omit<WakeFunction, 'box'>;
  readonly returnAddress: Addr | undefined;
  readonly stackPointer: number | undefined;
}

/** The most bytes of stack that such a method takes. */
const mostStack = 1024;

/** Calls of wake functions that are kept. */
const mostLast = 4;

/** A call of a wake function. */
interface Called {
  readonly fn: WakeFunction;
  readonly waker: Addr;
}

/** Turns hits at wake functions into events. */
export class WakeTracer implements InstantKind {
  readonly #functions = new AddressMap<WakeFunction>();
  readonly #tasks: TaskBook;
  readonly #output: EventOutput;
  readonly #waker: string;
  readonly #callers: Callers;
  readonly #spaces: InstantContext['spaces'];
  /** By hart: the last ones, the newest first. An interrupt may wake others between a call and one that it makes. */
  readonly #last = new Map<number, readonly Called[]>();
  readonly #methods = new AddressMap<Through['fn']>();
  /** By hart. */
  readonly #through = new Map<number, Through>();

  /** `methods`: those of `Waker` that call the functions. */
  constructor(
    functions: readonly WakeFunction[],
    methods: readonly Through['fn'][],
    tasks: TaskBook,
    context: InstantContext,
  ) {
    for (const fn of functions) this.#functions.set(fn.address, fn);
    for (const fn of methods) this.#methods.set(fn.address, fn);
    this.#tasks = tasks;
    this.#output = context.output;
    this.#waker = context.arch.arguments[0] as string;
    this.#callers = new Callers(context);
    this.#spaces = context.spaces;
  }

  isAt(pc: Addr): boolean {
    return this.#functions.get(pc) !== undefined || this.#methods.get(pc) !== undefined;
  }

  reads({ pc, registers }: Moment): readonly MemoryRequest[] | undefined {
    if (this.#methods.get(pc)) return [];
    const fn = this.#functions.get(pc);
    const waker = fn && registers.register(this.#waker);
    if (!fn || waker === undefined) return undefined;
    return fn.box === undefined ? [] : [{ address: addr(waker), length: fn.box + WORD }];
  }

  hit(
    { pc, hart, registers, space }: Moment,
    { around, returnAddress, stackPointer, memory }: InstantSite,
  ): (() => void) | undefined {
    const method = this.#methods.get(pc);
    if (method) this.#through.set(hart, { fn: method, returnAddress, stackPointer });
    const fn = this.#functions.get(pc);
    const waker = fn && registers.register(this.#waker);
    if (!fn || waker === undefined) return undefined;
    const called = { fn, waker: addr(waker) };
    const last = this.#last.get(hart) ?? [];
    this.#last.set(hart, [called, ...last.slice(0, mostLast - 1)]);
    if (this.#isWithin(last, called, returnAddress)) return undefined;
    const root = this.#taskOf(fn, addr(waker), { memory, space: this.#spaces?.root(space) });
    const by = pollAround(around)?.payload.root;
    const caller = this.#callers.at(this.#returnOf(this.#through.get(hart), returnAddress, stackPointer));
    return () => {
      const { time } = this.#output;
      this.#output.emit({ type: 'wake', time, hart, waker: addr(waker), root, by, caller });
    };
  }

  /** Where the code goes on that wakes: behind the method of `Waker`, if that makes this call. */
  #returnOf(
    through: Through | undefined,
    returnAddress: Addr | undefined,
    stackPointer: number | undefined,
  ): Addr | undefined {
    if (!through || returnAddress === undefined || stackPointer === undefined) return returnAddress;
    const { address, size } = through.fn;
    const below = (through.stackPointer ?? 0) - stackPointer;
    // An interrupt in between has another stack, or one further down.
    const isIts = returnAddress > address && returnAddress <= address + BigInt(size) && below > 0 && below < mostStack;
    return isIts ? through.returnAddress : returnAddress;
  }

  /** Whether a wake function that was called before makes this call, for the same task: both are one wake. */
  #isWithin(last: readonly Called[], { fn, waker }: Called, returnAddress: Addr | undefined): boolean {
    if (returnAddress === undefined || (last[0]?.fn === fn && last[0].waker === waker)) return false;
    return last.some((one) => {
      const { address, size } = one.fn;
      const isInside = returnAddress > address && returnAddress <= address + BigInt(size);
      return isInside && one.waker === waker && one.fn !== fn;
    });
  }

  #taskOf(
    { box }: WakeFunction,
    waker: Addr,
    { memory, space }: Pick<InstantSite, 'memory'> & Pick<RootRef, 'space'>,
  ): RootRef | undefined {
    const known = this.#tasks.withHeader(inSpace(waker, space));
    if (known || box === undefined) return known;
    const future = memory.at(waker, box + WORD)?.word(box);
    return future === undefined ? undefined : this.#tasks.withFuture(inSpace(addr(future), space));
  }
}

/** Notes where a method of `Waker` returns to. */
export function planWakerMethod({ address, size, name }: Through['fn']): ReadPlan {
  return { ...entryPlan({ address, codeSize: size, name }), notByStops: 'wakes' };
}

/** Reads what the waker points to: an address, and the task's box behind it. */
export function planWake({ address, size, name, box }: WakeFunction, waker: string): ReadPlan {
  const reads =
    box === undefined
      ? []
      : [{ pointer: waker, align: WORD, size: box + WORD, loads: [{ offset: box, size: WORD }] as const }];
  const plan = entryPlan({ address, codeSize: size, name });
  return { ...plan, entryRegisters: [waker], entryReads: reads, notByStops: 'wakes' };
}
