import { codeFrames, restored } from '../frames/code-frames.js';
import { type FrameDecoder, type Outcome, stop } from '../frames/frame-analysis.js';
import type { CodeFrameModel } from '../frames/frame-model.js';
import { ADDRESS, CONSTANT, FrameState, plus, sum, type Value } from '../frames/frame-state.js';
import { decode, type Instruction } from './decode.js';
import { FP, RA, SP } from './registers.js';

/**
 * RISC-V frames from code: RISC-V ELF psABI, "Integer Register Convention", "Frame Pointer Convention" and "DWARF
 * Register Numbers" (CSRs are 4096 + their number).
 *
 *     CFA ->  | caller's frame |
 *      -8     | ra             |
 *     -16     | caller's fp    |   fp = CFA
 */
const CSR = 4096;
const csrs = { sscratch: 0x140, sepc: 0x141, mscratch: 0x340, mepc: 0x341 } as const;
const T0 = 5;

/** States have an index for x0 to x31, then one for each CSR that a trap saves or swaps. */
const SSCRATCH = 32;
const SEPC = 33;
const MSCRATCH = 34;
const MEPC = 35;
const csrIndex = new Map<number, number>([
  [csrs.sscratch, SSCRATCH],
  [csrs.sepc, SEPC],
  [csrs.mscratch, MSCRATCH],
  [csrs.mepc, MEPC],
]);

/** ra, t0 to t6, a0 to a7. */
const clobbered = [RA, 5, 6, 7, 28, 29, 30, 31, 10, 11, 12, 13, 14, 15, 16, 17];
const preserved = [FP, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

const decoder: FrameDecoder<Instruction> = {
  numbers: Array.from({ length: 32 }, (_, index) => index).concat(
    [csrs.sscratch, csrs.sepc, csrs.mscratch, csrs.mepc].map((csr) => CSR + csr),
  ),
  longestCall: 4,
  entry: FrameState.entry(36).with(0, { base: CONSTANT, offset: 0 }),
  decode: ({ bytes }, offset) => decode(bytes, offset),
  execute,
  addresses,
  isReturn: (step) => step.form === 'jump-register' && step.rd === 0 && step.rs1 === RA && step.imm === 0,
  isPadding: (instruction) =>
    (instruction.form === 'immediate' && instruction.op === 'addi' && instruction.rd === 0) ||
    instruction.form === 'unknown',
};

export const frames: CodeFrameModel = codeFrames({
  registerCount: 32,
  // zero, gp, tp.
  fixed: [0, 3, 4],
  stackPointer: SP,
  framePointer: FP,
  returnAddress: RA,
  preserved,
  special: new Map(Object.entries(csrs).map(([name, csr]) => [CSR + csr, name])),
  cfaAtEntry: 0,
  aboveFramePointer: 0,
  decoder,
  mayReturnFromTrap: (code) => trapReturns.some((bytes) => has(code, bytes)),
  seekStackSwitches(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const found: number[] = [];
    for (let offset = 0; offset + 2 <= code.length; offset += 2) {
      const half = view.getUint16(offset, true);
      // c.mv sp, rs2
      const source = (half >>> 2) & 31;
      const isMoved = (half & 0xff83) === 0x8102 && source !== 0 && source !== FP;
      if (
        isMoved ||
        (LOADS_SP.has(half & 0x7fff) && offset + 4 <= code.length && isOther(view.getUint32(offset, true)))
      )
        found.push(offset);
    }
    return found;
  },
});

/** The low halves of `ld sp, ...` and `addi sp, ...`, less bit 15, which belongs to the source. */
const LOADS_SP = new Set([0x3103, 0x0113]);

/** Not by sp and fp, as functions free their frame; of `addi` only `mv`. */
function isOther(word: number): boolean {
  const source = (word >>> 15) & 31;
  return source !== SP && source !== FP && ((word & 0x7f) === 0x03 || word >>> 20 === 0);
}

/** `sret` and `mret`. */
const trapReturns = [Buffer.from('73002010', 'hex'), Buffer.from('73002030', 'hex')];

function has(code: Uint8Array, bytes: Buffer): boolean {
  return Buffer.from(code.buffer, code.byteOffset, code.length).includes(bytes);
}

function execute(instruction: Instruction, state: FrameState, at: number): Outcome {
  const { values } = state;
  const set = (rd: number, value: Value | undefined): Outcome => ({
    next: rd === 0 ? state : state.with(rd, value),
    kind: 'plain',
  });
  switch (instruction.form) {
    case 'immediate':
      return set(instruction.rd, immediate(instruction, values[instruction.rs1]));
    case 'register':
      return set(
        instruction.rd,
        instruction.op === 'add' || instruction.op === 'sub'
          ? sum(values[instruction.rs1], values[instruction.rs2], instruction.op === 'sub')
          : undefined,
      );
    case 'upper':
      return set(
        instruction.rd,
        instruction.op === 'lui'
          ? { base: CONSTANT, offset: instruction.imm }
          : { base: ADDRESS, offset: at + instruction.imm },
      );
    case 'load':
      return set(
        instruction.rd,
        instruction.op === 'ld'
          ? restored(frames, state, plus(values[instruction.rs1], instruction.imm), instruction.rd)
          : undefined,
      );
    case 'store': {
      const size = { sb: 1, sh: 2, sw: 4, sd: 8 }[instruction.op];
      const address = plus(values[instruction.rs1], instruction.imm);
      return { next: state.store(address, size, values[instruction.rs2]), kind: 'plain' };
    }
    case 'float-store':
      return { next: state.store(plus(values[instruction.rs1], instruction.imm), 8, undefined), kind: 'plain' };
    case 'float-load':
    case 'fence':
    case 'address-fence':
      return { next: state, kind: 'plain' };
    case 'atomic':
      return set(instruction.rd, undefined);
    case 'csr':
      return csr(instruction, state);
    case 'jump':
      return instruction.rd === 0
        ? { next: undefined, target: { offset: at + instruction.imm, state }, kind: 'plain' }
        : { next: afterCall(state, instruction.rd), kind: 'call' };
    case 'jump-register':
      return jumpRegister(instruction, state);
    case 'branch':
      return branch(instruction, state, at);
    case 'system':
      return system(instruction.op, state);
    case 'unknown':
      return isTrap(instruction.bits) ? stop : set(overwritten(instruction), undefined);
  }
}

/** All zeros and `csrrw x0, cycle, x0` are the two spellings of unimp. A number that is no instruction is data. */
const isTrap = (bits: number): boolean => bits === 0 || bits === 0xc000_1073;

/**
 * The integer register that an instruction overwrites which is not decoded; 0 if none. Unprivileged ISA, by the opcode:
 *
 *     OP, OP-IMM, those of 32 bits, AMO, SYSTEM    rd
 *     OP-FP    rd of a comparison, of fcvt to an integer, of fmv to one and fclass: funct5 10100, 11000, 11100
 *     OP-V     rd of vset*; of vmv.x.s, vcpop and vfirst: OPMVV, funct6 010000
 *     Zcb      rd' of c.lbu, c.lhu, c.lh; of c.mul, c.zext.b and the others of one register
 */
function overwritten({ bits, length }: Instruction & { form: 'unknown' }): number {
  if (length === 2) {
    if ((bits & 0xf803) === 0x8000) return 8 + ((bits >> 2) & 7);
    return (bits & 0xfc43) === 0x9c41 ? 8 + ((bits >> 7) & 7) : 0;
  }
  const [rd, f3] = [(bits >> 7) & 31, (bits >> 12) & 7];
  switch (bits & 0x7f) {
    case 0x13:
    case 0x1b:
    case 0x2f:
    case 0x33:
    case 0x3b:
    case 0x73:
      return rd;
    case 0x53:
      return [0b10100, 0b11000, 0b11100].includes(bits >>> 27) ? rd : 0;
    case 0x57:
      return f3 === 7 || (f3 === 2 && bits >>> 26 === 0b010000) ? rd : 0;
    default:
      return 0;
  }
}

function addresses(instruction: Instruction): ReturnType<typeof decoder.addresses> {
  switch (instruction.form) {
    case 'load':
    case 'store':
    case 'float-load':
    case 'float-store':
      return [{ register: instruction.rs1, offset: instruction.imm }];
    case 'atomic':
      return [{ register: instruction.rs1, offset: 0 }];
    case 'immediate': {
      const { op, rd, rs1, imm } = instruction;
      return op !== 'addi' || rd === SP || rd === FP ? [] : [{ register: rs1, offset: imm }];
    }
    default:
      return [];
  }
}

function immediate(
  { op, imm }: Extract<Instruction, { form: 'immediate' }>,
  source: Value | undefined,
): Value | undefined {
  if (op === 'addi') return plus(source, imm);
  if (source?.base !== CONSTANT) return undefined;
  switch (op) {
    case 'addiw':
      return { base: CONSTANT, offset: (source.offset + imm) | 0 };
    case 'slli': {
      const offset = source.offset * 2 ** imm;
      return Math.abs(offset) < 2 ** 31 ? { base: CONSTANT, offset } : undefined;
    }
    default:
      return undefined;
  }
}

/**
 * A call may change the registers that no function has to keep. A call that links through another register calls a
 * helper of the prologue.
 */
function afterCall(state: FrameState, link: number): FrameState {
  return link === RA ? state.without(clobbered) : state.without([link, ...clobbered]);
}

function jumpRegister({ rd, rs1, imm }: Extract<Instruction, { form: 'jump-register' }>, state: FrameState): Outcome {
  if (rd !== 0) return { next: afterCall(state, rd), kind: 'call' };
  if (rs1 === RA || rs1 === T0) return stop;
  // `auipc` and `jr` together are a jump that is too far for one instruction.
  const target = plus(state.values[rs1], imm);
  if (target?.base === ADDRESS) return { next: undefined, target: { offset: target.offset, state }, kind: 'plain' };
  return { next: undefined, kind: 'indirect' };
}

function branch(instruction: Extract<Instruction, { form: 'branch' }>, state: FrameState, at: number): Outcome {
  const { op, rs1, rs2 } = instruction;
  const offset = at + instruction.imm;
  // The loop that touches a large frame page by page ends when sp has reached a register.
  const reached =
    rs1 === SP || rs2 === SP ? state.with(SP, state.values[rs1 === SP ? rs2 : rs1] ?? state.values[SP]) : state;
  return {
    next: op === 'bne' ? reached : state,
    target: { offset, state: op === 'beq' ? reached : state },
    kind: 'plain',
  };
}

function csr({ op, rd, csr: number, source }: Extract<Instruction, { form: 'csr' }>, state: FrameState): Outcome {
  if (op === 'csrrw' && rd === 0 && source === 0 && number === 0xc00) return stop;
  const index = csrIndex.get(number);
  const before = index === undefined ? undefined : state.values[index];
  let next = state;
  if (index !== undefined) {
    if (op === 'csrrw') next = next.with(index, state.values[source]);
    else if (source !== 0) next = next.with(index, undefined);
  }
  if (rd !== 0) next = next.with(rd, before);
  return { next, kind: 'plain' };
}

function system(op: Extract<Instruction, { form: 'system' }>['op'], state: FrameState): Outcome {
  switch (op) {
    case 'sret':
    case 'mret':
      // At the handler's entry all registers, ra too, are still those of the interrupted code.
      return { next: undefined, kind: 'trap-return', trap: { back: op === 'sret' ? SEPC : MEPC, entry: undefined } };
    case 'dret':
      return stop;
    case 'ebreak':
      // After Linux's WARN the code goes on, after its BUG it does not.
      return { next: state, kind: 'breakpoint' };
    case 'ecall':
      // The SBI and Linux both answer in a0 and a1 and keep the other registers.
      return { next: state.without([10, 11]), kind: 'plain' };
    default:
      return { next: state, kind: 'plain' };
  }
}
