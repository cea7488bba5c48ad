import { madeOnce } from '../../base/made-once.js';
import { libraryBelow, libraryName, macroOf, ownFiles } from '../../text/index.js';
import type { AwaitLink, FutureRef, PollEnd, StateRef } from './events.js';
import { placeText } from './text.js';

/** Where a task waits: in the program's own code, if it waits in any. One object a place, so identity is a key. */
export interface AwaitPlace {
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** The Future whose code that is. */
  readonly future: string;
  /** What of a library is awaited there: `tokio::sync::mutex::Mutex::lock`. */
  readonly inside: string | undefined;
  /** The outermost Future of the program's own code that waits: in a library's task, as a server's, its handler. */
  readonly outermost?: string | undefined;
}

/** A way to wait: a task waits in the same few ways over and over. */
interface Way {
  /** Null before it is known. */
  place: AwaitPlace | undefined | null;
  readonly next: Map<FutureRef | string, Map<StateRef | undefined, Way>>;
}

const WAYS_KEPT = 4096;
const ways = { known: new Map<FutureRef, Map<StateRef | undefined, Way>>(), count: 0 };
/** Several sinks ask about each event. */
let last: { readonly end: PollEnd; readonly place: AwaitPlace | undefined } | undefined;

/** The innermost await of the program's own code; where a library waits by itself, the innermost with a known place. */
export function awaitPlace(end: PollEnd): AwaitPlace | undefined {
  if (last?.end !== end) last = { end, place: placeAt(end) };
  return last.place;
}

function placeAt(end: PollEnd): AwaitPlace | undefined {
  if (ways.count >= WAYS_KEPT) {
    ways.known.clear();
    ways.count = 0;
  }
  let way = wayOf(ways.known, end.future, end.state);
  for (const { future, typeName, state } of end.chain) way = wayOf(way.next, future ?? typeName, state);
  if (way.place === null) way.place = placeOf(end);
  return way.place;
}

function wayOf<K>(known: Map<K, Map<StateRef | undefined, Way>>, who: K, state: StateRef | undefined): Way {
  const states = madeOnce(known, who, () => new Map<StateRef | undefined, Way>());
  return madeOnce(states, state, () => {
    ways.count++;
    return { place: null, next: new Map() };
  });
}

function placeOf(end: PollEnd): AwaitPlace | undefined {
  const links: Link[] = [{ future: end.future, typeName: end.future.instance, state: end.state }, ...end.chain];
  const isOwn = ownFiles(links.flatMap(({ future, state }) => [future?.file, state?.file]));
  const own = links.findLastIndex(({ state }) => isOwn(state?.file));
  // A macro's await lies in the macro's file.
  const at =
    own >= 0 ? own : links.findLastIndex(({ future, state }) => state?.file !== undefined && isOwn(future?.file));
  const link = links[at];
  const source = own >= 0 ? link?.state : link?.future;
  if (link === undefined || source === undefined) return libraryPlace(links);
  const below = links.slice(at + 1).map((each) => ({ name: nameOf(each), file: each.state?.file }));
  const macro = own >= 0 ? undefined : macroOf(link.state?.file);
  const inside = macro ?? libraryBelow(nameOf(link), below, isOwn);
  const outermost = links.find(({ state }) => isOwn(state?.file));
  return placeOnce(source, { future: nameOf(link), inside, outermost: outermost && nameOf(outermost) });
}

type Link = Pick<AwaitLink, 'future' | 'typeName' | 'state'>;

function libraryPlace(links: readonly Link[]): AwaitPlace | undefined {
  const link = links.findLast(({ state }) => state?.file !== undefined) ?? links[0];
  return link?.state && placeOnce(link.state, { future: nameOf(link), inside: undefined });
}

function nameOf({ future, typeName }: Link): string {
  return future?.future ?? typeName;
}

const places = new WeakMap<StateRef | FutureRef, Map<string, AwaitPlace>>();

function placeOnce(source: StateRef | FutureRef, of: Omit<AwaitPlace, 'file' | 'line'>): AwaitPlace {
  const { file, line } = source;
  const known = madeOnce(places, source, () => new Map());
  return madeOnce(known, `${of.future}\n${of.inside}\n${of.outermost}`, () => ({ file, line, ...of }));
}

/** `src/main.rs:15, in tokio Mutex::lock`; undefined where no file is known. */
export function awaitText(
  place: Pick<AwaitPlace, 'file' | 'line' | 'inside'>,
  shown = (text: string): string => text,
): string | undefined {
  const text = placeText(place);
  return text === undefined ? undefined : `${shown(text)}${insideText(place)}`;
}

/** `, in tokio Mutex::lock`, behind a place or a name; empty without a library. */
export function insideText({ inside }: Pick<AwaitPlace, 'inside'>): string {
  return inside === undefined ? '' : `, in ${libraryName(inside)}`;
}

const texts = new WeakMap<AwaitPlace, string>();

/** The name of the slice between two polls: `waiting at src/work.rs:34`. */
export function waitText(place: AwaitPlace | undefined): string {
  if (place === undefined) return 'waiting';
  return madeOnce(texts, place, () => {
    const text = awaitText(place);
    return text === undefined ? 'waiting' : `waiting at ${text}`;
  });
}
