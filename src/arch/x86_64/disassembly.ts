import { type Addr, addOffset } from '../../base/addr.js';
import type { AssemblyLine } from '../inject/probe-code.js';
import { decode } from './decode.js';
import type { Memory } from './encoding.js';
import type { Operand, Size } from './operand.js';
import { name, textName } from './registers.js';

/** See `ProbeCode.disassemble`; in Capstone's syntax. The decoder must be loaded (`prepare`). */
export function disassemble(code: Uint8Array, start: Addr): readonly AssemblyLine[] {
  const lines: AssemblyLine[] = [];
  for (let offset = 0; offset < code.length; ) {
    const address = addOffset(start, offset);
    const { length, text } = decode(code, address, offset) ?? { length: 1, text: '.byte' };
    lines.push({ address, bytes: code.slice(offset, offset + length), text });
    offset += length;
  }
  return lines;
}

/** Operands as `objdump -d -M intel` prints them: `QWORD PTR [rsp+0x8]`, `0xfffffffffffffff0`. */
export function operandText(operand: Operand): string {
  switch (operand.kind) {
    case 'constant':
      return hex(BigInt.asUintN(8 * operand.size, operand.value));
    case 'register':
      return textName(operand.number, operand.size);
    case 'stack':
      return `${pointers[operand.size]} PTR ${memoryText(operand.memory)}`;
  }
}

export function memoryText(memory: Memory): string {
  const { base, index, scale, displacement } = memory;
  const parts: string[] = [];
  if (base !== undefined) parts.push(base === 'rip' ? 'rip' : name(base));
  if (index !== undefined) parts.push(`${name(index)}*${scale}`);
  const whole = hex(BigInt.asUintN(64, BigInt(displacement)));
  if (base === 'rip') return `[rip+${whole}]`;
  if (parts.length === 0) return `[${whole}]`;
  const rest = displacement === 0 ? '' : `${displacement < 0 ? '-' : '+'}${hex(Math.abs(displacement))}`;
  return `[${parts.join('+')}${rest}]`;
}

export function hex(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}

const pointers: Readonly<Record<Size, string>> = { 1: 'BYTE', 2: 'WORD', 4: 'DWORD', 8: 'QWORD' };
