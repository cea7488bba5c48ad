import type { StopObserver } from '../calls/index.js';

/** Reads the ring and emits the events of its records. */
export interface Drain extends StopObserver {
  /** Nothing is read any more unless it is asked for. */
  stop(): void;
}
