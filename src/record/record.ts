import type { StuckTask } from '../async/futures/index.js';
import { isRefusal, messageOf } from '../base/errors.js';
import { partOf, silent } from '../base/logger.js';
import { verifyRuntime } from '../base/runtime.js';
import { instructionClock } from '../clock/index.js';
import { DigestPace, restTimes } from '../inject/index.js';
import { watchRef } from '../probes/index.js';
import { type StopReply, stubOfHandshake } from '../rsp/index.js';
import { meanwhile } from '../target/index.js';
import { boundTallies, type GuestNanos, type HartInfo, type RecordingFacts, type TallyRow } from '../trace/index.js';
import type { Parts } from './parts.js';
import { foreignHits } from './quiet.js';
import type { Recording, RecordOptions } from './recording.js';
import { Run } from './run.js';
import { allCalls, emitStuck } from './tracers.js';
import { verify } from './verify.js';

/**
 * Records a trace. Verifies that the target runs this program, chooses the engine for each probe, and arms the
 * target. Runs the target until it ends or an option says stop, and leaves it running with nothing of rsptrace in it.
 *
 * If the wire breaks in the middle, the result has an `error`. What was recorded is kept.
 * @throws RsptraceError for what is wrong before the guest runs: `ARCH_MISMATCH`, `ELF_MISMATCH`, `KERNEL_MOVES`,
 * `LOAD_ADDRESS_UNKNOWN`, `NODE_NEEDED`, `RSP_*`, `WATCH_*`
 */
export async function record(asked: RecordOptions): Promise<Recording> {
  const started = performance.now();
  verifyRuntime();
  const options = await withClock({ ...asked, logger: asked.logger && partOf(asked.logger, 'record') });
  const target = await verify(options);
  const { ram } = target;
  using _ram = ram && !isRefusal(ram) ? ram : undefined;
  const run = await meanwhile(options.letRun, () => new Run(options, target));
  if (target.hurdles.length > 0) options.onHurdles?.(target.hurdles);
  await run.arm().catch((thrown: unknown) => disarm(run, options, thrown));
  const begun = performance.now();
  const ended = await run.toEnd();
  const { isSettled } = run.parts.engines;
  const stoodMs = performance.now() - begun - run.parts.connection.ranNs / 1e6;
  const { missing, unread, clock } = await leave(run, options, performance.now() - begun);
  return summarize(run, {
    ram,
    ended,
    isSettled,
    missing,
    unread,
    clock,
    stoodMs,
    hostMs: performance.now() - started,
  });
}

/** Adds whether the guest's clock counts instructions. */
async function withClock(options: RecordOptions): Promise<RecordOptions> {
  const { session, nanosPerInstruction, clockSleeps: sleeps } = options;
  const counts = await instructionClock(session, { nanosPerInstruction, sleeps });
  return { ...options, counts, nanosPerInstruction: nanosPerInstruction ?? counts?.nanosPerInstruction };
}

/** Something was refused: what was armed before is taken out again, and the target stands. */
async function disarm({ parts }: Run, { logger = silent }: RecordOptions, thrown: unknown): Promise<never> {
  await takeOut(parts).catch((error: unknown) =>
    logger.warn({ error: String(error) }, 'probes may be left in the target'),
  );
  await parts.connection.leave(logger, true);
  parts.log?.end(false);
  throw thrown;
}

/** Reads what the target still holds, and removes everything but breakpoints. Returns how many records are missing. */
async function takeOut({ connection, engines, clock }: Parts): Promise<number> {
  const isIdle = connection.session.state.kind === 'idle';
  // While the target runs out of patches, it must not stop at a watched access.
  if (isIdle) await connection.engine.settle();
  const missing = await engines.leave(isIdle);
  if (connection.session.state.kind === 'idle' && !engines.results.trampolinesStay) await clock.closeCounter();
  return missing;
}

/** What of a recording is not in its trace, and the trace's clock. */
type Left = Pick<Recording, 'missing' | 'unread' | 'clock'>;

/** How long records are digested between two looks at signals and timers, in milliseconds. */
const digestMs = 20;

/** Last phase: reads what the target still holds, removes everything from it, and ends the trace. */
async function leave(run: Run, options: RecordOptions, tookMs: number): Promise<Left> {
  const { logger = silent, stays = false, onLeft, deadline } = options;
  const { tracers, engines, stopping, connection, target, clock: traceClock } = run.parts;
  const { log } = run.parts;
  let missing = 0;
  let unread = 0;
  let isWritten = false;
  let look: TaskLook | undefined;
  try {
    // What failed at a stop may have let it run on.
    await connection.session.interrupt().catch(() => {});
    await run.boot.end();
    missing = await takeOut(run.parts);
    if (tookMs >= leastForLook && deadline?.() === undefined) look = await lookAtTasks(run, options);
  } catch (thrown) {
    stopping.fail(thrown);
  }
  // The target runs on before the trace is ended, because some formats write most of it then.
  await connection.leave(logger, stays || stopping.reason === 'panicked');
  onLeft?.(stopping.reason);
  try {
    unread = await digestRest(run, options);
    missing += unread;
    log?.append({ type: 'finished' });
    for (const calls of allCalls(tracers)) calls.finish();
    if (look) await reportStuck(run, look);
  } catch (thrown) {
    if (unread === 0) missing += unread = engines.undigested;
    stopping.fail(thrown);
  }
  const clock = traceClock.info ?? { name: 'running-intervals', resolutionNs: 1, guest: false };
  try {
    if (!traceClock.info) run.begin(clock);
    const recording = factsOf(run, missing);
    const probes = [...engines.choices, ...target.choicesOfOthers];
    tracers.sink.end({ probes, ownTime: engines.results.ownTime, recording });
    isWritten = true;
    log?.whole({ probes, recording: { ...recording, missing: missing - unread } });
  } catch (thrown) {
    stopping.fail(thrown);
  }
  log?.end(unread > 0 || !isWritten);
  const { notLoaded: probes } = run;
  if (probes.length > 0) logger.warn({ probes }, 'their code was never loaded: these probes were not planted');
  return { missing, unread, clock };
}

/** A rest that takes longer is reported, in milliseconds. */
const longMs = 1000;

/** Understands the records that wait, or those that can be understood in time. Returns how many are left. */
async function digestRest({ parts }: Run, { deadline, giveUp, onBacklog }: RecordOptions): Promise<number> {
  const { engines, stopping, target } = parts;
  const from = performance.now();
  let isSaid = false;
  // A process that runs on may want the core: nobody waits for it, or it is ended, where there is a deadline.
  const goesFirst = target.isProcess && stopping.reason !== 'guest-ended' && deadline === undefined;
  const pace = new DigestPace(goesFirst ? restTimes.left : 0);
  for (;;) {
    const began = performance.now();
    if (!engines.digest(digestMs)) return 0;
    const now = performance.now();
    pace.digested(began, now);
    const records = engines.undigested;
    if (giveUp?.aborted || now > (deadline?.() ?? Number.POSITIVE_INFINITY)) return records;
    if (!isSaid && now - from > longMs) {
      onBacklog?.(records);
      isSaid = true;
    }
    await pace.rest();
  }
}

/** What is known of the tasks of a target that stood, and when that was. */
interface TaskLook {
  readonly time: GuestNanos;
  readonly understand: () => Promise<readonly StuckTask[]>;
}

/** A shorter recording is not worth the time that the target would stand for it: in milliseconds. */
const leastForLook = 1000;

/** Undefined if nobody asks for it, or if the end of the recording was not ours to choose. */
async function lookAtTasks(
  { parts: { stopping, connection, tracers, target } }: Run,
  { look, logger = silent }: RecordOptions,
): Promise<TaskLook | undefined> {
  const { reason } = stopping;
  const { session } = connection;
  const isOurs = reason === 'duration' || reason === 'interrupted';
  if (!look || !isOurs || session.state.kind !== 'idle') return undefined;
  try {
    const time = (await connection.time()) ?? tracers.output.time;
    return { time, understand: await look(session, target.program) };
  } catch (error) {
    logger.info({ error: messageOf(error) }, 'the tasks at the end were not looked at');
    return undefined;
  }
}

/** Memory can show what no event does: tasks that wait for each other, or for nobody. */
async function reportStuck({ parts: { tracers, log } }: Run, { time, understand }: TaskLook): Promise<void> {
  const stuck = await understand();
  if (stuck.length === 0) return;
  log?.stuck(time, stuck);
  emitStuck(tracers, time, stuck);
}

/** What a saved trace says of its recording. */
function factsOf(run: Run, missing: number): RecordingFacts {
  const { engines, stopping, connection, tracers } = run.parts;
  const { events, stops, records } = run.progress;
  const unseen = tracers.kinds.flatMap((kind) => kind.unseen ?? []);
  const rest = stops > 0 ? run.leaked?.rest : undefined;
  // The clock is left as stops make it where others need none.
  const stopsBeside = engines.onlyStops ? 0 : engines.stopsBeside;
  return {
    end: stopping.reason,
    stub: stubOfHandshake(connection.session.features),
    events,
    stops,
    records,
    missing,
    foreignHits: foreignHits(run.parts)?.hits ?? 0,
    neverLoaded: run.notLoaded,
    tailLost: engines.results.tailLost,
    ...(unseen.length > 0 ? { unseen } : {}),
    ...(run.recordsClock === undefined ? {} : { recordsClock: run.recordsClock }),
    ...(rest === undefined || rest === 'tick' ? {} : { timesAtMost: rest.why }),
    ...(stopsBeside > 0 ? { stopsBeside } : {}),
    ...(!engines.onlyStops && stopsBeside === 0 && tracers.counting.stops.first.length > 0
      ? { stoppedAt: tracers.counting.stops.first.map(String) }
      : {}),
    ...ringFacts(engines.results.all),
    ...(tracers.sampler ? { samples: tracers.sampler.facts } : {}),
  };
}

interface Outcome extends Left, Pick<Recording, 'ram' | 'isSettled' | 'stoodMs' | 'hostMs'> {
  readonly ended: StopReply | undefined;
}

function summarize(run: Run, { ended, ...others }: Outcome): Recording {
  const { engines, stopping, tracers, connection, target, clock: traceClock } = run.parts;
  const { choices, results } = engines;
  const { missing, clock } = others;
  const { tailLost, trampolinesStay, trampolinesNeeded } = results;
  const { heldMs, pastWire, source: scratch } = results.all;
  const { ringFull = 0, ringWaitedNs = 0 } = ringFacts(results.all);
  const { leaked: leak } = run;
  const leftOut = new Set(engines.leftOut);
  const tallies = tracers.kinds.flatMap(({ counts }) => counts?.rows() ?? []);
  const threads = target.isProcess ? target.harts.all() : undefined;
  return {
    ...others,
    end: stopping.reason,
    recordsClock: run.recordsClock,
    isProcess: target.isProcess,
    loadBias: target.program.elf.loadBias,
    ...{ hartsUnseen: target.unseen, hartsInTurn: target.inTurn },
    stop: ended,
    error: stopping.error,
    hurdles: target.hurdles,
    neverLoaded: run.notLoaded,
    engines: [...choices, ...target.choicesOfOthers],
    others: connection.others,
    refusal: engines.refusal,
    stopsBeside: engines.onlyStops ? undefined : engines.stopsBeside,
    disturbance: { stoppedAt: tracers.counting.stops.first, ringWaitedNs },
    ranMs: connection.ranNs / 1e6,
    standing: connection.standing,
    digestedMs: engines.digestedMs,
    heldMs,
    stopsQueued: engines.stopsQueued,
    gaps: tracers.counting.gaps,
    tallies: boundTallies(
      tallies.filter((row) => row.calls > 0 || !leftOut.has(row.function.address)).map((row) => named(row, threads)),
      choices,
      { missing, tailLost },
    ),
    watches: connection.watches.all.map(watchRef),
    samples: tracers.sampler?.facts,
    scratch,
    ownTime: engines.results.ownTime,
    leak,
    stopError: leak && { tickNs: clock.resolutionNs, isUnknown: leak.rest !== 'tick' },
    ringFull,
    ringWaitedNs,
    tailLost,
    trampolinesStay,
    trampolinesNeeded,
    panicPlaces: target.panics.length,
    openCounter: ended ? undefined : traceClock.openCounter,
    pastWire,
    quiet: run.quiet?.times ?? [],
    leftAt: connection.engine.leftAt,
    resets: run.boot.resets?.count ?? 0,
    foreign: foreignHits(run.parts),
    wasHit: connection.wasHit,
    ...run.progress,
  };
}

/** Calls counted by thread have its name. */
function named(row: TallyRow, threads: readonly HartInfo[] | undefined): TallyRow {
  if (row.group?.by !== 'hart' || !threads) return row;
  const { hart } = row.group;
  return { ...row, group: { by: 'hart', hart, label: threads[hart]?.name } };
}

/** What the trace says of waits for room. A wait between two reads of the ring is seen by its time alone. */
function ringFacts({ ringFull, ringWaitedNs }: { readonly ringFull: number; readonly ringWaitedNs: number }) {
  if (ringFull === 0 && ringWaitedNs === 0) return {};
  return { ringFull: Math.max(ringFull, 1), ringWaitedNs };
}
