import { hex } from '../../base/addr.js';
import type { AnyBegin, AnyEnd, HartInfo, PollEnd, TraceEvent, TraceInfo, TraceSink } from '../events.js';
import { OpenCalls } from '../open-calls.js';
import { accessText, argumentsText, ChainTexts, gapText, resetText, rootText, stateText, wakerText } from '../text.js';

/** What formats of rows have a row for: a call or poll when it ends, anything else when it happens. */
export interface Span {
  readonly type: 'call' | 'poll' | 'derived' | 'state' | 'watch' | 'wake' | 'sample' | 'gap' | 'reset' | string;
  /** When it began, and how long it took; undefined for an instant. */
  readonly time_ns: number;
  readonly duration_ns: number | undefined;
  readonly hart: number | undefined;
  /** The number of its stack, where stacks are known apart. */
  readonly thread: number | undefined;
  readonly depth: number | undefined;
  readonly name: string;
  readonly instance: string | undefined;
  readonly address: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly task: string | undefined;
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
] as const satisfies readonly (keyof Span)[];

const empty = {
  duration_ns: undefined,
  hart: undefined,
  thread: undefined,
  depth: undefined,
  instance: undefined,
  address: undefined,
  file: undefined,
  line: undefined,
  task: undefined,
  result: undefined,
  detail: undefined,
};

/** Turns events into spans. Calls that are open at the end come last, without a duration. */
export class Spans implements TraceSink {
  readonly #write: (span: Span) => void;
  readonly #done: () => void;
  readonly #flush: () => void;
  readonly #chains = new ChainTexts();
  readonly #open = new OpenCalls<{ readonly begin: AnyBegin }>();
  /** In the order of their begins: what is open at the end. */
  readonly #unended = new Set<AnyBegin>();

  constructor(write: (span: Span) => void, flush: () => void, done: () => void) {
    this.#write = write;
    this.#flush = flush;
    this.#done = done;
  }

  begin(_info: TraceInfo): void {}

  hart(_hart: HartInfo): void {}

  flush(): void {
    this.#flush();
  }

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
      case 'poll-begin':
        this.#open.begin({ begin: event });
        this.#unended.add(event);
        break;
      case 'call-end':
      case 'call-lost':
      case 'poll-end':
      case 'poll-lost':
        this.#ended(event);
        break;
      default:
        this.#write(this.#instant(event));
    }
  }

  end(): void {
    for (const begin of this.#unended) this.#write({ ...aboutCall(begin), result: 'open', duration_ns: undefined });
    this.#unended.clear();
    this.#done();
  }

  #ended(event: AnyEnd): void {
    const begin = this.#open.end(event)?.begin;
    if (begin) this.#unended.delete(begin);
    const about = aboutCall(begin ?? event);
    const isLost = event.type === 'call-lost' || event.type === 'poll-lost';
    const span = { ...about, time_ns: event.began, duration_ns: isLost ? undefined : event.time - event.began };
    if (isLost) this.#write({ ...span, result: 'lost' });
    else if (event.type === 'call-end') this.#write({ ...span, result: event.result });
    else this.#write({ ...span, result: event.result, detail: this.#after(event) });
  }

  /** The await chain, or the state. */
  #after({ chain, state }: PollEnd): string | undefined {
    return chain.length > 0 ? this.#chains.text(chain) : state && stateText(state);
  }

  #instant(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): Span {
    switch (event.type) {
      case 'derived-poll':
      case 'state': {
        const { time, hart, root, future, address } = event;
        const { instance, file, line } = future;
        const after = event.type === 'state' ? event.to : event.state;
        return {
          ...empty,
          type: event.type === 'state' ? 'state' : 'derived',
          time_ns: time,
          hart,
          name: future.future,
          instance,
          address: hex(address),
          file,
          line,
          task: rootText(root),
          result: event.type === 'state' ? undefined : event.result,
          detail: after && stateText(after),
        };
      }
      case 'watch': {
        const { time, hart, watch, by } = event;
        const { file, line } = by;
        const about = { name: watch.name, address: hex(watch.address), file, line };
        return {
          ...empty,
          ...about,
          type: 'watch',
          time_ns: time,
          hart,
          result: event.access,
          detail: accessText(event),
        };
      }
      case 'place': {
        const { time, hart, place } = event;
        const { name, category, address, by } = place;
        const about = { name, address: hex(address), file: by.file, line: by.line, detail: by.function };
        return { ...empty, ...about, type: category, time_ns: time, hart };
      }
      case 'wake': {
        const { time, hart, root, waker, caller } = event;
        const { file, line } = caller;
        const name = root?.future.future ?? hex(waker);
        const about = { name, address: hex(waker), file, line, task: root && rootText(root), detail: wakerText(event) };
        return { ...empty, ...about, type: 'wake', time_ns: time, hart };
      }
      case 'sample': {
        const { time, hart, stack } = event;
        const [frame] = stack;
        const detail = stack.map(({ name }) => name).join(' < ');
        const about = { name: frame?.name ?? '', instance: frame?.instance, file: frame?.file, line: frame?.line };
        return { ...empty, ...about, type: 'sample', time_ns: time, hart, detail };
      }
      case 'gap':
        return { ...empty, type: 'gap', time_ns: event.from, duration_ns: event.to - event.from, name: gapText };
      case 'reset':
        return { ...empty, type: 'reset', time_ns: event.time, name: resetText };
    }
  }
}

function aboutCall(event: AnyBegin | AnyEnd): Span {
  const { time, hart, thread, depth } = event;
  const where = { ...empty, time_ns: time, hart, thread: thread?.key, depth };
  if ('function' in event) {
    const { name, instance, address, file, line } = event.function;
    const detail = 'arguments' in event && event.arguments.length > 0 ? argumentsText(event.arguments) : undefined;
    return { ...where, type: 'call', name, instance, address: hex(address), file, line, detail };
  }
  const { future, address, root } = event;
  const { future: name, instance, file, line } = future;
  return { ...where, type: 'poll', name, instance, address: hex(address), file, line, task: rootText(root) };
}
