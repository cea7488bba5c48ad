import type { StuckTask } from '../async/futures/index.js';
import { silent } from '../base/logger.js';
import { CallTracer, EventOutput, SpaceNumbers } from '../calls/index.js';
import type { Engines } from '../engines/index.js';
import { type KindTracer, type TracerContext, WatchEvents } from '../probes/index.js';
import { stackBytes } from '../target/index.js';
import { nameIn, programName } from '../target/stacks/index.js';
import type { Hooked } from '../target/unwind/index.js';
import {
  EventsOfProgram,
  Filter,
  isEnd,
  onEvents,
  Threshold,
  type TraceEvent,
  type TraceFacts,
  type TraceSink,
  timeOf,
} from '../trace/index.js';
import type { Connection } from './connection.js';
import type { HartNumbers } from './harts.js';
import { type Program, samplesOf } from './program.js';
import type { RecordOptions } from './recording.js';
import { Sampler } from './sampler.js';
import { StopTimes } from './stop-times.js';
import type { Verified } from './verify.js';

/** The tracers, which make events of hits, and the sink that takes the events. */
export interface Tracers {
  readonly calls: CallTracer;
  /** Of further programs. */
  readonly others: readonly TracedProgram[];
  readonly spaces: SpaceNumbers;
  /** One for each kind that traces code. */
  readonly kinds: readonly KindTracer[];
  readonly watches: WatchEvents;
  /** Undefined if no stacks are sampled. */
  readonly sampler: Sampler | undefined;
  readonly output: EventOutput;
  /** The trace, except for calls below the user's threshold. */
  readonly sink: TraceSink;
  readonly counting: CountingSink;
}

/** A further program, and what makes events of its hits. */
export interface TracedProgram {
  readonly program: Program;
  readonly calls: CallTracer;
}

/** The recording that the tracers belong to. They ask it at hits and samples, when it runs. */
export interface Running {
  readonly connection: Connection;
  readonly engines: () => Engines;
}

type TracerOptions = Pick<RecordOptions, 'sink' | 'thresholdNs' | 'functions' | 'stackDepth' | 'observer' | 'logger'>;

/** Second phase. Without a `run` no target is there any more: nothing is sampled, and no return address is a hook's. */
export function buildTracers(
  options: TracerOptions,
  { program, harts }: Pick<Verified, 'program' | 'harts'>,
  served: TracerContext['served'],
  run?: Running,
): Tracers {
  const counting = new CountingSink(options.sink, harts);
  const sink = options.thresholdNs ? new Threshold(counting, options.thresholdNs) : counting;
  const { others } = program;
  const of = others.length + 1;
  const main = new EventsOfProgram({ index: 0, of, program: undefined, nameOf: (name) => name });
  const output = new EventOutput(of === 1 ? sink : onEvents((event) => sink.event(main.of(event))));
  const hooked: Hooked = (returnAddress) => run?.engines().hooked(returnAddress);
  const spaces = new SpaceNumbers();
  const context = { ...options, spaces, hooked, served };
  const { kinds, calls } = tracersOf(program, output, context);
  const watches = new WatchEvents(program.elf, program.debug, output);
  const plan = samplesOf(program);
  const sampler = run && plan && new Sampler(plan, { program, harts }, output, run, options.logger ?? silent);
  const traced = others.map((other, index): TracedProgram => {
    const names = { program: programName(other.elf), nameOf: (name: string) => nameIn(other.elf, name) };
    const mapped = new EventsOfProgram({ index: index + 1, of, ...names });
    const own = onEvents((event) => {
      output.moveTo(timeOf(event));
      sink.event(mapped.of(event, output.time));
    });
    return { program: other, calls: tracersOf(other, new EventOutput(own), context).calls };
  });
  return { calls, others: traced, spaces, kinds, watches, sampler, output, sink, counting };
}

interface CallContext extends Pick<TracerOptions, 'functions' | 'stackDepth' | 'observer'> {
  readonly spaces: SpaceNumbers;
  readonly hooked: Hooked;
  readonly served: TracerContext['served'];
}

/** What makes events of a program's hits. */
function tracersOf(
  { elf, arch, debug, kinds: found }: Program,
  output: EventOutput,
  { functions = {}, stackDepth, observer, spaces, hooked, served }: CallContext,
): Pick<Tracers, 'calls' | 'kinds'> {
  const { values, maxDepth } = functions;
  const context = { elf, arch, debug, output, spaces, stackDepth, hooked, served, values, maxDepth };
  let next = found.reduce((sum, each) => sum + (each.found.keys ?? 0), 0);
  const kinds = found.flatMap((each) => each.kind.tracer?.(each.found, { ...context, nextKey: () => next++ }) ?? []);
  const calls = new CallTracer(
    arch,
    output,
    kinds.flatMap((kind) => kind.calls ?? []),
    {
      stackBytes: stackBytes(elf),
      catches: found.flatMap((each) => each.found.catches ?? []),
      instants: kinds.flatMap(({ instants = [] }) => instants),
      crossings: kinds.flatMap(({ crossings = [] }) => crossings),
      spaces,
      observer,
      switchesStacks: kinds.some(({ switchesStacks }) => switchesStacks),
    },
  );
  return { calls, kinds };
}

/** Of all programs. */
export function allCalls({ calls, others }: Pick<Tracers, 'calls' | 'others'>): readonly CallTracer[] {
  return [calls, ...others.map((other) => other.calls)];
}

/** Memory has shown tasks that wait for each other, or for nobody. */
export function emitStuck({ output, kinds }: Tracers, time: number, stuck: readonly StuckTask[]): void {
  output.moveTo(time);
  for (const kind of kinds) kind.stuck?.(stuck);
}

/** More stops than these are those of probes. */
const mostStops = 1000;

/** Counts the events that pass through, for progress and limits. */
class CountingSink extends Filter {
  count = 0;
  span = 0;
  /** Where nothing was recorded, in guest nanoseconds: because of `why`, or because the link was broken. */
  readonly gaps: { readonly from_ns: number; readonly to_ns: number; readonly why?: string }[] = [];
  readonly stops = new StopTimes(mostStops);
  onEvent: (count: number) => void = () => {};
  /** Called once, behind the first event. */
  onFirst: () => void = () => {};
  /** Called when all events are there, before the sink ends. */
  onLast: () => void = () => {};
  #first: number | undefined;
  #begun = false;

  constructor(sink: TraceSink, harts: HartNumbers) {
    super(sink);
    harts.onNew = (hart) => {
      if (this.#begun) this.sink.hart(hart);
    };
  }

  override begin(...args: Parameters<TraceSink['begin']>): void {
    this.#begun = true;
    this.sink.begin(...args);
  }

  event(event: TraceEvent): void {
    this.count++;
    if (event.type === 'gap') {
      const { from, to, why } = event;
      this.gaps.push({ from_ns: from, to_ns: to, ...(why === undefined ? {} : { why }) });
    }
    const time = timeOf(event);
    const isFirst = this.#first === undefined;
    this.#first ??= time;
    this.span = time - this.#first;
    this.stops.event(time);
    this.sink.event(isEnd(event) && this.stops.areIn(event.began, time) ? { ...event, stopped: true } : event);
    if (isFirst) this.onFirst();
    this.onEvent(this.count);
  }

  override flush(): void {
    if (this.#begun) this.sink.flush();
  }

  override end(facts?: TraceFacts): void {
    this.onLast();
    this.sink.end(facts);
  }
}
