import type { RegisterDefaults } from '../architecture.js';

/**
 * System V ABI, AMD64 supplement, figure 3.36 "DWARF Register Number Mapping", by the names that target descriptions
 * use. General registers are also listed in the order of instruction numbers (Intel SDM volume 2, table 3-1), which
 * is not DWARF's.
 */
const numbered = 'rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15'.split(' ');
const low32 = 'eax ecx edx ebx esp ebp esi edi r8d r9d r10d r11d r12d r13d r14d r15d'.split(' ');
const low16 = 'ax cx dx bx sp bp si di r8w r9w r10w r11w r12w r13w r14w r15w'.split(' ');
const low8 = 'al cl dl bl spl bpl sil dil r8b r9b r10b r11b r12b r13b r14b r15b'.split(' ');

const dwarf: readonly (string | undefined)[] = [
  ...'rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip'.split(' '),
  ...Array.from({ length: 16 }, (_, index) => `xmm${index}`),
  ...Array.from({ length: 8 }, (_, index) => `st${index}`),
  ...Array.from({ length: 8 }, () => undefined),
  ...'eflags es cs ss ds fs gs'.split(' '),
  undefined,
  undefined,
  'fs_base',
  'gs_base',
];

export const generalRegisters: readonly string[] = numbered;

/** gdb's own order (gdb/features/i386/64bit-core.xml, 64bit-sse.xml). */
export const registerDefaults: RegisterDefaults = {
  layout: [
    ...sized('rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip'.split(' '), 64),
    ...sized('eflags cs ss ds es fs gs'.split(' '), 32),
    ...sized(
      Array.from({ length: 8 }, (_, index) => `st${index}`),
      80,
    ),
    ...sized('fctrl fstat ftag fiseg fioff foseg fooff fop'.split(' '), 32),
    ...sized(
      Array.from({ length: 16 }, (_, index) => `xmm${index}`),
      128,
    ),
    ...sized(['mxcsr'], 32),
  ],
  aliases: [],
};

function sized(names: readonly string[], bits: number): { readonly name: string; readonly bits: number }[] {
  return names.map((name) => ({ name, bits }));
}

export const RAX = 0;
export const RCX = 1;
export const RDX = 2;
export const RBX = 3;
export const RSP = 4;
export const RSI = 6;
export const RDI = 7;
export const R10 = 10;
export const R11 = 11;
export const R12 = 12;
export const R13 = 13;

/** The instruction-encoding number of a 64-bit register, or undefined for another name. */
export function numberOf(register: string): number | undefined {
  const number = numbered.indexOf(register);
  return number < 0 ? undefined : number;
}

/** Bytes of a register's part. */
export type Size = 1 | 2 | 4 | 8;

/** Every spelling of a general register's low part, to the whole register. */
export const wholeRegisters: ReadonlyMap<string, string> = new Map(
  numbered.flatMap((whole, number) =>
    [low8, low16, low32, numbered].map((part): [string, string] => [part[number] as string, whole]),
  ),
);

/** The registers of arguments and results (AMD64 psABI, "Parameter Passing"). */
export const floatArguments: readonly string[] = Array.from({ length: 8 }, (_, index) => `xmm${index}`);

/** The register with this DWARF number by its target-description name; undefined if target descriptions have none. */
export function dwarfRegister(number: number): string | undefined {
  return dwarf[number];
}
