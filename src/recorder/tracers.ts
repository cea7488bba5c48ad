import { SpaceNumbers, stackBytes } from '../facts/index.js';
import { CallTracer, EventOutput, type KindTracer, WatchEvents } from '../probes/index.js';
import { Threshold, type TraceSink } from '../trace/index.js';
import type { Hooked } from '../unwind/index.js';
import { CountingSink } from './counting-sink.js';
import type { RecordOptions } from './recording.js';
import type { Verified } from './verify.js';

/** The tracers, which make events of hits, and the sink that takes the events. */
export interface Tracers {
  readonly calls: CallTracer;
  /** The address spaces that the program runs in. */
  readonly spaces: SpaceNumbers;
  /** One for each kind that traces code. */
  readonly kinds: readonly KindTracer[];
  readonly watches: WatchEvents;
  readonly output: EventOutput;
  /** The trace, except for calls below the user's threshold. */
  readonly sink: TraceSink;
  /** What reaches the trace. */
  readonly counting: CountingSink;
}

/** Second phase. `hooked` gives the original of a return address that a trampoline has replaced. */
export function buildTracers(
  options: Pick<RecordOptions, 'sink' | 'thresholdNs' | 'functions' | 'stackDepth' | 'observer'>,
  { program, harts }: Pick<Verified, 'program' | 'harts'>,
  hooked: Hooked,
): Tracers {
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
      instants: kinds.flatMap(({ instants = [] }) => instants),
      spaces,
      observer: options.observer,
    },
  );
  return { calls, spaces, kinds, watches: new WatchEvents(elf, debug, output), output, sink, counting };
}
