import { type Addr, hex } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import type {
  AnyBegin,
  AnyEnd,
  DerivedPoll,
  FunctionRef,
  FutureRef,
  PollEnd,
  RootRef,
  StateChange,
  StateRef,
  TraceEvent,
  TraceInfo,
  TraceSink,
} from '../events/events.js';
import { isBegin, isEnd } from '../events/open-calls.js';
import { Fold } from '../events/sinks.js';
import {
  accessText,
  argumentsText,
  ChainTexts,
  cancelText,
  gapText,
  resetText,
  rootText,
  stateText,
  stuckText,
  wakerText,
} from '../events/text.js';
import type { Lines } from './call-lines.js';

/** What a span is of. One object for all spans of the same function, or of the same Future of a task. */
export interface SpanSubject {
  readonly name: string;
  readonly instance: string | undefined;
  readonly address: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly task: string | undefined;
}

/** What formats of rows have a row for: a call or poll when it ends, anything else when it happens. */
export interface Span {
  readonly type:
    | 'call'
    | 'poll'
    | 'derived'
    | 'state'
    | 'watch'
    | 'wake'
    | 'sample'
    | 'cancelled'
    | 'stuck'
    | 'gap'
    | 'reset'
    | 'console'
    | string;
  /** When it began, and how long it took; undefined for an instant. */
  readonly time_ns: number;
  readonly duration_ns: number | undefined;
  readonly hart: number | undefined;
  /** The number of its stack, where stacks are known apart. */
  readonly thread: number | undefined;
  readonly depth: number | undefined;
  readonly subject: SpanSubject;
  /** `ready`, `pending`, `lost`; what a function returned. */
  readonly result: string | undefined;
  /** Arguments; the state or chain at a poll's end; the access. */
  readonly detail: string | undefined;
}

/** The columns, in their order. */
export const spanColumns = [
  'type',
  'time_ns',
  'duration_ns',
  'hart',
  'thread',
  'depth',
  'name',
  'instance',
  'address',
  'file',
  'line',
  'task',
  'result',
  'detail',
] as const satisfies readonly (keyof Span | keyof SpanSubject)[];

const nobody = { instance: undefined, address: undefined, file: undefined, line: undefined, task: undefined };
const nowhere = { duration_ns: undefined, thread: undefined, depth: undefined, result: undefined, detail: undefined };

/** Turns events into spans. Calls that are open at the end come last, without a duration. */
export class Spans extends Fold {
  readonly #write: (span: Span) => void;
  readonly #chains = new ChainTexts();
  readonly #subjects = new Subjects();
  /** In the order in which they began. */
  readonly #open = new Set<AnyBegin>();

  constructor(write: (span: Span) => void) {
    super();
    this.#write = write;
  }

  event(event: TraceEvent): void {
    if (isBegin(event)) this.#open.add(event);
    else if (isEnd(event)) this.#ended(event);
    else this.#write(this.#instant(event));
  }

  override end(): void {
    for (const begin of this.#open) {
      const { time, hart, thread, depth } = begin;
      const where = { time_ns: time, hart, thread: thread?.key, depth, subject: this.#subjects.of(begin) };
      const detail = detailOf(begin);
      this.#write({ type: typeOf(begin), ...where, duration_ns: undefined, result: 'open', detail });
    }
  }

  #ended(event: AnyEnd): void {
    const begin = event.begin && this.#open.delete(event.begin) ? event.begin : undefined;
    const isLost = event.type === 'call-lost' || event.type === 'poll-lost';
    const { hart, thread, depth } = begin ?? event;
    this.#write({
      type: typeOf(event),
      time_ns: event.began,
      duration_ns: isLost ? undefined : event.time - event.began,
      hart,
      thread: thread?.key,
      depth,
      subject: this.#subjects.of(begin ?? event),
      result: event.type === 'call-end' || event.type === 'poll-end' ? event.result : 'lost',
      detail: event.type === 'poll-end' ? this.#after(event) : begin && detailOf(begin),
    });
  }

  /** The await chain, or the state. */
  #after({ chain, state }: PollEnd): string | undefined {
    return chain.length > 0 ? this.#chains.text(chain) : state && stateText(state);
  }

  #instant(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): Span {
    switch (event.type) {
      case 'derived-poll':
        return this.#derived(event, { type: 'derived', state: event.state, result: event.result });
      case 'state':
        return this.#derived(event, { type: 'state', state: event.to, result: undefined });
      case 'watch': {
        const { time, hart, watch, by, access } = event;
        const subject = { ...nobody, name: watch.name, address: hex(watch.address), file: by.file, line: by.line };
        const at = { type: 'watch', time_ns: time, hart };
        return { ...nowhere, ...at, subject, result: access, detail: accessText(event) };
      }
      case 'place': {
        const { time, hart, place } = event;
        const { name, category, address, by } = place;
        const subject = { ...nobody, name, address: hex(address), file: by.file, line: by.line };
        return { ...nowhere, type: category, time_ns: time, hart, subject, detail: by.function };
      }
      case 'wake': {
        const { time, hart, root, waker, caller } = event;
        const { file, line } = caller;
        const name = root?.future.future ?? hex(waker);
        const subject = { ...nobody, name, address: hex(waker), file, line, task: root && rootText(root) };
        return { ...nowhere, type: 'wake', time_ns: time, hart, subject, detail: wakerText(event) };
      }
      case 'gap': {
        const { from, to } = event;
        const subject = { ...nobody, name: gapText(event) };
        return { ...nowhere, type: 'gap', time_ns: from, duration_ns: to - from, hart: undefined, subject };
      }
      case 'sample': {
        const { time, hart, stack } = event;
        const [frame] = stack;
        const about = { name: frame?.name ?? '', instance: frame?.instance, file: frame?.file, line: frame?.line };
        const detail = stack.map(({ name }) => name).join(' < ');
        return { ...nowhere, type: 'sample', time_ns: time, hart, subject: { ...nobody, ...about }, detail };
      }
      case 'cancelled': {
        const { time, hart, root, future, address, state } = event;
        const { future: name, instance } = future;
        const { file, line } = state ?? future;
        const about = { name, instance, address: hex(address), file, line, task: root && rootText(root) };
        const subject = { ...nobody, ...about };
        return { ...nowhere, type: 'cancelled', time_ns: time, hart, subject, detail: cancelText(event) };
      }
      case 'stuck': {
        const { time, root, future, address, file, line } = event;
        const { future: name, instance } = future;
        const about = { name, instance, address: hex(address), file, line, task: root && rootText(root) };
        const subject = { ...nobody, ...about };
        return { ...nowhere, type: 'stuck', time_ns: time, hart: undefined, subject, detail: stuckText(event) };
      }
      case 'console':
        return ofMachine('console', event.time, event.text);
      case 'reset':
        return ofMachine('reset', event.time, resetText);
    }
  }

  /** Of a Future: what its memory told at another's poll. */
  #derived(event: DerivedPoll | StateChange, { type, state, result }: Derived): Span {
    const subject = this.#subjects.ofFuture(event);
    const detail = state && stateText(state);
    return { ...nowhere, type, time_ns: event.time, hart: event.hart, subject, result, detail };
  }
}

/** Writes a line a span, behind a head. */
export function spanLines(out: Lines, head: (info: TraceInfo) => string, line: (span: Span) => string): TraceSink {
  const spans = new Spans((span) => out.textRecord(line(span)));
  return {
    begin: (info) => out.textRecord(head(info)),
    event: (event) => spans.event(event),
    hart: () => {},
    flush: () => out.flush(),
    end: () => {
      spans.end();
      out.close();
    },
  };
}

interface Derived {
  readonly type: string;
  readonly state: StateRef | undefined;
  readonly result: Span['result'];
}

function ofMachine(type: string, time: number, name: string): Span {
  return { ...nowhere, type, time_ns: time, hart: undefined, subject: { ...nobody, name } };
}

function typeOf(event: AnyBegin | AnyEnd): 'call' | 'poll' {
  return 'function' in event ? 'call' : 'poll';
}

function detailOf(begin: AnyBegin): string | undefined {
  return begin.type === 'call-begin' && begin.arguments.length > 0 ? argumentsText(begin.arguments) : undefined;
}

interface OfFuture {
  readonly future: FutureRef;
  readonly address: Addr;
  readonly root: RootRef;
}

/** Futures of one task that are kept. */
const mostFutures = 32;

/** The subjects of spans, each made once. */
class Subjects {
  readonly #functions = new WeakMap<FunctionRef, SpanSubject>();
  readonly #futures = new WeakMap<RootRef, { readonly of: OfFuture; readonly subject: SpanSubject }[]>();

  of(event: AnyBegin | AnyEnd): SpanSubject {
    if (!('function' in event)) return this.ofFuture(event);
    const { function: fn } = event;
    return madeOnce(this.#functions, fn, () => {
      const { name, instance, address, file, line } = fn;
      return { name, instance, address: hex(address), file, line, task: undefined };
    });
  }

  ofFuture({ future, address, root }: OfFuture): SpanSubject {
    const known = madeOnce(this.#futures, root, () => []);
    for (const { of, subject } of known) {
      // Its place may have been learnt since.
      if (of.future === future && of.address === address && subject.file === future.file) return subject;
    }
    const { future: name, instance, file, line } = future;
    const subject = { name, instance, address: hex(address), file, line, task: rootText(root) };
    if (known.length >= mostFutures) known.length = 0;
    known.push({ of: { future, address, root }, subject });
    return subject;
  }
}
