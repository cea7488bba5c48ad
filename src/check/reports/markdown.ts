import { shownFile, visible } from '../../text/index.js';
import { placeText } from '../../trace/index.js';
import { type Checked, failureText, tallyText } from '../checked.js';
import type { Verdict } from '../section.js';

/** A summary for a page: what is broken or was not seen in a table, the rest folded away. */
export function checkedMarkdown(checked: Checked): string {
  const { program, verdicts, error } = checked;
  const kept = verdicts.filter(({ state }) => state === 'kept');
  const rest = verdicts.filter(({ state }) => state !== 'kept');
  const tally = verdicts.length === 0 && error ? 'not recorded' : tallyText(checked);
  const head = `### rsptrace: ${cell(program)}: ${tally}\n`;
  const failure = error ? `\n**rsptrace failed**: ${cell(failureText(error))} \\[${code(error.code)}\\]\n` : '';
  const bad = rest.length === 0 ? '' : `\n${table(rest)}`;
  const good =
    kept.length === 0 ? '' : `\n<details><summary>${kept.length} kept</summary>\n\n${table(kept)}\n</details>\n`;
  return `${head}${failure}${bad}${good}`;
}

function table(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ section, subject, state, limit, measured, place }) => {
    const where = place && shownFile(placeText(place) ?? '');
    return `| ${[state, section, code(subject), cell(measured), cell(limit), where ? code(where) : ''].join(' | ')} |\n`;
  });
  return `| | budget | of | measured | wanted | where |\n|---|---|---|---|---|---|\n${rows.join('')}`;
}

function cell(text: string): string {
  return visible(text.replace(/[\r\n]+/g, ' ')).replace(/[\\|<>*_`[\]]/g, '\\$&');
}

function code(text: string): string {
  return `\`${visible(text.replace(/[\r\n`]+/g, ' ')).replaceAll('|', '\\|')}\``;
}
