import type { Architecture } from '../../../arch/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import type { FutureType } from '../../../futures/index.js';
import type { RootRef, StackEntry } from '../../../trace/index.js';
import { SourceFrames } from '../../../unwind/index.js';
import type { EventOutput, InstantKind, InstantSite, Moment } from '../../calls/call-tracer.js';
import { doer } from '../../doer.js';
import { entryPlan, type ReadPlan } from '../../read-plan.js';
import type { MemoryRequest } from '../../tracer.js';
import { pollAround } from './tracer.js';
import type { WakeFunction } from './wakers.js';

/** How many bytes behind its task's header a Future lies, by the offset of its type's DIE. */
export type HeaderOffsets = ReadonlyMap<number, number>;

const WORD = 8;

/** The tasks that were polled, by what wakers point to and by their Futures' addresses: the newest of each. */
export class TaskBook {
  readonly #offsets: HeaderOffsets;
  readonly #byHeader = new AddressMap<RootRef>();
  readonly #byFuture = new AddressMap<RootRef>();

  constructor(offsets: HeaderOffsets) {
    this.#offsets = offsets;
  }

  /** The address of its header; undefined if its runtime is not known. */
  headerOf({ typeOffset }: FutureType, self: Addr): Addr | undefined {
    const offset = this.#offsets.get(typeOffset);
    return offset === undefined ? undefined : addOffset(self, -offset);
  }

  add(root: RootRef, future: FutureType): void {
    const header = this.headerOf(future, root.address);
    if (header !== undefined) this.#byHeader.set(header, root);
    this.#byFuture.set(root.address, root);
  }

  withHeader(header: Addr): RootRef | undefined {
    return this.#byHeader.get(header);
  }

  withFuture(address: Addr): RootRef | undefined {
    return this.#byFuture.get(address);
  }

  forget(): void {
    this.#byHeader.clear();
    this.#byFuture.clear();
  }
}

/** Turns hits at wake functions into events. */
export class WakeTracer implements InstantKind {
  readonly #functions = new AddressMap<WakeFunction>();
  readonly #tasks: TaskBook;
  readonly #output: EventOutput;
  readonly #waker: string;
  readonly #sources: SourceFrames;
  readonly #callers = new AddressMap<StackEntry>();

  constructor(
    functions: readonly WakeFunction[],
    tasks: TaskBook,
    {
      elf,
      arch,
      debug,
      output,
    }: { elf: ElfFile; arch: Architecture; debug: DebugInfo | undefined; output: EventOutput },
  ) {
    for (const fn of functions) this.#functions.set(fn.address, fn);
    this.#tasks = tasks;
    this.#output = output;
    this.#waker = arch.arguments[0] as string;
    this.#sources = new SourceFrames(elf, debug);
  }

  reads({ pc, registers }: Moment): readonly MemoryRequest[] | undefined {
    const fn = this.#functions.get(pc);
    const waker = fn && registers.register(this.#waker);
    if (!fn || waker === undefined) return undefined;
    return fn.box === undefined ? [] : [{ address: addr(waker), length: fn.box + WORD }];
  }

  hit({ pc, hart, registers }: Moment, { around, returnAddress, memory }: InstantSite): (() => void) | undefined {
    const fn = this.#functions.get(pc);
    const waker = fn && registers.register(this.#waker);
    if (!fn || waker === undefined) return undefined;
    const root = this.#taskOf(fn, addr(waker), memory);
    const by = pollAround(around())?.payload.root;
    const caller = this.#callerAt(returnAddress());
    return () => {
      const { time } = this.#output;
      this.#output.emit({ type: 'wake', time, hart, waker: addr(waker), root, by, caller });
    };
  }

  #taskOf({ box }: WakeFunction, waker: Addr, memory: InstantSite['memory']): RootRef | undefined {
    const known = this.#tasks.withHeader(waker);
    if (known || box === undefined) return known;
    const bytes = memory.at(waker, box + WORD)?.bytes;
    if (!bytes || bytes.length < box + WORD) return undefined;
    return this.#tasks.withFuture(addr(new DataView(bytes.buffer, bytes.byteOffset + box, WORD).getBigUint64(0, true)));
  }

  #callerAt(returnAddress: Addr | undefined): StackEntry {
    const known = returnAddress === undefined ? doer([]) : this.#callers.get(returnAddress);
    if (known || returnAddress === undefined) return known ?? doer([]);
    const inlined = this.#sources.of({ pc: returnAddress, exact: false });
    const found = doer(inlined.map(({ function: name, file, line }) => ({ function: name, file, line })));
    this.#callers.set(returnAddress, found);
    return found;
  }
}

/** Reads what the waker points to: an address, and the task's box behind it. */
export function planWake({ address, size, name, box }: WakeFunction, waker: string): ReadPlan {
  const reads =
    box === undefined
      ? []
      : [{ pointer: waker, align: WORD, size: box + WORD, loads: [{ offset: box, size: WORD }] as const }];
  const plan = entryPlan({ address, codeSize: size, name });
  return { ...plan, entryRegisters: [waker], entryReads: reads, notByStops: true };
}
