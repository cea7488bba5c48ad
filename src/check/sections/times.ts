import {
  type AnyBegin,
  type CallEnd,
  type CallLost,
  type CallTime,
  Durations,
  type PollEnd,
  type PollLost,
  TimedFold,
  type TraceEvent,
  timeText,
} from '../../trace/index.js';
import { below, invalid, objectAt } from '../json.js';
import { roomyTime, timeAt } from '../limits.js';
import { addedText, Longest } from '../longest.js';
import type { Ending, Place, SectionKind, Verdict } from '../section.js';
import { placeOf, type Selector, selectorAt } from '../selector.js';

const measures = ['max', 'p99', 'avg', 'total'] as const;
type Measure = (typeof measures)[number];

/** The calls, or polls, that one budget is about. */
class Timed {
  readonly selector: Selector;
  readonly limits: ReadonlyMap<Measure, number>;
  readonly durations = new Durations();
  readonly longest: Longest;
  total = 0;
  /** Those that have begun. */
  begun = 0;
  /** Where the longest one began. */
  place: Place | undefined;

  constructor(selector: Selector, limits: ReadonlyMap<Measure, number>) {
    this.selector = selector;
    this.limits = limits;
    this.longest = new Longest(limits.get('max') ?? Number.POSITIVE_INFINITY);
  }

  add(begin: AnyBegin, time: number, total: number): void {
    const place = placeOf(begin);
    if (time >= this.durations.max) this.place = place;
    this.longest.add({ from: begin.time, ns: time, place });
    this.durations.add(time);
    this.total += total;
  }

  of(measure: Measure): number {
    const { count, max, sum } = this.durations;
    if (measure === 'max') return max;
    if (measure === 'avg') return count === 0 ? 0 : Math.round(sum / count);
    return measure === 'total' ? this.total : this.durations.percentile(0.99);
  }
}

/** `"times": { "poll:worker": { "max": "100us", "p99": "50us" }, "fn:mount_root": { "total": "5ms" } }` */
export const times: SectionKind = {
  key: 'times',
  proposed: ({ tasks, functions }) => {
    const polls = tasks.map((name) => [`poll:${name}`, { max: '0ns', p99: '0ns' }] as const);
    const calls = functions.map((name) => [`fn:${name}`, { max: '0ns' }] as const);
    return polls.length + calls.length === 0 ? undefined : Object.fromEntries([...polls, ...calls]);
  },
  parse(value, at) {
    const timed = Object.entries(objectAt(value, at)).map(([text, given]) => {
      const path = below(at, text);
      const limits = Object.entries(objectAt(given, path, measures));
      if (limits.length === 0) throw invalid(path, `has none of ${measures.join(', ')}`);
      const parsed = limits.map(([key, limit]) => [key as Measure, timeAt(limit, below(path, key))] as const);
      return new Timed(selectorAt(text, path, ['fn', 'poll']), new Map(parsed));
    });
    const calls = new Times(timed);
    return {
      event: (event) => calls.event(event),
      verdicts(end) {
        calls.over();
        return timed.flatMap((each) => [...each.limits].map(([measure, limit]) => verdict(each, measure, limit, end)));
      },
      updated({ info }, headRoom) {
        calls.over();
        const limitsOf = (each: Timed) =>
          [...each.limits.keys()].map((key) => [key, roomyTime(each.of(key), headRoom, info.clock)]);
        const seen = timed.filter(({ durations }) => durations.count > 0);
        return Object.fromEntries(seen.map((each) => [each.selector.text, Object.fromEntries(limitsOf(each))]));
      },
    };
  },
};

/** Adds the time of each call and poll to what it is chosen by. */
class Times extends TimedFold {
  readonly #timed: readonly Timed[];
  /** Polls that were open when the boot or the trace ended, as far as is known so far; when that was. */
  readonly #lost = new Map<AnyBegin, number>();

  constructor(timed: readonly Timed[]) {
    super();
    this.#timed = timed;
  }

  protected began(begin: AnyBegin): void {
    this.#goesOn(begin.time);
    for (const each of this.#timed) if (each.selector.matches(begin)) each.begun++;
  }

  protected returned({ begin, time: now }: PollEnd | CallEnd, { time, total }: CallTime): void {
    this.#goesOn(now);
    if (begin) this.#lost.delete(begin);
    this.#add(begin, time, total);
  }

  protected override lost({ type, begin, time }: PollLost | CallLost): void {
    this.#goesOn(time);
    if (type === 'poll-lost' && begin) this.#lost.set(begin, time);
  }

  protected override other({ type }: TraceEvent): void {
    if (type === 'reset') this.over();
  }

  /** Of a poll that was lost before, nothing says when it ended. */
  #goesOn(now: number): void {
    for (const [begin, time] of this.#lost) if (time < now) this.#lost.delete(begin);
  }

  /** No further end comes. A poll that blocks for ever is open until then: so long it took at least. */
  over(): void {
    for (const [begin, time] of this.#lost) this.#add(begin, time - begin.time, time - begin.time);
    this.#lost.clear();
  }

  #add(begin: AnyBegin | undefined, time: number, total: number): void {
    for (const each of this.#timed) if (begin && each.selector.matches(begin)) each.add(begin, time, total);
  }
}

function verdict(timed: Timed, measure: Measure, limit: number, end: Ending): Verdict {
  const { selector, durations } = timed;
  const { state, value, place, text } =
    measure === 'max' ? longestOf(timed, end) : measured(timed, measure, limit, end);
  const isSeen = durations.count > 0;
  // The longest of some calls, and the sum of them, are lower bounds; of the others nothing is known.
  const isSurelyBroken = state === 'broken' && (measure === 'max' || measure === 'total');
  const isUnsure = !isSeen || (selector.isPartial(end) && !isSurelyBroken);
  const open = timed.begun - durations.count;
  const came = open > 0 ? 'no end of it was seen' : selector.isProbed(end) ? 'never came' : selector.missing(end);
  const without = open > 0 ? `, without ${open} whose end was not seen` : '';
  const partly = selector.isPartial(end) ? `, and not all were seen: ${selector.missing(end)}` : '';
  return {
    ...{ section: 'times', subject: `${selector.text} ${measure}` },
    state: isUnsure ? 'unseen' : state,
    limit: `at most ${timeText(limit)}`,
    measured: isSeen ? text + without + partly : came,
    ...{ bound: limit, value: isSeen ? value : undefined, place },
  };
}

type Measured = Pick<Verdict, 'state' | 'value' | 'place'> & { readonly text: string };

function measured(timed: Timed, measure: Measure, limit: number, end: Ending): Measured {
  const value = timed.of(measure);
  const isKept = value <= limit;
  const text = timeText(value) + (isKept ? '' : addedText(end));
  return { state: isKept ? 'kept' : 'broken', value, place: timed.place, text };
}

function longestOf({ longest, place }: Timed, end: Ending): Measured {
  const { state, longest: found, note } = longest.judged(end);
  const text = found ? `${timeText(found.ns)}, at ${timeText(found.from)}` : 'not known';
  return { state, value: found?.ns, place: found ? found.place : place, text: text + note };
}
