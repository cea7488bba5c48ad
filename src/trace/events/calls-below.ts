import type { AnyBegin, AnyEnd, CallBegin, TraceEvent, TraceSink } from './events.js';
import { OpenCalls } from './open-calls.js';
import { Filter } from './sinks.js';

interface Kept {
  readonly begin: AnyBegin;
  /** 1: a root; 0: outside of all roots. */
  readonly level: number;
  readonly isInterrupt: boolean;
}

interface CallsBelowOptions {
  /** Where a tree begins. */
  readonly isRoot: (begin: CallBegin) => boolean;
  /** Levels that are shown. */
  readonly depth: number;
  /** Whether the outer function's code surely does not call the inner one: an interrupt came between them. */
  readonly isForeign: (outer: CallBegin, inner: CallBegin) => boolean;
  /** An interrupt's handler calls what is traced; it has returned from that. */
  readonly interrupt: (begin: AnyBegin, time: number, isOver: boolean) => void;
}

/** Passes on the calls of some functions and what they call, that many levels deep, and no others. */
export class CallsBelow extends Filter {
  readonly #options: CallsBelowOptions;
  readonly #open = new OpenCalls<Kept>();

  constructor(sink: TraceSink, options: CallsBelowOptions) {
    super(sink);
    this.#options = options;
  }

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
        this.#begin(event);
        break;
      case 'call-end':
      case 'call-lost':
        this.#end(event);
        break;
      case 'gap':
      case 'reset':
        this.sink.event(event);
        break;
    }
  }

  #begin(begin: CallBegin): void {
    const { isRoot, depth, isForeign, interrupt } = this.#options;
    const around = this.#open.of(begin.around);
    const level = around && around.level > 0 ? around.level + 1 : isRoot(begin) ? 1 : 0;
    const isShown = level > 0 && level <= depth;
    const outer = level > 1 ? around?.begin : undefined;
    const isInterrupt = isShown && outer?.type === 'call-begin' && isForeign(outer, begin);
    this.#open.begin({ begin, level, isInterrupt });
    if (isInterrupt) interrupt(begin, begin.time, false);
    if (isShown) this.sink.event(begin);
  }

  #end(event: AnyEnd): void {
    const kept = this.#open.end(event);
    if (kept === undefined || kept.level === 0 || kept.level > this.#options.depth) return;
    this.sink.event(event);
    if (kept.isInterrupt) this.#options.interrupt(kept.begin, event.time, true);
  }
}
