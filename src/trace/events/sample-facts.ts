import { plural } from '../../text/index.js';
import { timeText } from './text-table.js';

/** How stacks were sampled where there are probes too. */
export interface SampleFacts {
  readonly periodNs: number;
  /** The periods that the target has run: so often every hart should have been looked at. */
  readonly wanted: number;
  /** How often they were. */
  readonly looks: number;
  /** Stacks in the trace. */
  readonly samples: number;
  /** Harts that were left out, because they were idle, or in code of rsptrace's own. */
  readonly idle: number;
  readonly own: number;
  /** Stacks that could not be walked to their end. */
  readonly incomplete: number;
  /** Looks at a stop by a probe, because that came before the interrupt: the stack is that of the probe. */
  readonly atProbes: number;
  /** How long the target stood for it, in nanoseconds of the host. */
  readonly stoodNs: number;
}

/** Every member, by its name in JSON. */
const members = {
  period_ns: 'periodNs',
  wanted: 'wanted',
  looks: 'looks',
  taken: 'samples',
  idle: 'idle',
  own: 'own',
  incomplete: 'incomplete',
  at_probes: 'atProbes',
  stood_ns: 'stoodNs',
} as const satisfies Record<string, keyof SampleFacts>;

export function sampleFactsJson(facts: SampleFacts): Record<keyof typeof members, number> {
  const entries = Object.entries(members).map(([name, key]) => [name, facts[key]]);
  return Object.fromEntries(entries) as Record<keyof typeof members, number>;
}

/** The same read back: `number` gives a member by that name. */
export function sampleFactsFrom(number: (name: string) => number): SampleFacts {
  return Object.fromEntries(
    Object.entries(members).map(([name, key]) => [key, number(name)]),
  ) as unknown as SampleFacts;
}

/** A line each for people: how many of how many, what they cost, and what to know of them. `word`: for a hart. */
export function sampleFactsLines(facts: SampleFacts, word: 'hart' | 'thread'): string[] {
  const { periodNs, wanted, looks, samples, idle, own, incomplete, atProbes, stoodNs } = facts;
  const share = (count: number, of: number): string => `${((100 * count) / Math.max(1, of)).toFixed(0)} %`;
  const each = looks > 0 ? `, ${timeText(stoodNs / looks)} each` : '';
  const cost = `the target stood ${timeText(stoodNs)} for them${each}`;
  return [
    `samples: ${plural(samples, 'stack')} in ${looks} of ${wanted} interrupts wanted, one each ${timeText(periodNs)}; ${cost}`,
    ...(idle > 0 ? [`samples: ${plural(idle, `idle ${word}`)} left out`] : []),
    ...(own > 0 ? [`samples: ${plural(own, word)} left out, because rsptrace's own code ran there`] : []),
    ...(atProbes > 0
      ? [
          `samples: ${atProbes} (${share(atProbes, looks)}) fell on the stop of a probe, which was there before the interrupt`,
        ]
      : []),
    ...(incomplete > 0
      ? [
          `samples: ${plural(incomplete, 'stack')} (${share(incomplete, samples)}) end early: totals of outer functions are too low`,
        ]
      : []),
  ];
}
