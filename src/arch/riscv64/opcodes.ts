/**
 * The RISC-V Instruction Set Manual, volume I, "RV32/64G Instruction Set Listings": operation names by their function
 * fields. Covered are RV64I, M, A, the loads and stores of F and D, Zicsr, Zifencei, and the supervisor and machine
 * instructions of volume II.
 */
const none = undefined;

/** By funct3. */
export const loads = ['lb', 'lh', 'lw', 'ld', 'lbu', 'lhu', 'lwu'] as const;
export const stores = ['sb', 'sh', 'sw', 'sd'] as const;
export const branches = ['beq', 'bne', none, none, 'blt', 'bge', 'bltu', 'bgeu'] as const;
export const floatLoads = [none, none, 'flw', 'fld'] as const;
export const floatStores = [none, none, 'fsw', 'fsd'] as const;
export const csrs = [none, 'csrrw', 'csrrs', 'csrrc', none, 'csrrwi', 'csrrsi', 'csrrci'] as const;

/** OP and OP-32: funct7, then by funct3. */
export const registerOps = {
  plain: ['add', 'sll', 'slt', 'sltu', 'xor', 'srl', 'or', 'and'],
  alternate: ['sub', none, none, none, none, 'sra'],
  multiply: ['mul', 'mulh', 'mulhsu', 'mulhu', 'div', 'divu', 'rem', 'remu'],
} as const;
export const wordOps = {
  plain: ['addw', 'sllw', none, none, none, 'srlw'],
  alternate: ['subw', none, none, none, none, 'sraw'],
  multiply: ['mulw', none, none, none, 'divw', 'divuw', 'remw', 'remuw'],
} as const;

/** OP-IMM and OP-IMM-32 without the shifts: by funct3. */
export const immediateOps = ['addi', none, 'slti', 'sltiu', 'xori', none, 'ori', 'andi'] as const;

/** AMO: by funct5. */
export const atomics: Readonly<Record<number, AtomicName>> = {
  0: 'amoadd',
  1: 'amoswap',
  2: 'lr',
  3: 'sc',
  4: 'amoxor',
  8: 'amoor',
  12: 'amoand',
  16: 'amomin',
  20: 'amomax',
  24: 'amominu',
  28: 'amomaxu',
};

/** Instructions whose whole word is fixed. */
export const fixed: Readonly<Record<number, SystemOp>> = {
  115: 'ecall',
  1048691: 'ebreak',
  270532723: 'sret',
  807403635: 'mret',
  2065694835: 'dret',
  273678451: 'wfi',
};

type Names<T extends readonly unknown[]> = NonNullable<T[number]>;
type Groups<T extends Readonly<Record<string, readonly unknown[]>>> = NonNullable<T[keyof T][number]>;

export type LoadOp = Names<typeof loads>;
export type StoreOp = Names<typeof stores>;
export type BranchOp = Names<typeof branches>;
export type FloatLoadOp = Names<typeof floatLoads>;
export type FloatStoreOp = Names<typeof floatStores>;
export type CsrOp = Names<typeof csrs>;
export type RegisterOp = Groups<typeof registerOps> | Groups<typeof wordOps>;
export type ShiftOp = 'slli' | 'srli' | 'srai' | 'slliw' | 'srliw' | 'sraiw';
export type ImmediateOp = Names<typeof immediateOps> | 'addiw' | ShiftOp;
export type SystemOp = 'ecall' | 'ebreak' | 'sret' | 'mret' | 'dret' | 'wfi' | 'fence.i';
type AtomicName = 'lr' | 'sc' | `amo${'add' | 'swap' | 'xor' | 'or' | 'and' | 'min' | 'max' | 'minu' | 'maxu'}`;
export type AtomicOp = `${AtomicName}.${'w' | 'd'}`;

/** The register operation that each immediate operation shares its arithmetic with. */
export const withImmediate: Readonly<Record<ImmediateOp, RegisterOp>> = {
  addi: 'add',
  slti: 'slt',
  sltiu: 'sltu',
  xori: 'xor',
  ori: 'or',
  andi: 'and',
  slli: 'sll',
  srli: 'srl',
  srai: 'sra',
  addiw: 'addw',
  slliw: 'sllw',
  srliw: 'srlw',
  sraiw: 'sraw',
};
