// Intel SDM volume 3, chapter 6 "Interrupt and Exception Handling" (IDT, gates, the frame on the stack), SYSCALL and
// SYSRET in volume 2. Arguments of system calls as Linux has them (man 2 syscall).
//
//   gate    0 offset 15:0 | 2 selector | 4 IST | 5 P 7, DPL 6:5, type 3:0 | 6 offset 31:16 | 8 offset 63:32
//   frame   [error code] | RIP | CS | RFLAGS | RSP | SS
import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type {
  Trap,
  TrapEntry,
  TrapExit,
  TrapKind,
  TrapMemory,
  TrapModel,
  TrapRead,
  TrapSetter,
  TrapTable,
} from '../traps.js';
import { decode, type Instruction, type Operand } from './decode.js';

const LSTAR = 0xc000_0082n;
const frameBytes = 40;
const gateBytes = 16;
/** The first vector that the processor itself does not use. */
const firstOwn = 32;
const linuxCall = 0x80;
/** Vectors whose frame begins with an error code. */
const coded: ReadonlySet<number> = new Set([8, 10, 11, 12, 13, 14, 17, 21, 29, 30]);
const pageFault = 14;

const exceptions: Readonly<Record<number, readonly [TrapKind, string]>> = {
  ...{ 0: ['trap', 'divide_error'], 1: ['trap', 'debug'], 2: ['irq', 'nmi'], 3: ['trap', 'breakpoint'] },
  ...{ 4: ['trap', 'overflow'], 5: ['trap', 'bound_range'], 6: ['trap', 'invalid_opcode'] },
  ...{ 7: ['trap', 'device_not_available'], 8: ['trap', 'double_fault'], 10: ['trap', 'invalid_tss'] },
  ...{ 11: ['fault', 'segment_not_present'], 12: ['fault', 'stack_segment'], 13: ['fault', 'general_protection'] },
  ...{ 14: ['fault', 'page'], 16: ['trap', 'x87_floating_point'], 17: ['trap', 'alignment_check'] },
  ...{ 18: ['trap', 'machine_check'], 19: ['trap', 'simd_floating_point'], 20: ['trap', 'virtualization'] },
  ...{ 21: ['trap', 'control_protection'], 29: ['trap', 'vmm_communication'], 30: ['trap', 'security'] },
};

/** The bytes that each of these instructions has: lidt, wrmsr, iretq, sysretq. */
const iretq = Uint8Array.of(0x48, 0xcf);
const sysretq = Uint8Array.of(0x48, 0x0f, 0x07);
const marks = [Uint8Array.of(0x0f, 0x01), Uint8Array.of(0x0f, 0x30), iretq, sysretq];

export const traps: TrapModel = {
  registers: ['cr2'],
  seek(code) {
    const bytes = Buffer.from(code.buffer, code.byteOffset, code.length);
    return marks.flatMap((mark) => {
      const found: number[] = [];
      for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) found.push(at);
      return found;
    });
  },
  find(code, start) {
    const setters: TrapSetter[] = [];
    const exits: TrapExit[] = [];
    let selected: bigint | undefined;
    let pushed: bigint | undefined;
    const instructions = [...decoded(code, start)];
    const targets = new Set(instructions.map(({ instruction }) => instruction.target));
    for (const { address, instruction } of instructions) {
      if (targets.has(address)) selected = undefined;
      const [operand] = instruction.operands;
      if (instruction.op === 'wrmsr' && (selected ?? LSTAR) === LSTAR) setters.push(callEntry(address));
      selected = selectedBehind(instruction, selected);
      if (instruction.op === 'lidt' && operand)
        setters.push(table(address, operand, addOffset(address, instruction.length)));
      else if (instruction.op === 'iretq') {
        // Linux returns to its next instruction to have the processor fetch code anew: no trap ends.
        const goesOn = pushed === addOffset(address, instruction.length) && !targets.has(address);
        if (!goesOn) exits.push({ address, reads: frameReads, to: frameOf });
      } else if (instruction.op === 'sysretq') exits.push({ address, reads: () => [], to: caller });
      const isConstant = instruction.op === 'push' && operand?.kind === 'immediate';
      pushed = isConstant ? BigInt.asUintN(64, operand.value) : undefined;
    }
    return { setters, exits };
  },
  isExit: (code) => [iretq, sysretq].some((mark) => Buffer.compare(code.subarray(0, mark.length), mark) === 0),
  // Stubs do not show IDTR.
  current: () => [],
  result: 'rax',
};

function* decoded(
  code: Uint8Array,
  start: Addr,
): Generator<{ readonly address: Addr; readonly instruction: Instruction }> {
  for (let offset = 0; offset < code.length; ) {
    const address = addOffset(start, offset);
    const instruction = decode(code, address, offset);
    if (!instruction) return;
    yield { address, instruction };
    offset += instruction.length;
  }
}

/** The constant that ecx surely has behind an instruction; undefined if that is not known. */
function selectedBehind({ op, operands, flow }: Instruction, before: bigint | undefined): bigint | undefined {
  if (flow !== 'next') return undefined;
  const [to, from] = operands;
  const isSelector = to?.kind === 'register' && /^[re]?c[xl]$/.test(to.name);
  if (!isSelector) return op === 'rdmsr' || op === 'wrmsr' || operands.length > 0 ? before : undefined;
  return op === 'mov' && from?.kind === 'immediate' ? from.value & 0xffff_ffffn : undefined;
}

/** `lidt`: 10 bytes with the limit and the base. */
function table(address: Addr, operand: Operand, next: Addr): TrapSetter {
  const place = (registers: RegisterReader): TrapRead[] => {
    if (operand.kind !== 'memory' || operand.segment !== undefined) return [];
    const part = (name: string | undefined): bigint | undefined =>
      name === undefined ? 0n : name === 'rip' ? next : registers.register(name);
    const [base, index] = [part(operand.base), part(operand.index)];
    if (base === undefined || index === undefined) return [];
    const sum = base + index * BigInt(operand.scale) + BigInt(operand.displacement);
    return [{ address: addr(BigInt.asUintN(64, sum)), length: 10 }];
  };
  return {
    address,
    reads: place,
    sets(registers, memory) {
      const [read] = place(registers);
      const bytes = read && memory.bytes(read.address, read.length);
      if (!bytes) return [];
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return { table: tableAt(addr(view.getBigUint64(2, true)), view.getUint16(0, true)) };
    },
  };
}

function tableAt(address: Addr, limit: number): TrapTable {
  return {
    address,
    length: Math.min(256, Math.floor((limit + 1) / gateBytes)) * gateBytes,
    entries(bytes) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const entries: TrapEntry[] = [];
      for (let vector = 0; (vector + 1) * gateBytes <= bytes.length; vector++) {
        const at = vector * gateBytes;
        const attributes = view.getUint8(at + 5);
        if ((attributes & 0x80) === 0) continue;
        const low = BigInt(view.getUint16(at, true)) | (BigInt(view.getUint16(at + 6, true)) << 16n);
        const handler = addr(low | (BigInt(view.getUint32(at + 8, true)) << 32n));
        entries.push(entryOf(handler, vector, (attributes & 0x60) === 0x60));
      }
      return entries;
    },
  };
}

/** `isOpen`: programs may enter it by an instruction. */
function entryOf(address: Addr, vector: number, isOpen: boolean): TrapEntry {
  const behind = coded.has(vector) ? 8 : 0;
  const reads = (registers: RegisterReader): TrapRead[] =>
    frameReads(registers).map((read) => ({ ...read, address: addOffset(read.address, behind) }));
  const [kind, name] = exceptions[vector] ?? ['trap', `vector_${vector}`];
  const enters = vector < firstOwn ? kind : isOpen ? 'syscall' : 'irq';
  return {
    address,
    kind: enters,
    reads,
    trap(registers, memory) {
      const [read] = reads(registers);
      const from = read && frameAt(read, memory);
      if (!from) return undefined;
      if (enters === 'syscall') return called(registers, from, vector);
      if (vector >= firstOwn) return { kind: enters, name: `vector_${vector}`, from };
      return { kind, name, from, ...(vector === pageFault && { address: registers.register('cr2') }) };
    },
  };
}

/** `int N`: of Linux' own the arguments are those of its 32-bit programs. */
function called(registers: RegisterReader, from: Trap['from'], vector: number): Trap {
  const names = vector === linuxCall ? ['rbx', 'rcx', 'rdx', 'rsi', 'rdi', 'rbp'] : callArguments;
  const values = names.map((name) => registers.register(name) ?? 0n);
  const number = registers.register('rax');
  return { kind: 'syscall', name: undefined, number, isOther: true, arguments: values, from };
}

const callArguments = ['rdi', 'rsi', 'rdx', 'r10', 'r8', 'r9'];

/** `wrmsr`: of IA32_LSTAR, where `syscall` enters. */
function callEntry(address: Addr): TrapSetter {
  return {
    address,
    once: 'LSTAR',
    reads: () => [],
    sets(registers) {
      const [rcx, rax, rdx] = ['rcx', 'rax', 'rdx'].map((name) => registers.register(name));
      if (rcx === undefined || (rcx & 0xffff_ffffn) !== LSTAR || rax === undefined || rdx === undefined) return [];
      const entry = addr(((rdx & 0xffff_ffffn) << 32n) | (rax & 0xffff_ffffn));
      return [
        {
          address: entry,
          kind: 'syscall',
          reads: () => [],
          trap(values) {
            const from = caller(values);
            const passed = callArguments.map((name) => values.register(name) ?? 0n);
            const number = values.register('rax');
            return from && { kind: 'syscall', name: undefined, number, arguments: passed, from };
          },
        },
      ];
    },
  };
}

/** `syscall` leaves the stack alone, and the next instruction's address in rcx. */
function caller(registers: RegisterReader): Trap['from'] | undefined {
  const [pc, stackPointer] = ['rcx', 'rsp'].map((name) => registers.register(name));
  return pc === undefined || stackPointer === undefined ? undefined : { pc: addr(pc), stackPointer, isUser: true };
}

function frameReads(registers: RegisterReader): TrapRead[] {
  const rsp = registers.register('rsp');
  return rsp === undefined ? [] : [{ address: addr(rsp), length: frameBytes }];
}

function frameOf(registers: RegisterReader, memory: TrapMemory): Trap['from'] | undefined {
  const [read] = frameReads(registers);
  return read && frameAt(read, memory);
}

function frameAt({ address, length }: TrapRead, memory: TrapMemory): Trap['from'] | undefined {
  const bytes = memory.bytes(address, length);
  if (!bytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isUser = (view.getBigUint64(8, true) & 3n) === 3n;
  return { pc: addr(view.getBigUint64(0, true)), stackPointer: view.getBigUint64(24, true), isUser };
}
