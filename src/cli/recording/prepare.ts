import { onSignals } from '../../api/index.js';
import type { Addr } from '../../base/addr.js';
import { type Logger, partOf } from '../../base/logger.js';
import { addTo } from '../../base/made-once.js';
import { Checker, readBudget } from '../../check/index.js';
import {
  engineChoices,
  type Hurdle,
  hurdleLines,
  hurdlesJson,
  hurdlesOfCode,
  planEngines,
} from '../../engines/index.js';
import type { ExcludedFunction, KindReport } from '../../probes/index.js';
import { choicesOfOthers, enginePlan, type PlaceOptions, type Program, samplesOf } from '../../record/index.js';
import type { ScratchSources } from '../../scratch/index.js';
import { jsonLine, textLines } from '../../text/index.js';
import {
  formats as builtIn,
  endMissing,
  formatFor,
  NewestEvents,
  OnlyOf,
  openTrace,
  type ProbeFact,
  type TraceSink,
  tee,
} from '../../trace/index.js';
import { ExitCode, note } from '../failure.js';
import { checkFiles, defaultTrace } from '../files.js';
import { createLogger } from '../logging.js';
import { isThere } from '../open-output.js';
import { refuseWithoutSamples } from '../open-samples.js';
import type { RecordingArguments } from '../options/recording.js';
import { type LoadedPlugins, loadPlugins } from '../plugins.js';
import { ReadingLine } from '../reading-line.js';
import { areTrace, refuseForeignRecords } from '../records-file.js';
import {
  allExcluded,
  choicesJson,
  choiceTable,
  excludedJson,
  inlinedLine,
  merged,
  refusedByName,
} from '../stop-report.js';
import { foundOf, givenScratchOf, planWishes, preparedProgram, untilOf } from './asked.js';
import { recordsSink, refuseWithoutEvents } from './raw.js';

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
  /** The trace has records, and no events. */
  readonly isRaw: boolean;
  /** Events are shown as they come. */
  readonly isShown: boolean;
  /** One a kind of probe; none where there are no events. */
  readonly reports: readonly KindReport[];
  /** The same of each further program. */
  readonly others: readonly { readonly program: Program; readonly reports: readonly KindReport[] }[];
  /** The budgets of --budget. */
  readonly checker: Checker | undefined;
  /** The flight recorder of --last. */
  readonly newest: NewestEvents | undefined;
  readonly sink: TraceSink;
  /** Where the trace before this one is kept, once this one has begun. */
  readonly older: string | undefined;
  readonly handled: Disposable;
}

/**
 * Prepares, then runs `body`. If that fails, or a signal ends it, before anything is recorded, no empty trace
 * file is left behind. `place`:
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
  using _handled = prepared.handled;
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
  checkFiles(
    args,
    [program, ...program.others].flatMap(({ elf }) => elf.debugFiles),
  );
  refuseForeignRecords(args);
  note(
    ...refusedByName(program).map(({ name, reason }) => `${name} is not probed: ${reason}`),
    inlinedLine(program) ?? false,
  );
  line.phase('choosing engines for');
  // What no engine can provide is refused before anything is changed.
  enginePlan(program, planWishes(args, program));
  const given = givenScratchOf(args, program.elf);
  const until = untilOf(args, program);
  const wishes = { findings: args.findings !== 'off', longPollNs: args['long-poll'] };
  const checker = args.budget === undefined ? undefined : new Checker(readBudget(args.budget));
  const isRaw = !into && areTrace(args.output);
  if (isRaw) refuseWithoutEvents(args, program);
  const reportsOf = (each: Program): KindReport[] =>
    isRaw ? [] : each.known.map((kind) => kind.report(foundOf(each, kind), wishes));
  const reports = reportsOf(program);
  const others = program.others.map((other) => ({ program: other, reports: reportsOf(other) }));
  const all = [reports, ...others.map((other) => other.reports)].map((each) => each.flatMap(({ sink }) => sink ?? []));
  // What one program's tables say is of its own events.
  const tables = all.flatMap((sinks, index) =>
    others.length === 0 ? sinks : sinks.map((sink) => new OnlyOf(sink, index)),
  );
  if (!into && samplesOf(program)) refuseWithoutSamples(args.output, 'any');
  const older = into ? undefined : keptBefore(args);
  const { output, handled } = opened(() => into?.(program) ?? openOutputTrace(args, plugins, logger));
  const newest = args.last && new NewestEvents(output, args.last);
  return {
    args,
    plugins,
    logger,
    program,
    given,
    until,
    reports,
    others,
    checker,
    isRaw,
    isShown: into !== undefined,
    newest,
    sink: tee([newest ?? output, ...(checker ? [checker] : []), ...tables]),
    ...{ older, handled },
  };
}

/** Until whoever uses the target handles signals, too, one leaves no empty file behind. */
function opened(open: () => TraceSink): { readonly output: TraceSink; readonly handled: Disposable } {
  let output: TraceSink | undefined;
  const handled = onSignals((signal) => {
    if (process.listenerCount(signal) > 1) return;
    handled[Symbol.dispose]();
    output?.end(endMissing);
    process.kill(process.pid, signal);
  });
  try {
    output = open();
    return { output, handled };
  } catch (error) {
    handled[Symbol.dispose]();
    throw error;
  }
}

/** The file of -o. An older one of the default name is kept under another. */
function openOutputTrace({ output, force }: RecordingArguments, { formats }: LoadedPlugins, logger: Logger): TraceSink {
  const keepAs = output === defaultTrace.path ? defaultTrace.keepAs : undefined;
  if (areTrace(output)) return recordsSink(output);
  const { name: format } = formatFor(output, [...formats, ...builtIn]);
  partOf(logger, 'trace').debug({ output, format, keepAs }, 'the trace is opened');
  return openTrace(output, { lock: note, force, keepAs, formats });
}

function keptBefore({ output }: RecordingArguments): string | undefined {
  return output === defaultTrace.path && isThere(output) ? output + defaultTrace.keepAs : undefined;
}

/** Shows what would be probed, and how; uses neither the target nor a trace file. */
async function dryRun(args: RecordingArguments): Promise<number> {
  const { program, choices, hurdles } = await chosen(args);
  const previews = program.known.flatMap((kind) => kind.preview?.(foundOf(program, kind)) ?? []);
  const tables = previews.flatMap(({ table }) => table ?? []);
  const excluded = [program, ...program.others].flatMap(({ kinds }) =>
    kinds.flatMap(({ found }) => allExcluded(found)),
  );
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
  const choices = engineChoices(options, planned);
  const hurdles = hurdlesOfCode({ plan: options, planned, choices }, program.elf, given?.address);
  const others = choicesOfOthers(program, { stackDepth: args.bt, values: args.args });
  return { program, choices: [...choices, ...others], hurdles };
}

function indented(hurdles: readonly Hurdle[]): string[] {
  return hurdleLines(hurdles).map((line) => `  ${line}`);
}

/** A line a reason. */
function excludedLines(excluded: readonly ExcludedFunction[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const { name, reason } of excluded) addTo(byReason, reason, name);
  return [...byReason].map(([reason, names]) => {
    const more = names.length > 6 ? ` and ${names.length - 6} more` : '';
    return `  ${names.slice(0, 6).join(', ')}${more}: ${reason}`;
  });
}
