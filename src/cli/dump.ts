import { existsSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import type { InputObserver, LogEntry } from '../record/index.js';
import { jsonLine, textLines } from '../text/index.js';
import type { TraceEvent, TraceSink } from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import type { DumpArguments } from './options/saved-trace.js';
import { recordsFile } from './records-file.js';
import { SavedRecords } from './saved-records.js';
import { LargePieces } from './terminal.js';

/**
 * `rsptrace dump TRACE`: the inputs of a recording, decoded, and the events that came of each. Gives the exit status.
 */
export async function dump(args: DumpArguments): Promise<number> {
  using records = await SavedRecords.open(recordsOf(args.trace), args.plugin, args.log);
  const writer = new DumpWriter(args.json);
  const { notes } = await records.read(writer, writer);
  writer.flush();
  note(...notes);
  return ExitCode.recorded;
}

/** The records next to a trace, or a file of records itself. */
function recordsOf(path: string): string {
  if (path.endsWith('.records') || !existsSync(path) || existsSync(recordsFile(path))) {
    return path.endsWith('.records') ? path : recordsFile(path);
  }
  throw new RsptraceError('RECORDS_MISSING', `there are no records in ${recordsFile(path)}`, {
    hint: 'record with --keep-records: a recording that ends removes its records otherwise',
  });
}

/** Where an event comes from: a record, a stop, or what ended the recording. */
interface Input {
  readonly offset: number;
  readonly kind: string;
  readonly number?: number | undefined;
  /** When it was, by the clock alone. */
  readonly nanos?: number | undefined;
  readonly content: object;
}

/** Writes each input, and below it the events that came of it. */
class DumpWriter implements TraceSink, InputObserver {
  readonly #isJson: boolean;
  readonly #out = new LargePieces();
  #events = 0;

  constructor(isJson: boolean) {
    this.#isJson = isJson;
  }

  begin(): void {}

  entry(offset: number, { type, ...content }: LogEntry): void {
    const nanos = 'time' in content ? content.time : undefined;
    this.#input({ offset, kind: type, content, nanos });
  }

  record(offset: number, number: number, text: object | undefined, nanos: number): void {
    this.#input({ offset, kind: 'record', number, nanos, content: text ?? { probe: 'of no probe' } });
  }

  event(event: TraceEvent): void {
    const number = ++this.#events;
    const json = eventJson(event);
    this.#write(`           -> event ${number}  ${fieldsText(json)}`, { number, ...json });
  }

  hart(): void {}

  flush(): void {
    this.#out.flush();
  }

  end(): void {}

  #input(input: Input): void {
    this.#write(inputLine(input), input);
  }

  #write(line: string, json: object): void {
    this.#out.write(this.#isJson ? jsonLine(json) : textLines([line]));
  }
}

function inputLine({ offset, kind, number, content }: Input): string {
  const which = number === undefined ? kind : `${kind} ${number}`;
  return `${String(offset).padStart(10)} ${which}  ${fieldsText(content)}`;
}

/** `hart 0, ticks 12, words {a0 0x1, a1 0x2}`. */
function fieldsText(value: object): string {
  const texts = Object.entries(value).flatMap(([name, member]) => {
    if (member === undefined) return [];
    const label = Array.isArray(value) ? '' : `${name} `;
    return [typeof member === 'object' && member !== null ? `${label}{${fieldsText(member)}}` : `${label}${member}`];
  });
  return texts.join(', ');
}

/** What of an event is found again in a table or a trace. */
function eventJson(event: TraceEvent): object {
  return {
    type: event.type,
    name: nameOf(event),
    hart: 'hart' in event ? event.hart : undefined,
    time_ns: 'time' in event ? event.time : undefined,
    duration_ns: 'began' in event ? event.time - event.began : undefined,
    result: 'result' in event ? event.result : undefined,
  };
}

function nameOf(event: TraceEvent): string | undefined {
  if ('function' in event) return event.function.name;
  if ('future' in event) return event.future.future;
  return 'place' in event ? event.place.name : undefined;
}
