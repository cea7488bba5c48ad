import { madeOnce } from '../../../../base/made-once.js';
import { INTERNED_DATA, INTERNED_STRING, SOURCE_LOCATION } from '../fields.js';
import { ProtoBuffer } from '../protobuf.js';

/** Names repeat, so a table stays small; a program that makes more than this many gets the rest written in place. */
const TABLE_LIMIT = 1 << 16;

/** A source location. */
export interface Place {
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** One kind of texts that are written once: a field of `InternedData`. */
class Table {
  readonly #field: number;
  readonly #iids = new Map<string, number>();

  constructor(field: number) {
    this.#field = field;
  }

  /** The iid of a text, which is written to `fresh` the first time. 0 when the table is full. */
  iid(text: string, fresh: ProtoBuffer): number {
    const known = this.#iids.get(text);
    if (known !== undefined) return known;
    if (this.#iids.size >= TABLE_LIMIT) return 0;
    const iid = this.#iids.size + 1;
    this.#iids.set(text, iid);
    INTERNED_STRING.put(fresh, this.#field, { iid, str: text });
    return iid;
  }
}

/** What a sequence has written once, and names by its iid from then on. */
export class Interned {
  /** What is new, as fields of `InternedData`: it goes with the next packet. */
  readonly fresh = new ProtoBuffer();
  readonly #categories = new Table(INTERNED_DATA.eventCategories);
  readonly #names = new Table(INTERNED_DATA.eventNames);
  readonly #annotationNames = new Table(INTERNED_DATA.debugAnnotationNames);
  readonly #values = new Table(INTERNED_DATA.debugAnnotationStringValues);
  /** By file, then by line (-1: no line); iids count through all files. */
  readonly #places = new Map<string, Map<number, number>>();
  #placeCount = 0;

  /** Each of these is 0 when its table is full: then the text is written in place. */
  category(text: string): number {
    return this.#categories.iid(text, this.fresh);
  }

  name(text: string): number {
    return this.#names.iid(text, this.fresh);
  }

  annotationName(text: string): number {
    return this.#annotationNames.iid(text, this.fresh);
  }

  value(text: string): number {
    return this.#values.iid(text, this.fresh);
  }

  place(file: string, line: number | undefined): number {
    const lines = madeOnce(this.#places, file, () => new Map<number, number>());
    const known = lines.get(line ?? -1);
    if (known !== undefined) return known;
    if (this.#placeCount >= TABLE_LIMIT) return 0;
    const iid = ++this.#placeCount;
    lines.set(line ?? -1, iid);
    SOURCE_LOCATION.put(this.fresh, INTERNED_DATA.sourceLocations, { iid, fileName: file, lineNumber: line });
    return iid;
  }
}
