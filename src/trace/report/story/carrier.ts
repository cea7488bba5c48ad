import { madeOnce } from '../../../base/made-once.js';
import type { AnyBegin, CallBegin, FunctionRef, PollBegin, RootRef, TraceEvent } from '../../events/events.js';
import { isBegin, isEnd } from '../../events/open-calls.js';
import { isThread, lifeOf, type Subject } from './subjects.js';

/**
 * Whom the subject of a story goes with. A thread that context switches have shown has a hart at times. A task is
 * polled at times: so is a call in one, and a Future. A hart: nothing says when it runs others.
 */
export type Carrier =
  | { readonly kind: 'thread'; readonly thread: FunctionRef }
  | { readonly kind: 'task'; readonly root: RootRef }
  | { readonly kind: 'future'; readonly life: string; readonly root: RootRef }
  | { readonly kind: 'hart' };

/** What harts run, as events show it. */
export class HartStates {
  readonly #threads: (CallBegin | undefined)[] = [];
  readonly #polls = new Map<number, PollBegin[]>();
  /** Interrupts whose handlers have not ended. */
  readonly #interrupts = new Map<AnyBegin, number>();

  on(event: TraceEvent): void {
    if (isBegin(event)) {
      if (event.type === 'poll-begin') this.#pollsOf(event.hart).push(event);
      else if (isThread(event) && !event.thread) this.#threads[event.hart] = event;
      else if (event.function.kind === 'irq') this.#interrupts.set(event, event.hart);
    } else if (isEnd(event)) {
      if (!('function' in event)) this.#pollEnds(event.begin);
      else if (isThread(event) && !event.thread) this.#threads[event.hart] = undefined;
      else if (event.begin) this.#interrupts.delete(event.begin);
    } else if (event.type === 'gap' || event.type === 'reset') {
      this.#threads.length = 0;
      this.#polls.clear();
      this.#interrupts.clear();
    }
  }

  /** Since when a hart runs its thread. */
  threadOf(hart: number): CallBegin | undefined {
    return this.#threads[hart];
  }

  /** Whether the begin, which was not taken yet, is in no other poll of its task. */
  isOutermost({ hart, root }: PollBegin): boolean {
    return !this.#pollsOf(hart).some((poll) => poll.root === root);
  }

  /** In what a hart runs now: `in irq::timer`, `of init:1`. */
  insideOf(hart: number): string | undefined {
    const interrupt = [...this.#interrupts].findLast(([, on]) => on === hart)?.[0];
    if (interrupt && 'function' in interrupt) return `in ${interrupt.function.name}`;
    const thread = this.#threads[hart]?.function;
    return thread && `of ${thread.name}`;
  }

  /** Who carries what begins now, and the outermost poll of its task that is open. */
  carrierOf({ begin }: Subject): { readonly carrier: Carrier; readonly poll: AnyBegin | undefined } {
    const { hart } = begin;
    if (begin.type === 'poll-begin')
      return { carrier: { kind: 'future', life: lifeOf(begin), root: begin.root }, poll: begin };
    const thread = this.#threads[hart]?.function;
    if (thread) return { carrier: { kind: 'thread', thread }, poll: undefined };
    const root = this.#pollsOf(hart).at(-1)?.root;
    if (root === undefined) return { carrier: { kind: 'hart' }, poll: undefined };
    return { carrier: { kind: 'task', root }, poll: this.#pollsOf(hart).find((poll) => poll.root === root) };
  }

  #pollsOf(hart: number): PollBegin[] {
    return madeOnce(this.#polls, hart, () => []);
  }

  #pollEnds(begin: PollBegin | undefined): void {
    if (!begin) return;
    const polls = this.#pollsOf(begin.hart);
    const at = polls.lastIndexOf(begin);
    if (at >= 0) polls.splice(at, 1);
  }
}
