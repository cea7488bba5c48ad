import { shownFile } from '../../base/shown-place.js';
import { placeText } from '../../trace/index.js';
import { type Checked, tallyText } from '../checked.js';
import type { Verdict } from '../section.js';

/** A summary for a page: what is broken or was not seen in a table, the rest folded away. */
export function checkedMarkdown(checked: Checked): string {
  const { program, verdicts } = checked;
  const kept = verdicts.filter(({ state }) => state === 'kept');
  const rest = verdicts.filter(({ state }) => state !== 'kept');
  const head = `### rsptrace: ${cell(program)}: ${tallyText(checked)}\n`;
  const bad = rest.length === 0 ? '' : `\n${table(rest)}`;
  const good =
    kept.length === 0 ? '' : `\n<details><summary>${kept.length} kept</summary>\n\n${table(kept)}\n</details>\n`;
  return `${head}${bad}${good}`;
}

function table(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ section, subject, state, limit, measured, place }) => {
    const where = place && shownFile(placeText(place) ?? '');
    return `| ${[state, section, code(subject), cell(measured), cell(limit), where ? code(where) : ''].join(' | ')} |\n`;
  });
  return `| | budget | of | measured | wanted | where |\n|---|---|---|---|---|---|\n${rows.join('')}`;
}

function cell(text: string): string {
  return text.replace(/[\r\n]+/g, ' ').replace(/[\\|<>*_`[\]]/g, '\\$&');
}

function code(text: string): string {
  return `\`${text.replace(/[\r\n`]+/g, ' ').replaceAll('|', '\\|')}\``;
}
