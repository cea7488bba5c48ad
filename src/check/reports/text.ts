import { shownFile, textLines, visible, wrapped } from '../../text/index.js';
import { placeText } from '../../trace/index.js';
import { type Checked, tallyText } from '../checked.js';
import type { Verdict, VerdictState } from '../section.js';

interface TextOptions {
  /** ANSI colours: for terminals only. */
  readonly color: boolean;
  readonly width: number;
}

const marks: Readonly<Record<VerdictState, string>> = { kept: 'ok', broken: 'BROKEN', unseen: '-' };
const colors: Readonly<Record<VerdictState, string>> = { kept: '\x1b[32m', broken: '\x1b[31m', unseen: '\x1b[33m' };

/** What is broken stands last, where a long list is looked at first. */
const order: readonly VerdictState[] = ['kept', 'unseen', 'broken'];

/** For people: a line each, broken between words at `width`; what is broken says where. */
export function checkedText(checked: Checked, options: TextOptions): string {
  const verdicts = order.flatMap((wanted) => checked.verdicts.filter(({ state }) => state === wanted));
  const lines = verdicts.map((verdict) => line(verdict, options));
  const { program, budget } = checked;
  const [head = ''] = textLines([
    `${program}${budget === undefined ? '' : `, ${budget}`}: ${tallyText(checked)}`,
  ]).split('\n');
  return `${head}\n${lines.join('')}`;
}

/** Where subjects begin. */
const INDENT = 18;

function line({ section, subject, state, limit, measured, place }: Verdict, { color, width }: TextOptions): string {
  const mark = marks[state].padEnd(6);
  const shown = color ? `${colors[state]}${mark}\x1b[0m` : mark;
  const where = state !== 'broken' || place === undefined ? '' : shownFile(placeText(place) ?? '');
  const told = state === 'kept' ? `${measured} (${limit})` : `${measured}; wanted: ${limit}`;
  const text = visible(`${subject}: ${told}${where ? ` [${where}]` : ''}`);
  const lines = wrapped(text, width - INDENT, '').join(`\n${' '.repeat(INDENT)}`);
  return `  ${shown} ${visible(section.padEnd(8))} ${lines}\n`;
}
