// Names of functions that are too long for a line: what is in brackets says the least.
import { madeOnce } from '../base/made-once.js';
import { clipEnd, clipStart, textWidth } from './text-width.js';

/** Brackets that enclose nothing, so that `operator<` and `->` open and close none. */
const OTHER = /operator *(?:<=>|<<=?|>>=?|<=?|>=?|->\*?|\(\))|[-=]>|\(anonymous namespace\)/y;
const CLOSED_BY: Readonly<Record<string, string>> = { '<': '>', '(': ')' };

interface Group {
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}

/** A name that fits: see {@link foldBrackets}; then without its begin. */
export function clipName(name: string, width: number): string {
  return clipStart(foldBrackets(name, width), width);
}

/** Characters of a clipped text that are too few to say it from others. */
const FEW = 8;

/** Where different names end alike, their common end is left out: `…ask::__ticker…`, `…ask::__waiter…`. */
export function clipNames(names: readonly string[], width: number): string[] {
  const fold = (name: string): string => foldBrackets(name, width);
  // Brackets are folded, unless that makes different ones alike.
  const isShared = sharedBy(names, fold);
  const texts = names.map((name) => (isShared(name) ? name : fold(name)));
  const endOf = (text: string): string => clipStart(text, Math.max(FEW, width - FEW));
  const alike = new Map<string, Set<string>>();
  for (const text of texts) if (textWidth(text) > width) madeOnce(alike, endOf(text), () => new Set()).add(text);
  return texts.map((text) => {
    const those = textWidth(text) > width ? [...(alike.get(endOf(text)) ?? [])] : [];
    if (those.length < 2) return clipStart(text, width);
    return clipStart(`${text.slice(0, text.length - commonEnd(those))}…`, width);
  });
}

/** How long the end is that texts have in common, from the begin of a word on. */
function commonEnd([first = '', ...others]: readonly string[]): number {
  let length = 0;
  while (length < first.length && others.every((text) => text.at(-1 - length) === first.at(-1 - length))) length++;
  const end = first.slice(first.length - length);
  return end.length - Math.max(0, end.search(/[^a-z0-9]/i));
}

/** `src/main.rs:15, in tokio Mutex::lock`: folders, the file with its line, and what is behind them. */
const PLACE = /^((?:[^<(:]*\/)?)([^<(:/ ]+:\d+)((?:, in .*)?)$/s;
const LEAST = 3;

/**
 * What says most of a name in `room` letters: of a place its file and line, of a path its last parts. A block keeps
 * its function. Empty where nothing would say anything.
 */
export function shortName(name: string, room: number): string {
  if (name.length <= room) return name;
  if (room < LEAST) return '';
  const [, , file, inside = ''] = PLACE.exec(name) ?? [];
  if (file !== undefined) {
    if (file.length + inside.length < room) return `…${name.slice(1 - room)}`;
    return file.length <= room ? file : `…${file.slice(1 - room)}`;
  }
  // Not a path inside brackets, and not to a block alone.
  const path = name.slice(0, /[<(]|::\{/.exec(name)?.index);
  for (let at = path.indexOf('::'); at >= 0; at = path.indexOf('::', at + 2))
    if (name.length - at - 2 <= room) return name.slice(at + 2);
  const tail = path.lastIndexOf('::');
  return `${(tail < 0 ? name : name.slice(tail + 2)).slice(0, room - 1)}…`;
}

/** Whether several things have the text of one, so that it does not distinguish them. */
export function sharedBy<T>(
  all: Iterable<T>,
  textOf: (one: T) => string,
  thingOf: (one: T) => unknown = (one) => one,
): (one: T) => boolean {
  const things = new Map<string, Set<unknown>>();
  for (const one of all) madeOnce(things, textOf(one), () => new Set()).add(thingOf(one));
  return (one) => (things.get(textOf(one))?.size ?? 0) > 1;
}

/** What a name keeps of a line that has no room for it, and of one with a place behind it. */
const LEAST_NAME = 20;
const LEAST_BEFORE_PLACE = 12;
/** The share of a line that the branches before a tree's name may have. */
const BRANCHES_SHARE = 1 / 3;

/** A line that is at most so wide: the name gives way first, down to some letters, then the end of the line. */
export function lineOf(before: string, name: string, after: string, width: number): string {
  const room = width - textWidth(before) - textWidth(after);
  const least = after === '' ? LEAST_NAME : LEAST_BEFORE_PLACE;
  return clipEnd(`${before}${clipName(name, Math.max(least, room))}${after}`, width);
}

/** The branches before a tree's name. Where they are too long for the line, the level stands for the outer ones. */
export function branchesIn(width: number, branches: string, level: number): string {
  const room = Math.floor(width * BRANCHES_SHARE);
  if (textWidth(branches) <= room) return branches;
  const mark = `${level}…`;
  return mark + branches.slice(branches.length - Math.max(0, room - mark.length));
}

/**
 * `std::_Rb_tree<int, std::less<…>>::find(…)`: arguments of templates and functions give way, the innermost first,
 * until the name fits. Of `<T as Trait<U>>::of` only `U` does. A name whose brackets do not match stays as it is.
 */
export function foldBrackets(name: string, width: number): string {
  let folded = name;
  const groups = groupsOf(name);
  const deepest = groups.reduce((most, { depth }) => Math.max(most, depth), 0);
  for (let depth = deepest; depth > 0 && textWidth(folded) > width; depth--) folded = without(name, groups, depth);
  return folded;
}

/** The name without what is in groups at that depth or deeper. */
function without(name: string, groups: readonly Group[], depth: number): string {
  let text = '';
  let at = 0;
  for (const group of groups) {
    if (group.depth < depth || group.start < at) continue;
    text += `${name.slice(at, group.start)}…`;
    at = group.end;
  }
  return text + name.slice(at);
}

/** In the order of their starts; none if the brackets do not match. */
function groupsOf(name: string): Group[] {
  const groups: Group[] = [];
  const open: { readonly start: number; readonly closing: string; readonly isArguments: boolean }[] = [];
  for (let at = 0; at < name.length; at++) {
    OTHER.lastIndex = at;
    const other = OTHER.exec(name);
    const letter = name[at] ?? '';
    const closing = CLOSED_BY[letter];
    const last = open.at(-1);
    if (other !== null) at += other[0].length - 1;
    else if (closing !== undefined)
      open.push({ start: at + 1, closing, isArguments: /[\w>)\]:}]/.test(name[at - 1] ?? '') });
    else if (letter === '>' || letter === ')') {
      if (last?.closing !== letter) return [];
      open.pop();
      const { start, isArguments } = last;
      if (isArguments && at - start > 1) groups.push({ start, end: at, depth: open.length + 1 });
    }
  }
  return open.length > 0 ? [] : groups.sort((a, b) => a.start - b.start);
}
