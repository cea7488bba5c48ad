import { assembleFor, BareMachine, type MachineTarget } from './machine.js';

export { type Registers, words } from './machine.js';

/** The order of QEMU's `g` packet: x0 to x31 by the names of its riscv-64bit-cpu.xml, then pc. */
export const order =
  'zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc'.split(' ');

const target: MachineTarget = {
  program: 'qemu-system-riscv64',
  options: '-M virt -bios none -m 64M',
  order,
  binutils: 'riscv64-linux-gnu',
  assembler: ['-march=rv64gc'],
  directives: '.option norelax\n',
};

/** RAM is at 0x8000_0000. */
export class Machine extends BareMachine {
  static async start(harts = 1): Promise<Machine> {
    return new Machine(await BareMachine.stubOf(target, harts), target);
  }
}

export function assemble(text: string, at: bigint, symbols: Readonly<Record<string, bigint>> = {}): Uint8Array {
  return assembleFor(target, text, at, symbols);
}
