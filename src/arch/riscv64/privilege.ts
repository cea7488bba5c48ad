import { addr } from '../../base/addr.js';
import type { MemoryReader, RegisterReader } from '../../base/memory-reader.js';
import type { BelowFirmware, PrivilegeModel } from '../privilege.js';
import { dwarfRegister } from './registers.js';

// A hart in machine mode, below a kernel in supervisor mode: finds the kernel's registers. mstatus 12:11 (MPP) says
// what was interrupted (RISC-V Privileged Architecture), OpenSBI saves the registers (include/sbi/sbi_trap.h,
// firmware/fw_base.S):
//
//   mscratch -> scratch area; right below it, on the stack, struct sbi_trap_regs, in newer versions with more behind it
//   regs:  zero | ra | sp | gp | ... t6 (32 words in the order of their numbers) | mepc | mstatus | mstatusH
//
// The trap handler fills the struct, then calls into C, where the stack pointer is further down. mepc is moved behind
// an ecall.
const MACHINE = 3n;
/** Where the struct may begin, in bytes below the scratch area. */
const FARTHEST = 512;
const NEAREST = 35 * 8;
const MEPC = 32;
const MSTATUS = 33;
/** Bytes of stack in use between the struct and the stack pointer. */
const DEEPEST = 0x4000n;

const belowFirmware: BelowFirmware = {
  vector: 'mtvec',
  registers: ['priv', 'mepc', 'mstatus', 'mscratch', 'medeleg', 'sp', 'satp'],
  async find(registers, physical) {
    if (registers.register('priv') !== MACHINE) return undefined;
    const [mepc, mstatus, delegated] = ['mepc', 'mstatus', 'medeleg'].map((name) => registers.register(name));
    // Firmware that delegates no traps has no supervisor mode below: it is the kernel itself.
    if (!delegated) return undefined;
    if (mepc === undefined || mstatus === undefined || privilegeBefore(mstatus) === MACHINE) return { from: 'nowhere' };
    const saved = await savedRegisters(registers, physical, mepc, mstatus);
    const known = new Map(saved ?? []);
    // Control registers are unchanged; those of the supervisor show where it was interrupted.
    const register = (name: string): bigint | undefined => {
      if (name === 'pc') return mepc;
      if (name === 'priv') return privilegeBefore(mstatus);
      return known.get(name) ?? (generalNames.has(name) ? undefined : registers.register(name));
    };
    return { from: saved === undefined ? 'pc' : 'registers', below: { register } };
  },
};

const general = Array.from({ length: 32 }, (_, number) => dwarfRegister(number) ?? '');
const generalNames = new Set(general);

function privilegeBefore(mstatus: bigint): bigint {
  return (mstatus >> 11n) & 3n;
}

/** By name; undefined if they are not found, or may belong to an earlier trap. */
async function savedRegisters(
  registers: RegisterReader,
  physical: MemoryReader,
  mepc: bigint,
  mstatus: bigint,
): Promise<[string, bigint][] | undefined> {
  const [scratch, sp] = [registers.register('mscratch'), registers.register('sp')];
  if (scratch === undefined || sp === undefined || scratch < FARTHEST || scratch % 8n !== 0n) return undefined;
  const start = addr(scratch - BigInt(FARTHEST));
  const bytes = await physical.read(start, FARTHEST);
  if (bytes === undefined) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, FARTHEST);
  for (let at = FARTHEST - NEAREST; at >= 0; at -= 8) {
    const word = (index: number): bigint => view.getBigUint64(at + 8 * index, true);
    const behind = word(MEPC) - mepc;
    const isIts =
      word(0) === 0n && behind >= 0n && behind <= 4n && privilegeBefore(word(MSTATUS)) === privilegeBefore(mstatus);
    const depth = start + BigInt(at) - sp;
    if (isIts && depth > 0n && depth <= DEEPEST) return general.map((name, number) => [name, word(number)]);
  }
  return undefined;
}

const SUPERVISOR = 1n;
const SRET = 0x10200073;
const MRET = 0x30200073;
/** Interrupts are enabled, in `sstatus` and `mstatus`. */
const SIE = 1n << 1n;
const MIE = 1n << 3n;
const trapReturns = ['priv', 'mstatus', 'sstatus', 'sepc', 'mepc'];

/**
 * RISC-V Privileged Architecture. In firmware (machine mode) addresses are physical, so there is no root.
 *
 *   priv   0 user, 1 supervisor, 3 machine, 4 more below a hypervisor: numbered by QEMU and OpenOCD
 *   satp   63:60 mode, 43:0 page
 */
export const privilege: PrivilegeModel = {
  registers: ['priv', 'satp'],
  standing(registers) {
    const priv = registers.register('priv');
    const level =
      priv === undefined ? undefined : (['user', 'kernel', 'kernel', 'firmware'] as const)[Number(priv & 3n)];
    const satp = level === 'firmware' ? undefined : registers.register('satp');
    return { privilege: level, root: satp !== undefined && pages(satp) ? rootOf(satp) : undefined };
  },
  isKernelCode(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    for (let at = 0; at + 4 <= code.length; at += 2) {
      const word = view.getUint32(at, true);
      if (word === SRET || word === MRET) return true;
    }
    return false;
  },
  trapReturns: {
    registers: trapReturns,
    find(registers) {
      const [priv, mstatus, sstatus = mstatus, sepc, mepc] = trapReturns.map((name) => registers.register(name));
      const isMasked = (status: bigint | undefined, bit: bigint): boolean => ((status ?? 0n) & bit) === 0n;
      // A trap to machine mode is over when the hart runs below machine mode.
      const inMachine = priv === undefined || priv === MACHINE;
      return [
        ...(sepc !== undefined && isMasked(sstatus, SIE) ? [sepc] : []),
        ...(mepc !== undefined && inMachine && isMasked(mstatus, MIE) ? [mepc] : []),
      ];
    },
  },
  // psABI, "Frame Pointer Convention".
  frameRecord: { framePointer: 'fp', below: 16 },
  kernelEntry: {
    registers: ['priv', 'satp', 'stvec'],
    find(registers) {
      const [priv, satp, stvec] = ['priv', 'satp', 'stvec'].map((name) => registers.register(name));
      if (priv === undefined || priv === SUPERVISOR || satp === undefined || !pages(satp) || !stvec) return undefined;
      return [addr(stvec & ~3n)];
    },
    fromFirmware(registers) {
      if (registers.register('priv') !== MACHINE) return undefined;
      return { register: (name) => (name === 'priv' ? SUPERVISOR : registers.register(name)) };
    },
  },
  belowFirmware,
};

function pages(satp: bigint): boolean {
  return satp >> 60n !== 0n;
}

/** satp 43:0: the page number of the root table. */
export function rootOf(satp: bigint): bigint {
  return (satp & ((1n << 44n) - 1n)) << 12n;
}
