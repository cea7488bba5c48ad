import { type RegisterSpec, RISCV_NAMES } from './target-description.js';

/** An architecture whose registers are known without a description. */
export type KnownArchitecture = 'riscv64' | 'x86_64';

/**
 * The registers of a stub that describes none, in gdb's own order: gdb/riscv-tdep.h (x0-x31, pc) and
 * gdb/features/i386/64bit-core.xml, 64bit-sse.xml.
 */
export function defaultRegisters(architecture: KnownArchitecture): RegisterSpec[] {
  const layout: [names: string[], bits: number][] =
    architecture === 'riscv64'
      ? [[[...RISCV_NAMES, 'pc'], 64]]
      : [
          ['rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip'.split(' '), 64],
          ['eflags cs ss ds es fs gs'.split(' '), 32],
          [Array.from({ length: 8 }, (_, index) => `st${index}`), 80],
          ['fctrl fstat ftag fiseg fioff foseg fooff fop'.split(' '), 32],
          [Array.from({ length: 16 }, (_, index) => `xmm${index}`), 128],
          [['mxcsr'], 32],
        ];
  return layout
    .flatMap(([names, bits]) => names.map((name) => ({ name, bits })))
    .map((each, number) => ({ ...each, number }));
}

/** Which known architecture a stub's name for it means. */
export function knownArchitecture(name: string | undefined): KnownArchitecture | undefined {
  if (name === undefined) return undefined;
  if (/^riscv(:rv64|64)/.test(name)) return 'riscv64';
  return name === 'i386:x86-64' || name === 'x86_64' ? 'x86_64' : undefined;
}
