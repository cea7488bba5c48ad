import { plural } from '../text/index.js';
import { type Disturbance, disturbanceOf, ownSpans, type Span, timeText } from '../trace/index.js';
import type { Ending, Place, VerdictState } from './section.js';

/** Something that lasted, and where it began. */
interface Lasted extends Span {
  readonly place: Place | undefined;
}

/** Of those that last longer than the limit so many are kept, the longest ones. */
const most = 10_000;

/**
 * The longest of many, held to a limit. Of those over the limit the ones are set aside in which tracing took time,
 * because they might have kept it.
 */
export class Longest {
  readonly #limit: number;
  #within: Lasted | undefined;
  #over: Lasted[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(lasted: Lasted): void {
    if (lasted.ns > this.#limit) this.#over.push(lasted);
    else if (lasted.ns >= (this.#within?.ns ?? 0)) this.#within = lasted;
    if (this.#over.length > 2 * most) this.#over = this.#over.sort((a, b) => b.ns - a.ns).slice(0, most);
  }

  /** `note`: what was set aside, as the end of a sentence. */
  judged(ending: Ending): { state: VerdictState; longest: Lasted | undefined; note: string } {
    const { stoppedAt, ringWaitedNs } = added(ending);
    const stoodNot = ownSpans(this.#over, { stoppedAt });
    const own = ownSpans(stoodNot, { ringWaitedNs }).filter(({ ns }) => ns > this.#limit);
    const aside = this.#over.length - own.length;
    const worst = longestOf(this.#over);
    const note =
      aside === 0 || !worst
        ? ''
        : `, without ${plural(aside, 'longer one')} (up to ${timeText(worst.ns)}), in which the target stood, or waited for room, because it was traced`;
    if (own.length > 0) return { state: 'broken', longest: longestOf(own), note };
    const isKept = this.#within !== undefined && stoodNot.length === 0;
    return { state: isKept ? 'kept' : 'unseen', longest: this.#within, note };
  }
}

/** A clock that counts instructions stands while the target does. */
function added({ info, facts }: Ending): Disturbance {
  return (info.clock.nanosPerInstruction === undefined ? disturbanceOf(facts) : undefined) ?? {};
}

/** What tracing may have added to a sum, as the end of a sentence. */
export function addedText(ending: Ending): string {
  const { stoppedAt = [], ringWaitedNs = 0 } = added(ending);
  const stood = stoppedAt.length > 0 ? [`stood ${plural(stoppedAt.length, 'time')}`] : [];
  const waited = ringWaitedNs > 0 ? [`waited ${timeText(ringWaitedNs)} for room`] : [];
  if (stood.length + waited.length === 0) return '';
  return `, with what tracing added: the target ${[...stood, ...waited].join(' and ')}, which max sets aside`;
}

function longestOf(all: readonly Lasted[]): Lasted | undefined {
  let found: Lasted | undefined;
  for (const each of all) if (each.ns >= (found?.ns ?? 0)) found = each;
  return found;
}
