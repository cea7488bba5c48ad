import { type Addr, hex } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import { chainText } from '../events/await-ways.js';
import type {
  AnyBegin,
  AnyEnd,
  Cancelled,
  FunctionRef,
  FutureRef,
  PollEnd,
  RootRef,
  StateRef,
  TraceEvent,
  TraceInfo,
  TraceSink,
  Wake,
} from '../events/events.js';
import { isBegin, isEnd, type OpenCall, OpenCalls } from '../events/open-calls.js';
import { Fold } from '../events/sinks.js';
import {
  accessText,
  argumentsText,
  cancelText,
  gapText,
  resetText,
  rootText,
  stateText,
  stuckText,
  wakerText,
} from '../events/text.js';
import type { Lines } from './call-lines.js';
import type { TextPart } from './output/record-block.js';

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
  /** `call`, `poll`, the type of an event, or the category of a place. */
  readonly type: string;
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

interface Open extends OpenCall {
  /** Of its begin among all. */
  readonly order: number;
}

/** Turns events into spans. Calls that are open at the end come last, without a duration. */
export class Spans extends Fold {
  readonly #write: (span: Span) => void;
  readonly #subjects = new Subjects();
  readonly #open = new OpenCalls<Open>();
  /** Begins so far. */
  #begun = 0;

  constructor(write: (span: Span) => void) {
    super();
    this.#write = write;
  }

  event(event: TraceEvent): void {
    if (isBegin(event)) this.#open.begin({ begin: event, order: this.#begun++ });
    else if (isEnd(event)) this.#ended(event);
    else this.#write(this.#instant(event));
  }

  override end(): void {
    for (const { begin } of this.#open.all().sort((a, b) => a.order - b.order)) {
      const { time, hart, thread, depth } = begin;
      const where = { time_ns: time, hart, thread: thread?.key, depth, subject: this.#subjects.of(begin) };
      const detail = detailOf(begin);
      this.#write({ type: typeOf(begin), ...where, duration_ns: undefined, result: 'open', detail });
    }
  }

  #ended(event: AnyEnd): void {
    const begin = this.#open.end(event)?.begin;
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
  #after(end: PollEnd): string | undefined {
    return chainText(end) || afterText(end.state);
  }

  #instant(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): Span {
    const { type } = event;
    switch (type) {
      case 'derived-poll':
        return instant('derived', event, this.#subjects.ofFuture(event), afterText(event.state), event.result);
      case 'state':
        return instant(type, event, this.#subjects.ofFuture(event), afterText(event.to));
      case 'watch': {
        const { watch, by, access } = event;
        const about = { name: watch.name, address: hex(watch.address), file: by.file, line: by.line };
        return instant(type, event, of(about), accessText(event), access);
      }
      case 'place': {
        const { name, category, address, by } = event.place;
        return instant(category, event, of({ name, address: hex(address), file: by.file, line: by.line }), by.function);
      }
      case 'wake':
        return instant(type, event, this.#subjects.ofWake(event), wakerText(event));
      case 'gap': {
        const { from, to } = event;
        return { ...instant(type, { time: from }, of({ name: gapText(event) })), duration_ns: to - from };
      }
      case 'sample': {
        const [{ name = '', instance = undefined, file = undefined, line = undefined } = {}] = event.stack;
        return instant(
          type,
          event,
          of({ name, instance, file, line }),
          event.stack.map(({ name }) => name).join(' < '),
        );
      }
      case 'cancelled':
        return instant(type, event, ofTask(event, event.state ?? event.future), cancelText(event));
      case 'stuck':
        return instant(type, event, ofTask(event, event), stuckText(event));
      case 'console':
        return instant(type, event, of({ name: event.text }));
      case 'reset':
        return instant(type, event, of({ name: resetText }));
    }
  }
}

type When = { readonly time: number; readonly hart?: number };

/** Spelt out as the span of a call is, because a spread takes as long as writing the row. */
function instant(type: string, { time, hart }: When, subject: SpanSubject, detail?: string, result?: string): Span {
  return {
    type,
    time_ns: time,
    duration_ns: undefined,
    hart,
    thread: undefined,
    depth: undefined,
    subject,
    result,
    detail,
  };
}

/** What is not known of it is nothing. */
function of(about: Pick<SpanSubject, 'name'> & Partial<SpanSubject>): SpanSubject {
  return { ...nobody, ...about };
}

/** A Future that something happened to, at a place in the code. */
function ofTask(
  { root, future: { future: name, instance }, address }: Pick<Cancelled, 'root' | 'future' | 'address'>,
  { file, line }: Pick<SpanSubject, 'file' | 'line'>,
): SpanSubject {
  return of({ name, instance, address: hex(address), file, line, task: root && rootText(root) });
}

function afterText(state: StateRef | undefined): string | undefined {
  return state && stateText(state);
}

/** Writes a line a span, behind a head. */
export function spanLines(
  out: Lines,
  head: (info: TraceInfo) => string,
  line: (span: Span) => readonly TextPart[],
): TraceSink {
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

/** Futures of one task that are kept, and wakes of it. */
const mostFutures = 32;

/** The subjects of spans, each made once. */
class Subjects {
  readonly #functions = new WeakMap<FunctionRef, SpanSubject>();
  readonly #futures = new WeakMap<RootRef, { readonly of: OfFuture; readonly subject: SpanSubject }[]>();
  readonly #wakes = new WeakMap<RootRef, { readonly waker: Addr; readonly subject: SpanSubject }[]>();

  /** A task is woken by few wakers from few places. */
  ofWake({ root, waker, caller: { file, line } }: Wake): SpanSubject {
    const known = root && madeOnce(this.#wakes, root, () => []);
    for (const { waker: other, subject } of known ?? []) {
      if (other === waker && subject.file === file && subject.line === line) return subject;
    }
    const address = hex(waker);
    const name = root?.future.future ?? address;
    const subject = of({ name, address, file, line, task: root && rootText(root) });
    if (known && known.length >= mostFutures) known.length = 0;
    known?.push({ waker, subject });
    return subject;
  }

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
