import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import type { Architecture } from '../arch/index.js';
import type { Resume, Session, StopReply } from '../rsp/index.js';
import { ownSignal } from '../target/index.js';

interface SamplingOptions {
  readonly session: Session;
  readonly arch: Architecture;
  /** Between two looks, of the time that the target runs, in milliseconds. */
  readonly periodMs: number;
  /** How long the target is to run, in milliseconds. */
  readonly durationMs: number;
  /** Ends the sampling. */
  readonly signal: AbortSignal;
  /**
   * Called at each look, the target standing since that moment of the host's clock, in milliseconds. False: that was
   * enough.
   */
  readonly look: (since: number) => Promise<boolean>;
  /** Resolves when the next look is due, in place of `periodMs`. May be asked again before it has. */
  readonly due?: () => Promise<undefined>;
  /** Called before each interrupt. */
  readonly interrupting?: () => void;
  /** What needs no target, and so is done while it runs. */
  readonly meanwhile?: () => void;
}

export interface Sampled {
  /** `exec`: the process begins a program anew, whose code is not known. */
  readonly end: 'duration' | 'samples' | 'interrupted' | 'target-ended' | 'exec' | 'perf-ended';
  /** How long the target ran, and how long it stood, by the host's clock in milliseconds. */
  readonly ranMs: number;
  readonly stoodMs: number;
}

/** A period is between these parts of the one that was asked for: then it runs in step with nothing in the target. */
const LEAST = 0.5;
const MOST = 1.5;

/** Stops a target again and again, and looks at it. It stands when this returns, if it has not ended. */
export async function sampling(options: SamplingOptions): Promise<Sampled> {
  const { session, arch, periodMs, durationMs, signal, look, due, interrupting, meanwhile } = options;
  const began = performance.now();
  let ranMs = 0;
  const period = (): number => periodMs * (LEAST + (MOST - LEAST) * Math.random());
  let left = period();
  const result = (end: Sampled['end']): Sampled => ({ end, ranMs, stoodMs: performance.now() - began - ranMs });
  let resume: Resume = { kind: 'continue' };
  while (ranMs < durationMs && !signal.aborted) {
    const since = performance.now();
    const until = since + Math.min(left, durationMs - ranMs);
    const stopped = session.resume(resume);
    meanwhile?.();
    const over = new AbortController();
    const ends = (): void => over.abort();
    signal.addEventListener('abort', ends);
    const early = await Promise.race([stopped, due?.() ?? sleep(until, over.signal)]);
    signal.removeEventListener('abort', ends);
    ends();
    const interrupted = performance.now();
    if (!early) interrupting?.();
    const stop = early ?? (await session.interrupt());
    const ran = performance.now() - since;
    ranMs += ran;
    // The target may stop by itself more often than it is looked at.
    left = early ? left - ran : period();
    if (hasEnded(stop)) return result('target-ended');
    if (stop.kind === 'signal' && stop.reason === 'exec') return result('exec');
    resume = await goesOn(session, arch, stop);
    if (early === undefined && !signal.aborted && !(await look(interrupted))) return result('samples');
  }
  return result(signal.aborted ? 'interrupted' : 'duration');
}

/** A timer counts whole milliseconds, and may be late by one. */
const TIMER = 2;
const asleep = new Int32Array(new SharedArrayBuffer(4));

/**
 * Resolves with nothing at that time, early when the signal comes. The last two milliseconds this thread sleeps: with
 * timers alone, each period below two milliseconds would be one.
 */
async function sleep(until: number, signal: AbortSignal): Promise<undefined> {
  const ms = until - performance.now();
  if (ms > TIMER) await delay(ms - TIMER, undefined, { signal }).catch(() => {});
  // What was written for the target goes out first.
  await turn();
  const rest = until - performance.now();
  if (rest > 0 && !signal.aborted) Atomics.wait(asleep, 0, 0, rest);
  // And a stop that came meanwhile is taken before it is interrupted.
  await turn();
  return undefined;
}

function hasEnded({ kind }: StopReply): boolean {
  return kind === 'exited' || kind === 'terminated' || kind === 'gone';
}

/** Stops that are not ours: signals are handed on, children let go. */
async function goesOn(session: Session, arch: Architecture, stop: StopReply): Promise<Resume> {
  if (stop.kind !== 'signal') return { kind: 'continue' };
  await session.children.letGoAt(stop);
  const signal = await ownSignal(session, arch, stop);
  return signal === undefined ? { kind: 'continue' } : { kind: 'continue', signal };
}
