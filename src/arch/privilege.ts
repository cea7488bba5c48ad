import type { RegisterReader } from '../base/memory-reader.js';

/** Who runs on a hart: a program, the kernel, or on riscv the firmware below it. */
export type Privilege = 'user' | 'kernel' | 'firmware';

/** Where a hart stands, as far as its registers tell. */
export interface Standing {
  readonly privilege: Privilege | undefined;
  /** Physical address of the root of the page tables in use; undefined without paging. What tells spaces apart, without ASID and PCID. */
  readonly root: bigint | undefined;
}

const names = {
  riscv64: ['priv', 'satp'],
  x86_64: ['cs', 'cr0', 'cr3'],
} as const;

/** What {@link standing} reads, of what a target may have. */
export function standingRegisters(architecture: keyof typeof names): readonly string[] {
  return names[architecture];
}

/**
 * Tells who runs on a hart and in which address space. In firmware (riscv machine mode) addresses are physical, so there is no root.
 *
 *   riscv64  priv: 0 user, 1 supervisor, 3 machine, 4 more below a hypervisor (as QEMU and OpenOCD number it) | satp: 63:60 mode, 43:0 page
 *   x86_64   cs: 1:0 the current level | cr0: 31 PG, 0 PE | cr3: 51:12 root
 */
export function standing(architecture: keyof typeof names, registers: RegisterReader): Standing {
  return architecture === 'riscv64' ? onRiscv(registers) : onX86(registers);
}

function onRiscv(registers: RegisterReader): Standing {
  const priv = registers.register('priv');
  const privilege =
    priv === undefined ? undefined : (['user', 'kernel', 'kernel', 'firmware'] as const)[Number(priv & 3n)];
  const satp = privilege === 'firmware' ? undefined : registers.register('satp');
  const pages = satp !== undefined && satp >> 60n !== 0n;
  return { privilege, root: pages ? (satp & ((1n << 44n) - 1n)) << 12n : undefined };
}

function onX86(registers: RegisterReader): Standing {
  const [cs, cr0, cr3] = names.x86_64.map((name) => registers.register(name));
  // In real mode the low bits of a segment are part of its address.
  const isReal = cr0 !== undefined && (cr0 & 1n) === 0n;
  const privilege = cs === undefined ? undefined : !isReal && (cs & 3n) === 3n ? 'user' : 'kernel';
  const pages = cr3 !== undefined && (cr0 === undefined || ((cr0 >> 31n) & 1n) === 1n);
  return { privilege, root: pages ? cr3 & 0x000f_ffff_ffff_f000n : undefined };
}
