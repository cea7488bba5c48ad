import type {
  AnyBegin,
  AwaitLink,
  FunctionRef,
  FutureRef,
  GuestNanos,
  RootRef,
  ThreadRef,
  TraceEvent,
  TraceSink,
} from './events.js';
import { Filter } from './sinks.js';

/** The members of events that name something of the program. */
interface Named {
  readonly root?: RootRef | undefined;
  readonly by?: unknown;
  readonly future?: FutureRef | undefined;
  readonly function?: FunctionRef;
  readonly thread?: ThreadRef | undefined;
  readonly around?: AnyBegin | undefined;
  readonly begin?: AnyBegin | undefined;
  readonly chain?: readonly AwaitLink[];
}

/** One of several programs in a trace. */
export interface ProgramOf {
  /** From 0; `of` is how many there are. */
  readonly index: number;
  readonly of: number;
  /** What it is called; undefined for the first one, whose names stay as they are. */
  readonly program: string | undefined;
  /** What a function or Future of it is called among those of all programs. */
  readonly nameOf: (name: string) => string;
}

/**
 * Makes the events of one program such of a trace of several. What they name has a key of its own, and a name that says
 * whose it is.
 */
export class EventsOfProgram {
  readonly #among: ProgramOf;
  readonly #known = new WeakMap<object, object>();

  constructor(among: ProgramOf) {
    this.#among = among;
  }

  /** `least`: the time that the trace has come to. */
  of<E extends TraceEvent>(event: E, least?: GuestNanos): E {
    const { root, by, future, function: fn, thread, around, begin, chain } = event as Named;
    return this.#once(event, () => ({
      ...event,
      program: this.#among.index,
      ...(least !== undefined && 'time' in event && event.time < least ? { time: least } : {}),
      ...(root && { root: this.#root(root) }),
      // Of an access it is a function.
      ...(isRoot(by) && { by: this.#root(by) }),
      ...(future && { future: this.#future(future) }),
      ...(fn && { function: this.#once(fn, () => ({ ...fn, key: this.#key(fn.key), name: this.#named(fn.name) })) }),
      ...(thread && { thread: this.#thread(thread) }),
      ...(around && { around: this.of(around) }),
      ...(begin && { begin: this.of(begin) }),
      ...(chain && { chain: chain.map((link) => this.#link(link)) }),
    }));
  }

  #root(root: RootRef): RootRef {
    return this.#once(root, () => ({ ...root, key: this.#key(root.key), future: this.#future(root.future) }));
  }

  #future(ref: FutureRef): FutureRef {
    return this.#once(ref, () => ({
      ...ref,
      key: this.#key(ref.key),
      future: this.#named(ref.future),
      ...(ref.oneOf && { oneOf: ref.oneOf.map((one) => this.#future(one)) }),
    }));
  }

  #thread(thread: ThreadRef): ThreadRef {
    const { program } = this.#among;
    return this.#once(thread, () => ({ ...thread, key: this.#key(thread.key), ...(program && { program }) }));
  }

  #link(link: AwaitLink): AwaitLink {
    return link.future === undefined ? link : { ...link, future: this.#future(link.future) };
  }

  #key(key: number): number {
    return key * this.#among.of + this.#among.index;
  }

  #named(name: string): string {
    return this.#among.nameOf(name);
  }

  #once<T extends object>(one: T, make: () => T): T {
    const known = this.#known.get(one);
    if (known !== undefined) return known as T;
    const made = make();
    this.#known.set(one, made);
    return made;
  }
}

function isRoot(by: unknown): by is RootRef {
  return typeof by === 'object' && by !== null && 'future' in by;
}

/** Passes on the events of one program, and those of none: gaps, resets. */
export class OnlyOf extends Filter {
  readonly #program: number;

  constructor(sink: TraceSink, program: number) {
    super(sink);
    this.#program = program;
  }

  event(event: TraceEvent): void {
    const of = 'program' in event ? event.program : undefined;
    if (of === undefined || of === this.#program) this.sink.event(event);
  }
}
