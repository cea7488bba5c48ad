import { type TraceEvent, timeText } from '../../trace/index.js';
import { below, countAt, invalid, listAt, objectAt } from '../json.js';
import { roomy, roomyTime, timeAt } from '../limits.js';
import { Longest } from '../longest.js';
import type { Ending, Place, SectionKind, Verdict } from '../section.js';
import { placeOf, type Selector, selectorAt } from '../selector.js';

const keys = ['from', 'to', 'max', 'max_instructions'] as const;

/** From each `from` to the next `to` of the same boot; the longest counts. */
class Stretch {
  readonly from: Selector;
  readonly to: Selector;
  readonly max: number | undefined;
  readonly maxInstructions: number | undefined;
  /** One that has begun, and not ended. */
  #since: { readonly time: number; readonly place: Place | undefined } | undefined;
  readonly judged: Longest;
  longest: { readonly took: number; readonly begun: number; readonly place: Place | undefined } | undefined;

  constructor(from: Selector, to: Selector, max: number | undefined, maxInstructions: number | undefined) {
    this.from = from;
    this.to = to;
    this.max = max;
    this.judged = new Longest(max ?? Number.POSITIVE_INFINITY);
    this.maxInstructions = maxInstructions;
  }

  get since(): number | undefined {
    return this.#since?.time;
  }

  event(event: TraceEvent): void {
    if (event.type === 'gap') {
      // The next `to` may be in it.
      this.#since = undefined;
      return;
    }
    const { time } = event;
    if (this.#since && this.to.matches(event)) {
      const took = time - this.#since.time;
      this.judged.add({ from: this.#since.time, ns: took, place: this.#since.place });
      if (took >= (this.longest?.took ?? 0)) this.longest = { took, begun: this.#since.time, place: this.#since.place };
      this.#since = undefined;
    }
    // The machine begins anew.
    if (event.type === 'reset') this.#since = undefined;
    if (this.#since === undefined && this.from.matches(event)) this.#since = { time, place: placeOf(event) };
  }
}

/** As the end of a sentence: that the last one lasts longer than its limit already. */
function openText({ max = Number.POSITIVE_INFINITY, from, since }: Stretch, { now }: Ending): string {
  const open = since === undefined ? 0 : now - since;
  return open > max ? `, and the last ${from.text} had none behind it after ${timeText(open)}` : '';
}

/** `"between": [{ "from": "fn:find_devices", "to": "fn:mount_root", "max": "3ms" }]` */
export const between: SectionKind = {
  key: 'between',
  proposed: ({ once }) =>
    once.length < 2 ? undefined : [{ from: `fn:${once[0]}`, to: `fn:${once.at(-1)}`, max: '0ns' }],
  parse(value, at) {
    const stretches = listAt(value, at).map((each, i) => {
      const path = below(at, i);
      const { from, to, max, max_instructions: instructions } = objectAt(each, path, keys);
      if (from === undefined || to === undefined) throw invalid(path, 'needs both from and to');
      if (max === undefined && instructions === undefined) throw invalid(path, 'has neither max nor max_instructions');
      return new Stretch(
        selectorAt(from, below(path, 'from')),
        selectorAt(to, below(path, 'to')),
        max === undefined ? undefined : timeAt(max, below(path, 'max')),
        instructions === undefined ? undefined : countAt(instructions, below(path, 'max_instructions')),
      );
    });
    return {
      event: (event) => {
        for (const stretch of stretches) stretch.event(event);
      },
      verdicts: (end) => stretches.flatMap((stretch) => verdicts(stretch, end)),
      updated: ({ info }, headRoom) =>
        stretches.flatMap(({ from, to, max, maxInstructions, longest }) => {
          if (longest === undefined) return [];
          const counted = instructionsOf(longest.took, info.clock.nanosPerInstruction);
          const limits = {
            ...(max === undefined ? {} : { max: roomyTime(longest.took, headRoom, info.clock) }),
            ...(maxInstructions === undefined || counted === undefined
              ? {}
              : { max_instructions: roomy(counted, headRoom) }),
          };
          return Object.keys(limits).length === 0 ? [] : [{ from: from.text, to: to.text, ...limits }];
        }),
    };
  },
};

function instructionsOf(nanos: number, nanosPerInstruction: number | undefined): number | undefined {
  return nanosPerInstruction === undefined ? undefined : Math.round(nanos / nanosPerInstruction);
}

function verdicts(stretch: Stretch, end: Ending): Verdict[] {
  const { from, to, max, maxInstructions, longest } = stretch;
  const subject = `${from.text} to ${to.text}`;
  const head = { section: 'between', subject, place: longest?.place };
  const missing = [from, to].find((each) => !each.isProbed(end));
  const absent = missing ? `${missing.text}: ${missing.missing(end)}` : 'never came';
  const found: Verdict[] = [];
  if (max !== undefined) {
    const limit = `at most ${timeText(max)}`;
    const open = openText(stretch, end);
    if (longest === undefined) found.push({ ...head, state: 'unseen', limit, measured: absent + open, bound: max });
    else {
      const { state, longest: own, note } = stretch.judged.judged(end);
      const measured = (own ? `${timeText(own.ns)}, from ${timeText(own.from)} on` : 'not known') + note + open;
      found.push({ ...head, place: own?.place ?? head.place, state, limit, measured, bound: max, value: own?.ns });
    }
  }
  if (maxInstructions !== undefined) {
    const limit = `at most ${maxInstructions} instructions`;
    const counted = longest && instructionsOf(longest.took, end.info.clock.nanosPerInstruction);
    const why = longest ? "the trace's clock counts no instructions: record with --deterministic" : absent;
    if (counted === undefined) found.push({ ...head, state: 'unseen', limit, measured: why, bound: maxInstructions });
    else {
      const state = counted <= maxInstructions ? 'kept' : 'broken';
      found.push({
        ...head,
        state,
        limit,
        measured: `${counted} instructions`,
        bound: maxInstructions,
        value: counted,
      });
    }
  }
  return found;
}
