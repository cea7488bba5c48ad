import { plural, sharedBy, textLines } from '../../text/index.js';
import type { LockFinding, LockOrder, LockRow, LockWait } from '../events/lock-rows.js';
import type { LockSummary } from '../events/lock-summary.js';
import { boundText, type TableOptions, tableNotes, textTable } from '../events/text-table.js';

/** Locks and findings that are shown; `--json` has all. */
const mostRows = 30;
/** Of those that nobody waited for. */
const fewRows = 10;
const mostShown = 20;

/** What is known of how good the events are. */
export interface LockFacts {
  /** False if uses of locks are missing. */
  readonly isWhole?: boolean;
  /** Times are upper bounds: stops are in them. */
  readonly timesAtMost?: boolean;
}

export function lockJson(summary: LockSummary, { isWhole = true, timesAtMost = false }: LockFacts): object {
  const rows = summary.rows(timesAtMost).map((row) => ({ ...row, ...(timesAtMost ? { times_at_most: true } : {}) }));
  return { locks: rows, locks_left_out: summary.leftOut, lock_findings: isWhole ? summary.findings() : null };
}

/** The table of locks for the user, who waited for whom, and what was found; empty without a lock. */
export function lockTable(
  summary: LockSummary,
  options: TableOptions,
  { isWhole = true, timesAtMost = false }: LockFacts = {},
): string {
  const rows = summary.rows(timesAtMost);
  if (rows.length === 0) return '';
  const isShared = sharedBy(rows, ({ lock }) => lock);
  const nameOf = (row: LockRow): string => (isShared(row) ? `${row.lock} @${row.address}` : row.lock);
  const shown = rows.filter((row, index) => index < mostRows && (index < fewRows || row.contended + row.waiting > 0));
  const lines = shown.map((row) => ({
    numbers: [
      ...[row.taken, row.contended].map(String),
      ...[row.waited_ns, row.max_wait_ns, row.held_ns, row.max_held_ns].map((time) =>
        time === null ? '-' : boundText(time, timesAtMost),
      ),
    ],
    name: nameOf(row),
    ...placeOf(row.max_held_by),
  }));
  const head = ['taken', 'contended', 'waited', 'longest', 'held', 'longest'];
  const [failed, waiting, unreleased] = [sum(rows, 'not_taken'), sum(rows, 'waiting'), sum(rows, 'unreleased')];
  const notes = [
    failed > 0 && `${plural(failed, 'attempt')} did not take the lock`,
    unreleased > 0 &&
      `${plural(unreleased, 'release')} of a lock ${unreleased === 1 ? 'was' : 'were'} not seen, so what is held and contended is a lower bound`,
    waiting > 0 && `${plural(waiting, 'call')} that took a lock had not come back at the end`,
    rows.length > shown.length &&
      `... and ${plural(rows.length - shown.length, 'lock')} that ${shown.length < mostRows ? 'nobody' : 'fewer'} waited for: --json has them`,
    !isWhole &&
      'uses of locks are missing: what is held and who waits for whom may be wrong, and orders and deadlocks are not judged',
    summary.leftOut > 0 && `uses of further locks were left out: ${summary.leftOut}`,
  ];
  const table = textTable(head, 'lock', lines, { ...options, places: 'held longest at' });
  return (
    table +
    tableNotes(notes, options) +
    contentionText(rows, nameOf, timesAtMost) +
    findingsText(summary.findings(isWhole))
  );
}

function sum(rows: readonly LockRow[], member: 'not_taken' | 'waiting' | 'unreleased'): number {
  return rows.reduce((all, row) => all + row[member], 0);
}

/** `app::print at src/console.rs:40`. */
function placeOf(text: string | null): { readonly file: string | null; readonly line: number | null } {
  const [, file = null, line] = /^.* at (.*):(\d+)$/s.exec(text ?? '') ?? [];
  return file === null ? { file: text, line: null } : { file, line: Number(line) };
}

function contentionText(rows: readonly LockRow[], nameOf: (row: LockRow) => string, timesAtMost: boolean): string {
  const pairs = rows.flatMap((row) => row.contention.map((each) => ({ lock: nameOf(row), ...each })));
  const shown = pairs.sort((a, b) => b.waited_ns - a.waited_ns).slice(0, mostShown);
  return textLines(
    shown.map(
      ({ lock, holder, waiter, count, waited_ns: waited }) =>
        `  ${waiter} waited ${plural(count, 'time')} for ${lock}, ${boundText(waited, timesAtMost)} in all, held by ${holder}`,
    ),
  );
}

/** A paragraph a finding. */
function findingsText(findings: readonly LockFinding[]): string {
  if (findings.length === 0) return '';
  const lines = findings.slice(0, mostShown).flatMap((finding) => {
    if (finding.kind === 'lock-inversion') {
      const [{ held, taken, held_address: one, taken_address: other }] = finding.orders;
      const both = held === taken ? `${held} @${one} and @${other}` : `${held} and ${taken}`;
      return [`  ${both} are taken in both orders, which can end in a deadlock:`, ...finding.orders.map(orderText)];
    }
    const [first] = finding.waits;
    if (finding.waits.length > 1) return ['  a deadlock:', ...finding.waits.map((wait) => `    ${waitText(wait)}`)];
    return first ? [`  ${waitText(first)}, on the same hart: it waits for itself`] : [];
  });
  const more = findings.length - mostShown;
  if (more > 0) lines.push(`  ... and ${more} more: --json has them`);
  return textLines([`${plural(findings.length, 'finding')} about locks`, ...lines]);
}

function orderText({ held, held_by, taken, taken_by, count }: LockOrder): string {
  return `    ${taken} at ${taken_by} while ${held} was held, taken at ${held_by} (${plural(count, 'time')})`;
}

function waitText({ lock, hart, by, held_by }: LockWait): string {
  return `hart ${hart} waits for ${lock} at ${by}, taken at ${held_by} and not released`;
}
