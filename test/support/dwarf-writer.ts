// Builds small ELF files with DWARF in them, so that a test can hold a form, a list or a header that no compiler here emits. It
// writes what it is told, right or wrong; sizes, offsets and references are worked out here and not by the code under test.
import { DW_FORM } from '../../src/dwarf/constants.js';
import { ByteWriter, type SectionSpec, writeElf } from './elf-writer.js';

export type AttributeValue = number | bigint | string | Uint8Array | { readonly ref: string };

export interface DieSpec {
  readonly tag: number;
  readonly label?: string;
  /** Name, form, value; implicit_const takes its value from here too. */
  readonly attributes?: readonly (readonly [name: number, form: number, value: AttributeValue])[];
  readonly children?: readonly DieSpec[];
}

export interface UnitSpec {
  readonly version: number;
  readonly addressSize?: number;
  /** DW_UT of version 5; a type unit is written when `signature` is there. */
  readonly unitType?: number;
  /** Values that are bytes are the test's own spelling of their forms. */
  readonly isSpelt?: boolean;
  readonly signature?: bigint;
  /** Of skeleton and split units of version 5. */
  readonly dwoId?: bigint;
  /** The label of a type unit's type. */
  readonly type?: string;
  readonly root: DieSpec;
}

/** Collects units and the sections that their forms point into. */
export class DwarfWriter {
  readonly info = new ByteWriter();
  readonly types = new ByteWriter();
  readonly abbrev = new ByteWriter();
  readonly str = new ByteWriter().u8(0);
  readonly lineStr = new ByteWriter().u8(0);
  /** Behind the 8-byte header of version 5. */
  readonly strOffsets = new ByteWriter();
  readonly addresses = new ByteWriter();
  /** Offsets of labelled DIEs in .debug_info. */
  readonly labels = new Map<string, number>();
  readonly #strings: number[] = [];
  readonly #pending: { out: ByteWriter; at: number; size: number; label: string; base: number }[] = [];

  unit(spec: UnitSpec): number {
    const out = spec.signature !== undefined && spec.version < 5 ? this.types : this.info;
    const start = out.length;
    const abbrevAt = this.abbrev.length;
    const lengthAt = out.length;
    out.uint(0, 4).uint(spec.version, 2);
    const addressSize = spec.addressSize ?? 8;
    if (spec.version >= 5) {
      out
        .u8(spec.unitType ?? 1)
        .u8(addressSize)
        .uint(abbrevAt, 4);
    } else out.uint(abbrevAt, 4).u8(addressSize);
    if (spec.signature !== undefined) {
      out.uint(spec.signature, 8);
      this.#pending.push({ out, at: out.length, size: 4, label: spec.type ?? '', base: start });
      out.uint(0, 4);
    }
    if (spec.dwoId !== undefined) out.uint(spec.dwoId, 8);
    let code = 0;
    const write = (die: DieSpec): void => {
      code++;
      const attributes = die.attributes ?? [];
      this.abbrev
        .uleb(code)
        .uleb(die.tag)
        .u8(die.children === undefined ? 0 : 1);
      for (const [name, form, value] of attributes) {
        this.abbrev.uleb(name).uleb(form);
        if (form === DW_FORM.implicit_const) this.abbrev.sleb(value as number);
      }
      this.abbrev.u8(0).u8(0);
      if (die.label !== undefined) this.labels.set(die.label, out.length);
      out.uleb(code);
      for (const [, form, value] of attributes) {
        if (spec.isSpelt && value instanceof Uint8Array) out.raw(value);
        else this.#value(out, form, value, start, spec.version);
      }
      for (const child of die.children ?? []) write(child);
      if (die.children !== undefined) out.u8(0);
    };
    write(spec.root);
    this.abbrev.u8(0);
    out.patch(lengthAt, out.length - lengthAt - 4, 4);
    return start;
  }

  #value(out: ByteWriter, form: number, value: AttributeValue, start: number, version: number): void {
    const number = (): number | bigint => value as number | bigint;
    const ref = (size: number, base: number): void => {
      if (typeof value !== 'object' || value instanceof Uint8Array) {
        out.uint(number(), size);
        return;
      }
      this.#pending.push({ out, at: out.length, size, label: value.ref, base });
      out.uint(0, size);
    };
    const F = DW_FORM;
    switch (form) {
      case F.addr:
        out.uint(number(), 8);
        break;
      case F.data1:
      case F.flag:
      case F.strx1:
      case F.addrx1:
        out.uint(typeof value === 'string' ? this.#string(value) : number(), 1);
        break;
      case F.data2:
      case F.strx2:
      case F.addrx2:
        out.uint(typeof value === 'string' ? this.#string(value) : number(), 2);
        break;
      case F.strx3:
      case F.addrx3:
        out.uint(typeof value === 'string' ? this.#string(value) : number(), 3);
        break;
      case F.data4:
      case F.strx4:
      case F.addrx4:
        out.uint(typeof value === 'string' ? this.#string(value) : number(), 4);
        break;
      case F.data8:
        out.uint(number(), 8);
        break;
      case F.ref_sig8:
        out.uint(number(), 8);
        break;
      case F.data16:
        out.uint(number(), 16);
        break;
      case F.ref1:
        ref(1, start);
        break;
      case F.ref2:
        ref(2, start);
        break;
      case F.ref4:
        ref(4, start);
        break;
      case F.ref8:
        ref(8, start);
        break;
      case F.ref_addr:
        ref(version <= 2 ? 8 : 4, 0);
        break;
      case F.strp:
        out.uint(this.#text(this.str, value as string), 4);
        break;
      case F.line_strp:
        out.uint(this.#text(this.lineStr, value as string), 4);
        break;
      case F.sec_offset:
      case F.strp_sup:
      case F.GNU_ref_alt:
      case F.GNU_strp_alt:
        out.uint(number(), 4);
        break;
      case F.ref_sup4:
        out.uint(number(), 4);
        break;
      case F.ref_sup8:
        out.uint(number(), 8);
        break;
      case F.strx:
      case F.GNU_str_index:
        out.uleb(this.#string(value as string));
        break;
      case F.udata:
      case F.addrx:
      case F.GNU_addr_index:
      case F.loclistx:
      case F.rnglistx:
      case F.ref_udata:
        out.uleb(number());
        break;
      case F.sdata:
        out.sleb(number());
        break;
      case F.string:
        out.cstr(value as string);
        break;
      case F.block1:
        out.u8((value as Uint8Array).length).raw(value as Uint8Array);
        break;
      case F.block2:
        out.uint((value as Uint8Array).length, 2).raw(value as Uint8Array);
        break;
      case F.block4:
        out.uint((value as Uint8Array).length, 4).raw(value as Uint8Array);
        break;
      case F.block:
      case F.exprloc:
        out.uleb((value as Uint8Array).length).raw(value as Uint8Array);
        break;
      case F.flag_present:
      case F.implicit_const:
        break;
      default:
        throw new Error(`the writer does not know the form 0x${form.toString(16)}`);
    }
  }

  #text(table: ByteWriter, text: string): number {
    const at = table.length;
    table.cstr(text);
    return at;
  }

  /** The index in .debug_str_offsets. */
  #string(text: string): number {
    this.#strings.push(this.#text(this.str, text));
    return this.#strings.length - 1;
  }

  /** All sections; references are filled in now. */
  sections(): SectionSpec[] {
    for (const { out, at, size, label, base } of this.#pending) {
      const target = this.labels.get(label);
      if (target === undefined) throw new Error(`there is no DIE labelled ${label}`);
      out.patch(at, target - base, size);
    }
    const offsets = new ByteWriter()
      .uint(this.#strings.length * 4 + 4, 4)
      .uint(5, 2)
      .uint(0, 2);
    for (const at of this.#strings) offsets.uint(at, 4);
    const addresses = new ByteWriter()
      .uint(this.addresses.length + 4, 4)
      .uint(5, 2)
      .u8(8)
      .u8(0);
    addresses.raw(this.addresses.bytes());
    const found: [string, ByteWriter][] = [
      ['.debug_info', this.info],
      ['.debug_types', this.types],
      ['.debug_abbrev', this.abbrev],
      ['.debug_str', this.str],
      ['.debug_line_str', this.lineStr],
      ['.debug_str_offsets', offsets],
      ['.debug_addr', addresses],
    ];
    return found.filter(([, w]) => w.length > 0).map(([name, w]) => ({ name, bytes: w.bytes() }));
  }

  /** An ELF of these sections and others, with one code segment of 4 KiB at 0x1000. */
  elf(more: readonly SectionSpec[] = []): Uint8Array {
    return writeElf({
      sections: [...this.sections(), ...more],
      loads: [{ address: 0x1000n, bytes: new Uint8Array(0x1000) }],
    });
  }
}
