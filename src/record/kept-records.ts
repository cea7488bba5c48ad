import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { isRawLog, LogReader, type RecordText, rawLogMagic } from '../inject/index.js';
import type { TraceFacts, TraceInfo } from '../trace/index.js';
import { type BeginEntry, type EndEntry, entryFrom, type LogEntry } from './log-entries.js';
import { type Program, programAt, samplesOf } from './program.js';
import type { RecordOptions } from './recording.js';
import { Recovery } from './recovery.js';

/** What the records of a recording came to. */
export interface Recovered {
  readonly events: number;
  readonly records: number;
  readonly info: TraceInfo;
  readonly facts: TraceFacts;
  /** Where the records end that are understood; undefined if they are all that the recording had. */
  readonly cutAt: number | undefined;
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
  'sink' | 'engine' | 'functions' | 'stackDepth' | 'thresholdNs' | 'returns' | 'until'
> & {
  readonly program: Program;
  readonly logger?: Logger;
  readonly inputs?: InputObserver;
};

/** The inputs of a recording, in the file next to its trace. */
export class KeptRecords {
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
    if (!isRawLog(magic)) throw damaged(path, 'it does not begin as a file of records does');
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
    options.inputs?.entry(rawLogMagic.length, this.#begin);
    const { end, damage } = this.#feed(recovery, options.inputs);
    if (recovery.isEmpty) throw mismatch('none of its records is an event of this program');
    if (damage !== undefined) notes.push(damage);
    const cutAt = end ? undefined : this.#reader.position;
    return { ...recovery.end(end), info, cutAt, notes };
  }

  /** Everything, to the end that it has or where it is damaged. */
  #feed(recovery: Recovery, inputs: InputObserver | undefined): { end?: EndEntry; damage?: string } {
    for (;;) {
      const offset = this.#reader.position;
      const part = this.#reader.next(this.#size);
      if (part === undefined) return {};
      if (part.kind === 'damaged') return { damage: `the records are damaged at offset ${part.at}: ${part.why}` };
      if (part.kind === 'records') {
        recovery.records(part, this.#reader.slot, this.#reader.position - (part.end - part.start));
        continue;
      }
      const entry = this.#entryIn(part.text);
      inputs?.entry(offset, entry);
      if (entry.type === 'begin') throw damaged(this.#path, 'it begins twice');
      if (entry.type === 'end') return { end: entry };
      if (!recovery.entry(entry)) throw mismatch('the probes or harts are not those that were recorded');
      if (entry.type === 'installed') this.#reader.slot = 2 ** entry.slotShift;
    }
  }

  #entryIn(text: string): LogEntry {
    const entry = entryFrom(text);
    if (entry === undefined) throw damaged(this.#path, 'it has an entry that is not known');
    return entry;
  }
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
