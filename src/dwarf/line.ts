// Line number programs: DWARF 5, section 6.2.5. The program is run once into columns, a row an address where file,
// line or column change; rows of one sequence cover [first, end_sequence), sequences are sorted afterwards.
//
// Each opcode emits at most one row, so the program's length bounds the table. Passed over: the op_index of VLIW
// machines, and DW_LNE_define_file, which no compiler writes.
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import { F64Column, U32Column } from '../base/growable.js';
import {
  type CodeAddress,
  type CodeSpace,
  type ElfFile,
  IntervalIndex,
  IntervalList,
  lastNotAbove,
  NO_ADDRESS,
} from '../elf/index.js';
import type { LineHeader } from './line-header.js';
import { DW_LNE, DW_LNS } from './line-header.js';

export interface LineRow {
  readonly address: CodeAddress;
  readonly file: number;
  readonly line: number;
  readonly column: number;
  readonly isStmt: boolean;
  readonly endSequence: boolean;
}

/** In columns. */
const BYTES_OF_ROW = 24;
const IS_STMT = 1;
const END = 2;

export class LineTable {
  readonly header: LineHeader;
  readonly #address: Float64Array;
  readonly #file: Uint32Array;
  readonly #line: Uint32Array;
  readonly #column: Uint32Array;
  readonly #flags: Uint32Array;
  /** First rows of the sequences whose code is loaded, by the addresses they cover. */
  readonly #sequences: IntervalIndex;
  readonly #sequenceStart: Uint32Array;
  readonly #sequenceEnd: Uint32Array;

  /**
   * Runs the program of a line table of `elf`. The ELF says which sequences belong to discarded functions (at 0 or
   * another tombstone), and the difference from the file's addresses to those in memory.
   */
  constructor(section: Uint8Array, header: LineHeader, elf: ElfFile) {
    this.header = header;
    // Programs of a damaged file may overlap many times over.
    elf.budget.spend(header.end - header.program, '.debug_line');
    const rows = new LineProgram(header, elf.codes).run(section);
    elf.budget.hold(rows.address.length * BYTES_OF_ROW, '.debug_line');
    this.#address = rows.address.rows().slice();
    this.#file = rows.file.rows().slice();
    this.#line = rows.line.rows().slice();
    this.#column = rows.column.rows().slice();
    this.#flags = rows.flags.rows().slice();
    const sequences = new IntervalList();
    const starts = new U32Column();
    const ends = new U32Column();
    for (let i = 0, first = 0; i < this.#flags.length; i++) {
      if (((this.#flags[i] as number) & END) === 0) continue;
      const low = this.#address[first] as number;
      if (elf.isLoaded(low)) {
        sequences.add(low, this.#address[i] as number, starts.length);
        starts.push(first);
        ends.push(i);
      }
      first = i + 1;
    }
    this.#sequences = new IntervalIndex(sequences);
    this.#sequenceStart = starts.rows().slice();
    this.#sequenceEnd = ends.rows().slice();
  }

  get count(): number {
    return this.#address.length;
  }

  row(index: number): LineRow {
    const flags = this.#flags[index] as number;
    return {
      address: this.#address[index] as number,
      file: this.#file[index] as number,
      line: this.#line[index] as number,
      column: this.#column[index] as number,
      isStmt: (flags & IS_STMT) !== 0,
      endSequence: (flags & END) !== 0,
    };
  }

  /** The row that covers an address. */
  find(address: CodeAddress): LineRow | undefined {
    const sequence = this.#sequences.find(address);
    if (sequence < 0) return undefined;
    const first = this.#sequenceStart[sequence] as number;
    const end = this.#sequenceEnd[sequence] as number;
    const at = lastNotAbove(this.#address.subarray(first, end), end - first, address);
    return at < 0 ? undefined : this.row(first + at);
  }
}

interface Rows {
  readonly address: F64Column;
  readonly file: U32Column;
  readonly line: U32Column;
  readonly column: U32Column;
  readonly flags: U32Column;
}

/** The state machine of a line number program: DWARF 5, section 6.2.2. */
class LineProgram {
  readonly #header: LineHeader;
  readonly #codes: CodeSpace;
  readonly #rows: Rows = {
    address: new F64Column(),
    file: new U32Column(),
    line: new U32Column(),
    column: new U32Column(),
    flags: new U32Column(),
  };
  #address: CodeAddress = NO_ADDRESS;
  #file = 1;
  #line = 1;
  #column = 0;
  #isStmt = false;

  constructor(header: LineHeader, codes: CodeSpace) {
    this.#header = header;
    this.#codes = codes;
    this.#reset();
  }

  run(section: Uint8Array): Rows {
    const { program, end, opcodeBase } = this.#header;
    const r = new ByteReader(section, '.debug_line', program, end);
    while (r.remaining > 0) {
      const opcode = r.u8();
      if (opcode >= opcodeBase) this.#special(r, opcode - opcodeBase);
      else if (opcode === 0) this.#extended(r);
      else this.#standard(r, opcode);
    }
    return this.#rows;
  }

  #reset(): void {
    this.#address = this.#codes.ofFile(0, 0);
    this.#file = 1;
    this.#line = 1;
    this.#column = 0;
    this.#isStmt = this.#header.defaultIsStmt;
  }

  #emit(end: number): void {
    this.#rows.address.push(this.#address);
    this.#rows.file.push(this.#file);
    this.#rows.line.push(this.#line);
    this.#rows.column.push(this.#column);
    this.#rows.flags.push((this.#isStmt ? IS_STMT : 0) | end);
  }

  #advance(operations: number): void {
    this.#address += this.#header.minInstruction * operations;
  }

  /** Section 6.2.5.1. */
  #special(r: ByteReader, adjusted: number): void {
    const { lineBase, lineRange } = this.#header;
    if (lineRange === 0) throw noLineRange(r);
    this.#advance(Math.floor(adjusted / lineRange));
    this.#line += lineBase + (adjusted % lineRange);
    this.#emit(0);
  }

  /** Section 6.2.5.2. */
  #standard(r: ByteReader, opcode: number): void {
    const { lineRange, opcodeBase, opcodeLengths } = this.#header;
    switch (opcode) {
      case DW_LNS.copy:
        this.#emit(0);
        break;
      case DW_LNS.advance_pc:
        this.#advance(r.uleb());
        break;
      case DW_LNS.advance_line:
        this.#line += r.sleb();
        break;
      case DW_LNS.set_file:
        this.#file = r.uleb();
        break;
      case DW_LNS.set_column:
        this.#column = r.uleb();
        break;
      case DW_LNS.negate_stmt:
        this.#isStmt = !this.#isStmt;
        break;
      case DW_LNS.const_add_pc:
        if (lineRange === 0) throw noLineRange(r);
        this.#advance(Math.floor((255 - opcodeBase) / lineRange));
        break;
      case DW_LNS.fixed_advance_pc:
        this.#address += r.u16();
        break;
      case DW_LNS.set_isa:
        r.uleb();
        break;
      case DW_LNS.set_basic_block:
      case DW_LNS.set_prologue_end:
      case DW_LNS.set_epilogue_begin:
        break;
      default:
        // A standard opcode of a later version: its operands are as many LEB128 numbers as the header says.
        for (let i = opcodeLengths[opcode] ?? 0; i > 0; i--) r.uleb64();
    }
  }

  /** Section 6.2.5.3. Unknown opcodes are skipped by their length. */
  #extended(r: ByteReader): void {
    const length = r.uleb();
    const next = r.offset + length;
    if (length > r.remaining) throw r.truncated('an extended opcode');
    const opcode = length === 0 ? -1 : r.u8();
    if (opcode === DW_LNE.end_sequence) {
      this.#emit(END);
      this.#reset();
    } else if (opcode === DW_LNE.set_address) {
      this.#address = length >= 5 ? this.#codes.ofFile(r.u32(), length >= 9 ? r.u32() : 0) : NO_ADDRESS;
    }
    r.offset = next;
  }
}

function noLineRange(r: ByteReader): RsptraceError {
  const where = `0x${(r.offset - 1).toString(16)}`;
  return new RsptraceError(
    'DWARF_DAMAGED',
    `${r.section} has a line range of 0, by which the opcode at ${where} divides`,
  );
}
