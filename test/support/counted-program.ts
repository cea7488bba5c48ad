// Programs that count how often they call `work`, assembled where a test wants them: see programs/counted-*.s.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type Addr, addr } from '../../src/base/addr.js';

export type CountedArch = 'riscv64' | 'x86_64';

export interface CountedProgram {
  readonly arch: CountedArch;
  readonly elf: string;
  readonly harts: number;
  /** Calls of `work` in all. */
  readonly calls: number;
  /** The address that binutils give a symbol. */
  readonly symbol: (name: string) => Addr;
}

export interface CountedOptions {
  readonly arch: CountedArch;
  /** A bare machine like QEMU's own, or a Linux process. */
  readonly place: 'machine' | 'process';
  readonly calls: number;
  /** How many harts call; they share the calls evenly. */
  readonly harts?: number;
  /** It waits until somebody writes `begin`. */
  readonly waits?: boolean;
  /** Adds `rom_work`, which is called as often, at this address. */
  readonly rom?: number;
}

/** What the program prints before it ends with status 7. */
export const outputOf = (program: CountedProgram): string => `calls ${program.calls}\n`;
export const STATUS = 7;

/** Assembles and links a program into `folder`. */
export function assemble(folder: string, options: CountedOptions): CountedProgram {
  const { arch, place, calls, harts = 1, waits = false, rom } = options;
  const prefix = arch === 'riscv64' ? 'riscv64-linux-gnu-' : '';
  const name = `counted-${arch}`;
  const object = join(folder, `${name}.o`);
  const elf = join(folder, name);
  const machine = place === 'machine';
  const symbols = {
    PLACE: machine ? 0 : 1,
    BEGIN: waits ? 0 : 1,
    CALLS: calls / harts,
    HARTS: harts,
    ...(rom === undefined ? {} : { IN_ROM: 1 }),
  };
  execFileSync(`${prefix}as`, [
    ...(arch === 'riscv64' ? ['-march=rv64imac_zicsr'] : []),
    ...Object.entries(symbols).flatMap(([key, value]) => ['--defsym', `${key}=${value}`]),
    join(import.meta.dirname, 'programs', `${name}.s`),
    '-o',
    object,
  ]);
  const riscvLayout = [
    '-N',
    '-Ttext=0x80000000',
    ...(rom === undefined ? [] : [`--section-start=.rom=0x${rom.toString(16)}`]),
  ];
  const layout = arch === 'riscv64' ? riscvLayout : ['-Ttext-segment=0x200000'];
  execFileSync(`${prefix}ld`, ['--no-warn-rwx-segments', ...(machine ? layout : []), '-static', object, '-o', elf]);
  const table = new Map(
    execFileSync(`${prefix}nm`, [elf], { encoding: 'utf8' })
      .split('\n')
      .map((line) => line.split(' '))
      .map(([value = '0', , symbol = '']) => [symbol, addr(BigInt(`0x${value || 0}`))]),
  );
  const symbol = (wanted: string): Addr => {
    const found = table.get(wanted);
    if (found === undefined) throw new Error(`no ${wanted} in ${elf}`);
    return found;
  };
  return { arch, elf, harts, calls, symbol };
}
