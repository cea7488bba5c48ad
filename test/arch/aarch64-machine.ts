import { assembleFor, BareMachine, type MachineTarget, words } from './machine.js';
import { placesAt, smallRingAt, waysTo } from './ring.js';

export type { Registers } from './machine.js';

/** The order of QEMU's `g` packet: aarch64-core.xml. */
export const order = [...Array.from({ length: 31 }, (_, index) => `x${index}`), 'sp', 'pc'];

const target: MachineTarget = {
  program: 'qemu-system-aarch64',
  options: '-M virt -cpu max -m 256M',
  order,
  flags: 'cpsr',
  binutils: 'aarch64-linux-gnu',
  assembler: ['-march=armv8.5-a+pauth'],
};

/** The far code is 160 MiB from the function: out of reach of a `b`. */
export const place = placesAt(0x4000_0000, 0xa10_0000);
export const smallRing = smallRingAt(place);
export const ways = waysTo(place);

/** Where the tables of pages lie: the first of 1 GiB, the second of 2 MiB each. */
const tables = 0x4800_0000n;

/** EL1h, interrupts off. */
export const EL1 = 0x3c5n;

/**
 * Signatures are on, so is the vector unit. The functions, what is near them, and hops lie in guarded memory: an
 * indirect jump must find a landing pad there. The rest of RAM is not guarded, as memory that rsptrace maps.
 */
const setUp = (harts: number): string => `
  mrs  x9, mpidr_el1
  and  x9, x9, #0xff
  cbnz x9, 3f
  // PSCI's CPU_ON: the others begin here, too.
  mov  x10, #1
2:cmp  x10, #${harts}
  b.eq 3f
  ldr  x0, =0xc4000003
  mov  x1, x10
  ldr  x2, =${place.done}
  hvc  #0
  add  x10, x10, #1
  b    2b
3:mov  x0, #(3 << 20)
  msr  cpacr_el1, x0
  ldr  x0, =0x1234567890abcdef
  msr  apiakeylo_el1, x0
  msr  apiakeyhi_el1, x0
  msr  apibkeylo_el1, x0
  mov  x0, #0xff00
  msr  mair_el1, x0
  ldr  x0, =0x200803519
  msr  tcr_el1, x0
  ldr  x0, =${tables}
  msr  ttbr0_el1, x0
  isb
  mrs  x0, sctlr_el1
  ldr  x1, =0xc0001005
  orr  x0, x0, x1
  // BT1 is 0: paciasp is a landing pad for all indirect jumps but those of br.
  msr  sctlr_el1, x0
  isb
  ldr  x0, =${tables + 0x2000n}
4:ldaxr x1, [x0]
  add  x1, x1, #1
  stlxr w2, x1, [x0]
  cbnz w2, 4b
5:ldr  x1, [x0]
  cmp  x1, #${harts}
  b.ne 5b
  cbz  x9, 7f
6:b    6b
7:brk  #1
  .ltorg
`;

/** RAM is at 0x4000_0000. */
export class Machine extends BareMachine {
  static async start(harts = 1): Promise<Machine> {
    const machine = new Machine(await BareMachine.stubOf(target, harts), target);
    // The first 1 GiB is devices, in the second each entry maps 2 MiB of normal memory; GP is bit 50.
    await machine.write(tables, words(0x60_0000_0000_0401n, tables + 0x1003n));
    const blocks = Array.from({ length: 128 }, (_, index) => {
      const isGuarded = index === 0;
      return (0x4000_0000n + BigInt(index) * 0x20_0000n) | 0x705n | (isGuarded ? 1n << 50n : 0n);
    });
    await machine.write(tables + 0x1000n, words(...blocks));
    await machine.writeWord(tables + 0x2000n, 0n);
    const code = assemble(setUp(harts), place.done);
    await machine.write(place.done, code);
    await machine.setRegisters({ ...(await machine.registers()), pc: place.done, cpsr: EL1 });
    const end = Buffer.from(code).indexOf(Buffer.from('200020d4', 'hex'));
    await machine.run([place.done + BigInt(end)]);
    return machine;
  }
}

export function assemble(text: string, at: bigint, symbols: Readonly<Record<string, bigint>> = {}): Uint8Array {
  return assembleFor(target, text, at, symbols);
}
