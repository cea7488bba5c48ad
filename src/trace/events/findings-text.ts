import { plural, shownFile, textLines } from '../../text/index.js';
import type { Finding } from './finding.js';
import { futureNames, type Named } from './future-names.js';
import { placeText } from './text.js';
import { timeText } from './text-table.js';

/** Findings that are shown; `--json` has all. */
const mostShown = 20;

/**
 * A line for each finding, ended by newlines; empty without one. `hidden`: how many were left out, because tracing took
 * time. `isTimed`: no probe was made to stop the target. `among`: the Futures that other tables name.
 */
export function findingsText(
  findings: readonly Finding[],
  hidden = 0,
  isTimed = false,
  among: Iterable<Named> = findings,
): string {
  const why = isTimed
    ? 'the target stood in them, or waited for room, because it was traced'
    : 'stops take time, too (--long-poll TIME reports them)';
  const leftOut =
    hidden === 0
      ? []
      : [`${plural(hidden, 'finding')} about long polls or waits ${hidden === 1 ? 'is' : 'are'} left out: ${why}`];
  const nameOf = futureNames(among);
  const ended = findings.filter(isEnded);
  const lines = alike(findings.filter((finding) => !isEnded(finding))).map((group) => {
    const [finding] = group;
    const place = placeText({ file: finding.file ?? undefined, line: finding.line ?? undefined });
    const where = place === undefined ? '' : ` at ${shownFile(place)}`;
    return `  ${whoText(group)}, ${nameOf(finding)}${where}: ${groupText(group)}`;
  });
  if (ended.length > 0) lines.push(`  ${endedText(ended.map(nameOf))}`);
  if (lines.length === 0) return textLines(leftOut);
  const more = lines.length - mostShown;
  if (more > 0) lines.splice(mostShown, more, `  ... and ${more} more: --json has them`);
  return textLines([plural(findings.length, 'finding'), ...lines, ...leftOut]);
}

/** Its runtime has dropped it, in no task: it was aborted, or the runtime has ended. */
function isEnded({ kind, by }: Finding): boolean {
  return kind === 'dropped-pending' && /^no task, in <?(tokio::runtime|async_task|async_executor)::/.test(by ?? '');
}

function endedText(futures: readonly string[]): string {
  const names = [...new Set(futures)];
  const shown = names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');
  const were = futures.length === 1 ? 'was dropped before it was' : 'were dropped before they were';
  return `${plural(futures.length, 'task')} ${were} ready, by the runtime, as at abort() and at its own end: ${shown}`;
}

type Group = readonly [Finding, ...Finding[]];

/** The same of several tasks of a Future, at one place. Waits differ in who could end them. */
function alike(findings: readonly Finding[]): Group[] {
  const groups = new Map<unknown, [Finding, ...Finding[]]>();
  for (const finding of findings) {
    const { kind, future, instance, file, line, by, wait } = finding;
    const key =
      wait === undefined && kind !== 'large-future' ? [kind, future, instance, file, line, by].join('\n') : finding;
    const group = groups.get(key);
    if (group) group.push(finding);
    else groups.set(key, [finding]);
  }
  return [...groups.values()];
}

/** Of several: how often in all, the worst and the first. */
function groupText(group: Group): string {
  const [one] = group;
  if (group.length === 1) return findingText(one);
  const count = group.reduce((sum, each) => sum + each.count, 0);
  const worst = Math.max(...group.map((each) => each.worst ?? 0));
  const first = Math.min(...group.map(({ times_ns: [time = 0] }) => time));
  return findingText({ ...one, count, worst, times_ns: [first] }).replace(/^it /, 'each ');
}

/** `task 8 (id 2)`, `17 tasks (8, 9, 10 and 14 more)`. */
function whoText(group: Group): string {
  const [{ task, id }] = group;
  const tasks = [...new Set(group.map((each) => each.task))];
  const more = tasks.length > 3 ? ` and ${tasks.length - 3} more` : '';
  if (tasks.length > 1) return `${tasks.length} tasks (${tasks.slice(0, 3).join(', ')}${more})`;
  if (task === 0) return 'a task that was not polled';
  return `task ${task}${id === null ? '' : ` (id ${id})`}`;
}

/** What a finding says, without whose it is. */
export function findingText({ kind, count, worst, by, wait, times_ns: [first = 0] }: Finding): string {
  const since = `first at ${timeText(first)}`;
  const number = worst ?? 0;
  switch (kind) {
    case 'long-poll':
      return `${plural(count, 'poll')} took up to ${timeText(number)}, in which no other task of its thread ran; ${since}`;
    case 'self-wake-loop':
      return `it woke itself in ${number} polls in a row, and came to the same await; ${since}`;
    case 'idle-polls':
      return `it was polled ${number} times in a row though nobody had woken it, and came to the same await; ${since}`;
    case 'woken-not-polled':
      return `it was woken and not polled for up to ${timeText(number)}; ${since}`;
    case 'panicked':
      return `it panicked in a poll that began there, at ${timeText(first)}, and the panic was caught: the program's own message says where`;
    case 'dropped-pending':
      return by === null
        ? `it was dropped before it was ready, at the latest at ${timeText(first)}`
        : `it was dropped before it was ready, at ${timeText(first)} by ${by}`;
    case 'deadlock':
      return `in a deadlock: it ${wait}`;
    case 'likely-deadlock':
      return `likely in a deadlock: it ${wait}`;
    case 'lost-wake':
      return `a lost wake: it ${wait}`;
    case 'large-future':
      return `its Future has ${number} bytes, which each move copies`;
  }
}
