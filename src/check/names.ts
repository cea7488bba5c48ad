import { Fold, isOfPart, type TraceEvent } from '../trace/index.js';
import type { Names } from './section.js';

/** Functions that are called more often are no phases of a boot. */
const mostOnce = 12;

/** Collects what a new budget file asks for. */
export class NameCollector extends Fold {
  readonly #tasks = new Set<string>();
  readonly #ready = new Set<string>();
  /** How often each was called. */
  readonly #calls = new Map<string, number>();

  event(event: TraceEvent): void {
    if (isOfPart(event)) return;
    if (event.type === 'call-begin') {
      const { name } = event.function;
      this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1);
    } else if (event.type === 'poll-begin') this.#tasks.add(event.root.future.future);
    else if (event.type === 'poll-end' && event.result === 'ready' && event.future === event.root.future) {
      this.#ready.add(event.future.future);
    }
  }

  get names(): Names {
    const once = [...this.#calls].filter(([, calls]) => calls === 1).map(([name]) => name);
    return {
      tasks: [...this.#tasks],
      ready: [...this.#ready],
      functions: [...this.#calls.keys()],
      once: once.slice(0, mostOnce),
    };
  }
}
