// What objdump prints for RISC-V, in the words of src/arch/riscv64/disassembly.ts.
import { disassembleBytes, type Line } from './objdump.js';

/** Little-endian 32-bit words, as bytes. */
export function words(values: readonly number[]): Uint8Array {
  return new Uint8Array(Uint32Array.from(values).buffer);
}

/** CSR numbers by the names that objdump prints, learnt from objdump itself. */
const csrNumbers = new Map([
  // Of the user-level interrupts in privileged specification 1.11, since withdrawn.
  ...([
    ['ustatus', 0],
    ['uie', 4],
    ['utvec', 5],
    ['uscratch', 0x40],
  ] as const),
  ...disassembleBytes('riscv64', words(Array.from({ length: 4096 }, (_, csr) => ((csr << 20) | 0x1073) >>> 0))).map(
    ({ operands }, csr) => [operands.split(',')[1] ?? '', csr] as const,
  ),
]);

const asImmediate = new Set(['addi', 'addiw', 'andi', 'slli', 'srli', 'srai']);
const asRegister = new Set(['add', 'sub', 'xor', 'or', 'and', 'addw', 'subw']);

/** What a compressed mnemonic of objdump stands for, by the manual's own table of expansions. */
function expand(name: string, operands: string): string {
  const [a = '', b = '', c = ''] = operands.split(',');
  if (name === 'nop') return operands === '' ? 'addi zero,zero,0' : `addi zero,zero,${a}`;
  if (name === 'li') return `addi ${a},zero,${b}`;
  if (name === 'mv') return `add ${a},zero,${b}`;
  if (name === 'addi4spn') return `addi ${a},${b},${c}`;
  if (name === 'addi16sp') return `addi ${a},${a},${b}`;
  if (name === 'j') return `jal zero,${a}`;
  if (name === 'jr') return `jalr zero,0(${a})`;
  if (name === 'jalr') return `jalr ra,0(${a})`;
  if (name === 'beqz' || name === 'bnez') return `${name.slice(0, 3)} ${a},zero,${b}`;
  if (name === 'unimp') return '.2byte 0x0';
  if (name.endsWith('64')) return `${name.slice(0, -2)} ${a},${a},0x0`;
  if (asImmediate.has(name) || asRegister.has(name)) return `${name} ${a},${a},${b}`;
  return `${name.replace(/sp$/, '')} ${operands}`.trim();
}

/** A line of objdump in the words of `textOf`. */
export function expected({ mnemonic, operands }: Line): string {
  if (mnemonic.startsWith('c.')) return expand(mnemonic.slice(2), operands);
  if (!mnemonic.startsWith('csr')) return `${mnemonic} ${operands}`.trim();
  const [rd = '', csr = '', source = ''] = operands.split(',');
  // A name depends on the privileged specification that the file was built for; those it lacks stand as numbers.
  const number = csr.startsWith('0x') ? csr : `0x${csrNumbers.get(csr)?.toString(16)}`;
  return `${mnemonic} ${rd},${number},${source}`;
}
