import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One line of a disassembly, as binutils sees it: the reference that decoders are held against. */
export interface Line {
  readonly address: bigint;
  readonly bytes: Uint8Array;
  readonly mnemonic: string;
  /** Without symbols in angle brackets and without comments. */
  readonly operands: string;
}

export type Machine = 'riscv64' | 'x86_64' | 'aarch64';

const options = { riscv64: ['-M', 'no-aliases'], x86_64: ['-M', 'intel'], aarch64: ['-M', 'no-aliases'] };
const program = { riscv64: 'riscv64-linux-gnu-objdump', x86_64: 'objdump', aarch64: 'aarch64-linux-gnu-objdump' };
const rawNames = { riscv64: 'riscv:rv64', x86_64: 'i386:x86-64', aarch64: 'aarch64' };

/** Every instruction in the executable sections of an ELF. */
export function disassemble(machine: Machine, file: string): Line[] {
  return run(machine, ['-d', file]);
}

/** Plain bytes as code at an address. */
export function disassembleBytes(machine: Machine, bytes: Uint8Array, start = 0n): Line[] {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-arch-'));
  try {
    const file = join(folder, 'code.bin');
    writeFileSync(file, bytes);
    const place = `--adjust-vma=0x${start.toString(16)}`;
    return run(machine, ['-D', '-b', 'binary', place, '-m', rawNames[machine], file]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function run(machine: Machine, last: readonly string[]): Line[] {
  const output = execFileSync(program[machine], [...options[machine], '-w', '-z', ...last], {
    maxBuffer: 1 << 28,
    encoding: 'latin1',
  });
  const lines: Line[] = [];
  for (const text of output.split('\n')) {
    const match = /^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t(.*)$/.exec(text);
    if (match === null) continue;
    const [, address = '', groups = '', rest = ''] = match;
    const [mnemonic = '', operands = ''] = split(
      machine,
      rest.replace(machine === 'aarch64' ? /\s*(\/\/.*)?$/ : / *(#.*)?$/, '').replace(/ *<.*>$/, ''),
    );
    lines.push({ address: BigInt(`0x${address}`), bytes: fromGroups(groups), mnemonic, operands });
  }
  return lines;
}

function split(machine: Machine, text: string): string[] {
  if (machine !== 'x86_64') return text.split('\t');
  const match = /^((?:(?:repz|repnz|cs|ds|data16|bnd|lock|notrack|rex\S*) )*\S+) *(.*)$/.exec(text);
  return match === null ? [text] : [match[1] as string, match[2] as string];
}

/** x86 prints single bytes in order, RISC-V whole parcels as numbers. */
function fromGroups(groups: string): Uint8Array {
  return Uint8Array.from(groups.split(' ').flatMap((group) => [...Buffer.from(group, 'hex')].reverse()));
}
