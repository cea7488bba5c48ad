import { findStuck, ignoreRepeats, onSignals, repeatMs } from '../../api/index.js';
import { type EngineSituation, type Hurdle, situationOf } from '../../engines/index.js';
import { type Progress, type Recording, type RecordOptions, record, systemCallsOf } from '../../record/index.js';
import type { Session } from '../../rsp/index.js';
import type { ScratchSources } from '../../scratch/index.js';
import { isMovedAtBoot } from '../../target/index.js';
import { plural } from '../../text/index.js';
import { sentenceLines } from '../failure.js';
import { isThere } from '../open-output.js';
import { debugFilesOf } from '../options/common.js';
import { ReadingLine } from '../reading-line.js';
import { recordsFile, recordsRequest } from '../records-file.js';
import { StatusLine } from '../status-line.js';
import { enginesText, hurdlesText, switchedOffTexts } from '../stop-report.js';
import { engineOf, needsReturns } from './asked.js';
import type { Prepared } from './prepare.js';
import { quietText } from './quiet.js';

/** What was recorded, and where. */
export interface Recorded extends Recording {
  readonly situation: EngineSituation;
  /** What the server of a process does wrong, so that the program may. */
  readonly serverFault?: string | undefined;
}

/** What of {@link RecordOptions} only some targets have. */
type OfTarget = Pick<RecordOptions, 'resetVector' | 'reconnect' | 'console' | 'loadBias' | 'nanosPerInstruction'> &
  Pick<RecordOptions, 'clockSleeps' | 'panics' | 'stopsHarm' | 'letRun' | 'onLeft' | 'deadline'>;

export interface SessionOptions extends OfTarget {
  /** rsptrace has started the target. */
  readonly isLaunched?: boolean;
  /** What another rsptrace has recorded of the wire is played back. */
  readonly isReplayed?: boolean;
  /** RAM of a machine that we started. */
  readonly hidden?: ScratchSources['hidden'];
  /** Ends the recording when it is aborted. */
  readonly ending?: AbortSignal | undefined;
  /** Called with the signal that ends the recording. */
  readonly onSignal?: (signal: NodeJS.Signals) => void;
  /** Who shows the recording itself: takes what would be said on stderr, and how far it is. */
  readonly watcher?: RecordingWatcher | undefined;
}

/** Who shows a recording while it runs. */
export interface RecordingWatcher {
  text(text: string): void;
  begins(progress: () => Progress): void;
}

/** Records until something ends it; Ctrl-C (SIGINT, SIGTERM, SIGHUP) ends it in good order. */
export async function recordSession(
  prepared: Prepared,
  session: Session,
  { isLaunched = false, isReplayed = false, hidden, ending, onSignal, watcher, ...passed }: SessionOptions = {},
): Promise<Recorded> {
  const { args } = prepared;
  const stopping = stopOnSignals(onSignal, ending);
  const status = new StatusLine(process.stderr, !args.json && !watcher, prepared.isRaw ? 'records' : 'events');
  const above = (text: string): void => (watcher ? watcher.text(text) : status.above(text));
  const situation = await situationOf(session, isLaunched);
  const isMoved = passed.loadBias === undefined && isMovedAtBoot(prepared.program.elf);
  using waiting = isMoved ? new ReadingLine(args.elf, args.progress, 'waits until its loader has started') : undefined;
  try {
    const recording = await record({
      ...askedOptions(prepared, hidden),
      session,
      signal: stopping.signal,
      giveUp: stopping.giveUp,
      onBacklog: (records) => {
        stopping.over();
        above(backlogText(records, args.output));
      },
      ...passed,
      quiet: {
        ms: args.stalled,
        // A recording of the wire is played back without its times.
        interrupts: passed.nanosPerInstruction === undefined && args['record-wire'] === undefined && !isReplayed,
        report: (quiet) => above(quietText(quiet, args.elf)),
        locks: () => prepared.reports.flatMap((report) => report.lockWaits?.() ?? []),
      },
      ...linesAbove(
        args.json && !watcher ? undefined : { above },
        situation,
        systemCallsOf(prepared.program)?.text,
        () => waiting?.[Symbol.dispose](),
      ),
      onStart: (progress) => {
        waiting?.[Symbol.dispose]();
        status.start(progress);
        watcher?.begins(progress);
      },
    });
    return { ...recording, situation };
  } finally {
    status.stop();
    stopping.release();
  }
}

/** Says above the status line what is in the way of probes without stops, how they are seen, and which are left out. */
function linesAbove(
  status: Pick<StatusLine, 'above'> | undefined,
  situation: EngineSituation,
  systemCalls: string | undefined,
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
      if (systemCalls !== undefined)
        status?.above(sentenceLines([`rsptrace: ${systemCalls} stops the process at each call`], process.stderr));
    },
    onLeftOut: (probes) => status?.above(offText(probes)),
  };
}

/** What the command line and the files that it names ask of a recording. */
function askedOptions(
  { args, plugins, logger, program, sink, given, until, isShown }: Prepared,
  hidden: SessionOptions['hidden'],
): Omit<RecordOptions, 'session'> {
  return {
    program,
    sink,
    isShown,
    logger,
    clock: args.clock,
    timebaseHz: args.timebase,
    hardware: args.hw,
    engine: engineOf(args),
    returns: needsReturns(args),
    fromReset: args['from-reset'],
    isLossless: args.lossless,
    scratch: { ...given, ...(hidden && { hidden }) },
    log: recordsRequest(args),
    ...(args.findings === 'off' ? {} : { look: findStuck(logger, plugins.runtimes, debugFilesOf(args)) }),
    until,
    functions: { values: args.args, maxDepth: args['max-depth'] },
    thresholdNs: args.threshold,
    stackDepth: args.bt,
    durationMs: args.duration,
    maxEvents: args['max-events'],
  };
}

/** The signals of a user, until they are released: the first ends the recording, the next what comes after it. */
interface Stopping {
  readonly signal: AbortSignal;
  readonly giveUp: AbortSignal;
  /** The recording has ended: the next signal is the second. */
  over(): void;
  release(): void;
}

/** `first` is given the first of SIGINT, SIGTERM and SIGHUP; `ending` ends the recording, too. The third one kills. */
function stopOnSignals(first: SessionOptions['onSignal'], ending: AbortSignal | undefined): Stopping {
  const [stopper, leaver] = [new AbortController(), new AbortController()];
  let [isOver, repeatsUntil] = [false, 0];
  const handled = onSignals((signal) => {
    if (performance.now() < repeatsUntil) return;
    if (isOver) {
      leaver.abort();
      handled[Symbol.dispose]();
      return;
    }
    isOver = true;
    repeatsUntil = performance.now() + repeatMs;
    ignoreRepeats(signal);
    first?.(signal);
    stopper.abort();
  });
  return {
    // It may be over before the target is reached.
    signal: ending ? AbortSignal.any([stopper.signal, ending]) : stopper.signal,
    giveUp: leaver.signal,
    over: () => {
      isOver = true;
    },
    release: () => handled[Symbol.dispose](),
  };
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

/** What records that are not understood yet mean for whoever waits, for stderr. */
function backlogText(records: number, output: string): string {
  const left = isThere(recordsFile(output)) ? `leaves them to rsptrace recover ${output}` : 'loses them';
  const text = `${plural(records, 'record')} wait to be understood; Ctrl-C ${left}`;
  return sentenceLines([`rsptrace: ${text}`], process.stderr);
}
