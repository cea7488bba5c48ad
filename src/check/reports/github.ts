// Annotations of GitHub Actions: "Workflow commands for GitHub Actions", ::error and ::warning. Percent signs and line
// ends are escaped, in properties colons and commas too, as actions/toolkit's command.ts does.
import { visibleLines } from '../../text/index.js';
import { type Checked, failureText, hasFile, relativeFile } from '../checked.js';
import type { Verdict } from '../section.js';

/** A line each for what failed, is broken or was not seen. `folder`: the repository's, which is left out of paths. */
export function githubAnnotations(checked: Checked, folder: string): string {
  const told = checked.verdicts.filter(({ state }) => state !== 'kept');
  const { error } = checked;
  const failure = error ? `::error title=${property(`rsptrace ${error.code}`)}::${data(failureText(error))}\n` : '';
  return failure + told.map((verdict) => annotation(verdict, checked.isStrict, folder)).join('');
}

function annotation(
  { section, subject, state, limit, measured, place }: Verdict,
  isStrict: boolean,
  folder: string,
): string {
  const level = state === 'broken' || isStrict ? 'error' : 'warning';
  const properties = [
    ...(hasFile(place) ? [`file=${property(relativeFile(place.file, folder))}`] : []),
    ...(hasFile(place) && place.line !== undefined ? [`line=${place.line}`] : []),
    `title=${property(`${section} ${subject}`)}`,
  ];
  return `::${level} ${properties.join(',')}::${data(`${measured}; wanted: ${limit}`)}\n`;
}

function data(text: string): string {
  return visibleLines(text).replaceAll('%', '%25').replaceAll('\n', '%0A');
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
