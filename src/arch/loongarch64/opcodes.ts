// LoongArch Reference Manual, volume 1, appendix B "Table of Instruction Encoding": operations by their fixed bits.
import type { BranchOp, IntegerOp } from '../integer-operations.js';

/** Two registers: bits 31:15. What is left out has results that nobody may rely on (division by zero) or is rare. */
export const registerOps: Readonly<Record<number, IntegerOp>> = {
  32: 'addw',
  33: 'add',
  34: 'subw',
  35: 'sub',
  36: 'slt',
  37: 'sltu',
  38: 'maskeqz',
  39: 'masknez',
  40: 'nor',
  41: 'and',
  42: 'or',
  43: 'xor',
  44: 'orn',
  45: 'andn',
  46: 'sllw',
  47: 'srlw',
  48: 'sraw',
  49: 'sll',
  50: 'srl',
  51: 'sra',
  56: 'mulw',
  59: 'mul',
  60: 'mulh',
  61: 'mulhu',
};

/** A register and 12 bits: bits 31:22. */
export const immediateOps: Readonly<Record<number, { readonly op: IntegerOp; readonly signed: boolean }>> = {
  8: { op: 'slt', signed: true },
  9: { op: 'sltu', signed: true },
  10: { op: 'addw', signed: true },
  11: { op: 'add', signed: true },
  13: { op: 'and', signed: false },
  14: { op: 'or', signed: false },
  15: { op: 'xor', signed: false },
};

/** Shifts by a number of 5 bits: bits 31:15; and of 6 bits: bits 31:16. */
export const wordShifts: Readonly<Record<number, IntegerOp>> = { 129: 'sllw', 137: 'srlw', 145: 'sraw' };
export const shifts: Readonly<Record<number, IntegerOp>> = { 65: 'sll', 69: 'srl', 73: 'sra' };

/** Comparing branches: bits 31:26. */
export const branches: Readonly<Record<number, BranchOp>> = {
  16: 'beq',
  17: 'bne',
  22: 'beq',
  23: 'bne',
  24: 'blt',
  25: 'bge',
  26: 'bltu',
  27: 'bgeu',
};

/** Instructions with a number of 15 bits that says nothing here: bits 31:15. */
export const systemOps: Readonly<Record<number, SystemOp>> = {
  84: 'break',
  85: 'dbcl',
  86: 'syscall',
  3217: 'idle',
};

/** The word of `ertn`. */
export const ERTN = 0x0648_3800;

/** `ud`: an atomic swap that is no instruction, because it loads into the register with its address. */
export type SystemOp = 'break' | 'dbcl' | 'syscall' | 'ertn' | 'idle' | 'ud';
