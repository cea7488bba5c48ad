import type { Memory } from './encoding.js';
import type { Operand, Size } from './operand.js';
import { name, textName } from './registers.js';

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
