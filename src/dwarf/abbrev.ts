// .debug_abbrev: DWARF 5, section 7.5.3. A table is a run of
//
//   code (uleb) | tag (uleb) | has children (1)
//   | { attribute (uleb) | form (uleb) [| value (sleb), for implicit_const] }* | 0 0
//
// that ends with code 0. Each table is compiled once for the unit's version into columns. Each declaration gets a
// program that skips all its attributes at once. Unknown tags and attributes are kept. An unknown form is kept too;
// it is refused only when a DIE of that declaration is read, because its size is not known.
import type { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { isDamage, RsptraceError } from '../base/errors.js';
import { U32Column } from '../base/growable.js';
import { DW_FORM } from './constants.js';
import { fixedSize, skipStep } from './form-sizes.js';

/** The most attributes of one declaration: real ones have below 30. */
const MAX_ATTRIBUTES = 256;

const NOT_FIXED = 0xffff_ffff;

/** The attributes of all declarations, and the programs that skip them; see the columns of {@link AbbrevTable}. */
class AttributeColumns {
  readonly start = new U32Column();
  readonly name = new U32Column();
  readonly form = new U32Column();
  readonly fixed = new U32Column();
  readonly skipStart = new U32Column();
  readonly skip: number[] = [];
  readonly implicit = new Map<number, bigint>();
  readonly #version: number;

  constructor(version: number) {
    this.#version = version;
  }

  /** Reads the attributes of one declaration. */
  read(r: ByteReader): void {
    this.end();
    const first = this.name.length;
    /** Bytes of the attributes so far; undefined after one whose size is not fixed. */
    let run: number | undefined = 0;
    for (;;) {
      const name = wordOf(r, 'attribute');
      const form = wordOf(r, 'form');
      if (form === DW_FORM.implicit_const) this.implicit.set(this.name.length, r.sleb64());
      if (name === 0 && form === 0) break;
      if (this.name.length - first >= MAX_ATTRIBUTES) throw tooManyAttributes(r);
      this.name.push(name);
      this.form.push(form);
      this.fixed.push(run ?? NOT_FIXED);
      const size = fixedSize(form, this.#version);
      if (size >= 0) {
        if (run === undefined) this.#skipMore(size);
        else run += size;
        continue;
      }
      if (run) this.skip.push(run);
      run = undefined;
      this.skip.push(size);
    }
    if (run) this.skip.push(run);
  }

  /** The next declaration begins here, or there is none. */
  end(): void {
    this.start.push(this.name.length);
    this.skipStart.push(this.skip.length);
  }

  /** Behind a value of variable size in the same declaration. */
  #skipMore(size: number): void {
    const last = this.skip.length - 1;
    const before = this.skip[last] as number;
    if (before >= 0) this.skip[last] = before + size;
    else this.skip.push(size);
  }
}

/** A number that a column can hold: one that is cut to 32 bits would be another tag, attribute or form. */
function wordOf(r: ByteReader, what: string): number {
  const at = r.offset;
  const value = r.uleb();
  if (value <= 0xffff_ffff) return value;
  throw new RsptraceError(
    'DWARF_DAMAGED',
    `.debug_abbrev has a number past 2^32 for the ${what} at offset 0x${at.toString(16)}`,
  );
}

function tooManyAttributes(r: ByteReader): RsptraceError {
  return new RsptraceError(
    'DWARF_DAMAGED',
    `.debug_abbrev declares more than ${MAX_ATTRIBUTES} attributes for one entry at offset 0x${r.offset.toString(16)}`,
  );
}

export class AbbrevTable {
  /** Columns by row; attributes of row i are attrName[attrStart[i]] to attrName[attrStart[i + 1]], exclusive. */
  readonly tag: Uint32Array;
  readonly children: Uint32Array;
  readonly attrStart: Uint32Array;
  readonly attrName: Uint32Array;
  readonly attrForm: Uint32Array;
  /** Bytes from the first attribute to this one, if all before it have a fixed size; else {@link NOT_FIXED}. */
  readonly attrFixed: Uint32Array;
  /** Values of implicit_const, by attribute index. */
  readonly implicit: ReadonlyMap<number, bigint>;
  /** Of DWARF, that it is compiled for: the size of a form depends on it. */
  readonly version: number;
  /** The programs that skip, one behind the other; where that of a row begins. */
  readonly #skip: { readonly steps: Int32Array; readonly start: Uint32Array };
  readonly #rowOfCode: Map<number, number> | undefined;

  /** Reads the table up to its end. */
  constructor(r: ByteReader, version: number) {
    const tag = new U32Column();
    const children = new U32Column();
    const attributes = new AttributeColumns(version);
    let rowOfCode: Map<number, number> | undefined;
    for (let code = r.uleb(); code !== 0; code = r.uleb()) {
      const row = tag.length;
      if (rowOfCode === undefined && code !== row + 1) {
        rowOfCode = new Map(Array.from({ length: row }, (_, i) => [i + 1, i]));
      }
      // The first declaration of a code counts.
      if (rowOfCode !== undefined && !rowOfCode.has(code)) rowOfCode.set(code, row);
      tag.push(wordOf(r, 'tag'));
      children.push(r.u8());
      attributes.read(r);
    }
    attributes.end();
    this.version = version;
    this.tag = tag.rows().slice();
    this.children = children.rows().slice();
    this.attrStart = attributes.start.rows().slice();
    this.attrName = attributes.name.rows().slice();
    this.attrForm = attributes.form.rows().slice();
    this.attrFixed = attributes.fixed.rows().slice();
    this.implicit = attributes.implicit;
    this.#skip = { steps: Int32Array.from(attributes.skip), start: attributes.skipStart.rows().slice() };
    this.#rowOfCode = rowOfCode;
  }

  /** The row of a code, or -1 if the table does not declare it. */
  row(code: number): number {
    if (this.#rowOfCode === undefined) return code >= 1 && code <= this.tag.length ? code - 1 : -1;
    return this.#rowOfCode.get(code) ?? -1;
  }

  /** The index of an attribute in the columns, or -1. */
  find(row: number, name: number): number {
    const end = this.attrStart[row + 1] as number;
    for (let i = this.attrStart[row] as number; i < end; i++) if (this.attrName[i] === name) return i;
    return -1;
  }

  /** The end of the attributes that begin at `offset`. The caller checks the result against the unit's end. */
  skip(bytes: Uint8Array, offset: number, row: number): number {
    const { steps, start } = this.#skip;
    const end = start[row + 1] as number;
    let at = offset;
    for (let i = start[row] as number; i < end; i++) {
      const step = steps[i] as number;
      at = step >= 0 ? at + step : skipStep(bytes, at, step);
    }
    return at;
  }

  /** Where attribute `index` of a DIE begins, if the DIE's attributes begin at `offset`. */
  locate(bytes: Uint8Array, offset: number, row: number, index: number): number {
    const fixed = this.attrFixed[index] as number;
    if (fixed !== NOT_FIXED) return offset + fixed;
    let at = offset;
    for (let i = this.attrStart[row] as number; i < index; i++) {
      const size = fixedSize(this.attrForm[i] as number, this.version);
      at = size >= 0 ? at + size : skipStep(bytes, at, size);
    }
    return at;
  }
}

/** Cost of one byte of the section in a table's columns. */
const BYTES_IN_TABLE = 12;

/** Compiled tables by offset and version. The work is bounded, because units may point into each other's tables. */
export class AbbrevCache {
  readonly #section: Uint8Array;
  readonly #budget: Budget;
  readonly #tables = new Map<string, AbbrevTable | RsptraceError>();

  constructor(section: Uint8Array, budget: Budget) {
    this.#section = section;
    this.#budget = budget;
  }

  /** Throws `DWARF_DAMAGED`, `INPUT_DAMAGED`, the same one each time. */
  get(offset: number, version: number): AbbrevTable {
    const key = `${offset}/${version}`;
    const known = this.#tables.get(key) ?? this.#compile(offset, version);
    this.#tables.set(key, known);
    if (known instanceof RsptraceError) throw known;
    return known;
  }

  #compile(offset: number, version: number): AbbrevTable | RsptraceError {
    // Real tables do not overlap; those of a damaged file may all be as long as the section.
    try {
      const r = new ByteReader(this.#section, '.debug_abbrev', Math.min(offset, this.#section.length));
      const table = new AbbrevTable(r, version);
      this.#charge(r.offset - offset);
      return table;
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#charge(Math.max(0, this.#section.length - offset));
      return error;
    }
  }

  #charge(bytes: number): void {
    this.#budget.spend(bytes, '.debug_abbrev');
    this.#budget.hold(bytes * BYTES_IN_TABLE, '.debug_abbrev');
  }
}
