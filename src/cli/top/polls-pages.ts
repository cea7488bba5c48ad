// The pages of `rsptrace top --polls`, as lines of text.
import { clipEnd, plural, shownPlace, visible, wrapped } from '../../text/index.js';
import { calledOf, timeText } from '../../trace/index.js';
import type { Content, Item } from './app.js';
import type { PollsRow, PollsWindow } from './live-polls.js';
import { keysHelp } from './pages.js';
import { selectable, styled, tableOf } from './screen.js';

/** What a page is made of. */
export interface PollsShown extends PollsWindow {
  readonly target: string;
  readonly stops: number;
  /** Records that are not understood yet: what is shown is so much older. */
  readonly waiting: number;
  /** How the probes are seen, and what is left out: a sentence each. */
  readonly notes: readonly string[];
}

type PollsItem = PollsRow & Item;

const sorts = ['busy', 'polls', 'longest', 'wake to poll', 'name', 'id'] as const;
type Sort = (typeof sorts)[number];

/** A share from which on a task is shown in colour. */
const BUSY = 0.5;

export function pollsContent(shown: PollsShown): Content<PollsItem> {
  const items = shown.tasks.map((row) => ({
    ...row,
    key: String(row.number),
    text: [idOf(row), row.state, nameOf(row), placeOf(row)].join(' '),
  }));
  return {
    items,
    sorts,
    head: (columns) => headLines(shown, columns),
    sorted: (rows, sort) => sorted(rows, sort as Sort),
    table: tableLines,
    page: async (row, columns) => taskPage(row, columns),
    resources: () => [
      'what tasks wait for is in their memory, which is not looked at here: rsptrace top without --polls',
    ],
    help: [...help, '', ...shown.notes],
  };
}

function headLines({ target, tasks, ended, events, ns, stops, waiting, notes }: PollsShown, columns: number): string[] {
  const polls = tasks.reduce((sum, row) => sum + row.polls_per_s, 0);
  const counts = new Map<string, number>();
  for (const { state } of tasks) counts.set(state, (counts.get(state) ?? 0) + 1);
  const states = [...counts].map(([state, count]) => `${count} ${state}`).join(', ');
  const rate = ns === 0 ? 'no event' : `${Math.round(polls)} polls/s in ${timeText(ns)}`;
  const lag = waiting === 0 ? '' : `lags by ${plural(waiting, 'record')}  `;
  const first = `${target}  ${lag}${rate}  ${events} events, ${plural(stops, 'stop')}`;
  const second = `${plural(tasks.length, 'task')}: ${states || 'none'}${ended > 0 ? `  and ${ended} ended` : ''}  ${notes.slice(0, notes[0]?.endsWith(':') ? 2 : 1).join(' ')}`;
  return [styled('bold', clipEnd(visible(first), columns)), clipEnd(visible(second), columns)];
}

function idOf({ id, number }: PollsRow): string {
  return String(id ?? `#${number}`);
}

function nameOf(row: PollsRow): string {
  return row.name ?? calledOf(row);
}

function placeOf({ await: at }: PollsRow): string {
  return at === null ? '' : shownPlace(at.file, at.line ?? undefined);
}

function sorted(rows: readonly PollsItem[], sort: Sort): PollsItem[] {
  const by: Readonly<Record<Sort, (a: PollsRow, b: PollsRow) => number>> = {
    busy: (a, b) => b.busy - a.busy || b.busy_ns - a.busy_ns,
    polls: (a, b) => b.polls_per_s - a.polls_per_s || b.polls - a.polls,
    longest: (a, b) => b.max_ns - a.max_ns,
    'wake to poll': (a, b) => (b.wake_to_poll_max_ns ?? 0) - (a.wake_to_poll_max_ns ?? 0),
    name: (a, b) => nameOf(a).localeCompare(nameOf(b)),
    id: () => 0,
  };
  return rows.toSorted((a, b) => by[sort](a, b) || a.number - b.number);
}

const titles = ['id>', 'state', 'polls/s>', 'busy%>', 'p99>', 'to poll>', 'task~', 'awaits at/'];

function tableLines(rows: readonly PollsItem[], selected: number, columns: number): string[] {
  const cells = rows.map((row) => [
    ...[idOf(row), row.state, String(Math.round(row.polls_per_s)), (100 * row.busy).toFixed(1)],
    ...[timeOf(row.p99_ns), timeOf(row.wake_to_poll_avg_ns), nameOf(row), placeOf(row)],
  ]);
  return tableOf(titles, cells, columns, (line, i) => {
    const isBusy = (rows[i]?.busy ?? 0) >= BUSY;
    return selectable(line, columns, { isSelected: i === selected, style: isBusy ? 'red' : undefined });
  });
}

function timeOf(ns: number | null): string {
  return ns === null ? '-' : timeText(ns);
}

const bars = '▁▂▃▄▅▆▇█';

function taskPage(row: PollsItem, columns: number): string[] {
  const least = row.wakes_at_least ? 'at least ' : '';
  const wakes =
    row.wakes === null
      ? 'its wakes are not seen'
      : `woken ${least}${plural(row.wakes, 'time')}, ${row.self_wakes} by itself; from wake to poll ${timeOf(row.wake_to_poll_avg_ns)} on the average, ${timeOf(row.wake_to_poll_max_ns)} at most; scheduled ${timeOf(row.scheduled_ns)} in all`;
  const most = row.times_at_most ? 'at most ' : '';
  const bar = (share: number): string => bars[Math.min(bars.length - 1, Math.floor(share * bars.length))] ?? '';
  const lines = [
    `${row.state}${row.await === null ? '' : `, awaits at ${placeOf(row)}${row.await.inside === undefined ? '' : ` ${row.await.inside}`}`}`,
    ...(row.open_ns > 0 ? [`the poll that it is in takes ${timeText(row.open_ns)} already`] : []),
    `${plural(row.polls, 'poll')}, ${Math.round(row.polls_per_s)}/s now; busy ${most}${timeText(row.busy_ns)} in all, ${(100 * row.busy).toFixed(1)} % now`,
    `a poll takes ${timeOf(row.p99_ns)} at most in 99 of 100, the longest ${timeText(row.max_ns)}`,
    `idle ${timeText(row.idle_ns)} in all`,
    wakes,
    ...(row.spawned === null ? [] : [`spawned at ${row.spawned}`]),
    `how busy it was, a column a window of time: ${row.history.map(bar).join('')}`,
    `${row.instance} at ${row.address}${row.runtime === null ? '' : `, of ${row.runtime}`}`,
  ];
  const title = `task ${idOf(row)}  ${nameOf(row)}`;
  return [
    styled('bold', clipEnd(visible(title), columns)),
    ...lines.flatMap((line) => wrapped(visible(line), columns, '  ')),
  ];
}

const help = [
  ...keysHelp(sorts),
  '',
  'Each poll is recorded, by code that was put into the target; when this ends it is taken out.',
  'lags     records come faster than a core is free to understand them: the screen is older',
  'polls/s  busy%   of the time between the last two screens, up to the last event',
  'p99      the time that 99 of 100 polls so far did not exceed',
  'to poll  from a wake to the poll that it caused, on the average so far',
];
