import type { StuckTask } from '../async/futures/index.js';
import { addOffset, addr } from '../base/addr.js';
import { Answers, type Hit } from '../calls/index.js';
import {
  type CounterScale,
  type EnginePlanOptions,
  type InstalledFacts,
  type RecoveredRecords,
  recoveredRecords,
} from '../engines/index.js';
import { behindStops, type LogPart, type RecordCounter, servedAt, type TimeScale } from '../inject/index.js';
import { hartSource } from '../target/index.js';
import { type GuestNanos, probeFrom, type RecordingFacts } from '../trace/index.js';
import { ConsoleEvents } from './console-lines.js';
import { HartNumbers, HartWords } from './harts.js';
import type { Recovered, RecoverOptions } from './kept-records.js';
import type { BeginEntry, EndEntry, LogEntry, ProbeEntry, StopEntry, StuckEntry } from './log-entries.js';
import { enginePlan, type Program } from './program.js';
import { buildTracers, emitStuck, type Tracers } from './tracers.js';

/** Feeds the inputs of a recording to tracers of their own. */
export class Recovery {
  readonly #options: RecoverOptions;
  readonly #harts: HartNumbers;
  readonly #words: HartWords;
  readonly #tracers: Tracers;
  readonly #printed: ConsoleEvents;
  #understood: RecoveredRecords | undefined;
  #time: TimeScale = (ticks) => ticks;
  #records = 0;
  /** So often the target was seen to stand. */
  #stood = 0;

  /** The program of the options lies where it lay in the target. */
  constructor(options: RecoverOptions, { harts, info }: Pick<BeginEntry, 'harts' | 'info'>) {
    this.#options = options;
    this.#harts = new HartNumbers(harts, info.isProcess === true);
    this.#words = new HartWords(harts.length);
    this.#tracers = buildTracers(options, { program: options.program, harts: this.#harts }, (pc) =>
      servedAt(this.#understood?.served ?? [], pc),
    );
    this.#printed = new ConsoleEvents(options.sink, this.#tracers.output);
    this.#tracers.counting.onFirst = () => this.#printed.begin();
    this.#tracers.sink.begin(info);
    this.#tracers.sink.flush();
  }

  /** Does what an entry says; false if its probes are not the program's, or its harts another target's. */
  entry(entry: LogEntry): boolean {
    const { calls, output, counting } = this.#tracers;
    switch (entry.type) {
      case 'hart':
        this.#harts.number(entry.id);
        break;
      case 'words':
        this.#words.hints = new Map(
          entry.words.filter(([, hart]) => hart < this.#harts.count).map(([word, hart]) => [BigInt(word), hart]),
        );
        break;
      case 'installed':
        return this.#installed(entry);
      case 'clock':
        this.#scale(entry);
        break;
      case 'stop':
        // Calls are kept by hart.
        if (entry.hart >= this.#harts.count) return false;
        this.#stop(entry);
        break;
      case 'stood':
        this.#stood++;
        counting.stops.stood(entry.time);
        break;
      case 'left-out':
        this.#leftOut(entry.probes);
        break;
      case 'left':
        calls.abandon();
        this.#words.forget();
        output.moveTo(entry.time ?? output.time);
        break;
      case 'reset':
        output.emit({ type: 'reset', time: output.time });
        break;
      case 'gap':
        this.#gap(entry);
        break;
      case 'console':
        this.#printed.line(entry.text);
        break;
      case 'finished':
        calls.finish();
        break;
      case 'stuck':
        emitStuck(this.#tracers, entry.time, entry.tasks.map(stuckTask));
        break;
      default:
    }
    return true;
  }

  #gap({ from, to, why }: Extract<LogEntry, { type: 'gap' }>): void {
    const { calls, output, counting } = this.#tracers;
    calls.missed();
    counting.event({
      type: 'gap',
      from: from as GuestNanos,
      to: to as GuestNanos,
      ...(why === undefined ? {} : { why }),
    });
    output.moveTo(to);
  }

  #scale({ behindStops: isBehind = false, ...from }: CounterScale): void {
    const time: TimeScale = (ticks) => Math.round(from.nanos + (ticks - from.ticks) * from.nanosPerTick);
    const counter: RecordCounter = { time, nanosPerTick: from.nanosPerTick, origin: () => from };
    this.#time = isBehind ? behindStops(counter, () => this.#tracers.output.time).time : time;
  }

  #installed(facts: InstalledFacts): boolean {
    const { program, engine, functions, stackDepth, returns, until } = this.#options;
    const end = until && addOffset(until, program.elf.loadBias);
    const plan = enginePlan(program, { wanted: engine, stackDepth, values: functions?.values, returns, until: end });
    this.#understood = recoveredRecords({
      plan: { ...plan, ...target(program, facts) },
      facts,
      tracer: this.#tracers.calls,
      time: (ticks) => this.#time(ticks),
      earlier: this.#understood?.own?.facts,
      hartNumber: (word) => this.#words.number(word),
      threadNumber: (id) => this.#harts.number(id),
    });
    return this.#understood !== undefined;
  }

  #leftOut(probes: readonly ProbeEntry[]): void {
    this.#tracers.calls.leftOut(
      probes.map(({ name, address, why }) => ({ name, address: addr(BigInt(address)), engine: 'none', why })),
    );
  }

  /** `from`: where in the file they begin. */
  records({ view, start, end }: Extract<LogPart, { kind: 'records' }>, slot: number, from: number): void {
    const { inputs } = this.#options;
    const dispatcher = this.#understood?.dispatcher;
    for (let at = start; at < end; at += slot) {
      this.#records++;
      if (inputs) {
        const text = dispatcher?.describe(view, at);
        inputs.record(from + at - start, this.#records, text, text === undefined ? 0 : this.#time(text.ticks));
      }
      dispatcher?.dispatch(view, at);
    }
  }

  #stop(entry: StopEntry): void {
    const hit: Hit = {
      hart: entry.hart,
      pc: addr(BigInt(entry.pc)),
      stackPointer: BigInt(entry.sp),
      space: entry.space,
      time: entry.time,
      systemCall: entry.systemCall,
      registers: {
        register: (name) => (Object.hasOwn(entry.registers, name) ? BigInt(entry.registers[name] ?? 0) : undefined),
      },
    };
    const asked = entry.memory.map(({ address, length }) => ({ address: addr(BigInt(address)), length }));
    const answers = entry.memory.map(({ length, bytes }) =>
      bytes?.length === 2 * length ? new Uint8Array(Buffer.from(bytes, 'hex')) : undefined,
    );
    this.#tracers.calls.replay(hit, new Answers(asked, answers));
  }

  /** There were records, and no event came of them. */
  get isEmpty(): boolean {
    return this.#records > 0 && this.#tracers.output.events === 0;
  }

  /** `entry`: undefined if the recording was killed. */
  end(entry: EndEntry | undefined): Pick<Recovered, 'events' | 'records' | 'facts'> {
    const { calls, counting, sink } = this.#tracers;
    if (entry === undefined) calls.finish();
    const { count: events } = counting;
    const facts = {
      ...(entry ? factsOf(entry, counting.stops.first) : { probes: [], recording: this.#killed() }),
    };
    const ownTime = this.#understood?.own?.facts;
    const whole = { ...facts, ...(ownTime && { ownTime }), recording: { ...facts.recording, events } };
    sink.end(whole);
    return { events, records: this.#records, facts: whole };
  }

  /** What is known, at the least. Without trampolines nothing was in the target's memory. */
  #killed(): RecordingFacts {
    return {
      ...{ end: 'killed', stub: undefined, events: 0, stops: this.#stood, records: this.#records, missing: 0 },
      ...{ foreignHits: 0, neverLoaded: [], tailLost: this.#understood !== undefined },
    };
  }
}

/** Where stops are none of probes they are in the facts, with the events behind them. */
function factsOf({ probes, recording }: EndEntry, stoppedAt: readonly number[]) {
  const { stoppedAt: asked, ...others } = recording;
  return {
    probes: probes.map(probeFrom),
    recording: { ...others, ...(asked && stoppedAt.length > 0 ? { stoppedAt: stoppedAt.map(String) } : {}) },
  };
}

function stuckTask(task: StuckEntry['tasks'][number]): StuckTask {
  const futures = task.futures.map(({ address, instance }) => ({ address: addr(BigInt(address)), instance }));
  return { ...task, futures };
}

/** What was known of the target. */
function target(
  { arch, elf, debug }: Program,
  { harts, threads }: InstalledFacts,
): Pick<EnginePlanOptions, 'harts' | 'hart' | 'process'> {
  const process = threads !== undefined;
  const several = harts > 1 && !process;
  return { harts, process, hart: several ? hartSource(arch, elf, debug, harts) : undefined };
}
