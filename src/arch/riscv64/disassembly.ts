import { type Addr, addOffset } from '../../base/addr.js';
import type { Step } from '../inject/code-path.js';
import type { AssemblyLine } from '../inject/probe-code.js';
import { decode, type Instruction } from './decode.js';
import { TIME } from './record-code.js';
import { floatName, integerText as x } from './registers.js';

/**
 * An instruction as `objdump -d -M no-aliases` prints it, without symbols and comments: `addi sp,sp,-16`, `jal
 * ra,80200010`. Compressed ones appear expanded, CSRs by number (`0x300`), unknown ones as data (`.4byte 0x...`).
 */
export function textOf(instruction: Instruction, pc: Addr): string {
  const { op } = instruction;
  switch (instruction.form) {
    case 'register':
      return `${op} ${x(instruction.rd)},${x(instruction.rs1)},${x(instruction.rs2)}`;
    case 'immediate':
      return `${op} ${x(instruction.rd)},${x(instruction.rs1)},${shifts.has(op) ? hex(instruction.imm) : instruction.imm}`;
    case 'upper':
      return `${op} ${x(instruction.rd)},${hex(instruction.imm >>> 12)}`;
    case 'jump':
      return `${op} ${x(instruction.rd)},${target(pc, instruction.imm)}`;
    case 'jump-register':
    case 'load':
      return `${op} ${x(instruction.rd)},${instruction.imm}(${x(instruction.rs1)})`;
    case 'branch':
      return `${op} ${x(instruction.rs1)},${x(instruction.rs2)},${target(pc, instruction.imm)}`;
    case 'store':
      return `${op} ${x(instruction.rs2)},${instruction.imm}(${x(instruction.rs1)})`;
    case 'float-load':
      return `${op} ${floatName(instruction.rd)},${instruction.imm}(${x(instruction.rs1)})`;
    case 'float-store':
      return `${op} ${floatName(instruction.rs2)},${instruction.imm}(${x(instruction.rs1)})`;
    case 'atomic': {
      const name = instruction.ordering === '' ? op : `${op}.${instruction.ordering}`;
      const value = op.startsWith('lr.') ? '' : `${x(instruction.rs2)},`;
      return `${name} ${x(instruction.rd)},${value}(${x(instruction.rs1)})`;
    }
    case 'csr': {
      const source = op.endsWith('i') ? String(instruction.source) : x(instruction.source);
      return `${op} ${x(instruction.rd)},${hex(instruction.csr)},${source}`;
    }
    case 'fence':
      return op === 'fence.tso' ? op : `${op} ${accesses(instruction.before)},${accesses(instruction.after)}`;
    case 'address-fence':
      return `${op} ${x(instruction.rs1)},${x(instruction.rs2)}`;
    case 'system':
      return op;
    case 'unknown':
      return `.${Math.min(instruction.length, 4)}byte ${hex(instruction.bits)}`;
  }
}

/** See `ProbeCode.disassemble`. */
export function disassemble(code: Uint8Array, start: Addr): readonly AssemblyLine[] {
  const lines: AssemblyLine[] = [];
  for (let offset = 0; offset < code.length; ) {
    const instruction = decode(code, offset);
    const length = instruction?.length ?? code.length - offset;
    const address = addOffset(start, offset);
    const text = instruction ? textOf(instruction, address) : '.byte';
    lines.push({ address, bytes: code.slice(offset, offset + length), text });
    offset += length;
  }
  return lines;
}

const shifts: ReadonlySet<string> = new Set(['slli', 'srli', 'srai', 'slliw', 'srliw', 'sraiw']);

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function target(pc: Addr, offset: number): string {
  return addOffset(pc, offset).toString(16);
}

function accesses(set: number): string {
  if (set === 0) return 'unknown';
  return [...'iorw'].filter((_, index) => (set & (8 >> index)) !== 0).join('');
}

/** See `ProbeCode.step`. A call is stepped over. */
export function step(code: Uint8Array, start: Addr, offset: number): Step | undefined {
  const instruction = decode(code, offset);
  if (instruction === undefined) return undefined;
  const { length } = instruction;
  const at = addOffset(start, offset);
  const plain = { length, jumps: undefined, branches: undefined, readsTime: false };
  switch (instruction.form) {
    case 'jump':
      return instruction.rd === 0 ? { ...plain, jumps: addOffset(at, instruction.imm) } : plain;
    case 'jump-register': {
      if (instruction.rd !== 0) return plain;
      const before = offset < 4 ? undefined : decode(code, offset - 4);
      const paired = before?.op === 'auipc' && before.length === 4 && before.rd === instruction.rs1;
      return { ...plain, jumps: paired ? addOffset(at, before.imm - 4 + instruction.imm) : 'away' };
    }
    case 'branch':
      return { ...plain, branches: addOffset(at, instruction.imm) };
    case 'csr':
      return { ...plain, readsTime: instruction.csr === TIME };
    default:
      return plain;
  }
}
