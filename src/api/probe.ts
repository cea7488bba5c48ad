import type { AnyProbe } from '../probes/index.js';
import type { ProbeFact } from '../trace/index.js';
import { type Capture, parseCapture } from './captures.js';
import type { AnyHit, Handler, ProbeOptions } from './hits.js';

/** A Future whose polls a `poll:` probe does not see, or not all of them, and why. */
export interface UnseenFuture {
  readonly future: string;
  readonly instance: string;
  readonly seen: 'lower-bound' | 'not' | 'no-code';
  readonly reason: string;
}

/** A probe of a target, and what is known of it. */
export class Probe {
  /** As it was asked for: `fn:labkern::work::deep0`. */
  readonly text: string;
  /** Hits so far. */
  hits = 0;
  /** Calls and polls whose return was seen. */
  returns = 0;
  /** Calls and polls whose return was not seen: they never return, were unwound, or the run ended before. */
  lost = 0;
  /** How each place of it is carried out, and why so; known once a run has begun. */
  places: readonly ProbeFact[] = [];
  /** Of `poll:` probes: Futures of whose polls some call no handler, and why; known once a run has begun. */
  unseen: readonly UnseenFuture[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /**
   * How it is carried out: without stops (`target`), with one at each hit (`stop`), both in different places (`mixed`),
   * or not at all (`none`). Undefined before the first run, and for what has no choice (`watch:` stops at each access).
   */
  get engine(): ProbeFact['engine'] | 'mixed' | undefined {
    const engines = new Set(this.places.map(({ engine }) => engine));
    return engines.size > 1 ? 'mixed' : [...engines][0];
  }

  /** Why it is not carried out without stops, of the first place that is not. */
  get reason(): string | undefined {
    return this.places.find(({ why }) => why !== undefined)?.why;
  }
}

/** A probe with what its user wants of it. */
export interface Asked {
  readonly probe: Probe;
  readonly spec: AnyProbe;
  readonly captures: readonly Capture[];
  readonly stop: boolean;
  readonly handler: Handler<AnyHit> | undefined;
  readonly onReturn: ((hit: AnyHit, result: unknown, duration: number) => unknown) | undefined;
}

/** What the two forms of `Target.probe` come to. */
export function askedProbe(
  spec: AnyProbe,
  options: ProbeOptions<AnyHit, unknown>,
  handler: Handler<AnyHit> | undefined,
): Asked {
  const { capture = [], stop = false, onReturn } = options;
  return { probe: new Probe(spec.text), spec, captures: capture.map(parseCapture), stop, handler, onReturn };
}
