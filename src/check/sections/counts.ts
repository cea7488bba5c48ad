import { below, objectAt } from '../json.js';
import { type Bounds, boundsAt, boundsText, nearBound, roomyBounds } from '../limits.js';
import type { Place, SectionKind, Verdict, VerdictState } from '../section.js';
import { placeOf, type Selector, selectorAt } from '../selector.js';

interface Counted {
  readonly selector: Selector;
  readonly bounds: Bounds;
  count: number;
  place: Place | undefined;
}

/** `"counts": { "fn:find_devices": 1, "poll:worker": { "min": 20, "max": 25 } }` */
export const counts: SectionKind = {
  key: 'counts',
  proposed: ({ functions }) =>
    functions.length === 0 ? undefined : Object.fromEntries(functions.map((name) => [`fn:${name}`, 0])),
  parse(value, at) {
    const counted = Object.entries(objectAt(value, at)).map(([text, given]): Counted => {
      const path = below(at, text);
      return { selector: selectorAt(text, path), bounds: boundsAt(given, path), count: 0, place: undefined };
    });
    return {
      event: (event) => {
        for (const each of counted) {
          if (!each.selector.matches(event)) continue;
          each.count++;
          each.place ??= placeOf(event);
        }
      },
      verdicts: (end) =>
        counted.map(({ selector, bounds, count, place }): Verdict => {
          const isBound = count === 0 ? !selector.isProbed(end) : selector.isPartial(end);
          const state = stateOf(bounds, count, isBound);
          const atLeast = count > 0 ? `at least ${count}: ` : '';
          return {
            ...{ section: 'counts', subject: selector.text },
            state,
            limit: boundsText(bounds),
            measured: isBound && state !== 'kept' ? `${atLeast}${selector.missing(end)}` : String(count),
            ...{ bound: nearBound(bounds, count), value: count, place },
          };
        }),
      updated: (_, headRoom) =>
        Object.fromEntries(counted.map(({ selector, count }) => [selector.text, roomyBounds(count, headRoom)])),
    };
  },
};

/** `isBound`: not all was seen, so that there may have been more. Too few of nothing are broken all the same. */
function stateOf({ min, max }: Bounds, count: number, isBound: boolean): VerdictState {
  if (count > max || (count < min && (!isBound || count === 0))) return 'broken';
  return isBound && (count === 0 || count < min || max !== Number.POSITIVE_INFINITY) ? 'unseen' : 'kept';
}
