import { existsSync, rmSync } from 'node:fs';
import type { StuckTask } from '../async/futures/index.js';
import { hex } from '../base/addr.js';
import type { Logger } from '../base/logger.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { Hit, Tracer, Visit } from '../calls/index.js';
import type { CounterScale, InstallationLog, InstalledFacts } from '../engines/index.js';
import { RawLog, traceFailed } from '../inject/index.js';
import { probeJson, type TraceFacts } from '../trace/index.js';
import type { BeginEntry, LogEntry } from './log-entries.js';

/** What was asked for, in the words of who asked: it is kept, and given back when the trace is recovered. */
export interface LogRequest {
  /** The file next to the trace. */
  readonly path: string;
  readonly asked: object;
  /** The file stays when all of it is in the trace, or is the trace. */
  readonly keeps?: boolean | undefined;
  /** It is the trace: nothing becomes events before somebody asks for that. */
  readonly isTrace?: boolean | undefined;
}

/** Of a trace without records: what lies next to it is of an older one, which `recover` would bring back. */
export function removeOlder({ path, isTrace }: LogRequest, logger: Logger): void {
  if (isTrace || !existsSync(path)) return;
  logger.warn({ path }, 'removes the records of an earlier recording');
  try {
    rmSync(path);
  } catch (error) {
    logger.warn({ error: String(error), path }, 'these records could not be removed, and are not of this trace');
  }
}

/** Writes the inputs of a recording next to its trace, until all of them are events in the trace. */
export class RecordingLog implements InstallationLog {
  readonly #request: LogRequest;
  readonly #logger: Logger;
  #raw: RawLog | undefined;
  /** What came before the begin. */
  #early: LogEntry[] | undefined = [];
  #failed = false;

  constructor(request: LogRequest, logger: Logger) {
    this.#request = request;
    this.#logger = logger;
  }

  /** Undefined before {@link begin}, after {@link remove}, and if the file cannot be written. */
  get opened(): InstallationLog | undefined {
    return this.#raw && this;
  }

  get raw(): RawLog {
    if (!this.#raw) throw new TypeError('the log is not open');
    return this.#raw;
  }

  begin(begin: Omit<BeginEntry, 'type' | 'asked'>): void {
    const { path, asked, isTrace } = this.#request;
    if (existsSync(path) && !isTrace) this.#logger.warn({ path }, 'replaces the records of an earlier recording');
    this.#try(() => {
      this.#raw = new RawLog(path, isTrace);
    });
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const entry of [{ type: 'begin', asked, ...begin } as const, ...early]) this.append(entry);
  }

  installed(facts: InstalledFacts): void {
    this.append({ type: 'installed', ...facts });
  }

  clock(scale: CounterScale): void {
    this.append({ type: 'clock', ...scale });
  }

  append(what: LogEntry): void {
    if (this.#early) this.#early.push(what);
    else this.#try(() => this.#raw?.append(what));
  }

  stuck(time: number, tasks: readonly StuckTask[]): void {
    const all = tasks.map((task) => ({
      ...task,
      futures: task.futures.map(({ address, instance }) => ({ address: hex(address), instance })),
    }));
    this.append({ type: 'stuck', time, tasks: all });
  }

  /** The recording has ended: nothing comes behind this. */
  whole({ probes, recording: facts }: TraceFacts): void {
    if (!facts) return;
    const { samples: _, ...recording } = facts;
    this.append({
      type: 'end',
      probes: probes.map(probeJson),
      recording,
    });
  }

  /** All is in the trace, or what is not is needed: not behind a hole, since the trace may have more then. */
  end(isNeeded: boolean): void {
    this.#early = undefined;
    this.#try(() => this.#raw?.flush());
    const stays = this.#request.keeps || (isNeeded && !this.#raw?.hasHole);
    this.#try(() => (stays ? this.#raw?.close() : this.#raw?.remove()));
    this.#raw = undefined;
  }

  #try(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      if (this.#failed) return;
      this.#failed = true;
      const { path, isTrace } = this.#request;
      if (isTrace) throw traceFailed(path, thrown);
      this.#logger.warn({ error: String(thrown), path }, 'the records of a recording that is killed will be lost');
    }
  }
}

/** Keeps what a tracer was given at stops. */
export class LoggedTracer implements Tracer {
  readonly #tracer: Tracer;
  readonly #log: RecordingLog;
  /** The registers that are kept of every stop, because what a stop means may be known only later. */
  readonly #names: readonly string[];

  constructor(tracer: Tracer, log: RecordingLog, names: readonly string[]) {
    this.#tracer = tracer;
    this.#log = log;
    this.#names = names;
  }

  get awaitsReturns(): boolean {
    return this.#tracer.awaitsReturns ?? true;
  }

  *visit(hit: Hit): Visit {
    const registers = new NotedRegisters(hit.registers);
    const visit = this.#tracer.visit({ ...hit, registers });
    const memory: { address: string; length: number; bytes: string | null }[] = [];
    let step = visit.next();
    while (!step.done) {
      const answers = yield step.value;
      for (const [index, { address, length }] of step.value.entries()) {
        const bytes = answers[index];
        memory.push({ address: hex(address), length, bytes: bytes ? Buffer.from(bytes).toString('hex') : null });
      }
      step = visit.next(answers);
    }
    for (const name of this.#names) registers.register(name);
    const { hart, space, time, systemCall } = hit;
    this.#log.append({
      ...{ type: 'stop', hart, pc: hex(hit.pc), sp: hex(hit.stackPointer), space, time, systemCall },
      registers: registers.texts(),
      memory,
    });
    return step.value;
  }

  digest(): void {
    this.#tracer.digest();
  }

  standing(...args: Parameters<NonNullable<Tracer['standing']>>): Promise<void> | undefined {
    return this.#tracer.standing?.(...args);
  }

  abandon(): void {
    this.#tracer.abandon();
  }
}

/** Notes which registers are asked for. */
class NotedRegisters implements RegisterReader {
  readonly #registers: RegisterReader;
  readonly #noted = new Map<string, bigint>();

  constructor(registers: RegisterReader) {
    this.#registers = registers;
  }

  register(name: string): bigint | undefined {
    const value = this.#registers.register(name);
    if (value !== undefined) this.#noted.set(name, value);
    return value;
  }

  texts(): Record<string, string> {
    return Object.fromEntries([...this.#noted].map(([name, value]) => [name, `0x${value.toString(16)}`]));
  }
}
