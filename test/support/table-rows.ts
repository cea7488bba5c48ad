import type { Test } from 'tap';

/** What a row of the functions' table says. */
export interface TimedRow {
  readonly calls: number;
  readonly lost: number;
  readonly total_ns: number;
  readonly self_ns: number;
  readonly avg_ns: number;
  readonly max_ns: number;
}

/** Why a row contradicts itself; undefined where it does not. `open`: how many calls may still be open. */
export function contradiction(row: TimedRow, open = 0): string | undefined {
  const { calls, lost, total_ns: total, self_ns: self, avg_ns: average, max_ns: longest } = row;
  const mostReturned = calls - lost;
  const rules: readonly (readonly [string, boolean])[] = [
    ['calls are those lost, open and returned', lost >= 0 && mostReturned >= open],
    ['self <= total', self >= 0 && self <= total],
    ['longest <= total', longest <= total],
    // The mean is rounded.
    ['average <= longest', average <= longest],
    ['total <= average of all that returned', total <= (average + 0.5) * mostReturned],
    ['no time without a return', mostReturned > 0 || total + average + longest === 0],
  ];
  const broken = rules.filter(([, holds]) => !holds).map(([rule]) => rule);
  return broken.length === 0 ? undefined : `${broken.join('; ')}: ${JSON.stringify(row)}`;
}

export function consistent(t: Test, row: TimedRow): void {
  t.equal(contradiction(row), undefined);
}
