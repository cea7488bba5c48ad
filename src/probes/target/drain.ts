import type { Beside } from '../tracer.js';

/** Reads the ring, and tells the tracers what stands in its records. */
export interface Drain extends Beside {
  /** Nothing more is read but what is asked for. */
  stop(): void;
}
