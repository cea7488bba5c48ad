import { SpaceNumbers, stackBytes } from '../facts/index.js';
import {
  Backtraces,
  type CallKind,
  CallTracer,
  EventOutput,
  FunctionTracer,
  loopsToStart,
  PollTracer,
  TallyTracer,
  WatchEvents,
} from '../probes/index.js';
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
  readonly tally: TallyTracer;
  readonly watches: WatchEvents;
  readonly output: EventOutput;
  /** The trace, without what the user's threshold leaves out. */
  readonly sink: TraceSink;
  /** What reaches the trace. */
  readonly counting: CountingSink;
}

/** Second phase. `hooked` tells what stands behind a return address that is a trampoline's. */
export function buildTracers(options: RecordOptions, { program, harts }: Verified, hooked: Hooked): Tracers {
  const { arch, elf, debug, polls, functions, tallies } = program;
  const counting = new CountingSink(options.sink, harts);
  const sink = options.thresholdNs ? new Threshold(counting, options.thresholdNs) : counting;
  const output = new EventOutput(sink);
  const kinds: CallKind[] = [];
  if (polls && debug) {
    const { stackDepth: depth } = options;
    const backtraces = depth ? new Backtraces(elf, arch, debug, { depth, hooked }) : undefined;
    kinds.push(new PollTracer(polls.futures, polls.probes, output, backtraces));
  }
  const stackSize = stackBytes(elf);
  if (functions) {
    const loops = loopsToStart(elf, arch);
    kinds.push(new FunctionTracer(functions, output, { ...options.functions, loops }));
  }
  const tally = new TallyTracer(tallies?.probes ?? []);
  if (tallies) kinds.push(tally);
  const caught = program.catches.map(({ address }) => address);
  const spaces = new SpaceNumbers();
  const calls = new CallTracer(arch, output, kinds, { stackBytes: stackSize, catches: caught, spaces });
  return { calls, spaces, tally, watches: new WatchEvents(elf, debug, output), output, sink, counting };
}
