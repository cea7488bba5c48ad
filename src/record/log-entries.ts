import type { CounterScale, InstalledFacts } from '../engines/index.js';
import type { TraceInfo } from '../trace/index.js';

/** A hart as the stub names it. */
interface KnownHart {
  readonly id: string;
  readonly name: string;
}

/** Everything that a {@link RawLog} has except for records. */
export type LogEntry =
  | BeginEntry
  | { readonly type: 'hart'; readonly id: string }
  | { readonly type: 'words'; readonly words: readonly (readonly [word: string, hart: number])[] }
  | ({ readonly type: 'installed' } & InstalledFacts)
  | ({ readonly type: 'clock' } & CounterScale)
  | StopEntry
  /** Probes that do not see all hits from now on. */
  | { readonly type: 'left-out'; readonly probes: readonly ProbeEntry[] }
  /** The machine was reset, or another program runs: what comes then is not understood without this process. */
  | { readonly type: 'left' };

/** What was recorded, of which target. */
export interface BeginEntry {
  readonly type: 'begin';
  readonly asked: object;
  readonly info: TraceInfo;
  /** How far the program was loaded from its own addresses. */
  readonly loadBias: string;
  readonly harts: readonly KnownHart[];
  /** Accesses of watched places are not among the records. */
  readonly watches: boolean;
}

/** A probe that was left out. */
export interface ProbeEntry {
  readonly name: string;
  readonly address: string;
  readonly why?: string | undefined;
}

/** A stop at a probe: all that was read of the target there. */
export interface StopEntry {
  readonly type: 'stop';
  readonly hart: number;
  readonly pc: string;
  readonly sp: string;
  readonly space?: number | undefined;
  readonly time: number;
  readonly registers: Readonly<Record<string, string>>;
  readonly memory: readonly MemoryEntry[];
}

/** Memory that was asked for, its bytes in hex; null where none is. */
interface MemoryEntry {
  readonly address: string;
  readonly length: number;
  readonly bytes: string | null;
}
