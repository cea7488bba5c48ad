import { existsSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import type { InputObserver, LogEntry } from '../record/index.js';
import { jsonLine, plural, textLines } from '../text/index.js';
import type { AnyBegin, TraceEvent, TraceInfo, TraceSink } from '../trace/index.js';
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
  const writer = new DumpWriter(args.json, args.explain);
  const { notes } = await records.read(writer, writer);
  writer.flush();
  if (args.explain !== undefined && !writer.isFound) {
    throw new RsptraceError('TRACE_NO_MATCH', `these records make no event ${args.explain}`, {
      hint: `they make ${plural(writer.events, 'event')}: \`rsptrace dump ${args.trace}\` numbers them`,
    });
  }
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

interface NumberedEvent {
  readonly number: number;
  readonly event: TraceEvent;
}

/** Writes each input, and below it the events that came of it. */
class DumpWriter implements TraceSink, InputObserver {
  readonly #isJson: boolean;
  readonly #out = new LargePieces();
  /** Only this event is written, with the inputs of its begin and its end. */
  readonly #wanted: number | undefined;
  /** The inputs of what is open, by begin. */
  readonly #begun = new Map<AnyBegin, Input>();
  #input: Input = { offset: 0, kind: 'end', content: {} };
  /** What was written last that was no event. */
  #above: Input | undefined;
  /** Lines of the console whose events have not come: those before all other events wait for the first. */
  readonly #printed: Input[] = [];
  #info: TraceInfo | undefined;
  events = 0;
  isFound = false;

  constructor(isJson: boolean, wanted: number | undefined) {
    this.#isJson = isJson;
    this.#wanted = wanted;
  }

  begin(info: TraceInfo): void {
    this.#info = info;
  }

  entry(offset: number, { type, ...content }: LogEntry): void {
    const nanos = 'time' in content ? content.time : undefined;
    this.#come({ offset, kind: type, content, nanos });
  }

  record(offset: number, number: number, text: object | undefined, nanos: number): void {
    this.#come({ offset, kind: 'record', number, nanos, content: text ?? { probe: 'of no probe' } });
  }

  event(event: TraceEvent): void {
    const number = ++this.events;
    const input = (event.type === 'console' && this.#printed.shift()) || this.#input;
    const from = 'begin' in event && event.begin ? this.#begun.get(event.begin) : undefined;
    if (event.type === 'call-begin' || event.type === 'poll-begin') this.#begun.set(event, input);
    if ('begin' in event && event.begin) this.#begun.delete(event.begin);
    this.#stand(input);
    if (this.#wanted === undefined) this.#write(eventLine({ number, event }), { number, ...eventJson(event) });
    else if (this.#wanted === number) this.#explain({ number, event }, from ? [from, input] : [input]);
  }

  hart(): void {}

  flush(): void {
    this.#out.flush();
  }

  end(): void {
    for (const input of this.#printed) this.#stand(input);
  }

  #come(input: Input): void {
    if (input.kind === 'console') {
      this.#printed.push(input);
      return;
    }
    this.#input = input;
    this.#stand(input);
  }

  /** The next events are below this input. */
  #stand(input: Input): void {
    if (this.#wanted !== undefined || this.#above === input) return;
    this.#above = input;
    this.#write(inputLine(input), input);
  }

  /** An event, the inputs that it comes from, and how its duration follows from theirs. */
  #explain({ number, event }: NumberedEvent, inputs: readonly Input[]): void {
    this.isFound = true;
    const [begin, end] = inputs.map(({ nanos }) => nanos);
    const { clock } = this.#info ?? {};
    const apart = begin !== undefined && end !== undefined ? end - begin : undefined;
    const duration = durationOf(event);
    const out = apart === undefined || duration === undefined ? undefined : apart - duration;
    if (this.#isJson) {
      const facts = {
        inputs,
        clock,
        apart_ns: apart,
        duration_ns: duration,
        taken_out: out === undefined ? out : { ns: out },
      };
      this.#out.write(jsonLine({ version: 1, event: { number, ...eventJson(event) }, ...facts }));
      return;
    }
    const lines = [eventLine({ number, event }), ...inputs.map(inputLine)];
    if (clock) lines.push(`  clock ${clock.name}, resolution ${clock.resolutionNs} ns`);
    if (out !== undefined)
      lines.push(`  both inputs are ${apart} ns apart, by the clock alone`, `  ${durationText(duration, out)}`);
    this.#out.write(textLines(lines));
  }

  #write(line: string, json: object): void {
    this.#out.write(this.#isJson ? jsonLine(json) : textLines([line]));
  }
}

function durationText(duration: number | undefined, out: number): string {
  if (out === 0) return 'that is the duration in the trace: nothing was taken out';
  return `${duration} ns is the duration in the trace: ${out} ns were taken out, which trampolines and stops took`;
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

function eventLine({ number, event }: NumberedEvent): string {
  return `           -> event ${number}  ${fieldsText(eventJson(event))}`;
}

/** What of an event is found again in a table or a trace. */
function eventJson(event: TraceEvent): object {
  return {
    type: event.type,
    name: nameOf(event),
    hart: 'hart' in event ? event.hart : undefined,
    time_ns: 'time' in event ? event.time : undefined,
    duration_ns: durationOf(event),
    result: 'result' in event ? event.result : undefined,
  };
}

function durationOf(event: TraceEvent): number | undefined {
  return 'began' in event ? event.time - event.began : undefined;
}

function nameOf(event: TraceEvent): string | undefined {
  if ('function' in event) return event.function.name;
  if ('future' in event) return event.future.future;
  return 'place' in event ? event.place.name : undefined;
}
