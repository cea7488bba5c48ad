import { hex } from '../base/addr.js';
import { jsonFacts } from '../base/json-facts.js';
import { plural, textLines, wrapped } from '../text/index.js';
import {
  Fold,
  type Gap,
  gapText,
  hartWord,
  lossTexts,
  type ProbeFact,
  type RecordingFacts,
  sampleFactsJson,
  sampleFactsLines,
  type TraceEvent,
  type TraceRead,
  type TraceSink,
  timeOf,
  timeText,
} from '../trace/index.js';
import { thoseOf } from './failure.js';
import type { SavedPartArguments } from './options/saved-trace.js';
import { chosenInto, headJson, notesOn, readChosen, restText } from './saved-trace.js';
import { printed, tableOptions } from './terminal.js';

/** `rsptrace info TRACE`: what was recorded, how, and what is missing. Gives the exit status. */
export async function info(args: SavedPartArguments): Promise<number> {
  const tally = new EventTally();
  // The text has a line for each loss.
  const read = await readChosen(args.trace, chosenInto(tally), args, args.json ? notesOn : () => []);
  return printed(args, json(args.trace, read, tally), () => text(args.trace, read, tally));
}

/** Events by their type, when they were, and what is missing among them. */
class EventTally extends Fold {
  readonly counts = new Map<TraceEvent['type'], number>();
  readonly harts: string[] = [];
  first: number | undefined;
  last = 0;
  /** Futures of which not every poll is seen. */
  readonly inlined = new Set<string>();
  /** Time in which nothing was recorded, by why. */
  readonly gaps = new Map<string, { count: number; time: number }>();

  override begin({ harts }: Parameters<TraceSink['begin']>[0]): void {
    for (const hart of harts) this.hart(hart);
  }

  override hart({ name }: Parameters<TraceSink['hart']>[0]): void {
    this.harts.push(name);
  }

  event(event: TraceEvent): void {
    this.counts.set(event.type, this.count(event.type) + 1);
    const time = timeOf(event);
    if (event.type === 'gap') this.#gap(event);
    if (event.type === 'derived-poll' || (event.type === 'poll-begin' && event.future.inlined)) {
      this.inlined.add(event.future.future);
    }
    this.first ??= time;
    if (time > this.last) this.last = time;
  }

  #gap(gap: Gap): void {
    const { from, to } = gap;
    const text = gapText(gap);
    const { count, time } = this.gaps.get(text) ?? { count: 0, time: 0 };
    this.gaps.set(text, { count: count + 1, time: time + to - from });
  }

  get unseen(): number {
    return [...this.gaps.values()].reduce((sum, { time }) => sum + time, 0);
  }

  count(type: TraceEvent['type']): number {
    return this.counts.get(type) ?? 0;
  }
}

function json(path: string, read: TraceRead, tally: EventTally): object {
  const { info: about, facts, isOwn, otherPackets } = read;
  const { recording, ownTime } = facts ?? {};
  const { clock } = about;
  return {
    ...headJson(path, read),
    written_by_rsptrace: isOwn,
    arch: about.arch,
    process: about.isProcess ?? false,
    harts: tally.harts,
    clock: {
      name: clock.name,
      resolution_ns: clock.resolutionNs,
      guest: clock.guest,
      of_records: recording?.recordsClock ?? null,
    },
    stub: recording?.stub ?? null,
    end: recording?.end ?? null,
    from_ns: tally.first ?? 0,
    to_ns: tally.last,
    by_type: Object.fromEntries(tally.counts),
    lost: tally.count('call-lost') + tally.count('poll-lost'),
    gaps: tally.count('gap'),
    unseen_ns: tally.unseen,
    resets: tally.count('reset'),
    ...jsonFacts(recording ?? ({} as Partial<RecordingFacts>), [
      'stops',
      'records',
      'missing',
      'tailLost',
      'foreignHits',
    ]),
    never_loaded: recording?.neverLoaded ?? [],
    own_time_ns: ownTime ? { least: ownTime.leastNs, most: ownTime.mostNs, total: ownTime.totalNs } : null,
    probes: (facts?.probes ?? []).map(probeJson),
    samples: recording?.samples ? sampleFactsJson(recording.samples) : null,
    at_least: [...tally.inlined],
    other_packets: otherPackets,
  };
}

function probeJson({ name, address, engine, why }: ProbeFact): object {
  return { name, ...(address === 0n ? {} : { address: hex(address) }), engine, why };
}

function text(path: string, read: TraceRead, tally: EventTally): string {
  const { info: about, facts } = read;
  const { recording } = facts ?? {};
  const { clock } = about;
  const whose = clock.guest ? "the guest's own" : "not the guest's own";
  const records = recording?.recordsClock && `${recording.recordsClock}, the guest's own; that of stops is `;
  const clockText = `${records ?? ''}${clock.name}, ${whose}, ${clock.resolutionNs} ns a tick`;
  const events = [...tally.counts].map(([type, count]) => `${count} ${type}`).join(', ');
  const lines: [string, string][] = [
    ['trace', path],
    ['program', `${about.program}${about.buildId === undefined ? '' : `, build id ${about.buildId}`}`],
    ['target', `${about.arch}, ${plural(tally.harts.length, hartWord(about))}: ${tally.harts.join(', ')}`],
    ['stub', recording?.stub ?? 'not known'],
    ['clock', clockText],
    ['time', `${timeText(tally.last - (tally.first ?? 0))}, from ${timeText(tally.first ?? 0)} on`],
    ['events', events === '' ? 'none' : events],
    ['end', endText(recording?.end) ?? 'not known: the recording came to no end, or is of another program'],
    ...losses(path, read, tally).map((line): [string, string] => ['losses', line]),
    ...costs(read).map((line): [string, string] => ['cost', line]),
    ...(recording?.samples ? sampleFactsLines(recording.samples, hartWord(about)) : []).map(
      (line): [string, string] => ['samples', line.slice('samples: '.length)],
    ),
    ...probeLines(facts?.probes ?? []).map((line): [string, string] => ['probes', line]),
  ];
  let before = '';
  const body = lines.map(([head, line]) => {
    const shown = head === before ? '' : head;
    before = head;
    const text = `${shown.padEnd(8)} ${line}`;
    return process.stdout.isTTY ? wrapped(text, tableOptions().width, ' '.repeat(line.startsWith(' ') ? 13 : 9)) : text;
  });
  return textLines(body.flat());
}

function losses(path: string, { facts, cut, isOwn, otherPackets }: TraceRead, tally: EventTally): string[] {
  const ends = tally.count('call-lost') + tally.count('poll-lost');
  const found = thoseOf([
    ends > 0 && `${ends} calls or polls whose end was not seen`,
    ...[...tally.gaps].map(([text, { count, time }]) => `${plural(count, 'gap')} of ${timeText(time)}, ${text}`),
    ...lossTexts(facts),
    tally.inlined.size > 0 &&
      `polls are lower bounds, because the compiler inlined some, of ${someOf([...tally.inlined])}`,
    cut && `its end is cut off at byte ${cut.at}${restText(path)}`,
    !isOwn && 'it was not written by rsptrace: its slices are taken for calls, its tracks for threads',
    !isOwn && otherPackets > 0 && `${plural(otherPackets, 'packet')} of it could not be used`,
  ]);
  return found.length > 0 ? found : ['none that is known'];
}

function costs({ facts }: TraceRead): string[] {
  const { recording, ownTime } = facts ?? {};
  if (recording === undefined) return [];
  const least = recording.end === 'killed' ? 'at least ' : '';
  const stops = `${least}${recording.stops} stops of the target, ${recording.records} records without a stop`;
  if (ownTime === undefined) return [stops];
  const { leastNs, mostNs, totalNs } = ownTime;
  return [stops, `${timeText(totalNs)} of guest time, ${leastNs} to ${mostNs} ns an event, which durations leave out`];
}

const shownNames = 5;

/** The first of some names. */
function someOf(names: readonly string[]): string {
  const more = names.length - shownNames;
  return `${names.slice(0, shownNames).join(', ')}${more > 0 ? `, and ${more} more: --json lists them` : ''}`;
}

const engineTexts = { target: 'without stops', stop: 'by stops', none: 'left out' };

/** How the probes were seen: those of one engine and one reason are a line, with the names of the first of them. */
function probeLines(probes: readonly ProbeFact[]): string[] {
  const counts = Object.entries(engineTexts).flatMap(([engine, words]) => {
    const { length } = probes.filter((probe) => probe.engine === engine);
    return length === 0 ? [] : [`${length} ${words}`];
  });
  const groups = new Map<string, Set<string>>();
  for (const { name, engine, why } of probes) {
    const key = `${engineTexts[engine]}${why === undefined ? '' : `, ${why}`}`;
    groups.set(key, (groups.get(key) ?? new Set()).add(name));
  }
  const lines = [...groups].map(([key, names]) => {
    return `  ${key}: ${someOf([...names])}`;
  });
  return [...(counts.length > 0 ? [counts.join(', ')] : []), ...lines];
}

/** A process is no guest. */
function endText(end: string | undefined): string | undefined {
  // A merged trace has several.
  return end?.replaceAll('guest-ended', 'the target ended').replaceAll('-', ' ');
}
