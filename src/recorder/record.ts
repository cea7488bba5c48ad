import { silent } from '../base/logger.js';
import { watchRef } from '../probes/index.js';
import type { StopReply } from '../rsp/index.js';
import type { ClockInfo } from '../trace/index.js';
import type { Recording, RecordOptions } from './recording.js';
import { detach, Run } from './run.js';
import { verify } from './verify.js';

/**
 * The whole main job: verifies that the target runs this program, plans which engine carries out which probe, arms the target, runs
 * it until it ends or the options say stop, and leaves it running without a trace of ours.
 *
 * @returns how it went; a wire that breaks in the middle is told in `error`, with all that was recorded kept
 * @throws RsptraceError for what is wrong before the guest runs: `ARCH_MISMATCH`, `ELF_MISMATCH`, `KERNEL_MOVES`,
 * `LOAD_ADDRESS_UNKNOWN`, `RSP_*`, `WATCH_*`
 */
export async function record(options: RecordOptions): Promise<Recording> {
  const started = performance.now();
  const target = await verify(options);
  const run = new Run(options, target);
  await run.arm();
  const ended = await run.toEnd();
  const { missing, clock } = await leave(run, options);
  return summarize(run, { ended, missing, clock, hostMs: performance.now() - started });
}

/** Last phase: reads what the target still holds, ends the trace, and takes everything out of the target. */
async function leave(
  run: Run,
  { logger = silent, stays = false }: RecordOptions,
): Promise<{ missing: number; clock: ClockInfo }> {
  const { tracers, engines, stopping } = run;
  let missing = 0;
  try {
    const isIdle = run.session.state.kind === 'idle';
    // A target that runs out of patches must not stand still before an access.
    if (isIdle) await run.engine.settle();
    ({ missing } = await engines.leave(isIdle));
  } catch (thrown) {
    stopping.fail(thrown);
  }
  try {
    tracers.calls.finish();
  } catch (thrown) {
    stopping.fail(thrown);
  }
  const clock = run.engine.clock?.info ?? { name: 'running-intervals', resolutionNs: 1, guest: false };
  try {
    if (!run.engine.clock) run.begin(clock);
    tracers.sink.end({ probes: engines.choices, ownTime: engines.ownTime });
  } catch (thrown) {
    stopping.fail(thrown);
  }
  await detach(run.session, logger, stays);
  if (run.notLoaded.length > 0)
    logger.warn({ probes: run.notLoaded }, 'their code was never loaded: these probes were not planted');
  return { missing, clock };
}

interface Outcome {
  readonly ended: StopReply | undefined;
  readonly missing: number;
  readonly clock: ClockInfo;
  readonly hostMs: number;
}

function summarize(run: Run, { ended, missing, clock, hostMs }: Outcome): Recording {
  const { engines, stopping, tracers, watches, resets } = run;
  const { choices, scratch, tailLost, pastWire } = engines;
  const tallies = tracers.kinds.flatMap(({ counts }) => counts?.rows() ?? []);
  return {
    end: stopping.reason,
    clock,
    stop: ended,
    error: stopping.error,
    hostMs,
    neverLoaded: run.notLoaded,
    engines: choices,
    gaps: tracers.counting.gaps,
    tallies: tallies.filter((row) => !engines.leftOut.includes(row.function.address)),
    watches: watches.all.map(watchRef),
    scratch,
    ownTime: engines.ownTime,
    missing,
    tailLost,
    pastWire,
    resets: resets?.count ?? 0,
    foreignHits: run.foreignHits,
    ...run.progress,
  };
}
