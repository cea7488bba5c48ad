// One RV64IMC hart in machine mode, without traps, and its debug mode: RISC-V External Debug Support 0.13.2, chapter 4. It
// decodes and computes with src/arch/riscv64, which has tests of its own against objdump and real steps.
import { compute, taken } from '../../../src/arch/integer-operations.js';
import { decode, type Instruction } from '../../../src/arch/riscv64/decode.js';
import { withImmediate } from '../../../src/arch/riscv64/opcodes.js';
import type { Bus } from './bus.js';
import { Triggers } from './triggers.js';

/** Why the hart halted: the cause field of dcsr. */
export const Cause = { ebreak: 1, trigger: 2, request: 3, step: 4 } as const;
type CauseNumber = (typeof Cause)[keyof typeof Cause];

const DCSR = 0x7b0;
const DPC = 0x7b1;
const MISA = 0x301;
const MHARTID = 0xf14;
const EBREAKM = 1n << 15n;
const STEP = 1n << 2n;
/** Fields of dcsr that a debugger may write. */
const DCSR_WRITABLE = EBREAKM | STEP;
/** xdebugver 4, machine mode. */
const DCSR_FIXED = (4n << 28n) | 3n;
/** RV64 with C, I and M. */
const MISA_VALUE = (2n << 62n) | (1n << 2n) | (1n << 8n) | (1n << 12n);
/** Machine registers that keep what is written and do nothing: mstatus, mie, mtvec, mscratch to mip, dscratch0 and 1. */
const PLAIN = new Set([0x300, 0x304, 0x305, 0x340, 0x341, 0x342, 0x343, 0x344, 0x7b2, 0x7b3]);
/** mvendorid, marchid, mimpid. */
const ZERO = new Set([0xf11, 0xf12, 0xf13]);

const loadSizes = { lb: 1, lbu: 1, lh: 2, lhu: 2, lw: 4, lwu: 4, ld: 8 } as const;
const storeSizes = { sb: 1, sh: 2, sw: 4, sd: 8 } as const;

export class Hart {
  readonly registers = Array<bigint>(32).fill(0n);
  readonly bus: Bus;
  pc: bigint;
  halted = true;
  readonly #triggers: Triggers;
  readonly #plain = new Map<number, bigint>();
  #dcsr = DCSR_FIXED | (BigInt(Cause.request) << 6n);

  constructor(bus: Bus, start: bigint, triggers: number) {
    this.bus = bus;
    this.pc = start;
    this.#triggers = new Triggers(triggers);
  }

  halt(cause: CauseNumber): void {
    this.halted = true;
    this.#dcsr = (this.#dcsr & ~(7n << 6n)) | (BigInt(cause) << 6n);
  }

  /** Leaves debug mode; with dcsr.step for one instruction. A trigger holds the first one, too: debuggers switch triggers off to get past it. */
  resume(): void {
    this.halted = false;
    const stepping = (this.#dcsr & STEP) !== 0n;
    this.run(1);
    if (stepping && !this.halted) this.halt(Cause.step);
  }

  /** Executes up to `count` instructions, or until the hart halts or its program ends. */
  run(count: number): void {
    for (let done = 0; done < count && !this.halted && this.bus.status === undefined; done++) {
      if (this.#triggers.hits('execute', this.pc)) this.halt(Cause.trigger);
      else this.#execute();
    }
  }

  /** A CSR as the debugger reads it; undefined when there is none of that number. */
  readCsr(csr: number): bigint | undefined {
    if (csr === DCSR) return this.#dcsr;
    if (csr === DPC) return this.pc;
    if (csr === MISA) return MISA_VALUE;
    if (csr === MHARTID || ZERO.has(csr)) return 0n;
    if (PLAIN.has(csr)) return this.#plain.get(csr) ?? 0n;
    return this.#triggers.read(csr);
  }

  /** False when there is no such CSR, or it cannot be written. */
  writeCsr(csr: number, value: bigint): boolean {
    if (csr === DCSR) this.#dcsr = (this.#dcsr & ~DCSR_WRITABLE) | (value & DCSR_WRITABLE);
    else if (csr === DPC) this.pc = value & ~1n;
    else if (PLAIN.has(csr)) this.#plain.set(csr, value);
    else return csr === MISA || this.#triggers.write(csr, value);
    return true;
  }

  #execute(): void {
    const at = Number(this.pc);
    const code = this.bus.read(at, 4) ?? this.bus.read(at, 2);
    const instruction = code === undefined ? undefined : decode(code);
    if (instruction === undefined) throw this.#trapped('nothing to execute');
    if (instruction.op === 'ebreak') {
      if ((this.#dcsr & EBREAKM) === 0n) throw this.#trapped('ebreak');
      this.halt(Cause.ebreak);
      return;
    }
    this.pc = this.#carryOut(instruction, BigInt.asUintN(64, this.pc + BigInt(instruction.length)));
    this.registers[0] = 0n;
  }

  /** Carries an instruction out; returns where the hart goes on. */
  #carryOut(instruction: Instruction, next: bigint): bigint {
    const x = this.registers;
    const get = (register: number): bigint => x[register] ?? 0n;
    switch (instruction.form) {
      case 'register':
        x[instruction.rd] = compute[instruction.op](get(instruction.rs1), get(instruction.rs2));
        return next;
      case 'immediate': {
        const operation = compute[withImmediate[instruction.op]];
        x[instruction.rd] = operation(get(instruction.rs1), BigInt.asUintN(64, BigInt(instruction.imm)));
        return next;
      }
      case 'upper': {
        const base = instruction.op === 'lui' ? 0n : this.pc;
        x[instruction.rd] = BigInt.asUintN(64, base + BigInt(instruction.imm));
        return next;
      }
      case 'jump':
        x[instruction.rd] = next;
        return BigInt.asUintN(64, this.pc + BigInt(instruction.imm));
      case 'jump-register': {
        const target = BigInt.asUintN(64, get(instruction.rs1) + BigInt(instruction.imm)) & ~1n;
        x[instruction.rd] = next;
        return target;
      }
      case 'branch':
        return taken[instruction.op](get(instruction.rs1), get(instruction.rs2))
          ? BigInt.asUintN(64, this.pc + BigInt(instruction.imm))
          : next;
      case 'load': {
        const size = loadSizes[instruction.op];
        const address = BigInt.asUintN(64, get(instruction.rs1) + BigInt(instruction.imm));
        if (this.#holds('load', address)) return this.pc;
        const bytes = this.bus.read(Number(address), size);
        if (bytes === undefined) throw this.#trapped('a load from nowhere');
        const value = littleEndian(bytes);
        const signed = !instruction.op.endsWith('u');
        x[instruction.rd] = signed ? BigInt.asUintN(64, BigInt.asIntN(8 * size, value)) : value;
        return next;
      }
      case 'store': {
        const size = storeSizes[instruction.op];
        const address = BigInt.asUintN(64, get(instruction.rs1) + BigInt(instruction.imm));
        if (this.#holds('store', address)) return this.pc;
        const bytes = bytesOf(get(instruction.rs2), size);
        if (!this.bus.write(Number(address), bytes)) throw this.#trapped('a store to nowhere');
        return next;
      }
      case 'csr': {
        const value = this.readCsr(instruction.csr);
        if (value === undefined || instruction.op !== 'csrrs' || instruction.source !== 0) throw this.#trapped('a CSR');
        x[instruction.rd] = value;
        return next;
      }
      case 'fence':
        return next;
      default:
        throw this.#trapped(instruction.op);
    }
  }

  /** A trigger halts the hart before it does this. */
  #holds(kind: 'load' | 'store', address: bigint): boolean {
    if (!this.#triggers.hits(kind, address)) return false;
    this.halt(Cause.trigger);
    return true;
  }

  /** The program is written not to trap. */
  #trapped(what: string): Error {
    return new Error(`the simulated hart traps at 0x${this.pc.toString(16)}: ${what}`);
  }
}

export function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

export function bytesOf(value: bigint, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => Number((value >> BigInt(8 * index)) & 0xffn));
}
