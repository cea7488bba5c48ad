// What a budget names, spelt as probes are: `fn:init_done`, `poll:net::**`, `ready:checker`.
import { madeOnce } from '../base/made-once.js';
import { nearestWords } from '../base/search.js';
import { compileGlob, nearest } from '../probes/index.js';
import {
  type FunctionRef,
  type FutureRef,
  type ProbeFact,
  probesLeftOut,
  subjectsOf,
  type TraceEvent,
} from '../trace/index.js';
import { invalid, type Json, textAt } from './json.js';
import type { Ending, Place } from './section.js';

/** What a word of a selector takes out of an event: what it names, and the names that a glob is compared with. */
interface Named {
  /** Known by identity, so that a glob meets each name once. */
  readonly key: object;
  readonly names: readonly (string | undefined)[];
  readonly place: Place;
}

const word = {
  fn: (event) => (event.type === 'call-begin' ? ofFunction(event.function) : undefined),
  return: (event) => (event.type === 'call-end' ? ofFunction(event.function) : undefined),
  poll: (event) => (event.type === 'poll-begin' ? ofFuture(event.future) : undefined),
  ready: (event) => (event.type === 'poll-end' && event.result === 'ready' ? ofFuture(event.future) : undefined),
  wake: (event) => (event.type === 'wake' && event.root ? ofFuture(event.root.future) : undefined),
  watch: (event) =>
    event.type === 'watch' ? { key: event.watch, names: [event.watch.name], place: event.by } : undefined,
  line: (event) =>
    event.type === 'place' ? { key: event.place, names: [event.place.name], place: event.place.by } : undefined,
  reset: (event) => (event.type === 'reset' ? { key: resets, names: ['reset'], place: noPlace } : undefined),
} as const satisfies Readonly<Record<string, (event: TraceEvent) => Named | undefined>>;

type Word = keyof typeof word;

const noPlace: Place = { file: undefined, line: undefined };
const resets = {};
const words = Object.keys(word) as readonly Word[];

function ofFunction(fn: FunctionRef): Named {
  return { key: fn, names: [fn.name, fn.instance], place: fn };
}

function ofFuture(future: FutureRef): Named {
  return { key: future, names: [future.future, future.instance], place: future };
}

/** As what a thing is seen that a word names. */
const seenAs = {
  fn: 'fn',
  return: 'fn',
  poll: 'poll',
  ready: 'poll',
  wake: 'poll',
  watch: 'watch',
  line: 'line',
  reset: 'reset',
} as const satisfies Readonly<Record<Word, string>>;

/** What matches a budget's word and glob. */
export class Selector {
  readonly text: string;
  readonly #word: Word;
  readonly #glob: string;
  readonly #matches: (name: string) => boolean;
  readonly #known = new Map<object, boolean>();

  constructor(text: string, kind: Word, glob: string) {
    this.text = text;
    this.#word = kind;
    this.#glob = glob;
    this.#matches = compileGlob(glob);
  }

  matches(event: TraceEvent): boolean {
    const named = word[this.#word](event);
    if (named === undefined) return false;
    return madeOnce(this.#known, named.key, () =>
      named.names.some((name) => name !== undefined && this.#matches(name)),
    );
  }

  /** Whether the recording could have seen all of it: an event or a probe has such a name, and none was left out. */
  isProbed(end: Ending): boolean {
    if (this.isPartial(end)) return false;
    if (this.#word === 'reset' || [...this.#known.values()].includes(true)) return true;
    return !this.#needsWakes(end) && this.#namesIn(end).some(this.#matches);
  }

  #needsWakes({ seen }: Ending): boolean {
    return this.#word === 'wake' && ![...seen].some((each) => each.startsWith('wake:'));
  }

  /**
   * The names of what was seen as such a thing, and of probes. An async fn and its Future share a name: one probe of a
   * name that was seen as another thing is a probe of that.
   */
  #namesIn({ seen, facts }: Ending): string[] {
    const prefix = `${seenAs[this.#word]}:`;
    const isOwn = (each: string): boolean => each.startsWith(prefix);
    const others = new Set([...seen].filter((each) => !isOwn(each) && !/^(wake|derived):/.test(each)).map(nameOf));
    const probes = (facts?.probes ?? []).map(({ name }) => name);
    const uses = new Map<string, number>();
    for (const name of probes) uses.set(name, (uses.get(name) ?? 0) + 1);
    const isOther = (name: string): boolean => others.has(name) && uses.get(name) === 1;
    return [...[...seen].filter(isOwn).map(nameOf), ...probes.filter((name) => !isOther(name))];
  }

  /** Whether there may have been more of it than was seen. */
  isPartial(end: Ending): boolean {
    return this.#lack(end) !== undefined;
  }

  /** Why not all of it could be seen: `nothing in the trace has this name; nearest: ...`. */
  missing(end: Ending): string {
    const lack = this.#lack(end);
    if (lack !== undefined) return lack;
    if (this.#needsWakes(end)) return 'no wake is in the trace: record with --wakes';
    const near = nearest(this.#glob, this.#namesIn(end));
    return `nothing in the trace has this name${near.length > 0 ? `; nearest: ${near.join(', ')}` : ''}`;
  }

  #lack({ facts, seen, lacks }: Ending): string | undefined {
    const lacking = lacks === '' ? undefined : lacks;
    if (this.#word === 'reset') return lacking;
    const probes = facts?.probes ?? [];
    const nameIn = (probe: ProbeFact): string | undefined => subjectsOf(probe).find(this.#matches);
    const leftOut = probesLeftOut(probes).find(nameIn);
    if (leftOut) {
      const why = leftOut.why === undefined ? '' : ` (${leftOut.why})`;
      return `the probe of ${nameIn(leftOut)} was left out, or switched off on the way${why}`;
    }
    if (this.#word === 'return') {
      const blind = probes.find((probe) => probe.unseenReturn !== undefined && nameIn(probe));
      if (blind) return `that ${nameIn(blind)} returns is not seen (${blind.unseenReturn})`;
    }
    const derived = [...seen].filter((each) => each.startsWith('derived:')).map(nameOf);
    const inlined = [...derived, ...(facts?.recording?.unseen ?? [])].find(this.#matches);
    if (seenAs[this.#word] === 'poll' && inlined !== undefined)
      return `the compiler inlined polls of ${inlined}, of which not all are seen`;
    return lacking;
  }
}

function nameOf(selector: string): string {
  return selector.slice(selector.indexOf(':') + 1);
}

/** Reads `fn:GLOB`. Throws `BUDGET_INVALID`. `allowed`: the words that make sense there. */
export function selectorAt(value: Json, at: string, allowed: readonly Word[] = words): Selector {
  const text = textAt(value, at);
  const [, kind = '', glob = ''] = /^(\w+)(?::(.+))?$/s.exec(text.trim()) ?? [];
  const known = allowed.find((each) => each === kind);
  if (known === undefined) {
    const near = nearestWords(kind, allowed);
    const hint = near.length > 0 ? `did you mean ${near[0]}:?` : 'write fn:init_done or poll:net::**';
    throw invalid(
      at,
      `names '${text}', which begins with none of ${allowed.map((each) => `${each}:`).join(', ')}`,
      hint,
    );
  }
  if (known === 'reset') return new Selector('reset', 'reset', 'reset');
  if (glob === '') throw invalid(at, `names nothing behind '${kind}:'`, `'${kind}:**' is everything of that kind`);
  return new Selector(text, known, glob);
}

/** The names of an event as selectors, for {@link Ending.seen}. */
export function selectorsOf(event: TraceEvent): string | undefined {
  if (event.type === 'call-begin') return `fn:${event.function.name}`;
  if (event.type === 'poll-begin') return `poll:${event.future.future}`;
  if (event.type === 'wake' && event.root) return `wake:${event.root.future.future}`;
  if (event.type === 'place') return `line:${event.place.name}`;
  return event.type === 'watch' ? `watch:${event.watch.name}` : undefined;
}

/** Where an event is in the source. */
export function placeOf(event: TraceEvent): Place | undefined {
  if (event.type === 'poll-begin' && event.state?.file !== undefined) return event.state;
  for (const take of Object.values(word)) {
    const named = take(event);
    if (named) return named.place;
  }
  return undefined;
}
