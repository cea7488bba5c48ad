import { compileGlob } from '../probes/index.js';
import { plural, textLines } from '../text/index.js';
import {
  type Chosen,
  changeOf,
  type DiffRow,
  deltaOf,
  diffRows,
  insideText,
  instancesOf,
  type Report,
  type ReportRow,
  reportBy,
  type TraceRead,
  type TraceSink,
  tee,
  textTable,
  timeText,
} from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import { usage } from './options/option.js';
import type { DiffArguments, FailOn } from './options/saved-trace.js';
import { headJson, noMatch, once, readChosen } from './saved-trace.js';
import { printed, tableOptions } from './terminal.js';

/** One kind of rows. */
interface Part {
  readonly kind: FailOn['kind'];
  readonly rows: readonly DiffRow[];
}

interface Broken {
  readonly limit: FailOn;
  readonly row: DiffRow;
}

/** `rsptrace diff A B`: what became slower and faster, is new and gone. Gives the exit status. */
export async function diff(args: DiffArguments): Promise<number> {
  const one = await rowsOf(args.trace, args);
  const other = await rowsOf(args.other, args);
  const parts = partsOf(one.rows, other.rows);
  const foreign = args['fail-on'].find(({ kind }) => !parts.some((part) => part.kind === kind));
  if (foreign) throw usage(`--fail-on '${foreign.text}' is of what is not compared here`, wayTo(foreign.kind));
  const broken = args['fail-on'].flatMap((limit) => brokenBy(limit, parts));
  const notes = [...differences(one.read, other.read), ...notCompared(args['fail-on'], parts), ...unended(parts)];
  if (args.by) notes.push(`before and after are averages ${args.by === 'await' ? 'of a wait' : "of a Future's life"}`);
  const shown = parts.map((part) => ({ ...part, rows: select(part.rows, args) }));
  if (!args.json) note(...notes);
  const json = {
    version: 1,
    before: headJson(args.trace, one.read),
    after: headJson(args.other, other.read),
    notes,
    changed: numberOf(parts, isChanged),
    names: numberOf(parts),
    ...Object.fromEntries(shown.map(({ kind, rows }) => [kind, rows.map((row) => rowJson(row, isSum(kind)))])),
    broken: broken.map(({ limit, row }) => ({ limit: limit.text, name: row.name, percent: row.percent ?? null })),
  };
  printed(args, json, () => (numberOf(parts) === 0 ? 'nothing to compare\n' : table(changedRows(parts, args), parts)));
  for (const { limit, row } of broken) {
    const after = row.percent === undefined && row.after ? `, ${timeText(row.after.total)}` : '';
    note(`${row.name}: ${percentText(row)}${after}, past --fail-on '${limit.text}'`);
  }
  return broken.length > 0 ? ExitCode.limitBroken : ExitCode.recorded;
}

type RowsOf = ReadonlyMap<Part['kind'], readonly ReportRow[]>;

async function rowsOf(path: string, args: DiffArguments): Promise<{ readonly read: TraceRead; readonly rows: RowsOf }> {
  const kinds: readonly Part['kind'][] = args.by ? [args.by] : ['poll', 'fn'];
  let reports: readonly Report[] = [];
  const into = (chosen: Chosen | undefined): TraceSink => {
    const each = once(chosen);
    reports = kinds.map((kind) => reportBy(kind === 'poll' ? 'future' : kind, each()));
    return tee(reports);
  };
  const read = await readChosen(path, into, args);
  return { read, rows: new Map(kinds.map((kind, index) => [kind, reports[index]?.rows() ?? []])) };
}

function partsOf(before: RowsOf, after: RowsOf): readonly Part[] {
  return [...before].map(([kind, one]) => {
    const other = after.get(kind) ?? [];
    const nameOf = kind === 'await' ? awaitName : kind === 'fn' ? ofFunction : instancesOf(one, other);
    return { kind, rows: diffRows(one, other, { nameOf, isMean: !isSum(kind) }) };
  });
}

/** Without the line, which another version has elsewhere. */
function awaitName({ name, inside }: ReportRow): string {
  return `${name}${insideText({ inside })}`;
}

function ofFunction({ name }: ReportRow): string {
  return name;
}

function isSum(kind: Part['kind']): boolean {
  return kind === 'poll' || kind === 'fn';
}

function wayTo(kind: Part['kind']): string {
  return isSum(kind) ? 'leave --by away' : `give --by ${kind}`;
}

/** What does not let times be compared as they are. */
function differences(one: TraceRead, other: TraceRead): string[] {
  const [a, b] = [one.info, other.info];
  const found: string[] = [];
  if (a.program !== b.program) found.push(`different programs, ${a.program} and ${b.program}: compared by names`);
  if (a.arch !== b.arch) found.push(`different architectures: ${a.arch} and ${b.arch}`);
  if (a.clock.name !== b.clock.name) found.push(`different clocks: ${a.clock.name} and ${b.clock.name}`);
  return found;
}

function brokenBy(limit: FailOn, parts: readonly Part[]): Broken[] {
  const wanted = rowsNamed(limit, parts);
  // That nothing of a name is new is no mistake in the name.
  if (wanted.length === 0 && limit.limit !== 'new') {
    const names = parts.flatMap(({ kind, rows }) => rows.map(({ name }) => `${kind}:${name}`));
    throw noMatch('--fail-on', limit.glob, names);
  }
  return wanted.filter((row) => isPast(limit, row)).map((row) => ({ limit, row }));
}

/** What took no time before has grown by more than any percentage. */
function isPast({ limit }: FailOn, row: DiffRow): boolean {
  if (typeof limit === 'string') return changeOf(row) === limit;
  return (row.percent ?? (deltaOf(row) > 0 ? Number.POSITIVE_INFINITY : 0)) > limit;
}

/** Limits of growth that hold because what they name is gone. */
function notCompared(limits: readonly FailOn[], parts: readonly Part[]): string[] {
  return limits.flatMap((limit) => {
    const rows = rowsNamed(limit, parts);
    if (typeof limit.limit === 'string' || rows.some(({ after }) => after !== undefined)) return [];
    const names = rows.map(({ name }) => name);
    return `${names.slice(0, 3).join(', ')}${names.length > 3 ? ', ...' : ''} ${names.length === 1 ? 'is' : 'are'} gone, so --fail-on '${limit.text}' holds; --fail-on 'gone ${limit.kind}:${limit.glob}' would not`;
  });
}

/** What hangs takes no time that is known. */
function unended(parts: readonly Part[]): string[] {
  const rows = parts.flatMap((part) => part.rows);
  const more = rows.filter(({ before, after }) => after !== undefined && after.unended > (before?.unended ?? 0));
  const names = more.map(({ name, before, after }) => `${name} (${after?.unended}, before ${before?.unended ?? 0})`);
  if (names.length === 0) return [];
  return [
    `more calls have no end after than before, and so no time: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ', ...' : ''}`,
  ];
}

function rowsNamed({ glob, kind }: FailOn, parts: readonly Part[]): DiffRow[] {
  const matches = compileGlob(glob);
  const rows = parts.filter((part) => part.kind === kind).flatMap((part) => part.rows);
  return rows.filter(({ name, plain }) => matches(name) || matches(plain));
}

const sortValues: Readonly<Record<Exclude<DiffArguments['sort'], 'name'>, (row: DiffRow) => number>> = {
  delta: (row) => Math.abs(deltaOf(row)),
  percent: ({ percent }) => percent ?? Number.POSITIVE_INFINITY,
  before: ({ before }) => before?.total ?? -1,
  after: ({ after }) => after?.total ?? -1,
};

function select(rows: readonly DiffRow[], { sort, top }: DiffArguments): DiffRow[] {
  const byName = (a: DiffRow, b: DiffRow): number => (a.name < b.name ? -1 : 1);
  if (sort === 'name') return [...rows].sort(byName).slice(0, top);
  const value = sortValues[sort];
  // What only one trace has is no growth: it stands behind what both have.
  const group = (row: DiffRow): number => (sort === 'before' || sort === 'after' ? 0 : groups[changeOf(row)]);
  return [...rows].sort((a, b) => group(a) - group(b) || Math.sign(value(b) - value(a)) || byName(a, b)).slice(0, top);
}

const groups: Readonly<Record<ReturnType<typeof changeOf>, number>> = {
  slower: 0,
  faster: 0,
  same: 0,
  new: 1,
  gone: 2,
};

/** For people: what is the same is only counted. */
function changedRows(parts: readonly Part[], args: DiffArguments): { kind: Part['kind']; row: DiffRow }[] {
  return parts.flatMap(({ kind, rows }) => select(rows.filter(isChanged), args).map((row) => ({ kind, row })));
}

function isChanged(row: DiffRow): boolean {
  return changeOf(row) !== 'same' || row.before?.calls !== row.after?.calls;
}

/** So many names are so. */
function numberOf(parts: readonly Part[], is: (row: DiffRow) => boolean = () => true): number {
  return parts.reduce((sum, { rows }) => sum + rows.filter(is).length, 0);
}

function rowJson(row: DiffRow, isSum: boolean): object {
  const { name, before, after, percent } = row;
  const side = (totals: DiffRow['before']): object | null => {
    if (!totals) return null;
    const { calls, total, self } = totals;
    return isSum ? { calls, total_ns: total, self_ns: self } : { calls, average_ns: total };
  };
  return {
    name,
    change: changeOf(row),
    before: side(before),
    after: side(after),
    delta_ns: deltaOf(row),
    percent: percent ?? null,
  };
}

function percentText(row: DiffRow): string {
  const { percent } = row;
  if (percent === undefined) return changeOf(row);
  return `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
}

function table(rows: readonly { readonly kind: Part['kind']; readonly row: DiffRow }[], all: readonly Part[]): string {
  const lines = rows.map(({ kind, row }) => ({
    numbers: [
      row.before ? timeText(row.before.total) : '-',
      row.after ? timeText(row.after.total) : '-',
      percentText(row),
      row.before && row.after ? String(row.after.calls - row.before.calls) : '-',
    ],
    name: kind === 'poll' ? `poll ${row.name}` : row.name,
    file: null,
    line: null,
  }));
  const changed = numberOf(all, isChanged);
  const more = changed - rows.length;
  const kinds = ['new', 'gone'].map((change) => {
    const count = numberOf(all, (row) => changeOf(row) === change);
    return count > 0 ? `, ${count} ${change}` : '';
  });
  const closing = `${plural(changed, 'name')} of ${numberOf(all)} changed${kinds.join('')}`;
  const last = more > 0 ? `${closing}; --top leaves out ${more}` : closing;
  if (lines.length === 0) return textLines([last]);
  return `${textTable(['before', 'after', 'change', 'calls'], 'name', lines, tableOptions())}${textLines([last])}`;
}
