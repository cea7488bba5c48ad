// `reach`, `never`, `order`: whether and when things come for the first time.
import { type GuestNanos, type TraceEvent, timeText } from '../../trace/index.js';
import { below, invalid, type Json, type JsonObject, listAt, objectAt } from '../json.js';
import { roomyTime, timeAt } from '../limits.js';
import type { Ending, Place, SectionKind, Verdict } from '../section.js';
import { placeOf, type Selector, selectorAt } from '../selector.js';

/** When something came for the first time. */
class First {
  readonly selector: Selector;
  time: GuestNanos | undefined;
  /** Events before it: at one time of the clock several may come. */
  before = 0;
  place: Place | undefined;

  constructor(selector: Selector) {
    this.selector = selector;
  }

  event(event: TraceEvent, before = 0): void {
    if (this.time !== undefined || event.type === 'gap' || !this.selector.matches(event)) return;
    this.time = event.time;
    this.before = before;
    this.place = placeOf(event);
  }
}

function measuredText({ time, selector }: First, end: Ending): string {
  if (time !== undefined) return `after ${timeText(time)}`;
  return selector.isProbed(end) ? 'never came' : `never came: ${selector.missing(end)}`;
}

/** `"reach": { "fn:init_done": { "within": "20ms" }, "ready:checker": {} }` */
export const reach: SectionKind = {
  key: 'reach',
  proposed: ({ ready }) =>
    ready.length === 0 ? undefined : Object.fromEntries(ready.map((name) => [`ready:${name}`, {}])),
  parse(value, at) {
    const wanted = Object.entries(objectAt(value, at)).map(([text, given]) => {
      const limits = objectAt(given, below(at, text), ['within']);
      const path = below(below(at, text), 'within');
      const within = limits.within === undefined ? undefined : timeAt(limits.within, path);
      return { first: new First(selectorAt(text, below(at, text))), within };
    });
    return {
      event: (event) => {
        for (const { first } of wanted) first.event(event);
      },
      verdicts: (end) =>
        wanted.map(({ first, within }): Verdict => {
          const { time, place, selector } = first;
          const isKept = time !== undefined && (within === undefined || time <= within);
          return {
            ...{ section: 'reach', subject: selector.text, state: isKept ? 'kept' : 'broken' },
            limit: within === undefined ? 'comes' : `within ${timeText(within)}`,
            measured: measuredText(first, end),
            ...{ bound: within, value: time, place },
          };
        }),
      updated: ({ info }, headRoom) =>
        Object.fromEntries(
          wanted.map(({ first: { selector, time } }): [string, JsonObject] => [
            selector.text,
            time === undefined ? {} : { within: roomyTime(time, headRoom, info.clock) },
          ]),
        ),
    };
  },
};

/** `"never": ["fn:oom", "reset"]` */
export const never: SectionKind = {
  key: 'never',
  proposed: () => undefined,
  parse(value, at) {
    const firsts = listAt(value, at).map((text, i) => new First(selectorAt(text, below(at, i))));
    return {
      event: (event) => {
        for (const first of firsts) first.event(event);
      },
      verdicts: (end) =>
        firsts.map((first): Verdict => {
          const { time, place, selector } = first;
          const state = time !== undefined ? 'broken' : selector.isProbed(end) ? 'kept' : 'unseen';
          const measured =
            state === 'kept' ? 'never came' : state === 'broken' ? measuredText(first, end) : selector.missing(end);
          return {
            section: 'never',
            subject: selector.text,
            state,
            limit: 'never comes',
            measured,
            value: time,
            place,
          };
        }),
      updated: () => firsts.filter(({ time }) => time === undefined).map(({ selector }) => selector.text),
    };
  },
};

/** `"order": [["fn:find_devices", "fn:mount_root", "ready:receiver"]]` */
export const order: SectionKind = {
  key: 'order',
  proposed: ({ once }) => (once.length < 2 ? undefined : [once.map((name) => `fn:${name}`)]),
  parse(value, at) {
    const chains = listAt(value, at).map((list, i) => {
      const path = below(at, i);
      const firsts = listAt(list, path).map((text, j) => new First(selectorAt(text, below(path, j))));
      if (firsts.length < 2) throw invalid(path, 'has fewer than two things to be in order');
      return firsts;
    });
    let count = 0;
    return {
      event(event) {
        for (const chain of chains) for (const first of chain) first.event(event, count);
        count++;
      },
      verdicts: (end) => chains.map((chain) => orderVerdict(chain, end)),
      updated: () => chains.map(updatedChain),
    };
  },
};

function orderVerdict(chain: readonly First[], end: Ending): Verdict {
  const subject = chain.map(({ selector }) => selector.text).join(', ');
  const missing = chain.find(({ time }) => time === undefined);
  const late = chain.findIndex((first, i) => i > 0 && first.before < (chain[i - 1]?.before ?? 0));
  const [before, after] = [chain[late - 1], chain[late]];
  const state = missing || late > 0 ? 'broken' : 'kept';
  const measured = missing
    ? `${missing.selector.text} ${measuredText(missing, end)}`
    : before && after
      ? `${after.selector.text} came ${measuredText(after, end)}, then ${before.selector.text} ${measuredText(before, end)}`
      : 'in this order';
  return { section: 'order', subject, state, limit: 'in this order', measured, place: missing?.place ?? after?.place };
}

/** What came, in the order in which it came. */
function updatedChain(chain: readonly First[]): Json {
  const came = chain.filter(({ time }) => time !== undefined);
  return came.sort((a, b) => a.before - b.before).map(({ selector }) => selector.text);
}
