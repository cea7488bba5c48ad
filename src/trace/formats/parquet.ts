/*
 * Apache Parquet (parquet.apache.org/docs/file-format): a row a call, poll or instant, in the columns of ./spans.ts.
 * What is not known is null. Texts have a dictionary a row group. What is known of the whole trace is in the file's
 * key-value metadata: `rsptrace.program`, `.build_id`, `.arch`, `.clock`.
 */
import type { SchemaElement } from 'hyparquet';
import type { ColumnSource } from 'hyparquet-writer';
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js';
import { ParquetWriter } from 'hyparquet-writer/src/parquet-writer.js';
import { startOf } from '../../base/file-bytes.js';
import { madeOnce } from '../../base/made-once.js';
import { visible } from '../../text/index.js';
import type { TraceInfo, TraceSink } from '../events/events.js';
import type { Format } from './format.js';
import type { OutputFile } from './output/output-file.js';
import { type Span, type SpanSubject, Spans, spanColumns } from './spans.js';
import { WrittenAtEnd } from './written-at-end.js';

const MAGIC = 'PAR1';
/** Rows that are kept in memory and written together. */
const GROUP = 8_192;

export const parquet: Format = {
  name: 'Parquet',
  extensions: ['.parquet'],
  about: 'a row a call, poll or instant in columns, for DuckDB, Spark and Trino',
  use: 'ask it with DuckDB: select name, sum(duration_ns) from FILE group by all',
  isAppended: false,
  recognizes: (head) => startOf(head).startsWith(MAGIC),
  open: openParquet,
};

const numbers: Partial<Record<(typeof spanColumns)[number], 'INT32' | 'INT64'>> = {
  time_ns: 'INT64',
  duration_ns: 'INT64',
  hart: 'INT32',
  thread: 'INT32',
  depth: 'INT32',
  line: 'INT32',
};

type ColumnName = (typeof spanColumns)[number];
type Columns = Record<ColumnName, unknown[]>;

function openParquet(file: OutputFile): TraceSink {
  let rows: Rows | undefined;
  const begin = (info: TraceInfo): void => {
    rows = new Rows(file, info);
  };
  const spans = Object.assign(new Spans((span) => rows?.add(span)), { begin });
  return new WrittenAtEnd(spans, file, () => rows?.end());
}

class Rows {
  readonly #file: OutputFile;
  readonly #bytes = new ByteWriter(1 << 20);
  readonly #writer: ParquetWriter;
  readonly #columns = emptyColumns();
  readonly #subjects = new WeakMap<SpanSubject, SpanSubject>();
  #count = 0;

  constructor(file: OutputFile, { program, buildId, arch, clock }: TraceInfo) {
    this.#file = file;
    const about = { program, build_id: buildId ?? '', arch, clock: clock.name };
    this.#writer = new ParquetWriter({
      writer: this.#bytes,
      schema: [{ name: 'root', num_children: spanColumns.length }, ...spanColumns.map(elementOf)],
      createdBy: 'rsptrace',
      kvMetadata: Object.entries(about).map(([key, value]) => ({ key: `rsptrace.${key}`, value: visible(value) })),
    });
  }

  add(span: Span): void {
    const columns = this.#columns;
    const subject = this.#shown(span.subject);
    const at = this.#count++;
    columns.type[at] = visible(span.type);
    columns.time_ns[at] = BigInt(span.time_ns);
    columns.duration_ns[at] = span.duration_ns === undefined ? undefined : BigInt(span.duration_ns);
    columns.hart[at] = span.hart;
    columns.thread[at] = int32(span.thread);
    columns.depth[at] = span.depth;
    columns.name[at] = subject.name;
    columns.instance[at] = subject.instance;
    columns.address[at] = subject.address;
    columns.file[at] = subject.file;
    columns.line[at] = subject.line;
    columns.task[at] = subject.task;
    columns.result[at] = span.result;
    columns.detail[at] = span.detail;
    if (this.#count === GROUP) this.#writeGroup();
  }

  end(): void {
    this.#writeGroup();
    this.#writer.finish();
    this.#writeBytes();
  }

  #writeGroup(): void {
    if (this.#count === 0) return;
    const columns = this.#columns;
    const count = this.#count;
    // The library copies what it is given.
    const data = spanColumns.map((name) =>
      sourceOf(name, count === GROUP ? columns[name] : columns[name].slice(0, count)),
    );
    this.#writer.write({ columnData: data, rowGroupSize: GROUP });
    this.#count = 0;
    this.#writeBytes();
  }

  /** Without control characters: made once for all spans of it. */
  #shown(subject: SpanSubject): SpanSubject {
    return madeOnce(this.#subjects, subject, () => {
      const { name, instance, address, file, line, task } = subject;
      const text = (one: string | undefined): string | undefined => one && visible(one);
      return {
        name: visible(name),
        instance: text(instance),
        address,
        file: text(file),
        line: int32(line),
        task: text(task),
      };
    });
  }

  /** What the library has made so far goes to the file. */
  #writeBytes(): void {
    const bytes = this.#bytes.getBytes();
    this.#bytes.index = 0;
    this.#file.record(bytes, bytes.length);
  }
}

/** What a damaged trace has may be larger. */
function int32(value: number | undefined): number | undefined {
  return value !== undefined && value < 2 ** 31 ? value : undefined;
}

function elementOf(name: ColumnName): SchemaElement {
  const repetition_type = name === 'type' || name === 'time_ns' || name === 'name' ? 'REQUIRED' : 'OPTIONAL';
  const type = numbers[name];
  if (type !== undefined) return { name, type, repetition_type };
  return { name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type };
}

/** Statistics cost more than writing, and hardly a query is answered by those of another column than the time. */
function sourceOf(name: ColumnName, values: unknown[]): ColumnSource {
  const about = { name, statistics: name === 'time_ns' };
  if (numbers[name] === 'INT64') return { ...about, data: values, encoding: 'PLAIN' };
  return { ...about, data: freeTexts.has(name) ? shown(values) : values };
}

/** Columns whose texts are not of the subject. */
const freeTexts: ReadonlySet<ColumnName> = new Set(['result', 'detail']);

function emptyColumns(): Columns {
  return Object.fromEntries(spanColumns.map((name) => [name, new Array(GROUP)])) as unknown as Columns;
}

/** Texts without control characters. To look at each costs less than to remember which were looked at. */
function shown(texts: readonly unknown[]): unknown[] {
  return texts.map((text) => (text === undefined ? undefined : visible(String(text))));
}
