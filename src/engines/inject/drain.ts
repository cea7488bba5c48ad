import type { StopObserver } from '../../probes/index.js';

/** Reads the ring, and tells the tracers what stands in its records. */
export interface Drain extends StopObserver {
  /** Nothing more is read but what is asked for. */
  stop(): void;
}
