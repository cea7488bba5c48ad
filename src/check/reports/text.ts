import { shownFile } from '../../base/shown-place.js';
import { textLines } from '../../base/visible.js';
import { placeText } from '../../trace/index.js';
import { type Checked, tallyText } from '../checked.js';
import type { Verdict, VerdictState } from '../section.js';

const marks: Readonly<Record<VerdictState, string>> = { kept: 'ok', broken: 'BROKEN', unseen: '-' };
const colors: Readonly<Record<VerdictState, string>> = { kept: '\x1b[32m', broken: '\x1b[31m', unseen: '\x1b[33m' };

/** What is broken stands last, where a long list is looked at first. */
const order: readonly VerdictState[] = ['kept', 'unseen', 'broken'];

/** For people: a line each; what is broken says where. */
export function checkedText(checked: Checked, { color }: { readonly color: boolean }): string {
  const verdicts = order.flatMap((wanted) => checked.verdicts.filter(({ state }) => state === wanted));
  const lines = verdicts.map((verdict) => line(verdict, color));
  const { program, budget } = checked;
  const [head = ''] = textLines([
    `${program}${budget === undefined ? '' : `, ${budget}`}: ${tallyText(checked)}`,
  ]).split('\n');
  return `${head}\n${lines.join('')}`;
}

function line({ section, subject, state, limit, measured, place }: Verdict, color: boolean): string {
  const mark = marks[state].padEnd(6);
  const shown = color ? `${colors[state]}${mark}\x1b[0m` : mark;
  const where = state !== 'broken' || place === undefined ? '' : shownFile(placeText(place) ?? '');
  const told = state === 'kept' ? `${measured} (${limit})` : `${measured}; wanted: ${limit}`;
  return `  ${shown} ${textLines([`${section.padEnd(8)} ${subject}: ${told}${where ? ` [${where}]` : ''}`])}`;
}
