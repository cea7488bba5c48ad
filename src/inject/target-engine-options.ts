import type { Architecture, ProbeCode } from '../arch/index.js';
import type { Logger } from '../base/logger.js';
import type { CallTracer } from '../calls/index.js';
import type { Session } from '../rsp/index.js';
import type { Region, Scratch } from '../scratch/index.js';
import type { RawLog } from './raw-log.js';
import type { RecordTime } from './record-dispatcher.js';
import type { Site } from './sites.js';
import type { WaitLimit } from './wait-lease.js';

export interface TargetEngineOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly code: ProbeCode;
  readonly sites: readonly Site[];
  readonly slotShift: number;
  readonly scratch: Scratch;
  /** Bytes at the end of the scratch memory's code that trampolines must not use. */
  readonly reserved?: number;
  /** Executable zero bytes near the program's text, for hops. */
  readonly near: Region | undefined;
  readonly tracer: CallTracer;
  readonly time: RecordTime;
  /** The number of the hart that a record names. */
  readonly hartNumber: (word: bigint) => number;
  /** Records need not name their harts. */
  readonly isOneHart: boolean;
  /**
   * Polls can read the Future around them, because there is one hart only, or threads have words of their own for it.
   */
  readonly nests: boolean;
  /** Bytes from fs's base to these words. */
  readonly outerWords?: number | undefined;
  /** The program's functions keep frame pointers. */
  readonly chained?: boolean;
  /** The target gets its room at stops alone, so that no two runs differ by how fast this process reads. */
  readonly isRepeatable?: boolean;
  /** How long a process's writers may wait for room. */
  readonly waits?: WaitLimit | undefined;
  /** Where drained records wait; without it, in memory. */
  readonly log?: RawLog | undefined;
  readonly logger?: Logger;
}
