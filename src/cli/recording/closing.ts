import { tooOften } from '../../engines/index.js';
import { type Program, type Recording, tooEarly } from '../../record/index.js';
import { refusedByStub } from '../../stop/index.js';
import { plural } from '../../text/index.js';
import { formatOf, formats, type NewestEvents, ownTimeText, ringFullText, timeText } from '../../trace/index.js';
import { leakLines } from '../engine-report.js';
import type { LoadedPlugins } from '../plugins.js';
import { sentenceLines } from '../standard-error.js';
import { secondsText, stopReport } from '../stop-report.js';
import { tableOptions } from '../terminal.js';
import type { Prepared } from './prepare.js';
import type { Recorded } from './session.js';

export function reportTables({ args, plugins, program, reports, newest, older }: Prepared, recording: Recorded): void {
  const tables = reports.flatMap((each) => each.tables(recording, tableOptions()));
  process.stdout.write(tables.join('\n'));
  const lines = [
    closingLine(recording),
    ...unrecordedLines(recording),
    ...stopReport(recording, recording.situation),
    ...leakLines(recording.leak, recording.stops),
    ...[ringFullText(recording)].filter((line) => line !== undefined),
    ...droppedLines(recording, args.lossless),
    ...(recording.situation.isProcess ? [stoodText(recording.standing)] : []),
    `trace: ${args.output}${newestText(newest, recording)} (${whatToDo(args.output, recording, program, plugins)})`,
    ...(older === undefined ? [] : [`the trace before it is kept: ${older}`]),
  ];
  process.stdout.write(`\n${sentenceLines(lines, process.stdout)}`);
}

function stoodText({ allMs, longestMs }: Recorded['standing']): string {
  return `the process stood ${secondsText(allMs)} in all, at most ${Math.ceil(longestMs)} ms at once`;
}

/** Why a process has lost records, and how it loses none. */
function droppedLines({ missing, unread, situation }: Recorded, isLossless: boolean): readonly string[] {
  if (missing === unread || !situation.isProcess || isLossless) return [];
  return [
    'records are missing because the process made them faster than they were read, and waits at most 20 ms in a second: --lossless makes it wait for all',
  ];
}

const endTexts: Partial<Record<Recording['end'], string>> = { failed: 'an error', panicked: 'a panic' };

/** `nothing recorded from 20 ms to 410 ms of the clock: the last page table was not in use yet`. */
function unrecordedLines({ gaps }: Recording): string[] {
  return gaps.flatMap(({ from_ns, to_ns, why }) => {
    if (why === undefined) return [];
    const [from, to] = [from_ns, to_ns].map((ns) => timeText(ns));
    const times = to_ns > from_ns ? `from ${from} to ${to}` : `from ${from} on`;
    const wayOut = why === tooEarly ? '; --from-reset records it by stops' : '';
    return [`nothing recorded ${times} by the guest's clock: ${why}${wayOut}`];
  });
}

function closingLine(recording: Recording): string {
  const { events, stops, missing, guestNs, hostMs, clock, end, gaps } = recording;
  const broken = gaps.filter(({ why }) => why === undefined);
  const unseen = broken.reduce((sum, { from_ns, to_ns }) => sum + to_ns - from_ns, 0);
  const gapNote =
    broken.length === 0 ? '' : `; ${plural(broken.length, 'gap')} of ${timeText(unseen)} where the link was broken`;
  const clockNote = clock.guest ? `clock ${clock.name}` : `clock ${clock.name}: the host's, while the target ran`;
  const why = end === 'guest-ended' ? '' : `; ended by ${endTexts[end] ?? end.replace('-', ' ')}`;
  const own = recording.ownTime && events > 0 ? ` (${ownTimeText(recording.ownTime)})` : '';
  // From the first event to the last.
  const whose = clock.guest ? 'guest' : 'running';
  const guestTime = events > 0 ? `${(guestNs / 1e6).toFixed(3)} ms of ${whose} time${own} ` : '';
  const times = `${guestTime}in ${(hostMs / 1e3).toFixed(1)} s`;
  const resetNote = recording.resets > 0 ? `; ${plural(recording.resets, 'reset')}` : '';
  const missingNote = missing > 0 ? `; ${missing} ${missing === 1 ? 'record is' : 'records are'} missing` : '';
  const { length: never } = recording.neverLoaded;
  const neverNote = never > 0 ? `; the code of ${plural(never, 'probe')} was never loaded` : '';
  const leftOut = recording.engines.filter(({ engine }) => engine === 'none');
  const { length: off } = leftOut.filter(({ why }) => why?.startsWith(tooOften));
  const offNote = off > 0 ? `; ${plural(off, 'probe')} switched off (--engine mixed keeps such)` : '';
  const { length: refused } = leftOut.filter(({ why }) => why?.startsWith(refusedByStub));
  const refusedNote = refused > 0 ? `; ${plural(refused, 'probe')} left out, since ${refusedByStub}` : '';
  const out = leftOut.length - off - refused;
  const left = out === 1 ? '1 probe is left out, since it' : `${out} probes are left out, since they`;
  const outNote = out > 0 ? `; ${left} would stop the target (--json says why)` : '';
  return `${plural(events, 'event')}, ${plural(stops, 'stop')}, ${times}, ${clockNote}${gapNote}${resetNote}${missingNote}${neverNote}${outNote}${refusedNote}${offNote}${why}`;
}

/** What a flight recorder has kept. */
function newestText(newest: NewestEvents | undefined, { events }: Recording): string {
  if (newest === undefined) return '';
  const why = newest.isCutByMemory ? ', fewer than asked for: they take too much memory' : '';
  return `, the newest ${events - newest.leftOut} of ${plural(events, 'event')}${why}`;
}

/** With the trace. */
function whatToDo(path: string, { events }: Recording, program: Program, plugins: LoadedPlugins): string {
  const onlyCounts = program.kinds.every(({ kind }) => kind.onlyCounts);
  if (events === 0) return onlyCounts ? 'it holds no events: only counts were asked for' : 'it holds no events';
  return formatOf(path, [...plugins.formats, ...formats])?.use ?? '';
}
