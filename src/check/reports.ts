import { shownFile, textLines, visible, visibleLines, wrapped } from '../text/index.js';
import { placeText } from '../trace/index.js';
import type { Place, Verdict, VerdictState } from './section.js';

/** An error of rsptrace, which is neither the guest's nor a budget's. */
interface TracerError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** What a check found, for reports. */
export interface Checked {
  readonly program: string;
  readonly trace: string;
  /** The budget file; undefined where only the guest was judged. */
  readonly budget: string | undefined;
  readonly verdicts: readonly Verdict[];
  /** What could not be checked counts as broken. */
  readonly isStrict: boolean;
  /** It ended the recording early, or there is none. */
  readonly error?: TracerError | undefined;
}

export function isBroken({ verdicts, isStrict }: Checked): boolean {
  return verdicts.some(({ state }) => state === 'broken' || (isStrict && state === 'unseen'));
}

function countOf({ verdicts }: Checked, state: VerdictState): number {
  return verdicts.filter((verdict) => verdict.state === state).length;
}

/** `12 kept, 1 broken, 2 not seen`. */
function tallyText(checked: Checked): string {
  const unseen = countOf(checked, 'unseen');
  const parts = [`${countOf(checked, 'kept')} kept`, `${countOf(checked, 'broken')} broken`];
  return [...parts, ...(unseen > 0 ? [`${unseen} not seen`] : [])].join(', ');
}

/** On one line: what failed, and what to do about it. */
function failureText({ message, hint }: TracerError): string {
  return hint === undefined ? message : `${message}; ${hint}`;
}

/** A path below `folder` without it: a repository's tools know files by these. */
function relativeFile(file: string, folder: string): string {
  return file.startsWith(`${folder}/`) ? file.slice(folder.length + 1) : file;
}

function hasFile(place: Place | undefined): place is Place & { readonly file: string } {
  return place?.file !== undefined;
}

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
  const measure = state === 'kept' ? `${measured} (${limit})` : `${measured}; wanted: ${limit}`;
  const text = visible(`${subject}: ${measure}${where ? ` [${where}]` : ''}`);
  const lines = wrapped(text, width - INDENT, '').join(`\n${' '.repeat(INDENT)}`);
  return `  ${shown} ${visible(section.padEnd(8))} ${lines}\n`;
}

// Annotations of GitHub Actions: "Workflow commands for GitHub Actions", ::error and ::warning. Percent signs and line
// ends are escaped, in properties colons and commas too, as actions/toolkit's command.ts does.

/** A line each for what failed, is broken or was not seen. `folder`: the repository's, which is left out of paths. */
export function githubAnnotations(checked: Checked, folder: string): string {
  const broken = checked.verdicts.filter(({ state }) => state !== 'kept');
  const { error } = checked;
  const failure = error ? `::error title=${property(`rsptrace ${error.code}`)}::${data(failureText(error))}\n` : '';
  return failure + broken.map((verdict) => annotation(verdict, checked.isStrict, folder)).join('');
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

/** For machines: docs/check.md has the members. */
export function checkedJson(checked: Checked): object {
  return {
    budget: checked.budget ?? null,
    ok: !isBroken(checked),
    kept: countOf(checked, 'kept'),
    broken: countOf(checked, 'broken'),
    unseen: countOf(checked, 'unseen'),
    verdicts: checked.verdicts.map(verdictJson),
  };
}

function verdictJson({ section, subject, state, limit, measured, bound, value, place }: Verdict): object {
  return {
    ...{ section, subject, state, limit, measured },
    bound: bound ?? null,
    value: value ?? null,
    file: place?.file ?? null,
    line: place?.line ?? null,
  };
}

// JUnit XML as CI servers read it (the schema of Jenkins' xunit plugin, and of testmoapp/junitxml): a suite a budget
// file, a case a limit, `skipped` for what could not be checked, an `error` where rsptrace itself failed.

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
