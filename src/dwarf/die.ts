// Debugging information entries: DWARF 5, sections 2.3 and 7.5.2. An entry is an abbreviation code (uleb; 0 ends a
// list of children) and the values of the attributes that its declaration names.
import { type CodeAddress, NO_ADDRESS } from '../elf/index.js';
import { DW_AT } from './constants.js';
import { lebEnd, ulebAt } from './form-sizes.js';
import {
  damaged,
  isConstantForm,
  type Located,
  readBig,
  readBlock,
  readCode,
  readFlag,
  readNumber,
  readReference,
  readString,
} from './forms.js';
import type { Unit } from './unit.js';

const ENTRIES = 'the entries of .debug_info';
/** Bytes of attributes: those of real entries have some tens. */
const LONG_ENTRY = 1024;

/** What {@link Die} and {@link DieCursor} share: an entry's attributes by name, read when asked for. */
abstract class Entry {
  readonly unit: Unit;
  /** In the one space of DIE offsets: what references hold. */
  offset = 0;
  tag = 0;
  hasChildren = false;
  /** The row of its declaration, and where its attributes begin in the unit's bytes. */
  protected row = -1;
  protected attrs = 0;

  protected constructor(unit: Unit) {
    this.unit = unit;
  }

  /** Reads the entry that begins at a local offset; false where a list of children ends. */
  protected read(local: number): boolean {
    const { bytes, abbrevs, budget } = this.unit;
    budget.spend(1, ENTRIES);
    let code = bytes[local] as number;
    let attrs = local + 1;
    if (code >= 0x80) {
      code = ulebAt(bytes, local);
      attrs = lebEnd(bytes, local);
    }
    if (code === 0) return false;
    const row = abbrevs.row(code);
    if (row < 0) {
      throw damaged(this.unit, local, `the abbreviation ${code} is not declared in its unit's table`);
    }
    this.offset = local + this.unit.base;
    this.row = row;
    this.attrs = attrs;
    this.tag = abbrevs.tag[row] as number;
    this.hasChildren = abbrevs.children[row] !== 0;
    return true;
  }

  /** Where the entry's attributes end in the unit's bytes. */
  protected attributesEnd(): number {
    const { abbrevs, bytes, header } = this.unit;
    const end = abbrevs.skip(bytes, this.attrs, this.row);
    if (end > header.end - header.base) {
      throw damaged(this.unit, this.offset - this.unit.base, 'an entry reaches past the end of its unit');
    }
    // Its strings had to be looked through for their ends.
    if (end - this.attrs > LONG_ENTRY) this.unit.budget.spend((end - this.attrs) >> 6, ENTRIES);
    return end;
  }

  /** The form of an attribute and where its value stands. */
  locate(attribute: number): Located | undefined {
    const { abbrevs } = this.unit;
    const index = abbrevs.find(this.row, attribute);
    if (index < 0) return undefined;
    const found: Located = {
      form: abbrevs.attrForm[index] as number,
      at: abbrevs.locate(this.unit.bytes, this.attrs, this.row, index),
      implicit: abbrevs.implicit.get(index) ?? 0n,
    };
    if (found.at - this.attrs > LONG_ENTRY) this.unit.budget.spend((found.at - this.attrs) >> 6, ENTRIES);
    return found;
  }

  has(attribute: number): boolean {
    return this.unit.abbrevs.find(this.row, attribute) >= 0;
  }

  /** A constant, section offset or list index. */
  number(attribute: number): number | undefined {
    const found = this.locate(attribute);
    return found && readNumber(this.unit, found);
  }

  /** A constant, exact. */
  big(attribute: number): bigint | undefined {
    const found = this.locate(attribute);
    return found && readBig(this.unit, found);
  }

  string(attribute: number): string | undefined {
    const found = this.locate(attribute);
    return found && readString(this.unit, found);
  }

  code(attribute: number): CodeAddress | undefined {
    const found = this.locate(attribute);
    return found && readCode(this.unit, found);
  }

  flag(attribute: number): boolean {
    const found = this.locate(attribute);
    return found !== undefined && readFlag(this.unit, found);
  }

  block(attribute: number): Uint8Array | undefined {
    const found = this.locate(attribute);
    return found && readBlock(this.unit, found);
  }

  /** The offset of the DIE that an attribute refers to. */
  reference(attribute: number): number | undefined {
    const found = this.locate(attribute);
    return found && readReference(this.unit, found);
  }

  /** The DIE that an attribute refers to; undefined where there is none at that offset. */
  follow(attribute: number): Die | undefined {
    const target = this.reference(attribute);
    return target === undefined ? undefined : this.unit.debug.die(target);
  }

  get name(): string | undefined {
    return this.string(DW_AT.name);
  }

  /** DW_AT.linkage_name: the mangled name. */
  get linkageName(): string | undefined {
    return this.string(DW_AT.linkage_name) ?? this.string(DW_AT.MIPS_linkage_name);
  }

  /** DW_AT.low_pc, or NO_ADDRESS. */
  get lowPc(): CodeAddress {
    return this.code(DW_AT.low_pc) ?? NO_ADDRESS;
  }

  /** DW_AT.high_pc as an address (it may be written as a length), or NO_ADDRESS. */
  get highPc(): CodeAddress {
    const found = this.locate(DW_AT.high_pc);
    if (found === undefined) return NO_ADDRESS;
    if (isConstantForm(found.form)) return this.lowPc + (readNumber(this.unit, found) ?? Number.NaN);
    return readCode(this.unit, found) ?? NO_ADDRESS;
  }
}

/** One entry. Cheap to make; its attributes are read when asked for. */
export class Die extends Entry {
  /** The DIE at an offset of its unit. Throws `DWARF_DAMAGED` where none can be read. */
  static at(unit: Unit, offset: number): Die {
    const die = new Die(unit);
    if (offset < unit.header.firstDie || offset >= unit.end) {
      throw damaged(unit, offset - unit.base, 'no entry begins outside the unit');
    }
    if (!die.read(offset - unit.base)) throw damaged(unit, offset - unit.base, 'no entry begins here');
    return die;
  }

  /** The direct children. */
  *children(): Generator<Die> {
    if (!this.hasChildren) return;
    const cursor = this.subtree();
    while (cursor.next()) {
      yield Die.at(this.unit, cursor.offset);
      cursor.skipChildren();
    }
  }

  /** A cursor over everything below this entry; its first `next()` moves to the first child, at depth 0. */
  subtree(): DieCursor {
    return new DieCursor(this.unit, this.hasChildren ? this.attributesEnd() + this.unit.base : this.unit.end);
  }
}

/**
 * Walks entries in the order of the file without making an object for each: `while (cursor.next())`. It is at one
 * entry at a time; `depth` counts from where it began.
 */
export class DieCursor extends Entry {
  depth = 0;
  #next: number;
  #level = 0;
  /** The next entry begins behind the current one's attributes. Their end is found only when it is needed. */
  #pending = false;

  /** From the DIE at `offset` to the end of its list of siblings. */
  constructor(unit: Unit, offset: number) {
    super(unit);
    this.#next = offset - unit.base;
  }

  /** A cursor over a whole unit, its root first. */
  static of(unit: Unit): DieCursor {
    return new DieCursor(unit, unit.header.firstDie);
  }

  next(): boolean {
    if (this.#pending) this.#next = this.attributesEnd();
    const end = this.unit.end - this.unit.base;
    while (this.#next < end) {
      if (this.read(this.#next)) {
        this.depth = this.#level;
        if (this.hasChildren) this.#level++;
        this.#pending = true;
        return true;
      }
      this.#next++;
      if (--this.#level < 0) break;
    }
    this.#pending = false;
    this.#next = end;
    return false;
  }

  /** The next `next()` moves past everything below the current entry. */
  skipChildren(): void {
    if (!this.hasChildren || !this.#pending || this.#level === this.depth) return;
    const sibling = this.reference(DW_AT.sibling);
    const level = this.depth;
    if (sibling !== undefined && sibling > this.offset) {
      this.#next = sibling - this.unit.base;
      this.#level = level;
      this.#pending = false;
      return;
    }
    const { offset, tag, row, attrs } = this;
    // Without DW_AT.sibling (rustc writes none) the children are walked over.
    while (this.#level > level) {
      if (this.#pending) this.#next = this.attributesEnd();
      this.#pending = false;
      if (this.#next >= this.unit.end - this.unit.base) break;
      if (this.read(this.#next)) {
        if (this.hasChildren) this.#level++;
        this.#pending = true;
      } else {
        this.#next++;
        this.#level--;
      }
    }
    this.offset = offset;
    this.tag = tag;
    this.row = row;
    this.attrs = attrs;
    this.hasChildren = true;
    this.depth = level;
  }

  die(): Die {
    return Die.at(this.unit, this.offset);
  }
}
