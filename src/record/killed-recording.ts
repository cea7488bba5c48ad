import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { addOffset, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { Answers, type Hit } from '../calls/index.js';
import { type CounterScale, type EnginePlanOptions, type InstalledFacts, recoveredRecords } from '../engines/index.js';
import { type LogPart, LogReader, type RecordDispatcher, type RecordText, rawLogMagic } from '../inject/index.js';
import { hartSource } from '../target/index.js';
import { HartNumbers, HartWords } from './harts.js';
import { enginePlan, type Program, programAt, samplesOf } from './program.js';
import type { RecordOptions } from './recording.js';
import { type BeginEntry, entryFrom, type LogEntry, type ProbeEntry, type StopEntry } from './recording-log.js';
import { buildTracers, type Tracers } from './tracers.js';

/** What a recording that was killed has left, given back as a trace. */
export interface Recovered {
  readonly events: number;
  readonly records: number;
  /** What the trace does not have, in sentences. */
  readonly notes: readonly string[];
}

/** Sees the inputs of a recording before the events that come of them are emitted. */
export interface InputObserver {
  /** `offset`: where it is in the file. */
  entry(offset: number, entry: LogEntry): void;
  /** `number` counts records from 1. `text`: undefined if no probe writes such a record. */
  record(offset: number, number: number, text: RecordText | undefined, nanos: number): void;
}

export type RecoverOptions = Pick<
  RecordOptions,
  'sink' | 'engine' | 'functions' | 'stackDepth' | 'thresholdNs' | 'until'
> & {
  readonly program: Program;
  readonly logger?: Logger;
  readonly inputs?: InputObserver;
};

/** The inputs of a recording, in the file next to its trace. */
export class KilledRecording {
  readonly #begin: BeginEntry;
  readonly #path: string;
  readonly #fd: number;
  readonly #size: number;
  readonly #reader: LogReader;

  /** @throws RsptraceError `RECORDS_MISSING`, `RECORDS_DAMAGED` */
  constructor(path: string) {
    this.#path = path;
    this.#fd = opened(path);
    this.#size = fstatSync(this.#fd).size;
    const read = (into: Uint8Array, length: number, at: number): number => readSync(this.#fd, into, 0, length, at);
    const magic = new Uint8Array(rawLogMagic.length);
    read(magic, magic.length, 0);
    const isOther = Buffer.compare(magic.subarray(0, 8), rawLogMagic.subarray(0, 8)) !== 0;
    if (isOther) throw damaged(path, 'it does not begin as such a file');
    if (Buffer.compare(magic, rawLogMagic) !== 0)
      throw damaged(
        path,
        `it is of version ${magic[8]} of its layout, and this rsptrace reads version ${rawLogMagic[8]}`,
      );
    this.#reader = new LogReader(read);
    const part = this.#reader.next(this.#size);
    const entry = part?.kind === 'entry' ? entryFrom(part.text) : undefined;
    if (entry?.type !== 'begin') throw damaged(path, 'it does not say what was recorded');
    this.#begin = entry;
  }

  get asked(): object {
    return this.#begin.asked;
  }

  close(): void {
    closeSync(this.#fd);
  }

  /**
   * Gives the sink every event of the recording, from its begin. `program` and the other options are those of the
   * recording.
   * @throws RsptraceError `RECORDS_MISMATCH` if the program is another one, `RECORDS_DAMAGED`
   */
  async recover(options: RecoverOptions): Promise<Recovered> {
    const { program: linked, logger = silent } = options;
    const { elf } = linked;
    const { info, loadBias, watches } = this.#begin;
    if (elf.buildId !== info.buildId) throw mismatch(`${elf.path} is not the program that was recorded`);
    const program = await programAt(linked, BigInt(loadBias), logger);
    const recovery = new Recovery({ ...options, program }, this.#begin);
    const notes = watches ? ['accesses of watched places are not in these records'] : [];
    if (options.program.others.length > 0) notes.push('events of further programs are not in these records');
    if (samplesOf(options.program)) notes.push('samples of stacks are not in these records');
    let last: string | undefined;
    options.inputs?.entry(rawLogMagic.length, this.#begin);
    for (;;) {
      const offset = this.#reader.position;
      const part = this.#reader.next(this.#size);
      if (part === undefined) break;
      if (part.kind === 'damaged') {
        last = `the records are damaged at offset ${part.at}: ${part.why}`;
        break;
      }
      if (part.kind === 'records') {
        const from = this.#reader.position - (part.end - part.start);
        recovery.records(part, this.#reader.slot, from);
      } else {
        const entry = this.#entryIn(part.text);
        options.inputs?.entry(offset, entry);
        last = this.#replay(entry, recovery);
      }
      if (last !== undefined) break;
    }
    if (recovery.isEmpty) throw mismatch('none of its records is an event of this program');
    return { ...recovery.end(), notes: [...notes, ...recovery.notes, ...(last === undefined ? [] : [last])] };
  }

  #entryIn(text: string): LogEntry {
    const entry = entryFrom(text);
    if (entry === undefined) throw damaged(this.#path, 'it has an entry that is not known');
    return entry;
  }

  /** Returns why the rest cannot be understood, if it cannot. */
  #replay(entry: LogEntry, recovery: Recovery): string | undefined {
    switch (entry.type) {
      case 'begin':
        throw damaged(this.#path, 'it begins twice');
      case 'hart':
        recovery.hart(entry.id);
        return undefined;
      case 'words':
        recovery.words(entry.words);
        return undefined;
      case 'installed':
        if (!recovery.installed(entry)) throw mismatch('the probes are not those that were recorded');
        this.#reader.slot = 2 ** entry.slotShift;
        return undefined;
      case 'clock':
        recovery.scale = entry;
        return undefined;
      case 'stop':
        recovery.stop(entry);
        return undefined;
      case 'left-out':
        recovery.leftOut(entry.probes);
        return undefined;
      case 'left':
        return 'the target began anew: what was recorded then is left out';
    }
  }
}

/** Feeds the inputs of a recording to tracers of their own. */
class Recovery {
  readonly #options: RecoverOptions;
  readonly #harts: HartNumbers;
  readonly #words: HartWords;
  readonly #tracers: Tracers;
  #dispatcher: RecordDispatcher | undefined;
  scale: CounterScale = { ticks: 0, nanos: 0, nanosPerTick: 1 };
  #records = 0;
  readonly notes: string[] = [];

  /** The program of the options lies where it lay in the target. */
  constructor(options: RecoverOptions, { harts, info }: Pick<BeginEntry, 'harts' | 'info'>) {
    this.#options = options;
    this.#harts = new HartNumbers(harts, info.isProcess === true);
    this.#words = new HartWords(harts.length);
    this.#tracers = buildTracers(options, { program: options.program, harts: this.#harts });
    this.#tracers.sink.begin(info);
    this.#tracers.sink.flush();
  }

  hart(id: string): void {
    this.#harts.number(id);
  }

  words(words: readonly (readonly [word: string, hart: number])[]): void {
    this.#words.hints = new Map(words.map(([word, hart]) => [BigInt(word), hart]));
  }

  /** False if these are other probes than the program's. */
  installed(facts: InstalledFacts): boolean {
    const { program, engine, functions, stackDepth, until } = this.#options;
    const end = until && addOffset(until, program.elf.loadBias);
    const plan = enginePlan(program, { wanted: engine, stackDepth, values: functions?.values, until: end });
    if (facts.hasOwnTime) this.notes.push('the time that trampolines took is in the durations');
    this.#dispatcher = recoveredRecords({
      plan: { ...plan, ...target(program, facts) },
      facts,
      tracer: this.#tracers.calls,
      time: (ticks) => this.#nanos(ticks),
      hartNumber: (word) => this.#words.number(word),
      threadNumber: (id) => this.#harts.number(id),
    });
    return this.#dispatcher !== undefined;
  }

  leftOut(probes: readonly ProbeEntry[]): void {
    this.#tracers.calls.leftOut(
      probes.map(({ name, address, why }) => ({ name, address: addr(BigInt(address)), engine: 'none', why })),
    );
  }

  /** `from`: where in the file they begin. */
  records({ view, start, end }: Extract<LogPart, { kind: 'records' }>, slot: number, from: number): void {
    const { inputs } = this.#options;
    for (let at = start; at < end; at += slot) {
      this.#records++;
      if (inputs) {
        const text = this.#dispatcher?.describe(view, at);
        inputs.record(from + at - start, this.#records, text, text === undefined ? 0 : this.#nanos(text.ticks));
      }
      this.#dispatcher?.tell(view, at);
    }
  }

  #nanos(ticks: number): number {
    const { ticks: from, nanos, nanosPerTick } = this.scale;
    return Math.round(nanos + (ticks - from) * nanosPerTick);
  }

  stop(entry: StopEntry): void {
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

  end(): Omit<Recovered, 'notes'> {
    const { calls, counting, sink } = this.#tracers;
    calls.finish();
    const { count: events } = counting;
    const recording = {
      ...{ end: 'killed', stub: undefined, events, stops: 0, records: this.#records, missing: 0 },
      ...{ foreignHits: 0, neverLoaded: [], tailLost: true },
    };
    sink.end({ probes: [], recording });
    return { events, records: this.#records };
  }
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

function opened(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (cause) {
    throw new RsptraceError('RECORDS_MISSING', `there are no records in ${path}`, {
      hint: 'a recording that was killed leaves them, or one with --keep-records; the trace has all that was understood',
      cause,
    });
  }
}

function damaged(path: string, why: string): RsptraceError {
  return new RsptraceError('RECORDS_DAMAGED', `${path} cannot be understood: ${why}`, {
    hint: 'the trace itself has what was understood before the recording was killed',
  });
}

function mismatch(why: string): RsptraceError {
  return new RsptraceError('RECORDS_MISMATCH', why, {
    hint: 'give back the files as they were when the recording was killed, and the same version of rsptrace',
  });
}
