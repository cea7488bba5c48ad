// Where looks come from: a process of this machine, which runs on meanwhile, or a target behind a stub, which stands.
import { performance } from 'node:perf_hooks';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import {
  copyProcess,
  copyTarget,
  MachineKept,
  RunningProcess,
  type TargetCopy,
  type Understood,
} from '../../api/index.js';
import type { Architecture } from '../../arch/index.js';
import type { Region } from '../../async/tasks/index.js';
import { RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import type { ElfFile } from '../../elf/index.js';
import { sampling } from '../../profile/index.js';
import { isProcess } from '../../rsp/index.js';
import { verifyArchitecture } from '../../target/index.js';
import type { AtTarget } from '../at-target.js';
import type { Taken } from './look.js';

/** A target whose program is known. */
export interface Watched {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** Found out when it is asked for. */
  readonly program: () => Understood;
  /** What the program's Futures are has been found out. */
  readonly isKnown: boolean;
  readonly scan: readonly Region[];
  readonly debugDirs: readonly string[] | undefined;
  readonly logger: Logger;
}

/** Is given each copy, and resolves when the next look is due; with false there is none. */
type Takes = (taken: Taken) => Promise<boolean>;

/** Why no more looks come. */
export type Ended = 'asked' | 'target' | 'exec';

/** Copies a process again and again, without a stop. */
export async function lookAtProcess(
  pid: number,
  { elf, arch, scan, debugDirs, logger }: Watched,
  takes: Takes,
): Promise<Ended> {
  const watched = new RunningProcess(pid, elf, { arch, scan, debugDirs, logger });
  await watched.verify();
  for (let isFirst = true; ; isFirst = false) {
    let taken: Taken;
    try {
      taken = { copy: await watched.copy(), at: Date.now(), stoodMs: 0 };
    } catch (error) {
      if (isFirst || !(error instanceof RsptraceError) || error.code !== 'ATTACH_NO_PROCESS') throw error;
      return 'target';
    }
    if (!(await takes(taken))) return 'asked';
  }
}

/** Without a limit: longer than anybody looks, in milliseconds. */
const forever = 2 ** 31 - 1;

/** When what was written for the target has gone out. */
async function afterTurns(body: () => unknown): Promise<undefined> {
  await turn();
  await turn();
  body();
  return undefined;
}

/** So many looks in a row may find harts in other programs alone. */
const MOST_MISSED = 50;
/** So long the target runs after such a look, in milliseconds. */
const MISSED_MS = 100;

/**
 * Copies a target that stands for each look, and goes on when this returns. `since`: when it was connected to, which
 * made it stand, by the clock of `performance`.
 */
export async function lookAtStub(
  { session, recordingBegins, since }: AtTarget & { readonly since: number },
  { elf, arch, program, isKnown, ...options }: Watched,
  takes: Takes,
  stopper: AbortController,
): Promise<Ended> {
  verifyArchitecture(session, arch);
  if (isProcess(session.features)) {
    await session.findLocalProcess();
    const why = await session.whyUninterruptible();
    if (why !== undefined) throw new RsptraceError('RSP_BAD_STATE', `the process cannot be looked at: ${why}`);
  }
  recordingBegins();
  await session.passSignals();
  using kept = new MachineKept();
  const copy = (): Promise<TargetCopy> =>
    isProcess(session.features)
      ? copyProcess(session, elf, { arch, ...options })
      : copyTarget(session, program(), { arch, kept, ...options });
  let next: Promise<undefined> | undefined;
  let missed = 0;
  const look = async (since: number): Promise<boolean> => {
    const at = Date.now();
    let copied: TargetCopy;
    try {
      copied = await copy();
    } catch (error) {
      // It boots, or all its harts are in other programs.
      if (!(error instanceof RsptraceError) || error.code !== 'PROGRAM_NOT_SEEN' || ++missed === MOST_MISSED)
        throw error;
      next = delay(MISSED_MS, undefined, { signal: stopper.signal }).catch(() => undefined);
      return true;
    }
    missed = 0;
    const stoodMs = performance.now() - since;
    next = (async () => {
      if (!(await takes({ copy: copied, at, stoodMs }))) stopper.abort();
      return undefined;
    })();
    return true;
  };
  // Else it would stand while its debug info is read.
  if (isKnown) await look(since);
  const { signal } = stopper;
  const due = (): Promise<undefined> => {
    next ??= afterTurns(program);
    return next;
  };
  const { end } = await sampling({ session, arch, periodMs: 1, durationMs: forever, signal, look, due });
  if (end === 'target-ended') return 'target';
  await session.detach();
  return end === 'exec' ? 'exec' : 'asked';
}
