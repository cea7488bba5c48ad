// Call frame programs: DWARF 5, section 6.4.2. A program is run once into rows, each valid from its address to the
// next row's; the rows of one FDE share what did not change between them.
//
// Bounded: each instruction adds at most one row. The stack of remembered states and the rules of all rows of one FDE
// are limited.
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import type { CfaRule, RegisterRule, UnwindRow } from '../base/unwind-row.js';
import { type CodeAddress, lastNotAbove } from '../elf/index.js';
import { DW_CFA } from './cfi-codes.js';
import type { Cie, Fde } from './cfi-entries.js';

const MAX_REMEMBERED = 256;
/** The most rules in all rows of an FDE together: real ones stay below a few hundred. */
const MAX_RULES = 200_000;
/** DWARF numbers end at 8191 on RISC-V (CSRs), far lower elsewhere. */
const MAX_REGISTER = 0xffff;

/** The rows of one FDE, by address. */
export class CfiTable {
  readonly #starts: readonly CodeAddress[];
  readonly #rows: readonly UnwindRow[];
  /** Rules in all rows. */
  readonly rules: number;

  /** Throws `DWARF_CFI` for a damaged program. */
  constructor(fde: Fde) {
    const { starts, rows, rules } = new Program(fde).run();
    this.rules = rules;
    this.#starts = starts;
    this.#rows = rows;
  }

  /** The row for an address inside the FDE's range. */
  at(address: CodeAddress): UnwindRow | undefined {
    return this.#rows[lastNotAbove(this.#starts, this.#starts.length, address)];
  }
}

type Rules = ReadonlyMap<number, RegisterRule>;

interface State {
  readonly cfa: CfaRule | undefined;
  readonly rules: Rules;
}

class Program {
  readonly #fde: Fde;
  readonly #cie: Cie;
  readonly #starts: CodeAddress[] = [];
  readonly #rows: UnwindRow[] = [];
  readonly #remembered: State[] = [];
  #location: CodeAddress;
  #cfa: CfaRule | undefined;
  #rules: Map<number, RegisterRule> = new Map();
  /** `#rules` belongs to a row already: copied before it is changed. */
  #shared = false;
  #initial: Rules = new Map();
  #kept = 0;

  constructor(fde: Fde) {
    this.#fde = fde;
    this.#cie = fde.cie;
    this.#location = fde.low;
  }

  run(): { readonly starts: CodeAddress[]; readonly rows: UnwindRow[]; readonly rules: number } {
    this.#execute(this.#cie.start, this.#cie.end);
    this.#initial = new Map(this.#rules);
    this.#execute(this.#fde.start, this.#fde.end);
    this.#emit();
    return { starts: this.#starts, rows: this.#rows, rules: this.#kept };
  }

  #emit(): void {
    if (this.#cfa === undefined) return;
    if (!this.#shared) this.#kept += this.#rules.size + 1;
    if (this.#kept > MAX_RULES) throw damaged('it holds more rules than any real one');
    this.#shared = true;
    const row: UnwindRow = {
      cfa: this.#cfa,
      returnAddress: this.#cie.returnAddress,
      registers: this.#rules,
      interrupted: this.#cie.isSignalFrame,
    };
    if (this.#starts.at(-1) === this.#location) this.#rows[this.#rows.length - 1] = row;
    else {
      this.#starts.push(this.#location);
      this.#rows.push(row);
    }
  }

  #moveTo(address: CodeAddress): void {
    if (!(address >= this.#location)) throw damaged('its addresses go backwards');
    if (address === this.#location) return;
    this.#emit();
    this.#location = address;
  }

  #set(register: number, rule: RegisterRule | undefined): void {
    if (register > MAX_REGISTER) throw damaged(`it speaks of register ${register}`);
    if (this.#shared) this.#rules = new Map(this.#rules);
    this.#shared = false;
    if (rule === undefined) this.#rules.delete(register);
    else this.#rules.set(register, rule);
  }

  #setCfaOffset(offset: number): void {
    if (this.#cfa?.kind !== 'register') throw damaged('it gives an offset to a CFA that has no register');
    this.#cfa = { kind: 'register', register: this.#cfa.register, offset };
  }

  #execute(start: number, end: number): void {
    const { section, low } = this.#fde;
    const r = new ByteReader(section.bytes, section.name, start, end);
    const { codeAlign, dataAlign } = this.#cie;
    while (r.remaining > 0) {
      const opcode = r.u8();
      const operand = opcode & 0x3f;
      switch (opcode & 0xc0) {
        case DW_CFA.advance_loc:
          this.#moveTo(this.#location + operand * codeAlign);
          continue;
        case DW_CFA.offset:
          this.#set(operand, { kind: 'saved', offset: r.uleb() * dataAlign });
          continue;
        case DW_CFA.restore:
          this.#set(operand, this.#initial.get(operand));
          continue;
      }
      switch (opcode) {
        case DW_CFA.nop:
          break;
        case DW_CFA.set_loc:
          this.#moveTo(section.pointer(r, this.#cie, low));
          break;
        case DW_CFA.advance_loc1:
          this.#moveTo(this.#location + r.u8() * codeAlign);
          break;
        case DW_CFA.advance_loc2:
          this.#moveTo(this.#location + r.u16() * codeAlign);
          break;
        case DW_CFA.advance_loc4:
          this.#moveTo(this.#location + r.u32() * codeAlign);
          break;
        case DW_CFA.advance_loc8:
          this.#moveTo(this.#location + r.u64n() * codeAlign);
          break;
        case DW_CFA.offset_extended:
          this.#set(r.uleb(), { kind: 'saved', offset: r.uleb() * dataAlign });
          break;
        case DW_CFA.offset_extended_sf:
          this.#set(r.uleb(), { kind: 'saved', offset: r.sleb() * dataAlign });
          break;
        case DW_CFA.GNU_negative_offset_extended:
          this.#set(r.uleb(), { kind: 'saved', offset: -r.uleb() * dataAlign });
          break;
        case DW_CFA.val_offset:
          this.#set(r.uleb(), { kind: 'cfa', offset: r.uleb() * dataAlign });
          break;
        case DW_CFA.val_offset_sf:
          this.#set(r.uleb(), { kind: 'cfa', offset: r.sleb() * dataAlign });
          break;
        case DW_CFA.restore_extended: {
          const register = r.uleb();
          this.#set(register, this.#initial.get(register));
          break;
        }
        case DW_CFA.undefined:
          this.#set(r.uleb(), { kind: 'undefined' });
          break;
        case DW_CFA.same_value:
          this.#set(r.uleb(), { kind: 'same' });
          break;
        case DW_CFA.register:
          this.#set(r.uleb(), { kind: 'register', register: r.uleb() });
          break;
        case DW_CFA.expression:
          this.#set(r.uleb(), { kind: 'saved-expression', expression: r.take(r.uleb()) });
          break;
        case DW_CFA.val_expression:
          this.#set(r.uleb(), { kind: 'expression', expression: r.take(r.uleb()) });
          break;
        case DW_CFA.remember_state:
          if (this.#remembered.length >= MAX_REMEMBERED) throw damaged('it remembers states without end');
          this.#remembered.push({ cfa: this.#cfa, rules: this.#rules });
          this.#shared = true;
          break;
        case DW_CFA.restore_state: {
          const state = this.#remembered.pop();
          if (state === undefined) throw damaged('it restores a state that it did not remember');
          this.#cfa = state.cfa;
          this.#rules = state.rules as Map<number, RegisterRule>;
          this.#shared = true;
          break;
        }
        case DW_CFA.def_cfa:
          this.#cfa = { kind: 'register', register: r.uleb(), offset: r.uleb() };
          break;
        case DW_CFA.def_cfa_sf:
          this.#cfa = { kind: 'register', register: r.uleb(), offset: r.sleb() * dataAlign };
          break;
        case DW_CFA.def_cfa_register: {
          const register = r.uleb();
          if (this.#cfa?.kind === 'expression') throw damaged('it gives a register to a CFA that has no offset');
          // GNU as begins RISC-V's programs like this, without an offset before.
          this.#cfa = { kind: 'register', register, offset: this.#cfa?.offset ?? 0 };
          break;
        }
        case DW_CFA.def_cfa_offset:
          this.#setCfaOffset(r.uleb());
          break;
        case DW_CFA.def_cfa_offset_sf:
          this.#setCfaOffset(r.sleb() * dataAlign);
          break;
        case DW_CFA.def_cfa_expression:
          this.#cfa = { kind: 'expression', expression: r.take(r.uleb()) };
          break;
        case DW_CFA.GNU_args_size:
          r.uleb();
          break;
        default:
          throw damaged(`it holds the instruction 0x${opcode.toString(16)}, which is not served`);
      }
    }
  }
}

function damaged(what: string): RsptraceError {
  return new RsptraceError('DWARF_CFI', `a call frame program is damaged: ${what}`);
}
