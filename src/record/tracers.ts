import { type Logger, silent } from '../base/logger.js';
import { CallTracer, EventOutput } from '../calls/index.js';
import type { Engines } from '../engines/index.js';
import { type KindTracer, WatchEvents } from '../probes/index.js';
import { SpaceNumbers, stackBytes } from '../target/index.js';
import type { Hooked } from '../target/unwind/index.js';
import { Threshold, type TraceSink } from '../trace/index.js';
import type { Connection } from './connection.js';
import { CountingSink } from './counting-sink.js';
import { samplesOf } from './program.js';
import type { RecordOptions } from './recording.js';
import { Sampler } from './sampler.js';
import type { Verified } from './verify.js';

/** The tracers, which make events of hits, and the sink that takes the events. */
export interface Tracers {
  readonly calls: CallTracer;
  /** The address spaces that the program runs in. */
  readonly spaces: SpaceNumbers;
  /** One for each kind that traces code. */
  readonly kinds: readonly KindTracer[];
  readonly watches: WatchEvents;
  /** Undefined if no stacks are sampled. */
  readonly sampler: Sampler | undefined;
  readonly output: EventOutput;
  /** The trace, except for calls below the user's threshold. */
  readonly sink: TraceSink;
  /** What reaches the trace. */
  readonly counting: CountingSink;
}

/** The recording that the tracers belong to. They ask it at hits and samples, when it runs. */
interface Running {
  readonly connection: Connection;
  readonly engines: () => Engines;
}

type TracerOptions = Pick<RecordOptions, 'sink' | 'thresholdNs' | 'functions' | 'stackDepth' | 'observer' | 'logger'>;

/** Second phase. Without a `run` no target is there any more: nothing is sampled, and no return address is a hook's. */
export function buildTracers(
  options: TracerOptions,
  { program, harts }: Pick<Verified, 'program' | 'harts'>,
  run?: Running,
): Tracers {
  const { arch, elf, debug } = program;
  const counting = new CountingSink(options.sink, harts);
  const sink = options.thresholdNs ? new Threshold(counting, options.thresholdNs) : counting;
  const output = new EventOutput(sink);
  const { values, maxDepth } = options.functions ?? {};
  const hooked: Hooked = (returnAddress) => run?.engines().hooked(returnAddress);
  const spaces = new SpaceNumbers();
  const context = { elf, arch, debug, output, spaces, stackDepth: options.stackDepth, hooked, values, maxDepth };
  const kinds = program.kinds.flatMap(({ kind, found }) => kind.tracer?.(found, context) ?? []);
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
  const watches = new WatchEvents(elf, debug, output);
  const sampler = run && makeSampler({ program, harts }, output, run, options.logger);
  return { calls, spaces, kinds, watches, sampler, output, sink, counting };
}

/** Samples have their place among the events: everything before is emitted first. */
function makeSampler(
  { program, harts }: Pick<Verified, 'program' | 'harts'>,
  output: EventOutput,
  run: Running,
  logger: Logger = silent,
): Sampler | undefined {
  const plan = samplesOf(program);
  return (
    plan &&
    new Sampler({
      ...{ plan, program, logger },
      session: () => run.connection.session,
      hartNumber: (id) => harts.number(id),
      isOwnCode: (pc) => run.engines().isOwnCode(pc),
      hooked: (returnAddress) => run.engines().hooked(returnAddress),
      catchUp: () => run.engines().catchUp(),
      emit: (event) =>
        run.engines().whenDigested(() => {
          output.moveTo(event.time);
          output.emit({ ...event, time: output.time });
        }),
    })
  );
}
