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

/** An instruction is its high bits, with an operand below, or all of the byte if they are 0. */
const HIGH_BITS = 0xc0;
const LOW_BITS = 0x3f;
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

  /** Throws `DWARF_DAMAGED` for a damaged program. */
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
    this.#location = fde.low;
  }

  get #cie(): Cie {
    return this.#fde.cie;
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
    const { section } = this.#fde;
    const r = new ByteReader(section.bytes, section.name, start, end);
    while (r.remaining > 0) {
      const opcode = r.u8();
      if (this.#advance(opcode, r) || this.#defineCfa(opcode, r) || this.#saveOrRestore(opcode)) continue;
      const rule = this.#rule(opcode, r);
      if (!rule) throw damaged(`it holds the instruction 0x${opcode.toString(16)}, which is not served`);
      this.#set(rule.register, rule.rule);
    }
  }

  /** Section 6.4.2.1: row creation, and what changes nothing. */
  #advance(opcode: number, r: ByteReader): boolean {
    const { codeAlign } = this.#cie;
    const by = (units: number): boolean => {
      this.#moveTo(this.#location + units * codeAlign);
      return true;
    };
    if ((opcode & HIGH_BITS) === DW_CFA.advance_loc) return by(opcode & LOW_BITS);
    switch (opcode) {
      case DW_CFA.set_loc:
        this.#moveTo(this.#fde.section.pointer(r, this.#cie.encoding));
        return true;
      case DW_CFA.advance_loc1:
        return by(r.u8());
      case DW_CFA.advance_loc2:
        return by(r.u16());
      case DW_CFA.advance_loc4:
        return by(r.u32());
      case DW_CFA.advance_loc8:
        return by(r.u64n());
      case DW_CFA.nop:
      // Whether the return address is signed shows in its own bits. SPARC's GNU_window_save has the same number.
      case DW_CFA.negate_ra_state:
      case DW_CFA.negate_ra_state_with_pc:
        return true;
      case DW_CFA.GNU_args_size:
        r.uleb();
        return true;
      default:
        return false;
    }
  }

  /** Section 6.4.2.2. */
  #defineCfa(opcode: number, r: ByteReader): boolean {
    const { dataAlign } = this.#cie;
    switch (opcode) {
      case DW_CFA.def_cfa:
        this.#cfa = { kind: 'register', register: r.uleb(), offset: r.uleb() };
        return true;
      case DW_CFA.def_cfa_sf:
        this.#cfa = { kind: 'register', register: r.uleb(), offset: r.sleb() * dataAlign };
        return true;
      case DW_CFA.def_cfa_register: {
        const register = r.uleb();
        if (this.#cfa?.kind === 'expression') throw damaged('it gives a register to a CFA that has no offset');
        // GNU as begins RISC-V's programs like this, without an offset before.
        this.#cfa = { kind: 'register', register, offset: this.#cfa?.offset ?? 0 };
        return true;
      }
      case DW_CFA.def_cfa_offset:
        this.#setCfaOffset(r.uleb());
        return true;
      case DW_CFA.def_cfa_offset_sf:
        this.#setCfaOffset(r.sleb() * dataAlign);
        return true;
      case DW_CFA.def_cfa_expression:
        this.#cfa = { kind: 'expression', expression: r.take(r.uleb()) };
        return true;
      default:
        return false;
    }
  }

  /** Section 6.4.2.4. */
  #saveOrRestore(opcode: number): boolean {
    if (opcode === DW_CFA.remember_state) {
      if (this.#remembered.length >= MAX_REMEMBERED) throw damaged('it remembers states without end');
      this.#remembered.push({ cfa: this.#cfa, rules: this.#rules });
      this.#shared = true;
      return true;
    }
    if (opcode !== DW_CFA.restore_state) return false;
    const state = this.#remembered.pop();
    if (state === undefined) throw damaged('it restores a state that it did not remember');
    this.#cfa = state.cfa;
    this.#rules = state.rules as Map<number, RegisterRule>;
    this.#shared = true;
    return true;
  }

  /** Section 6.4.2.3: an instruction that sets the rule of one register. No rule: it has none any more. */
  #rule(opcode: number, r: ByteReader): { register: number; rule: RegisterRule | undefined } | undefined {
    const { dataAlign } = this.#cie;
    const low = opcode & LOW_BITS;
    const initial = (register: number) => ({ register, rule: this.#initial.get(register) });
    if ((opcode & HIGH_BITS) === DW_CFA.restore) return initial(low);
    const saved = (register: number, offset: number) =>
      ({ register, rule: { kind: 'saved', offset: offset * dataAlign } }) as const;
    if ((opcode & HIGH_BITS) === DW_CFA.offset) return saved(low, r.uleb());
    switch (opcode) {
      case DW_CFA.offset_extended:
        return saved(r.uleb(), r.uleb());
      case DW_CFA.offset_extended_sf:
        return saved(r.uleb(), r.sleb());
      case DW_CFA.GNU_negative_offset_extended:
        return saved(r.uleb(), -r.uleb());
      case DW_CFA.val_offset:
        return { register: r.uleb(), rule: { kind: 'cfa', offset: r.uleb() * dataAlign } };
      case DW_CFA.val_offset_sf:
        return { register: r.uleb(), rule: { kind: 'cfa', offset: r.sleb() * dataAlign } };
      case DW_CFA.restore_extended:
        return initial(r.uleb());
      case DW_CFA.undefined:
        return { register: r.uleb(), rule: { kind: 'undefined' } };
      case DW_CFA.same_value:
        return { register: r.uleb(), rule: { kind: 'same' } };
      case DW_CFA.register:
        return { register: r.uleb(), rule: { kind: 'register', register: r.uleb() } };
      case DW_CFA.expression:
        return { register: r.uleb(), rule: { kind: 'saved-expression', expression: r.take(r.uleb()) } };
      case DW_CFA.val_expression:
        return { register: r.uleb(), rule: { kind: 'expression', expression: r.take(r.uleb()) } };
      default:
        return undefined;
    }
  }
}

function damaged(what: string): RsptraceError {
  return new RsptraceError('DWARF_DAMAGED', `a call frame program is damaged: ${what}`);
}
