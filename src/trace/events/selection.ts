import type { AnyBegin, AnyEnd, TraceEvent, TraceSink } from './events.js';
import { isBegin, isEnd, OpenCalls } from './open-calls.js';
import { Filter, Fold } from './sinks.js';

/** Which calls and polls are wanted: by kind, by name, and by what is known of each when it has ended. */
export interface Selection {
  /** Undefined: calls and polls. */
  readonly kind: 'fn' | 'poll' | undefined;
  readonly matches: (name: string) => boolean;
  /** `end`: undefined if it did not come. Undefined if the name decides alone. */
  readonly holds: ((begin: AnyBegin, end: AnyEnd | undefined) => boolean) | undefined;
}

export function isNamed({ kind, matches }: Selection, begin: AnyBegin): boolean {
  if (begin.type === 'call-begin') {
    const { name, instance } = begin.function;
    return kind !== 'poll' && (matches(name) || (instance !== name && matches(instance)));
  }
  const { future, instance } = begin.future;
  return kind !== 'fn' && (matches(future) || (instance !== future && matches(instance)));
}

/** What is wanted of a trace that is read once. */
export interface Chosen {
  /** Asked once for each begin, in their order. */
  readonly begin: (begin: AnyBegin) => boolean;
  /** Whether the name of what is neither a call nor a poll is wanted: of a task that is woken. */
  readonly note: (name: string) => boolean;
}

/** Chooses by name alone. */
export function chosenByName(selection: Selection): Chosen {
  return { begin: (begin) => isNamed(selection, begin), note: selection.matches };
}

/** Notes which begins of a trace are wanted, where that is known when they have ended. Memory: a bit a begin. */
export class Choosing extends Fold {
  readonly #selection: Selection;
  readonly #open = new Map<AnyBegin, number>();
  readonly #marks = new Marks();
  #begins = 0;

  constructor(selection: Selection) {
    super();
    this.#selection = selection;
  }

  event(event: TraceEvent): void {
    if (isBegin(event)) {
      const number = this.#begins++;
      if (isNamed(this.#selection, event)) this.#open.set(event, number);
    } else if (isEnd(event) && event.begin) {
      const number = this.#open.get(event.begin);
      if (number === undefined) return;
      this.#open.delete(event.begin);
      this.#decide(event.begin, event, number);
    }
  }

  override end(): void {
    for (const [begin, number] of this.#open) this.#decide(begin, undefined, number);
    this.#open.clear();
  }

  /** For the same trace, read again. */
  chosen(): Chosen {
    let next = 0;
    return { begin: () => this.#marks.has(next++), note: () => false };
  }

  #decide(begin: AnyBegin, end: AnyEnd | undefined, number: number): void {
    if (this.#selection.holds?.(begin, end) ?? true) this.#marks.add(number);
  }
}

/** A set of numbers from 0, a bit each. */
class Marks {
  #bits = new Uint8Array(1024);

  add(number: number): void {
    const at = number >>> 3;
    if (at >= this.#bits.length) {
      const bits = new Uint8Array(Math.max(2 * this.#bits.length, at + 1));
      bits.set(this.#bits);
      this.#bits = bits;
    }
    this.#bits[at] = (this.#bits[at] as number) | (1 << (number & 7));
  }

  has(number: number): boolean {
    return (((this.#bits[number >>> 3] ?? 0) >>> (number & 7)) & 1) === 1;
  }
}

interface Kept {
  readonly begin: AnyBegin;
  readonly isShown: boolean;
}

/** Passes on the calls and polls that are chosen with all that happens inside them, as `uftrace -F` does. */
export class Inside extends Filter {
  readonly #chosen: Chosen;
  readonly #open = new OpenCalls<Kept>();

  constructor(sink: TraceSink, chosen: Chosen) {
    super(sink);
    this.#chosen = chosen;
  }

  event(event: TraceEvent): void {
    if (isBegin(event)) {
      const isChosen = this.#chosen.begin(event);
      const isShown = this.#open.of(event.around)?.isShown || isChosen;
      this.#open.begin({ begin: event, isShown });
      if (isShown) this.sink.event(event);
    } else if (isEnd(event) ? this.#open.end(event)?.isShown : this.#isNoteShown(event)) this.sink.event(event);
  }

  #isNoteShown(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): boolean {
    if (event.type === 'gap' || event.type === 'reset' || event.type === 'console') return true;
    if ('hart' in event && this.#open.on(event).some(({ isShown }) => isShown)) return true;
    if (event.type === 'wake' || event.type === 'cancelled') {
      if (event.root !== undefined && this.#chosen.note(event.root.future.future)) return true;
    }
    if (event.type === 'sample') return event.stack.some(({ name }) => this.#chosen.note(name));
    return 'future' in event && this.#chosen.note(event.future.future);
  }
}
