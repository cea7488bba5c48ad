// JUnit XML as CI servers read it (the schema of Jenkins' xunit plugin, and of testmoapp/junitxml): a suite a budget
// file, a case a limit, `skipped` for what could not be checked, an `error` where rsptrace itself failed.
import { visibleLines } from '../../text/index.js';
import { type Checked, countOf, failureText, type TracerError } from '../checked.js';
import type { Verdict } from '../section.js';

export function junitXml(checked: Checked): string {
  const { program, budget, verdicts, isStrict, error } = checked;
  const unseen = countOf(checked, 'unseen');
  const failures = countOf(checked, 'broken') + (isStrict ? unseen : 0);
  const errors = error === undefined ? 0 : 1;
  const counts = `tests="${verdicts.length + errors}" failures="${failures}" errors="${errors}" skipped="${isStrict ? 0 : unseen}"`;
  const name = escaped(`rsptrace ${program}${budget === undefined ? '' : ` ${budget}`}`);
  const cases = [...verdicts.map((verdict) => caseXml(verdict, isStrict)), ...(error ? [errorXml(error)] : [])].join(
    '',
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites ${counts}>
  <testsuite name="${name}" ${counts}>
${cases}  </testsuite>
</testsuites>
`;
}

function caseXml({ section, subject, state, limit, measured, place }: Verdict, isStrict: boolean): string {
  const file = place?.file === undefined ? '' : ` file="${escaped(place.file)}"`;
  const line = place?.line === undefined ? '' : ` line="${place.line}"`;
  const head = `    <testcase classname="${escaped(section)}" name="${escaped(subject)}"${file}${line}`;
  if (state === 'kept') return `${head}/>\n`;
  const text = escaped(`${measured}; wanted: ${limit}`);
  if (state === 'unseen' && !isStrict) return `${head}><skipped message="${text}"/></testcase>\n`;
  return `${head}><failure message="${text}">${text}</failure></testcase>\n`;
}

function errorXml(error: TracerError): string {
  const text = escaped(failureText(error));
  const head = '    <testcase classname="rsptrace" name="recording">';
  return `${head}<error type="${escaped(error.code)}" message="${text}">${text}</error></testcase>\n`;
}

/** XML's special characters, and none of those that XML 1.0 cannot hold or nobody sees. */
function escaped(text: string): string {
  return visibleLines(text)
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '?')
    .replace(/[&<>"'\t\n\r]/g, (c) => `&#${c.charCodeAt(0)};`);
}
