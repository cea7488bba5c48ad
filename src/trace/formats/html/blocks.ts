import { deflateRawSync } from 'node:zlib';
import { RsptraceError } from '../../../base/errors.js';
import { madeOnce, Numbered } from '../../../base/made-once.js';
import { visible } from '../../../text/index.js';
import type { TraceInfo } from '../../events/events.js';
import { type OutputFile, writtenKept } from '../output/output-file.js';
import { BlockColumns, type BlockHead, type LaneName, type SliceRecord, type What } from './columns.js';
import { page } from './page.js';
import type { HtmlTables } from './tables.js';

/** Records of a block. */
const MOST = 32_768;

/** Facts of a call or a poll: names, each with its value behind it. What is undefined is left out. */
export type Detail = readonly (string | undefined)[];

/** Of a record: where and when it was. */
export type Slice = Omit<SliceRecord, 'what' | 'detail'>;

/** The first block has what is known at the first event, and the last one what is known at the end. */
export interface WholeHead extends BlockHead {
  readonly info?: Pick<TraceInfo, 'program' | 'arch' | 'clock' | 'buildId'>;
  readonly tables?: HtmlTables;
  /** Names that lanes have at the end, by their numbers. */
  readonly names?: Readonly<Record<number, string>>;
}

/** Writes the page, then a block whenever there are enough records. In memory are the names, and one block. */
export class Blocks {
  readonly #out: OutputFile;
  readonly #columns = new BlockColumns();
  readonly #whats = new Map<object | string, number>();
  #newWhats: What[] = [];
  #lanes = 0;
  #newLanes: LaneName[] = [];
  #details = new Numbered<string>();
  #info: WholeHead['info'];

  constructor(out: OutputFile) {
    this.#out = out;
  }

  begin({ program, arch, clock, buildId }: TraceInfo): void {
    if (page === '') throw new Error('the page of HTML reports is put in where rsptrace is bundled: npm run build');
    this.#info = { program, arch, clock, buildId };
    this.#out.textRecord(page);
  }

  lane({ kind, name, process }: LaneName): number {
    this.#newLanes.push({ kind, name: visible(name), process });
    return this.#lanes++;
  }

  /** `key`: the same for the same thing. */
  what(key: object | string, make: () => What): number {
    return madeOnce(this.#whats, key, () => {
      const { kind, name, instance, file, line } = make();
      const shown = { kind, name: visible(name), instance: instance && visible(instance), file: file && visible(file) };
      this.#newWhats.push({ ...shown, line });
      return this.#whats.size;
    });
  }

  add(what: number, slice: Slice, detail: Detail): void {
    this.#columns.add(slice, what, this.#detail(detail));
    if (this.#columns.count === MOST) this.#write({});
  }

  end(tables: HtmlTables, names: WholeHead['names'] = {}): void {
    this.#write({ tables: shownAll(tables), names: shownAll(names) });
    this.#out.textRecord('</body></html>\n');
  }

  #detail(detail: Detail): number {
    let text = '';
    for (let i = 1; i < detail.length; i += 2) {
      const value = detail[i];
      if (value !== undefined && value !== '') text += `${text === '' ? '' : '\n'}${detail[i - 1]}\t${visible(value)}`;
    }
    return text === '' ? 0 : 1 + this.#details.of(text);
  }

  #write(more: Pick<WholeHead, 'tables' | 'names'>): void {
    const info = this.#info && shownAll(this.#info);
    this.#info = undefined;
    const head: WholeHead = {
      lanes: this.#newLanes,
      whats: this.#newWhats,
      details: this.#details.all,
      ...(info && { info }),
      ...more,
    };
    const packed = deflateRawSync(this.#columns.take(head), { level: 6 });
    this.#newLanes = [];
    this.#newWhats = [];
    this.#details = new Numbered();
    try {
      this.#out.textRecord(`<script type="application/octet-stream">${packed.toString('base64')}</script>\n`);
    } catch (error) {
      // The page shows the blocks before this one.
      const isKept = error instanceof RsptraceError;
      throw isKept ? new RsptraceError(error.code, error.message, { hint: writtenKept, cause: error.cause }) : error;
    }
  }
}

/** The same with all texts visible. */
function shownAll<T>(value: T): T {
  const text = JSON.stringify(value, (_key, each) => (typeof each === 'string' ? visible(each) : each));
  return JSON.parse(text) as T;
}
