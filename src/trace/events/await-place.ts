import { madeOnce } from '../../base/made-once.js';
import { libraryBelow, libraryName, macroOf, ownFiles } from '../../text/index.js';
import { wayOf } from './await-ways.js';
import type { AwaitLink, AwaitPlace, FutureRef, PollEnd, StateRef } from './events.js';
import { placeText } from './text.js';

export type { AwaitPlace } from './refs.js';

/** The innermost await of the program's own code; where a library waits by itself, the innermost with a known place. */
export function awaitPlace(end: PollEnd): AwaitPlace | undefined {
  const way = wayOf(end);
  if (way.place === null) way.place = placeOf(end);
  return way.place;
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
  const outermost = links.find(({ future, state }) => isOwn(state?.file ?? future?.file));
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

/** Whether a name that is wanted is one of the wait: of the task, of a Future that it goes through, or of the place. */
export function isWaitNamed(end: PollEnd, isWanted: (name: string) => boolean): boolean {
  const at = awaitPlace(end);
  const inside = end.chain.map(({ future, typeName }) => future?.future ?? typeName);
  const place = at && awaitText(at);
  return [end.root.future.future, end.future.future, ...inside, ...(place === undefined ? [] : [place])].some(isWanted);
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
