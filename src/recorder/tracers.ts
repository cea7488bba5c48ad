import { SpaceNumbers, stackBytes } from '../facts/index.js';
import { CallTracer, EventOutput, type KindTracer, WatchEvents } from '../probes/index.js';
import { Threshold, type TraceSink } from '../trace/index.js';
import type { Hooked } from '../unwind/index.js';
import { CountingSink } from './counting-sink.js';
import type { RecordOptions } from './recording.js';
import type { Verified } from './verify.js';

/** What turns hits into events, and where these go. */
export interface Tracers {
  readonly calls: CallTracer;
  /** The address spaces that the program runs in. */
  readonly spaces: SpaceNumbers;
  /** One a kind that traces code. */
  readonly kinds: readonly KindTracer[];
  readonly watches: WatchEvents;
  readonly output: EventOutput;
  /** The trace, without what the user's threshold leaves out. */
  readonly sink: TraceSink;
  /** What reaches the trace. */
  readonly counting: CountingSink;
}

/** Second phase. `hooked` tells what stands behind a return address that is a trampoline's. */
export function buildTracers(options: RecordOptions, { program, harts }: Verified, hooked: Hooked): Tracers {
  const { arch, elf, debug } = program;
  const counting = new CountingSink(options.sink, harts);
  const sink = options.thresholdNs ? new Threshold(counting, options.thresholdNs) : counting;
  const output = new EventOutput(sink);
  const { values, maxDepth } = options.functions ?? {};
  const context = { elf, arch, debug, output, stackDepth: options.stackDepth, hooked, values, maxDepth };
  const kinds = program.kinds.flatMap(({ kind, found }) => kind.tracer?.(found, context) ?? []);
  const spaces = new SpaceNumbers();
  const calls = new CallTracer(
    arch,
    output,
    kinds.flatMap((kind) => kind.calls ?? []),
    {
      stackBytes: stackBytes(elf),
      catches: program.kinds.flatMap(({ found }) => found.catches ?? []),
      instants: kinds.flatMap((kind) => kind.instants ?? []),
      spaces,
      observer: options.observer,
    },
  );
  return { calls, spaces, kinds, watches: new WatchEvents(elf, debug, output), output, sink, counting };
}
