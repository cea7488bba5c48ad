import { madeOnce } from '../../base/made-once.js';
import type { AwaitLink, FutureRef, PollEnd, StateRef } from './events.js';
import type { AwaitPlace } from './refs.js';
import { linkText } from './text.js';

type Link = Pick<AwaitLink, 'future' | 'typeName' | 'state'>;
type Ways = Map<FutureRef | string, Map<StateRef | undefined, AwaitWay>>;

/**
 * What is known of a way to wait: a Future, its state, and what it awaits, without addresses. A guest waits in the same
 * few ways over and over, so identity is a key, and each member is worked out when it is first asked for.
 */
class AwaitWay {
  /** Null before it is known. */
  place: AwaitPlace | undefined | null = null;
  /** Of what is awaited. */
  text: string | undefined;
  /** With the Future itself. */
  whole: string | undefined;
  /** With one more link. */
  readonly next: Ways = new Map();
}

const WAYS_KEPT = 4096;
const ways = { known: new Map() as Ways, count: 0 };
/** Several sinks ask about each event. */
let last: { readonly end: PollEnd; readonly way: AwaitWay } | undefined;

/** The way in which a Future waits at the end of a poll. */
export function wayOf(end: PollEnd): AwaitWay {
  if (last?.end !== end) last = { end, way: wayAlong(end) };
  return last.way;
}

function wayAlong({ future, state, chain }: PollEnd): AwaitWay {
  if (ways.count >= WAYS_KEPT) {
    ways.known.clear();
    ways.count = 0;
  }
  let way = nextWay(ways.known, future, state);
  for (const link of chain) way = nextWay(way.next, link.future ?? link.typeName, link.state);
  return way;
}

function nextWay(known: Ways, who: FutureRef | string, state: StateRef | undefined): AwaitWay {
  const states = madeOnce(known, who, () => new Map<StateRef | undefined, AwaitWay>());
  return madeOnce(states, state, () => {
    ways.count++;
    return new AwaitWay();
  });
}

/**
 * What is awaited at the end of a poll in one line, outermost first, without addresses:
 * `a::outer at src/a.rs:3 > a::inner (Unresumed)`. Empty if nothing is.
 */
export function chainText(end: PollEnd): string {
  if (end.chain.length === 0) return '';
  const way = wayOf(end);
  way.text ??= textOf(end.chain);
  return way.text;
}

/** The same with the Future itself before them: all that it waits for. */
export function wholeAwait(end: PollEnd): string {
  const way = wayOf(end);
  const { future, state, chain } = end;
  way.whole ??= textOf([{ future, typeName: future.instance, state }, ...chain]);
  return way.whole;
}

function textOf(links: readonly Link[]): string {
  return links.map(linkText).join(' > ');
}
