import { basename } from 'node:path';
import { endingSignals } from '../api/index.js';
import type { Addr } from '../base/addr.js';
import type { Logger } from '../base/logger.js';
import { plural } from '../base/plural.js';
import { jsonLine, textLines } from '../base/visible.js';
import { type EngineSituation, engineChoices, planEngines, type ScratchSources } from '../engines/index.js';
import type { ResetVector } from '../facts/index.js';
import {
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
  type Program,
  prepare,
  type Recording,
  record,
} from '../recorder/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { formatOf, formats, openTrace, ownTimeText, type TraceSink, tee, timeText } from '../trace/index.js';
import { choicesJson, choiceTable, ownTimeJson } from './engine-report.js';
import { ExitCode, errorJson, errorText } from './failure.js';
import { checkFiles, defaultTrace } from './files.js';
import { createLogger } from './logging.js';
import { warn } from './open-output.js';
import { debugFilesOf, type RecordingArguments } from './options.js';
import { type LoadedPlugins, loadPlugins } from './plugins.js';
import { givenScratchOf } from './scratch-options.js';
import { Silence } from './silence.js';
import { StatusLine } from './status-line.js';
import { enginesText, stopJson, stopReport } from './stop-report.js';

/** A recording about to begin: the program is read and the trace file is open, but the target is not yet used. */
export interface Prepared {
  readonly args: RecordingArguments;
  readonly plugins: LoadedPlugins;
  readonly logger: Logger;
  readonly program: Program;
  /** Memory that the user names. */
  readonly given: ScratchSources;
  /** The function of --until. */
  readonly until: Addr | undefined;
  /** One a kind of probe. */
  readonly reports: readonly KindReport[];
  readonly sink: TraceSink;
}

/** Prepares, then runs `body`. If that fails before anything is recorded, no empty trace file is left behind. */
export async function withRecording(
  args: RecordingArguments,
  body: (prepared: Prepared) => Promise<number>,
): Promise<number> {
  if (args['dry-run']) return dryRun(args);
  const prepared = await prepareRecording(args);
  try {
    return await body(prepared);
  } catch (error) {
    prepared.sink.end();
    throw error;
  }
}

async function prepareRecording(args: RecordingArguments): Promise<Prepared> {
  const logger = createLogger(args.log);
  const plugins = await loadPlugins(args.plugin);
  const program = await preparedProgram(args, plugins, logger);
  checkFiles(args, program.elf.debugFiles);
  // What no engine can provide is refused before anything is changed.
  enginePlan(program, planWishes(args, program));
  const given = givenScratchOf(args, program.elf);
  const until = untilOf(args, program);
  const wishes = { findings: args.findings !== 'off', longPollNs: args['long-poll'] };
  const reports = program.known.map((kind) => kind.report(foundOf(program, kind), wishes));
  return {
    args,
    plugins,
    logger,
    program,
    given,
    until,
    reports,
    sink: tee([openOutputTrace(args, plugins), ...reports.flatMap(({ sink }) => sink ?? [])]),
  };
}

/** Reads the ELF, and finds the probes in it. */
function preparedProgram(args: RecordingArguments, plugins: LoadedPlugins, logger: Logger): Promise<Program> {
  const known = [...kinds, ...plugins.kinds];
  const specs = args.probe.map((text) => parseProbe(text, known));
  return prepare(
    args.elf,
    specs,
    logger,
    { ...debugFilesOf(args), inlined: inlinedOf(args), wakes: wakesOf(args) },
    known,
  );
}

/** The file of -o. If none is named, the old trace is kept. */
function openOutputTrace({ output, force }: RecordingArguments, { formats }: LoadedPlugins): TraceSink {
  const keepAs = output === defaultTrace.path ? defaultTrace.keepAs : undefined;
  return openTrace(output, { lock: warn, onlyTraces: !force, keepAs, formats });
}

/** Shows what would be probed, and how; uses neither the target nor a trace file. */
async function dryRun(args: RecordingArguments): Promise<number> {
  const program = await preparedProgram(args, await loadPlugins(args.plugin), createLogger(args.log));
  const options = enginePlan(program, planWishes(args, program));
  const choices = engineChoices(options, planEngines(options).refused);
  const previews = program.known.flatMap((kind) => kind.preview?.(foundOf(program, kind)) ?? []);
  const tables = previews.flatMap(({ table }) => table ?? []);
  process.stdout.write(
    args.json
      ? jsonLine({ version: 1, probes: choicesJson(choices), ...merged(previews.map(({ json }) => json)) })
      : [...(choices.length > 0 || tables.length === 0 ? [choiceTable(choices)] : []), ...tables].join('\n'),
  );
  return ExitCode.recorded;
}

/** The members of all. */
function merged(objects: readonly object[]): object {
  return Object.fromEntries(objects.flatMap((each) => Object.entries(each)));
}

/** The resolved probes of a kind; undefined if none asks for it. */
function foundOf(program: Program, kind: ProbeKind): Found | undefined {
  return program.kinds.find((each) => each.kind === kind)?.found;
}

function planWishes(args: RecordingArguments, program: Program): EnginePlanWishes {
  return { wanted: args.engine, stackDepth: args.bt, values: args.args, until: untilOf(args, program) };
}

function inlinedOf({ engine, exact, bt }: RecordingArguments): InlinedPolls {
  if (engine === 'target') return 'patched';
  if (exact) return 'all';
  // With stacks every hit stops.
  return engine === 'stop' || bt !== undefined ? 'needed' : 'auto';
}

function wakesOf({ engine, wakes }: RecordingArguments): Wakes {
  return engine === 'stop' && wakes === 'auto' ? 'never' : wakes;
}

function untilOf({ until }: RecordingArguments, program: Program): Addr | undefined {
  return until === undefined ? undefined : functionNamed(program.elf, until);
}

/** What was recorded, and where. */
export interface Recorded extends Recording {
  readonly situation: EngineSituation;
}

interface SessionOptions {
  /** rsptrace has started the target. */
  readonly isLaunched?: boolean;
  /** RAM of a machine that we started. */
  readonly hidden?: ScratchSources['hidden'];
  readonly resetVector?: ResetVector | undefined;
  readonly reconnect?: (() => Promise<Session>) | undefined;
  /** See `RecordOptions`. */
  readonly nanosPerInstruction?: number | undefined;
  /** Called with the signal that ends the recording. */
  readonly onSignal?: (signal: NodeJS.Signals) => void;
}

/** Records until something ends it; Ctrl-C (SIGINT, SIGTERM, SIGHUP) ends it in good order. */
export async function recordSession(
  prepared: Prepared,
  session: Session,
  { isLaunched = false, hidden, resetVector, reconnect, nanosPerInstruction, onSignal: told }: SessionOptions = {},
): Promise<Recorded> {
  const { args, logger, program, sink } = prepared;
  const stopper = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    told?.(signal);
    stopper.abort();
  };
  for (const signal of endingSignals) process.once(signal, onSignal);
  const status = new StatusLine(process.stderr, !args.json);
  const situation = {
    isMachineOfQemu: (await session.stub()).name === 'qemu-system',
    isLaunched,
    isProcess: isProcess(session.features),
  };
  let isSaid = args.json;
  const silence = new Silence();
  try {
    const recording = await record({
      session,
      program,
      sink,
      logger,
      clock: args.clock,
      timebaseHz: args.timebase,
      hardware: args.hw,
      engine: args.engine,
      scratch: { ...prepared.given, ...(hidden === undefined ? {} : { hidden }) },
      signal: stopper.signal,
      nanosPerInstruction,
      resetVector,
      ...(prepared.until === undefined ? {} : { until: prepared.until }),
      functions: { values: args.args, ...(args['max-depth'] === undefined ? {} : { maxDepth: args['max-depth'] }) },
      ...(args.threshold === undefined ? {} : { thresholdNs: args.threshold }),
      ...(reconnect === undefined ? {} : { reconnect }),
      ...(args.bt === undefined ? {} : { stackDepth: args.bt }),
      ...(args.duration === undefined ? {} : { durationMs: args.duration }),
      ...(args['max-events'] === undefined ? {} : { maxEvents: args['max-events'] }),
      onEngines: (chosen) => {
        if (isSaid) return;
        isSaid = true;
        status.above(enginesText(chosen, situation));
      },
      onStart: (progress) => {
        status.start(progress);
        silence.start(args.elf, progress);
      },
    });
    return { ...recording, situation };
  } finally {
    status.stop();
    silence.stop();
    for (const signal of endingSignals) process.off(signal, onSignal);
  }
}

/** The table, or the JSON object; and the error that ended it early, if one did. Gives the exit status. */
export function report(prepared: Prepared, recording: Recorded, guest?: Guest): number {
  const { args, reports } = prepared;
  const { error } = recording;
  if (args.json) process.stdout.write(jsonLine(recordingJson(prepared, recording, guest)));
  else tellTables(prepared, recording);
  tellLimits(args, recording, guest);
  const isFound = args.findings === 'error' && reports.some((each) => (each.findings?.(recording) ?? 0) > 0);
  if (!error) return isFound ? ExitCode.limitBroken : ExitCode.recorded;
  process.stderr.write(errorText(error));
  return ExitCode.cutShort;
}

/** A machine that rsptrace has started, and how it ended. */
interface Guest {
  readonly exit: string;
}

function recordingJson({ args, reports }: Prepared, recording: Recorded, guest: Guest | undefined): object {
  const { error } = recording;
  const { name, resolutionNs, guest: guestClock } = recording.clock;
  return {
    version: 1,
    program: args.elf,
    trace: args.output,
    clock: { name, resolution_ns: resolutionNs, guest: guestClock },
    end: recording.end,
    guest_exit: guest?.exit ?? stopText(recording),
    events: recording.events,
    stops: recording.stops,
    engines: stopJson(recording, recording.situation),
    records: recording.records,
    missing: recording.missing,
    resets: recording.resets,
    tail_lost: recording.tailLost,
    never_loaded: recording.neverLoaded,
    foreign_hits: recording.foreignHits,
    scratch: recording.scratch,
    trampolines_stay: recording.trampolinesStay,
    probes: choicesJson(recording.engines),
    guest_ns: recording.guestNs,
    ...ownTimeJson(recording.ownTime),
    host_ms: Math.round(recording.hostMs),
    gaps: recording.gaps,
    ...merged(reports.map((each) => each.json(recording))),
    ...(error ? { error: errorJson(error) } : {}),
  };
}

function tellTables({ args, plugins, program, reports }: Prepared, recording: Recorded): void {
  const { isTTY, columns } = process.stdout;
  const color = isTTY === true && process.stdout.hasColors();
  const options = { color, width: columns ?? 200 };
  const tables = reports.flatMap((each) => each.tables(recording, options));
  process.stdout.write(tables.join('\n'));
  process.stdout.write(
    `\n${textLines([
      closingLine(recording),
      ...stopReport(recording, recording.situation),
      `trace: ${args.output} (${whatToDo(args.output, recording, program, plugins)})`,
    ])}`,
  );
}

/** What is left out or stays behind: a sentence each, on stderr. */
function tellLimits(args: RecordingArguments, recording: Recorded, guest: Guest | undefined): void {
  if (recording.tailLost) {
    process.stderr.write(
      'rsptrace: the guest ended with events in its memory that were not read yet; --until FUNCTION, the one that powers off, keeps them, and so does `rsptrace run` without --scratch\n',
    );
  }
  if (recording.trampolinesStay && guest === undefined) {
    process.stderr.write(
      textLines([
        `rsptrace: calls were open that return through trampolines, so these stay in ${recording.scratch}; they do no harm`,
      ]),
    );
  }
  if (recording.foreignHits > 0) {
    process.stderr.write(
      `rsptrace: other code than ${basename(args.elf)}'s came to its probes' addresses ${plural(recording.foreignHits, 'time')}: it went on untouched and is not recorded, but each time costs a stop\n`,
    );
  }
  if (recording.pastWire && args['record-wire'] !== undefined) {
    process.stderr.write(
      textLines([
        `rsptrace: what was noted without stops did not pass over the wire, so that ${args['record-wire']} cannot be replayed; --engine stop makes a recording that can`,
      ]),
    );
  }
}

function closingLine(recording: Recording): string {
  const { events, stops, missing, guestNs, hostMs, clock, end, gaps } = recording;
  const unseen = gaps.reduce((sum, { from_ns, to_ns }) => sum + to_ns - from_ns, 0);
  const gapNote =
    gaps.length === 0 ? '' : `; ${plural(gaps.length, 'gap')} of ${timeText(unseen)} where the link was broken`;
  const clockNote = clock.guest
    ? `clock ${clock.name}`
    : `clock ${clock.name}: the host's, the guest's cannot be read here`;
  const why = end === 'guest-ended' ? '' : `; ended by ${end === 'failed' ? 'an error' : end.replace('-', ' ')}`;
  const own = recording.ownTime && events > 0 ? ` (${ownTimeText(recording.ownTime)})` : '';
  const times = `${(guestNs / 1e6).toFixed(3)} ms of guest time${own} in ${(hostMs / 1e3).toFixed(1)} s`;
  const resetNote = recording.resets > 0 ? `; ${plural(recording.resets, 'reset')}` : '';
  const missingNote = missing > 0 ? `; ${missing} ${missing === 1 ? 'record is' : 'records are'} missing` : '';
  const { length: never } = recording.neverLoaded;
  const neverNote = never > 0 ? `; the code of ${plural(never, 'probe')} was never loaded` : '';
  const { length: out } = recording.engines.filter(({ engine }) => engine === 'none');
  const left = out === 1 ? '1 probe is left out, since it' : `${out} probes are left out, since they`;
  const outNote = out > 0 ? `; ${left} would stop the target (--dry-run says why)` : '';
  return `${plural(events, 'event')}, ${plural(stops, 'stop')}, ${times}, ${clockNote}${gapNote}${resetNote}${missingNote}${neverNote}${outNote}${why}`;
}

/** With the trace. */
function whatToDo(path: string, { events }: Recording, program: Program, plugins: LoadedPlugins): string {
  const onlyCounts = program.kinds.every(({ kind }) => kind.onlyCounts);
  if (events === 0) return onlyCounts ? 'it holds no events: only counts were asked for' : 'it holds no events';
  return formatOf(path, [...plugins.formats, ...formats])?.use ?? '';
}

function stopText({ stop }: Recording): string | undefined {
  if (stop?.kind === 'exited') return `status ${stop.status}`;
  if (stop?.kind === 'terminated') return `signal ${stop.signal}`;
  return stop?.kind === 'gone' ? 'connection closed' : undefined;
}
