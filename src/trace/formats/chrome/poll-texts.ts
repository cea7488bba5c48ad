import { hex } from '../../../base/addr.js';
import { visibleJson } from '../../../text/index.js';
import type { AwaitLink, FutureRef, PollBegin, PollEnd, RootRef, StateRef } from '../../events/events.js';
import { ChainTexts, placeText, rootText, stackText, stateText } from '../../events/text.js';
import { type Args, named, quote } from '../json-text.js';
import { encoded } from '../output/text-bytes.js';

/** Every async event of a root has this one category: viewers put `cat` + `id` on one track. */
const ASYNC = 'future';
/** Begins and ends that are kept for one task; a full list is emptied. */
const waysKept = 16;

interface Begin {
  readonly future: FutureRef;
  readonly address: PollBegin['address'];
  readonly state: StateRef | undefined;
  /** Where threads are known, because it is given then. */
  readonly hart: number | undefined;
  readonly async: Uint8Array;
  readonly detail: Uint8Array;
}
interface End {
  readonly future: FutureRef;
  readonly state: StateRef | undefined;
  readonly result: string;
  readonly chain: readonly AwaitLink[];
  readonly async: Uint8Array;
  /** Of the wait that follows, if its `name` is this. */
  wait: Named | undefined;
}
interface Named {
  readonly name: string;
  readonly piece: Uint8Array;
}
interface Kept {
  readonly begins: Begin[];
  readonly ends: End[];
  readonly waitEnds: Named[];
}

/**
 * The fields of events of polls behind `tid`, as JSON in UTF-8. A Future is polled in the same few ways over and over,
 * so the last ones of each task are kept.
 */
export class PollTexts {
  readonly #chains = new ChainTexts();
  readonly #kept = new WeakMap<RootRef, Kept>();

  /** On the task's track, and beside the slice on the hart's. */
  begin(event: PollBegin): Pick<Begin, 'async' | 'detail'> {
    const { root, future, address, state, stack } = event;
    if (stack !== undefined) return beginOf(event);
    const hart = event.thread && event.hart;
    const { begins } = this.#of(root);
    for (const known of begins) {
      if (known.future !== future || known.state !== state || known.address !== address) continue;
      if (known.hart === hart) return known;
    }
    const begin = { future, address, state, hart, ...beginOf(event) };
    keep(begins, begin);
    return begin;
  }

  end(end: PollEnd): Uint8Array {
    return this.#end(end).async;
  }

  wait(end: PollEnd, name: string): Uint8Array {
    const known = this.#end(end);
    if (known.wait?.name !== name) {
      const args = { await_chain: this.#chains.text(end.chain) || undefined };
      known.wait = { name, piece: encoded(asyncText(end.root, name, args)) };
    }
    return known.wait.piece;
  }

  waitEnd(root: RootRef, name: string): Uint8Array {
    const { waitEnds } = this.#of(root);
    for (const known of waitEnds) if (known.name === name) return known.piece;
    const piece = encoded(asyncText(root, name));
    keep(waitEnds, { name, piece });
    return piece;
  }

  endArgs({ result, state, chain }: PollEnd): Args {
    return {
      result,
      state_after: state && stateText(state),
      await_chain: this.#chains.text(chain) || undefined,
    };
  }

  #end(end: PollEnd): End {
    const { root, future, state, result, chain } = end;
    const { ends } = this.#of(root);
    for (const known of ends) {
      if (known.future === future && known.state === state && known.result === result && known.chain === chain)
        return known;
    }
    const async = encoded(asyncText(root, future.future, this.endArgs(end)));
    const made: End = { future, state, result, chain, async, wait: undefined };
    keep(ends, made);
    return made;
  }

  #of(root: RootRef): Kept {
    let kept = this.#kept.get(root);
    if (kept === undefined) {
      kept = { begins: [], ends: [], waitEnds: [] };
      this.#kept.set(root, kept);
    }
    return kept;
  }
}

/** The fields of an event on a task's track. */
export function asyncText(root: RootRef, name: string, args?: Args): string {
  const json = args === undefined ? '{}' : visibleJson(JSON.stringify(args));
  return `"cat":"${ASYNC}","id":"${hex(root.key)}","name":${quote(name)},"args":${json}`;
}

function beginOf(event: PollBegin): Pick<Begin, 'async' | 'detail'> {
  const { root, future, hart, thread } = event;
  const address = hex(event.address);
  const stack = event.stack && stackText(event.stack);
  const args = {
    future: future.instance,
    address,
    at: placeText(future),
    state_before: event.state && stateText(event.state),
    stack,
  };
  const about = { task: rootText(root), address, hart: thread && hart, stack };
  return { async: encoded(asyncText(root, future.future, args)), detail: encoded(named('detail', 'task', about)) };
}

function keep<T>(list: T[], item: T): void {
  if (list.length === waysKept) list.length = 0;
  list.push(item);
}
