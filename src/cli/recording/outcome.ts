import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { addr, hex } from '../../base/addr.js';
import type { RsptraceError } from '../../base/errors.js';
import { jsonFacts } from '../../base/json-facts.js';
import { type Checked, checkedJson, checkedText, isBroken, type Verdict } from '../../check/index.js';
import { ET } from '../../elf/index.js';
import { hurdlesJson } from '../../engines/index.js';
import type { KindReport } from '../../probes/index.js';
import { addressesOf, type Program, type Recording, tooEarly } from '../../record/index.js';
import { programName } from '../../target/stacks/index.js';
import { jsonLine, plural, textLines } from '../../text/index.js';
import { formatOf, formats, type NewestEvents, ownTimeText, ringFullText, timeText } from '../../trace/index.js';
import { brokenParts, whyUnreported } from '../check-report.js';
import { ExitCode, errorJson, note, reportError, sentenceLines, thoseOf } from '../failure.js';
import { isThere } from '../open-output.js';
import type { RecordingArguments } from '../options/recording.js';
import type { PanicLook } from '../panic-report.js';
import type { LoadedPlugins } from '../plugins.js';
import { recordsFile } from '../records-file.js';
import {
  allExcluded,
  choicesJson,
  excludedJson,
  leakJson,
  leakLines,
  merged,
  ownTimeJson,
  ramJson,
  refusedByName,
  secondsText,
  stopJson,
  stopReport,
} from '../stop-report.js';
import { isColored, lineWidth, tableOptions } from '../terminal.js';
import type { Prepared } from './prepare.js';
import { mostText, quietJson } from './quiet.js';
import { type Recorded, stopText } from './session.js';

/** The table, or the JSON object; and the error that ended it early, if one did. Gives the exit status. */
export function report(prepared: Prepared, recording: Recorded, guest?: Guest): number {
  const { args, reports } = prepared;
  const { error } = recording;
  const checked = { ...checkedOf(prepared, guest), error };
  if (args.json) process.stdout.write(jsonLine(recordingJson(prepared, recording, guest, checked)));
  else reportTables(prepared, recording);
  reportLimits(prepared, recording, guest);
  const unwritten = sayChecked(args, checked, guest);
  const errors = [error, unwritten].filter((each) => each !== undefined);
  for (const each of errors) reportError(each);
  if (errors.length > 0) return ExitCode.cutShort;
  const broken = brokenParts(checked);
  if (broken.guest) return (guest?.isStatusOurs && guest.status) || ExitCode.guestFailed;
  const all = [...reports, ...prepared.others.flatMap((other) => other.reports)];
  const isFound = args.findings === 'error' && all.some((each) => (each.findings?.(recording) ?? 0) > 0);
  return isFound || broken.budget ? ExitCode.limitBroken : ExitCode.recorded;
}

/** What budgets say of the trace, and limits of the guest. */
function checkedOf({ args, program, checker }: Prepared, guest: Guest | undefined): Checked {
  const verdicts = [...(guest?.verdicts ?? []), ...(checker?.verdicts() ?? [])];
  const { output: trace, budget, strict: isStrict } = args;
  return { program: basename(program.elf.path), trace, budget, verdicts, isStrict };
}

/** A guest that only ended as it should needs no words. Gives the error of a report that cannot be written. */
function sayChecked(args: RecordingArguments, checked: Checked, guest: Guest | undefined): RsptraceError | undefined {
  const stream = args.json ? process.stderr : process.stdout;
  if (guest?.panic && !args.json) stream.write(`\n${guest.panic.text}`);
  const isAsked = checked.verdicts.length > 1 || isBroken(checked);
  if (isAsked && !args.json) stream.write(`\n${checkedText(checked, { color: isColored(), width: lineWidth() })}`);
  const isReported = checked.error !== undefined || args.junit !== undefined || args.markdown !== undefined;
  return isAsked || isReported ? whyUnreported(checked, args, stream) : undefined;
}

/** A machine or a program that rsptrace has started, and how it ended. */
export interface Guest {
  /** In words; undefined if it was left. */
  readonly exit: string | undefined;
  /** Null if it was ended, or a signal ended it. */
  readonly status: number | null;
  /** Its status is to be that of rsptrace, where it fails. */
  readonly isStatusOurs: boolean;
  readonly verdicts: readonly Verdict[];
  readonly panic: PanicLook | undefined;
}

function reportTables(prepared: Prepared, recording: Recorded): void {
  const { args, plugins, program, reports, others, newest, older } = prepared;
  const tablesOf = (all: readonly KindReport[]): string[] =>
    all.flatMap((each) => each.tables(recording, tableOptions()));
  const tables = [
    ...tablesOf(reports),
    ...others.flatMap((other) => {
      const own = other.program.kinds.length === 0 ? [] : tablesOf(other.reports);
      return own.length === 0 ? [] : [textLines([`${programName(other.program.elf)}:`]), ...own];
    }),
  ];
  process.stdout.write(tables.join('\n'));
  const { situation, missing, unread } = recording;
  const lines = thoseOf([
    closingLine(recording, prepared.isRaw),
    ...unrecordedLines(recording),
    ...stopReport(recording, situation),
    ...leakLines(recording.leak, recording.stops),
    ringFullText(recording),
    missing !== unread &&
      recording.error === undefined &&
      situation.isProcess &&
      !args.lossless &&
      'records are missing because the process made them faster than they were read, and waits at most 20 ms in a second: --lossless makes it wait for all',
    situation.isProcess && stoodText(recording.standing),
    prepared.isRaw
      ? recordsText(args.output, recording)
      : `trace: ${args.output}${newestText(newest, recording)} (${whatToDo(args.output, recording, program, plugins)})`,
    older !== undefined && `the trace before it is kept: ${older}`,
  ]);
  process.stdout.write(`\n${sentenceLines(lines, process.stdout)}`);
}

function stoodText({ allMs, longestMs }: Recorded['standing']): string {
  return `the process stood ${secondsText(allMs)} in all, at most ${Math.ceil(longestMs)} ms at once`;
}

const endTexts: Partial<Record<Recording['end'], string>> = { failed: 'an error', panicked: 'a panic' };

/** `nothing recorded from 20 ms to 410 ms of the clock: the last page table was not in use yet`. */
function unrecordedLines({ gaps }: Recording): string[] {
  return gaps.flatMap(({ from_ns, to_ns, why }) => {
    if (why === undefined) return [];
    const [from, to] = [from_ns, to_ns].map((ns) => timeText(ns));
    const times = to_ns > from_ns ? `from ${from} to ${to}` : `from ${from} on`;
    const isEarly = why === tooEarly;
    const before = isEarly && from_ns > 0 ? '; times before it have stops in them' : '';
    const wayOut = isEarly ? `${before}; --from-reset records it by stops, which only a few probes can afford` : '';
    return [`nothing recorded ${times} by the guest's clock: ${why}${wayOut}`];
  });
}

function closingLine(recording: Recording, isRaw: boolean): string {
  const { events, stops, missing, guestNs, hostMs, clock, end, gaps } = recording;
  const broken = gaps.filter(({ why }) => why === undefined);
  const unseen = broken.reduce((sum, { from_ns, to_ns }) => sum + to_ns - from_ns, 0);
  const gapNote =
    broken.length === 0 ? '' : `; ${plural(broken.length, 'gap')} of ${timeText(unseen)} where the link was broken`;
  const host = `${clock.name}: the host's, while the target ran`;
  const records = recording.recordsClock && `clock ${recording.recordsClock}; that of stops is ${host}`;
  const clockNote = clock.guest ? `clock ${clock.name}` : (records ?? `clock ${host}`);
  const why = end === 'guest-ended' ? '' : `; ended by ${endTexts[end] ?? end.replace('-', ' ')}`;
  const own = recording.ownTime && events > 0 ? ` (${ownTimeText(recording.ownTime)})` : '';
  // From the first event to the last.
  const isGuests = clock.guest || (recording.recordsClock !== undefined && recording.stopsBeside === 0);
  const whose = isGuests ? 'guest' : 'running';
  const guestTime = events > 0 && !isRaw ? `${(guestNs / 1e6).toFixed(3)} ms of ${whose} time${own} ` : '';
  const times = `${guestTime}in ${(hostMs / 1e3).toFixed(1)} s`;
  const resetNote = recording.resets > 0 ? `; ${plural(recording.resets, 'reset')}` : '';
  const missingNote = missing > 0 ? `; ${missing} ${missing === 1 ? 'record is' : 'records are'} missing` : '';
  const { length: never } = recording.neverLoaded;
  const neverNote = never > 0 ? `; the code of ${plural(never, 'probe')} was never loaded` : '';
  const leftOut = recording.engines.filter(({ engine }) => engine === 'none');
  const { length: off } = leftOut.filter(({ leftOutBy }) => leftOutBy === 'stops');
  const offNote = off > 0 ? `; ${plural(off, 'probe')} switched off (--engine mixed keeps such)` : '';
  const { length: refused } = leftOut.filter(({ leftOutBy }) => leftOutBy === 'stub');
  const refusedNote = refused > 0 ? `; ${plural(refused, 'probe')} left out, since the stub refused a breakpoint` : '';
  const out = leftOut.length - off - refused;
  const left = out === 1 ? '1 probe is left out, since it' : `${out} probes are left out, since they`;
  const outNote = out > 0 ? `; ${left} would stop the target (--json says why)` : '';
  const counted = isRaw ? plural(recording.records, 'record') : plural(events, 'event');
  return `${counted}, ${plural(stops, 'stop')}, ${times}, ${clockNote}${gapNote}${resetNote}${missingNote}${neverNote}${outNote}${refusedNote}${offNote}${why}`;
}

/** A trace of records: how large it is, and what to do with it. */
function recordsText(path: string, { records, stops }: Recording): string {
  if (records + stops === 0) return `trace: ${path} (it holds no records)`;
  const size = `${(bytesOf(path) / 1e6).toFixed(1)} MB of records`;
  return `trace: ${path}, ${size} (rsptrace report ${path} makes events of them, rsptrace convert ${path} -o x.pftrace a trace)`;
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
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

/** So many functions that panic slow a guest, which recordings that take longer than this say. */
const manyPanics = 16;

const slowMs = 5000;

/** From so many stops in other code at one place on it is said which that is. */
const manyForeign = 1000;

/** What is left out, stays behind or was slow: a sentence each, on stderr. */
function reportLimits({ args, program }: Prepared, recording: Recorded, guest: Guest | undefined): void {
  const { unread, tailLost, panicPlaces, hostMs, openCounter, loadBias, foreign, pastWire } = recording;
  const isKept = isThere(recordsFile(args.output));
  const wayOut = isKept ? `rsptrace recover ${args.output} makes the whole trace of them` : 'they are lost';
  const isMoved = loadBias !== 0n;
  const where = isMoved ? `${hex(addr(loadBias))} above its own addresses` : 'where it is linked';
  const moves = isMoved ? ' A loader may take another place each time (aslr).' : '';
  const isHigh = program.elf.segments.some(({ address }) => address >> 63n !== 0n);
  const early = isHigh ? 'what runs before paging is on runs elsewhere, where no probe is; if they run later, ' : '';
  const whose = program.others.length === 0 ? `${basename(args.elf)}'s` : "a probe's own program's";
  note(
    unread > 0 && `${plural(unread, 'record')} were not understood: ${wayOut}`,
    unread === 0 &&
      recording.error !== undefined &&
      isKept &&
      !args['keep-records'] &&
      `its records are kept: rsptrace recover ${args.output} makes the trace of them`,
    tailLost &&
      'the guest ended with events in its memory that were not read yet; --until FUNCTION, the one that powers off, keeps them, and so does `rsptrace run` without --scratch',
    recording.trampolinesStay && guest === undefined && stayText(recording),
    panicPlaces >= manyPanics &&
      hostMs > slowMs &&
      `${panicPlaces} functions that panic had a breakpoint, because their callers are known at their entry only; QEMU looks through all breakpoints at each jump to an address in a register: --on-panic ignore spares that`,
    // A guest that we have ended keeps nothing.
    openCounter &&
      (guest === undefined || guest.status !== null) &&
      `calls were open that return through trampolines, which read the time counter: the kernel may go on reading it (${openCounter.register}, on ${plural(openCounter.harts.length, 'hart')})`,
    isNeverSeen(recording) &&
      `nothing of ${basename(args.elf)} was in the target's memory when it began, and no probe was hit: ${early}is it the ELF that runs there, loaded ${where}?${moves}`,
    ...notesOnOthers(program, recording),
    foreign &&
      `other code than ${whose} came to its probes' addresses ${plural(foreign.hits, 'time')}: it went on untouched and is not recorded, but each time costs a stop${foreign.most.hits < manyForeign ? '' : `; ${mostText(foreign)}`}`,
    pastWire &&
      args['record-wire'] !== undefined &&
      `what was noted without stops did not pass over the wire, so that ${args['record-wire']} cannot be replayed; --engine stop makes a recording that can`,
  );
}

/** Trampolines that stay in a target, and whether that harms it. */
function stayText({ scratch, trampolinesNeeded }: Recorded): string {
  // Nobody maps it in a kernel's next page table any more.
  const isHidden = scratch?.startsWith('hidden RAM') === true && trampolinesNeeded;
  const harm = isHidden
    ? 'a kernel that turns to another page table before they have returned dies: record its boot to the end, or with --engine stop'
    : 'they do no harm';
  const what = trampolinesNeeded
    ? 'calls were open that return through trampolines, so these stay'
    : 'calls were open, which return past the trampolines from now on: these stay';
  return `${what} in ${scratch}; ${harm}`;
}

/** Further programs that were not seen, and what could not be said whose it is. */
function notesOnOthers({ others: programs }: Program, { others }: Recorded): (string | false)[] {
  if (others === undefined) return [];
  const unseen = programs.filter((program) => addressesOf(program).length > 0 && !others.stops.get(program.elf));
  return [
    ...unseen.map((program) => {
      const count = plural(addressesOf(program).length, 'place');
      return `${program.elf.path} came to none of its ${count} with a probe: it did not run, or not with this code at ${placesOf(program.elf)}`;
    }),
    others.untold > 0 &&
      `${plural(others.untold, 'stop')} in code that several programs have alike: nothing says whose, so they are not recorded`,
  ];
}

function placesOf({ type, loadBias }: Program['elf']): string {
  if (type !== ET.DYN) return 'the addresses that it is linked to';
  if (loadBias !== 0n) return `0x${loadBias.toString(16)}, where it is said to be loaded`;
  return 'address 0: where a kernel loads it, --elf says as FILE@0x10000';
}

/** A wrong ELF, or one at other addresses: nothing else says why nothing was recorded. */
function isNeverSeen({ codeAbsent, wasHit, records, tallies, foreign, neverLoaded }: Recording): boolean {
  const isHit = wasHit || records > 0 || foreign !== undefined || tallies.some(({ calls }) => calls > 0);
  return codeAbsent && !isHit && neverLoaded.length === 0;
}

function othersJson({ others }: Prepared, recording: Recorded): object {
  if (others.length === 0) return {};
  return {
    programs: others.map(({ program, reports }) => ({
      program: program.elf.path,
      probes: addressesOf(program).length,
      stops: recording.others?.stops.get(program.elf) ?? 0,
      ...merged(program.kinds.length === 0 ? [] : reports.map((each) => each.json(recording))),
    })),
    untold_stops: recording.others?.untold ?? 0,
  };
}

function recordingJson(prepared: Prepared, recording: Recorded, guest: Guest | undefined, checked: Checked): object {
  const { args, reports, newest, older, program, isRaw } = prepared;
  const { error } = recording;
  const { name, resolutionNs, guest: guestClock } = recording.clock;
  return {
    version: 1,
    program: args.elf,
    trace: args.output,
    older_trace: older ?? null,
    settings: args.settings ?? null,
    clock: { name, resolution_ns: resolutionNs, guest: guestClock, of_records: recording.recordsClock ?? null },
    end: recording.end,
    guest_exit: guest?.exit ?? stopText(recording.stop),
    events: isRaw ? null : recording.events,
    ...(isRaw ? { trace_bytes: bytesOf(args.output) } : {}),
    ...(newest ? { left_out: newest.leftOut } : {}),
    stops: recording.stops,
    engines: stopJson(recording, recording.situation),
    hurdles: hurdlesJson(recording.hurdles),
    server_fault: recording.serverFault,
    ...jsonFacts(recording, ['records', 'missing', 'unread', 'resets', 'ringFull', 'ringWaitedNs', 'tailLost']),
    never_loaded: recording.neverLoaded,
    never_seen: isNeverSeen(recording),
    harts_unseen: recording.hartsUnseen,
    harts_in_turn: recording.hartsInTurn,
    load_bias: hex(addr(recording.loadBias)),
    foreign_hits: recording.foreign?.hits ?? 0,
    ...(recording.foreign ? { foreign_most: jsonFacts(recording.foreign.most) } : {}),
    scratch: recording.scratch,
    ram: ramJson(recording),
    ...jsonFacts(recording, ['trampolinesStay', 'trampolinesNeeded']),
    panic_breakpoints: recording.panicPlaces,
    counter_stays_open: recording.openCounter ? recording.openCounter.register : null,
    probes: choicesJson(recording.engines),
    not_probed: excludedJson(refusedByName(program, allExcluded)),
    guest_ns: isRaw ? null : recording.guestNs,
    ...ownTimeJson(recording.ownTime),
    ...leakJson(recording.leak),
    host_ms: Math.round(recording.hostMs),
    standing_ms: Math.round(recording.standing.allMs),
    longest_standing_ms: Math.round(recording.standing.longestMs),
    ran_ms: Math.round(recording.ranMs),
    digested_ms: Math.round(recording.digestedMs),
    gaps: recording.gaps,
    quiet: recording.quiet.map(quietJson),
    ...merged(reports.map((each) => each.json(recording))),
    ...othersJson(prepared, recording),
    ...(checked.verdicts.length > 0 ? { check: checkedJson(checked) } : {}),
    ...(guest?.panic ? { panic: guest.panic.json } : {}),
    ...(error ? { error: errorJson(error) } : {}),
  };
}
