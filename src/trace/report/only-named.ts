import type { AnyBegin, HartInfo, TraceEvent, TraceFacts, TraceInfo, TraceSink, Wake } from '../events.js';
import { type OpenCall, OpenCalls } from '../open-calls.js';

interface Kept extends OpenCall {
  readonly isShown: boolean;
}

/** Passes on the calls and polls of matching names with all that happens inside them, as `uftrace -F` does. */
export function onlyNamed(sink: TraceSink, matches: (name: string) => boolean): TraceSink {
  return new OnlyNamed(sink, matches);
}

class OnlyNamed implements TraceSink {
  readonly #sink: TraceSink;
  readonly #matches: (name: string) => boolean;
  readonly #open = new OpenCalls<Kept>();

  constructor(sink: TraceSink, matches: (name: string) => boolean) {
    this.#sink = sink;
    this.#matches = matches;
  }

  begin(info: TraceInfo): void {
    this.#sink.begin(info);
  }

  hart(hart: HartInfo): void {
    this.#sink.hart(hart);
  }

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
      case 'poll-begin': {
        const isShown = this.#open.of(event.around)?.isShown || this.#matches(nameOf(event));
        this.#open.begin({ begin: event, isShown });
        if (isShown) this.#sink.event(event);
        break;
      }
      case 'call-end':
      case 'call-lost':
      case 'poll-end':
      case 'poll-lost':
        if (this.#open.end(event)?.isShown) this.#sink.event(event);
        break;
      case 'gap':
      case 'reset':
        this.#sink.event(event);
        break;
      case 'place':
      case 'watch':
        if (this.#open.on(event).some(({ isShown }) => isShown)) this.#sink.event(event);
        break;
      case 'wake':
        if (matchesRoot(event, this.#matches) || this.#open.on(event).some(({ isShown }) => isShown))
          this.#sink.event(event);
        break;
      case 'cancelled':
        if (
          this.#matches(event.future.future) ||
          matchesRoot(event, this.#matches) ||
          this.#open.on(event).some(({ isShown }) => isShown)
        )
          this.#sink.event(event);
        break;
      default:
        if (this.#matches(event.future.future) || this.#open.on(event).some(({ isShown }) => isShown))
          this.#sink.event(event);
    }
  }

  flush(): void {
    this.#sink.flush();
  }

  end(facts?: TraceFacts): void {
    this.#sink.end(facts);
  }
}

function matchesRoot({ root }: Pick<Wake, 'root'>, matches: (name: string) => boolean): boolean {
  return root !== undefined && matches(root.future.future);
}

function nameOf(begin: AnyBegin): string {
  return begin.type === 'call-begin' ? begin.function.name : begin.future.future;
}
