import { basename } from 'node:path';
import { endingSignals, findStuck } from '../api/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import { DiskRoom } from '../base/disk-room.js';
import type { Logger } from '../base/logger.js';
import { type Checked, Checker, checkedJson, checkedText, isBroken, readBudget, type Verdict } from '../check/index.js';
import {
  type EngineName,
  type EngineSituation,
  engineChoices,
  type Hurdle,
  hurdleLines,
  hurdlesJson,
  hurdlesOfCode,
  planEngines,
  situationOf,
  tooOften,
} from '../engines/index.js';
import {
  type ExcludedFunction,
  type Found,
  type InlinedPolls,
  type KindReport,
  kinds,
  type ProbeKind,
  parseProbe,
  type Wakes,
} from '../probes/index.js';
import {
  type EnginePlanWishes,
  enginePlan,
  functionNamed,
  type PlaceOptions,
  type Program,
  prepare,
  type Recording,
  type RecordOptions,
  record,
  samplesOf,
  tooEarly,
} from '../record/index.js';
import type { Session } from '../rsp/index.js';
import type { ScratchSources } from '../scratch/index.js';
import { refusedByStub } from '../stop/index.js';
import { isMovedAtBoot, type ResetVector } from '../target/index.js';
import { jsonLine, plural, textLines } from '../text/index.js';
import {
  endMissing,
  formatOf,
  formats,
  NewestEvents,
  openTrace,
  ownTimeText,
  type ProbeFact,
  ringFullText,
  type TraceSink,
  tee,
  timeText,
} from '../trace/index.js';
import { brokenParts, reportChecked } from './check-report.js';
import { choicesJson, choiceTable, leakJson, leakLines, ownTimeJson } from './engine-report.js';
import { ExitCode, errorJson, reportError } from './failure.js';
import { checkFiles, defaultTrace } from './files.js';
import { createLogger } from './logging.js';
import { isThere } from './open-output.js';
import { refuseWithoutSamples } from './open-samples.js';
import { debugFilesOf } from './options/common.js';
import type { RecordingArguments } from './options/recording.js';
import type { PanicLook } from './panic-report.js';
import { type LoadedPlugins, loadPlugins } from './plugins.js';
import { ReadingLine } from './reading-line.js';
import { type AskedArguments, recordsRequest } from './records-file.js';
import { givenScratchOf } from './scratch-options.js';
import { Silence } from './silence.js';
import { note, sentenceLines } from './standard-error.js';
import { StatusLine } from './status-line.js';
import {
  enginesText,
  hurdlesText,
  ramJson,
  secondsText,
  stopJson,
  stopReport,
  switchedOffTexts,
} from './stop-report.js';
import { isColored, lineWidth, tableOptions } from './terminal.js';

/** A recording about to begin: the program is read and the trace file is open, but the target is not yet used. */
export interface Prepared {
  readonly args: RecordingArguments;
  readonly plugins: LoadedPlugins;
  readonly logger: Logger;
  /** What the trace may have of other files if the disk is full. */
  readonly room: DiskRoom;
  readonly program: Program;
  /** Memory that the user names. */
  readonly given: ScratchSources;
  /** The function of --until. */
  readonly until: Addr | undefined;
  /** One a kind of probe. */
  readonly reports: readonly KindReport[];
  /** The budgets of --budget. */
  readonly checker: Checker | undefined;
  /** The flight recorder of --last. */
  readonly newest: NewestEvents | undefined;
  readonly sink: TraceSink;
  /** Where the trace before this one is kept, once this one has begun. */
  readonly older: string | undefined;
}

/**
 * Prepares, then runs `body`. If that fails before anything is recorded, no empty trace file is left behind. `place`:
 * how far the target has moved the program, where that is known beforehand. `into`: takes the trace, instead of a file.
 */
export async function withRecording(
  args: RecordingArguments,
  body: (prepared: Prepared) => Promise<number>,
  place?: PlaceOptions['place'],
  into?: (program: Program) => TraceSink,
): Promise<number> {
  if (args['dry-run']) return dryRun(args);
  const prepared = await prepareRecording(args, place, into);
  try {
    return await body(prepared);
  } catch (error) {
    prepared.sink.end(endMissing);
    throw error;
  }
}

async function prepareRecording(
  args: RecordingArguments,
  place: PlaceOptions['place'],
  into: ((program: Program) => TraceSink) | undefined,
): Promise<Prepared> {
  const logger = createLogger(args.log);
  const plugins = await loadPlugins(args.plugin);
  using line = new ReadingLine(args.elf, args.progress);
  const program = await preparedProgram(args, plugins, logger, place);
  checkFiles(args, program.elf.debugFiles);
  note(...refusedByName(program).map(({ name, reason }) => `${name} is not probed: ${reason}`));
  line.phase('choosing engines for');
  // What no engine can provide is refused before anything is changed.
  enginePlan(program, planWishes(args, program));
  const given = givenScratchOf(args, program.elf);
  const until = untilOf(args, program);
  const wishes = { findings: args.findings !== 'off', longPollNs: args['long-poll'] };
  const checker = args.budget === undefined ? undefined : new Checker(readBudget(args.budget));
  const reports = program.known.map((kind) => kind.report(foundOf(program, kind), wishes));
  if (!into && samplesOf(program)) refuseWithoutSamples(args.output, 'any');
  const older = into ? undefined : keptBefore(args);
  const room = new DiskRoom();
  const output = into?.(program) ?? openOutputTrace(args, plugins, room);
  const newest = args.last && new NewestEvents(output, args.last);
  return {
    args,
    plugins,
    logger,
    program,
    given,
    until,
    reports,
    checker,
    newest,
    room,
    sink: tee([newest ?? output, ...(checker ? [checker] : []), ...reports.flatMap(({ sink }) => sink ?? [])]),
    older,
  };
}

/** Reads the ELF, and finds the probes in it. */
export function preparedProgram(
  args: AskedArguments,
  plugins: LoadedPlugins,
  logger: Logger,
  place?: PlaceOptions['place'],
): Promise<Program> {
  const known = [...kinds, ...plugins.kinds];
  const specs = args.probe.map((text) => parseProbe(text, known));
  return prepare(
    args.elf,
    specs,
    logger,
    { ...debugFilesOf(args), inlined: inlinedOf(args), wakes: wakesOf(args), place },
    known,
  );
}

/** The file of -o. An older one of the default name is kept under another. */
function openOutputTrace({ output, force }: RecordingArguments, { formats }: LoadedPlugins, room: DiskRoom): TraceSink {
  const keepAs = output === defaultTrace.path ? defaultTrace.keepAs : undefined;
  return openTrace(output, { lock: note, force, keepAs, formats, room });
}

function keptBefore({ output }: RecordingArguments): string | undefined {
  return output === defaultTrace.path && isThere(output) ? output + defaultTrace.keepAs : undefined;
}

/** Shows what would be probed, and how; uses neither the target nor a trace file. */
async function dryRun(args: RecordingArguments): Promise<number> {
  const { program, choices, hurdles } = await chosen(args);
  const previews = program.known.flatMap((kind) => kind.preview?.(foundOf(program, kind)) ?? []);
  const tables = previews.flatMap(({ table }) => table ?? []);
  const excluded = program.kinds.flatMap(({ found }) => found.excluded ?? []);
  process.stdout.write(
    args.json
      ? jsonLine({
          ...{ version: 1, probes: choicesJson(choices), hurdles: hurdlesJson(hurdles) },
          ...merged(previews.map(({ json }) => json)),
          not_probed: excludedJson(excluded),
        })
      : [
          ...(choices.length > 0 || tables.length === 0 ? [choiceTable(choices)] : []),
          ...tables,
          ...(excluded.length > 0 ? [textLines(['not probed:', ...excludedLines(excluded)])] : []),
          ...(hurdles.length > 0 ? [textLines(['in the way of probes without stops:', ...indented(hurdles)])] : []),
        ].join('\n'),
  );
  return ExitCode.recorded;
}

/** The program, and the engine of each probe as far as the code alone says. */
async function chosen(
  args: RecordingArguments,
): Promise<{ program: Program; choices: readonly ProbeFact[]; hurdles: readonly Hurdle[] }> {
  using line = new ReadingLine(args.elf, args.progress);
  const program = await preparedProgram(args, await loadPlugins(args.plugin), createLogger(args.log));
  line.phase('choosing engines for');
  const options = enginePlan(program, planWishes(args, program));
  const { given } = givenScratchOf(args, program.elf);
  const planned = planEngines(options);
  const hurdles = hurdlesOfCode(options, planned, program.elf, given?.address);
  return { program, choices: engineChoices(options, planned), hurdles };
}

function indented(hurdles: readonly Hurdle[]): string[] {
  return hurdleLines(hurdles).map((line) => `  ${line}`);
}

/** Those that a probe asks for by this very name, and that are left out beside others. */
function refusedByName({ kinds: found, specs }: Program): ExcludedFunction[] {
  const asked = new Set(specs.flatMap((spec) => ('glob' in spec ? [spec.glob] : [])));
  return found.flatMap((each) => each.found.excluded ?? []).filter(({ name }) => asked.has(name));
}

/** For machines. */
function excludedJson(excluded: readonly ExcludedFunction[]): object[] {
  return excluded.map(({ name, address, reason }) => ({ function: name, address: hex(address), reason }));
}

/** A line a reason. */
function excludedLines(excluded: readonly ExcludedFunction[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const { name, reason } of excluded) byReason.set(reason, [...(byReason.get(reason) ?? []), name]);
  return [...byReason].map(([reason, names]) => {
    const more = names.length > 6 ? ` and ${names.length - 6} more` : '';
    return `  ${names.slice(0, 6).join(', ')}${more}: ${reason}`;
  });
}

/** The members of all. */
function merged(objects: readonly object[]): object {
  return Object.fromEntries(objects.flatMap((each) => Object.entries(each)));
}

/** The resolved probes of a kind; undefined if none asks for it. */
function foundOf(program: Program, kind: ProbeKind): Found | undefined {
  return program.kinds.find((each) => each.kind === kind)?.found;
}

/** What of the options decides about engines. */
export function planWishes(args: AskedArguments, program: Program): EnginePlanWishes {
  return { wanted: engineOf(args), stackDepth: args.bt, values: args.args, until: untilOf(args, program) };
}

/** Who asks for stops at inlined polls takes them all. */
function engineOf({ engine, exact }: AskedArguments): EngineName {
  return engine === 'auto' && exact ? 'mixed' : engine;
}

function inlinedOf({ engine, exact, bt }: AskedArguments): InlinedPolls {
  if (engine === 'target') return 'patched';
  if (exact) return 'all';
  // With stacks every hit stops.
  return engine === 'stop' || bt !== undefined ? 'needed' : 'auto';
}

function wakesOf({ engine, wakes }: AskedArguments): Wakes {
  return engine === 'stop' && wakes === 'auto' ? 'never' : wakes;
}

export function untilOf({ until }: AskedArguments, program: Program): Addr | undefined {
  return until === undefined ? undefined : functionNamed(program.elf, until);
}

/** What was recorded, and where. */
export interface Recorded extends Recording {
  readonly situation: EngineSituation;
  /** What the server of a process does wrong, so that the program may. */
  readonly serverFault?: string | undefined;
}

export interface SessionOptions {
  /** rsptrace has started the target. */
  readonly isLaunched?: boolean;
  /** RAM of a machine that we started. */
  readonly hidden?: ScratchSources['hidden'];
  readonly resetVector?: ResetVector | undefined;
  readonly reconnect?: (() => Promise<Session>) | undefined;
  /** See `RecordOptions`. */
  readonly console?: ((take: (text: Uint8Array) => void) => void) | undefined;
  /** See `RecordOptions`. */
  readonly loadBias?: bigint | undefined;
  /** See `RecordOptions`. */
  readonly nanosPerInstruction?: number | undefined;
  /** See `RecordOptions`. */
  readonly clockSleeps?: boolean | undefined;
  /** See `RecordOptions`. */
  readonly panics?: readonly Addr[] | undefined;
  /** See `RecordOptions`. */
  readonly stopsHarm?: boolean | undefined;
  /** Ends the recording when it is aborted. */
  readonly ending?: AbortSignal | undefined;
  /** Called with the signal that ends the recording. */
  readonly onSignal?: (signal: NodeJS.Signals) => void;
  /** See `RecordOptions`. */
  readonly onLeft?: ((end: Recording['end']) => void) | undefined;
}

/** Records until something ends it; Ctrl-C (SIGINT, SIGTERM, SIGHUP) ends it in good order. */
export async function recordSession(
  prepared: Prepared,
  session: Session,
  {
    isLaunched = false,
    hidden,
    resetVector,
    reconnect,
    loadBias,
    nanosPerInstruction,
    clockSleeps,
    panics,
    stopsHarm,
    ending,
    onSignal: told,
    onLeft,
    console,
  }: SessionOptions = {},
): Promise<Recorded> {
  const { args } = prepared;
  const stopping = stopOnSignals(told, ending);
  const status = new StatusLine(process.stderr, !args.json);
  const situation = await situationOf(session, isLaunched);
  const silence = new Silence();
  const isMoved = loadBias === undefined && isMovedAtBoot(prepared.program.elf);
  using waiting = isMoved ? new ReadingLine(args.elf, args.progress, 'waits until its loader has started') : undefined;
  try {
    const recording = await record({
      ...askedOptions(prepared, hidden),
      session,
      signal: stopping.signal,
      loadBias,
      nanosPerInstruction,
      clockSleeps,
      stopsHarm,
      console,
      resetVector,
      panics,
      onLeft,
      reconnect,
      ...toldAbove(args.json ? undefined : status, situation, () => waiting?.[Symbol.dispose]()),
      onStart: (progress) => {
        waiting?.[Symbol.dispose]();
        status.start(progress);
        silence.start(args.elf, progress);
      },
    });
    return { ...recording, situation };
  } finally {
    status.stop();
    silence.stop();
    stopping.release();
  }
}

/** Says above the status line what is in the way of probes without stops, how they are seen, and which are left out. */
function toldAbove(
  status: StatusLine | undefined,
  situation: EngineSituation,
  isFound: () => void,
): Pick<RecordOptions, 'onHurdles' | 'onEngines' | 'onLeftOut'> {
  let isSaid = false;
  let hurdles: readonly Hurdle[] = [];
  const offText = switchedOffTexts();
  return {
    onHurdles: (found) => {
      isFound();
      hurdles = found;
      status?.above(hurdlesText(found));
    },
    onEngines: (chosen) => {
      if (isSaid) return;
      isSaid = true;
      status?.above(enginesText(chosen, situation, hurdles));
    },
    onLeftOut: (probes) => status?.above(offText(probes)),
  };
}

/** What the command line and the files that it names ask of a recording. */
function askedOptions(
  { args, plugins, logger, program, sink, given, until, room }: Prepared,
  hidden: SessionOptions['hidden'],
): Omit<RecordOptions, 'session'> {
  return {
    program,
    sink,
    logger,
    clock: args.clock,
    timebaseHz: args.timebase,
    hardware: args.hw,
    engine: engineOf(args),
    fromReset: args['from-reset'],
    isLossless: args.lossless,
    scratch: { ...given, hidden },
    log: recordsRequest(args, room),
    ...(args.findings === 'off' ? {} : { look: findStuck(logger, plugins.runtimes, debugFilesOf(args)) }),
    until,
    functions: { values: args.args, maxDepth: args['max-depth'] },
    thresholdNs: args.threshold,
    stackDepth: args.bt,
    durationMs: args.duration,
    maxEvents: args['max-events'],
  };
}

/** A signal that comes again within so many milliseconds is the same one: `timeout` sends it twice. */
const repeatMs = 200;

function ignoreRepeats(signal: NodeJS.Signals): void {
  const ignore = (): void => {};
  process.on(signal, ignore);
  setTimeout(() => process.off(signal, ignore), repeatMs).unref();
}

/** Aborts at SIGINT, SIGTERM and SIGHUP, which it tells `told` first, and with `ending`; until it is released. */
function stopOnSignals(
  told: SessionOptions['onSignal'],
  ending: AbortSignal | undefined,
): { readonly signal: AbortSignal; release(): void } {
  const stopper = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    ignoreRepeats(signal);
    told?.(signal);
    stopper.abort();
  };
  const onEnding = (): void => stopper.abort();
  for (const signal of endingSignals) process.once(signal, onSignal);
  ending?.addEventListener('abort', onEnding);
  return {
    signal: stopper.signal,
    release() {
      for (const signal of endingSignals) process.off(signal, onSignal);
      ending?.removeEventListener('abort', onEnding);
    },
  };
}

/** The table, or the JSON object; and the error that ended it early, if one did. Gives the exit status. */
export function report(prepared: Prepared, recording: Recorded, guest?: Guest): number {
  const { args, reports } = prepared;
  const { error } = recording;
  const checked = { ...checkedOf(prepared, guest), error };
  if (args.json) process.stdout.write(jsonLine(recordingJson(prepared, recording, guest, checked)));
  else reportTables(prepared, recording);
  reportLimits(args, recording, guest);
  tellChecked(args, checked, guest);
  if (error) {
    reportError(error);
    return ExitCode.cutShort;
  }
  const broken = brokenParts(checked);
  if (broken.guest) return (guest?.isStatusOurs && guest.status) || ExitCode.guestFailed;
  const isFound = args.findings === 'error' && reports.some((each) => (each.findings?.(recording) ?? 0) > 0);
  return isFound || broken.budget ? ExitCode.limitBroken : ExitCode.recorded;
}

/** What budgets say of the trace, and limits of the guest. */
function checkedOf({ args, program, checker }: Prepared, guest: Guest | undefined): Checked {
  const verdicts = [...(guest?.verdicts ?? []), ...(checker?.verdicts() ?? [])];
  const { output: trace, budget, strict: isStrict } = args;
  return { program: basename(program.elf.path), trace, budget, verdicts, isStrict };
}

/** A guest that only ended as it should needs no words. */
function tellChecked(args: RecordingArguments, checked: Checked, guest: Guest | undefined): void {
  const stream = args.json ? process.stderr : process.stdout;
  if (guest?.panic && !args.json) stream.write(`\n${guest.panic.text}`);
  const isAsked = checked.verdicts.length > 1 || isBroken(checked);
  if (isAsked && !args.json) stream.write(`\n${checkedText(checked, { color: isColored(), width: lineWidth() })}`);
  const isReported = checked.error !== undefined || args.junit !== undefined || args.markdown !== undefined;
  if (isAsked || isReported) reportChecked(checked, args, stream);
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

function recordingJson(
  { args, reports, newest, older, program }: Prepared,
  recording: Recorded,
  guest: Guest | undefined,
  checked: Checked,
): object {
  const { error } = recording;
  const { name, resolutionNs, guest: guestClock } = recording.clock;
  return {
    version: 1,
    program: args.elf,
    trace: args.output,
    older_trace: older ?? null,
    clock: { name, resolution_ns: resolutionNs, guest: guestClock },
    end: recording.end,
    guest_exit: guest?.exit ?? stopText(recording.stop),
    events: recording.events,
    ...(newest ? { left_out: newest.leftOut } : {}),
    stops: recording.stops,
    engines: stopJson(recording, recording.situation),
    hurdles: hurdlesJson(recording.hurdles),
    server_fault: recording.serverFault,
    records: recording.records,
    missing: recording.missing,
    resets: recording.resets,
    ring_full: recording.ringFull,
    ring_waited_ns: recording.ringWaitedNs,
    tail_lost: recording.tailLost,
    never_loaded: recording.neverLoaded,
    never_seen: isNeverSeen(recording),
    load_bias: hex(addr(recording.loadBias)),
    foreign_hits: recording.foreignHits,
    scratch: recording.scratch,
    ram: ramJson(recording),
    trampolines_stay: recording.trampolinesStay,
    trampolines_needed: recording.trampolinesNeeded,
    panic_breakpoints: recording.panicPlaces,
    counter_stays_open: recording.openCounter ? recording.openCounter.register : null,
    probes: choicesJson(recording.engines),
    not_probed: excludedJson(refusedByName(program)),
    guest_ns: recording.guestNs,
    ...ownTimeJson(recording.ownTime),
    ...leakJson(recording.leak),
    host_ms: Math.round(recording.hostMs),
    standing_ms: Math.round(recording.standingMs),
    ran_ms: Math.round(recording.ranMs),
    digested_ms: Math.round(recording.digestedMs),
    gaps: recording.gaps,
    ...merged(reports.map((each) => each.json(recording))),
    ...(checked.verdicts.length > 0 ? { check: checkedJson(checked) } : {}),
    ...(guest?.panic ? { panic: guest.panic.json } : {}),
    ...(error ? { error: errorJson(error) } : {}),
  };
}

function reportTables({ args, plugins, program, reports, newest, older }: Prepared, recording: Recorded): void {
  const tables = reports.flatMap((each) => each.tables(recording, tableOptions()));
  process.stdout.write(tables.join('\n'));
  const lines = [
    closingLine(recording),
    ...unrecordedLines(recording),
    ...stopReport(recording, recording.situation),
    ...leakLines(recording.leak, recording.stops),
    ...[ringFullText(recording)].filter((line) => line !== undefined),
    ...droppedLines(recording, args.lossless),
    ...(recording.situation.isProcess ? [`the process stood ${secondsText(recording.standingMs)} in all`] : []),
    `trace: ${args.output}${newestText(newest, recording)} (${whatToDo(args.output, recording, program, plugins)})`,
    ...(older === undefined ? [] : [`the trace before it is kept: ${older}`]),
  ];
  process.stdout.write(`\n${sentenceLines(lines, process.stdout)}`);
}

/** Why a process has lost records, and how it loses none. */
function droppedLines({ missing, situation }: Recorded, isLossless: boolean): readonly string[] {
  if (missing === 0 || !situation.isProcess || isLossless) return [];
  return [
    'records are missing because the process made them faster than they were read, and waits at most 20 ms in a second: --lossless makes it wait for all',
  ];
}

/** So many functions that panic slow a guest, which is told of recordings that take longer than this. */
const manyPanics = 16;
const slowMs = 5000;

/** What is left out, stays behind or was slow: a sentence each, on stderr. */
function reportLimits(args: RecordingArguments, recording: Recorded, guest: Guest | undefined): void {
  if (recording.tailLost) {
    note(
      'the guest ended with events in its memory that were not read yet; --until FUNCTION, the one that powers off, keeps them, and so does `rsptrace run` without --scratch',
    );
  }
  if (recording.trampolinesStay && guest === undefined) {
    // Nobody maps it in a kernel's next page table any more.
    const isHidden = recording.scratch?.startsWith('hidden RAM') === true && recording.trampolinesNeeded;
    const harm = isHidden
      ? 'a kernel that turns to another page table before they have returned dies: record its boot to the end, or with --engine stop'
      : 'they do no harm';
    const what = recording.trampolinesNeeded
      ? 'calls were open that return through trampolines, so these stay'
      : 'calls were open, which return past the trampolines from now on: these stay';
    note(`${what} in ${recording.scratch}; ${harm}`);
  }
  if (recording.panicPlaces >= manyPanics && recording.hostMs > slowMs) {
    note(
      `${recording.panicPlaces} functions that panic had a breakpoint, because their callers are known at their entry only; QEMU looks through all breakpoints at each jump to an address in a register: --on-panic ignore spares that`,
    );
  }
  const { openCounter } = recording;
  // A guest that we have ended keeps nothing.
  if (openCounter && (guest === undefined || guest.status !== null)) {
    const { register, harts } = openCounter;
    note(
      `calls were open that return through trampolines, which read the time counter: the kernel may go on reading it (${register}, on ${plural(harts.length, 'hart')})`,
    );
  }
  if (isNeverSeen(recording)) {
    const isMoved = recording.loadBias !== 0n;
    const where = isMoved ? `${hex(addr(recording.loadBias))} above its own addresses` : 'where it is linked';
    const moves = isMoved ? ' A loader may take another place each time (aslr).' : '';
    note(
      `nothing of ${basename(args.elf)} was in the target's memory when it began, and no probe was hit: is it the ELF that runs there, loaded ${where}?${moves}`,
    );
  }
  if (recording.foreignHits > 0) {
    note(
      `other code than ${basename(args.elf)}'s came to its probes' addresses ${plural(recording.foreignHits, 'time')}: it went on untouched and is not recorded, but each time costs a stop`,
    );
  }
  if (recording.pastWire && args['record-wire'] !== undefined) {
    note(
      `what was noted without stops did not pass over the wire, so that ${args['record-wire']} cannot be replayed; --engine stop makes a recording that can`,
    );
  }
}

/** A wrong ELF, or one at other addresses: nothing else says why nothing was recorded. */
function isNeverSeen({ codeAbsent, events, records, tallies, foreignHits, neverLoaded }: Recording): boolean {
  const isHit = events + records + foreignHits > 0 || tallies.some(({ calls }) => calls > 0);
  return codeAbsent && !isHit && neverLoaded.length === 0;
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

/** The signal that ended a target: `signal 7 (SIGBUS)`. */
export function signalText({ signal, name }: { readonly signal: number; readonly name?: string }): string {
  return name === undefined ? `signal ${signal}` : `signal ${signal} (${name})`;
}

/** How a target ended, in words. */
export function stopText(stop: Recording['stop']): string | undefined {
  if (stop?.kind === 'exited') return `status ${stop.status}`;
  if (stop?.kind === 'terminated') return signalText(stop);
  return stop?.kind === 'gone' ? 'connection closed' : undefined;
}
