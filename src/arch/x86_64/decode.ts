import { type Addr, addOffset, addr } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import { capstoneModule, loadCapstone } from '../capstone.js';
import type { Step } from '../inject/code-path.js';
import type { AssemblyLine } from '../inject/probe-code.js';
import type { PowerOffModel } from '../machine.js';

/**
 * Decodes any x86 instruction of 64-bit mode with Capstone 5.0 (capstone.h `cs_insn` and `cs_detail`; x86.h `cs_x86`,
 * `cs_x86_op`, `cs_x86_encoding`). Its package gives text only. So operands and groups are read from the WebAssembly
 * heap, where the structures have this layout (wasm32):
 *
 *     cs_insn    16 size u16 | 42 mnemonic[32] | 74 op_str[160] | 236 detail *
 *     cs_detail  75 groups u8[8] | 83 groups_count u8 | 88 cs_x86
 *     cs_x86     64 op_count u8 | 72 operands[8], 48 bytes each | 457 disp_offset u8
 *     cs_x86_op   0 type u32 | 8 reg u32 or imm i64 or { segment, base, index u32, scale i32, disp i64 } | 32 size u8
 *
 * Those offsets hold for one engine version, so any other is refused.
 */
export interface Instruction {
  /**
   * Intel mnemonic, with a prefix where one is meaningful (`lock cmpxchg`); `unknown` for bytes that are no
   * instruction.
   */
  readonly op: string;
  readonly length: number;
  readonly operands: readonly Operand[];
  readonly flow: Flow;
  /** Where a direct jump, branch or call goes. */
  readonly target: Addr | undefined;
  /** Bytes before the displacement of its memory operand; 0 if it has none. */
  readonly displacementAt: number;
  /** As Capstone prints it: `mov rax, qword ptr [rsp - 0x18]`. Costs as much as all else, and reads the bytes again. */
  readonly text: string;
}

/** What is run after it: the next instruction, the target, one of both, or a handler. */
export type Flow = 'next' | 'jump' | 'branch' | 'call' | 'return' | 'interrupt';

/**
 * `size` is in bytes; registers have Intel's names. An immediate is sign-extended; that of a direct jump is the
 * target itself.
 */
export type Operand =
  | { readonly kind: 'register'; readonly name: string; readonly size: number }
  | { readonly kind: 'immediate'; readonly value: bigint; readonly size: number }
  | {
      readonly kind: 'memory';
      readonly segment: string | undefined;
      readonly base: string | undefined;
      readonly index: string | undefined;
      readonly scale: number;
      readonly displacement: number;
      readonly size: number;
    };

interface Heap {
  readonly HEAPU8: Uint8Array;
  _malloc(size: number): number;
  _cs_disasm(handle: number, code: number, size: number, address: bigint, count: number, out: number): number;
  _cs_free(instructions: number, count: number): void;
}

interface Engine {
  readonly heap: Heap;
  readonly handle: number;
  /** 16 bytes of code, then the pointer that the engine returns. */
  readonly scratch: number;
  registerName(id: number): string | undefined;
}

let engine: Engine | undefined;
let loading: Promise<void> | undefined;

/** Loads Capstone, once: 25 to 40 ms. Throws `ARCH_DECODER` if its version is not the one that is known here. */
export function prepare(): Promise<void> {
  loading ??= load();
  return loading;
}

async function load(): Promise<void> {
  const { Capstone, Const } = await loadCapstone('x86_64 code cannot be decoded');
  const module = capstoneModule;
  if (!isHeap(module))
    throw new RsptraceError('ARCH_DECODER', 'the Capstone that is installed shows no memory of its own');
  const capstone = new Capstone(Const.CS_ARCH_X86, Const.CS_MODE_64);
  capstone.setOption(Const.CS_OPT_DETAIL, Const.CS_OPT_ON);
  const names = new Map<number, string>();
  engine = {
    heap: module,
    handle: capstone.handle,
    scratch: module._malloc(LONGEST + 1 + 4),
    registerName: (id) => {
      if (id === 0) return undefined;
      const known = names.get(id) ?? capstone.getRegName(id);
      names.set(id, known);
      return known;
    },
  };
}

function isHeap(module: object): module is Heap {
  return 'HEAPU8' in module && '_malloc' in module && '_cs_disasm' in module && '_cs_free' in module;
}

const LONGEST = 15;
const NONE: readonly Operand[] = [];

/**
 * The instruction at `offset` of `code`, whose address is `pc`; undefined at the end of the bytes. Bytes that do not
 * decode, or are cut off, are `unknown` of length 1. Throws `ARCH_DECODER` before `prepare`.
 */
export function decode(code: Uint8Array, pc: Addr, offset = 0): Instruction | undefined {
  if (offset >= code.length) return undefined;
  return atHeap(code, pc, offset, (view, at) => new Decoded(view, at, { code, pc, offset })) ?? unknown(code, offset);
}

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

/** See `ProbeCode.step`. A call is stepped over. The decoder must be loaded (`prepare`). */
export function step(code: Uint8Array, start: Addr, offset: number): Step | undefined {
  const instruction = decode(code, addOffset(start, offset), offset);
  if (instruction === undefined) return undefined;
  const { length, flow, target, op } = instruction;
  return {
    length,
    jumps: flow === 'jump' || flow === 'return' ? (target ?? 'away') : undefined,
    branches: flow === 'branch' ? target : undefined,
    readsTime: op === 'rdtsc',
  };
}

/** What `read` makes of the structure in the heap; undefined for bytes that do not decode. */
function atHeap<T>(code: Uint8Array, pc: Addr, offset: number, read: (view: DataView, at: number) => T): T | undefined {
  if (engine === undefined) throw new RsptraceError('ARCH_DECODER', 'The x86 decoder was used before it was loaded');
  const { heap, handle, scratch } = engine;
  const length = Math.min(LONGEST, code.length - offset);
  const bytes = heap.HEAPU8;
  for (let i = 0; i < length; i++) bytes[scratch + i] = code[offset + i] as number;
  const out = scratch + LONGEST + 1;
  if (heap._cs_disasm(handle, scratch, length, pc, 1, out) !== 1) return undefined;
  const view = viewOf(heap);
  const found = view.getUint32(out, true);
  const result = read(view, found);
  heap._cs_free(found, 1);
  return result;
}

let lastView: DataView | undefined;

/** The heap's buffer is another one when it has grown. */
function viewOf({ HEAPU8: { buffer } }: Heap): DataView {
  if (lastView?.buffer !== buffer) lastView = new DataView(buffer);
  return lastView;
}

function unknown(code: Uint8Array, offset: number): Instruction {
  const text = `.byte 0x${(code[offset] ?? 0).toString(16)}`;
  return { op: 'unknown', length: 1, operands: NONE, flow: 'next', target: undefined, displacementAt: 0, text };
}

/** Millions are made, and few are asked for their text: that is made of the bytes where they are. */
class Decoded implements Instruction {
  readonly op: string;
  readonly length: number;
  readonly operands: readonly Operand[];
  readonly flow: Flow;
  readonly target: Addr | undefined;
  readonly displacementAt: number;
  readonly #place: { readonly code: Uint8Array; readonly pc: Addr; readonly offset: number };

  constructor(
    view: DataView,
    at: number,
    place: { readonly code: Uint8Array; readonly pc: Addr; readonly offset: number },
  ) {
    this.#place = place;
    const detail = view.getUint32(at + 236, true);
    this.op = mnemonic(view, at);
    this.length = view.getUint16(at + 16, true);
    this.operands = operandsOf(view, detail);
    this.flow = flowOf(this.op, view, detail);
    const [first] = this.operands;
    const { flow } = this;
    const isDirect = first?.kind === 'immediate' && (flow === 'jump' || flow === 'branch' || flow === 'call');
    this.target = isDirect ? addr(first.value) : undefined;
    this.displacementAt = view.getUint8(detail + 88 + 457);
  }

  get text(): string {
    const { code, pc, offset } = this.#place;
    const operands = atHeap(code, pc, offset, (view, at) => textAt(view, at + 74, 160)) ?? '';
    return operands === '' ? this.op : `${this.op} ${operands}`;
  }
}

function operandsOf(view: DataView, detail: number): readonly Operand[] {
  const count = Math.min(view.getUint8(detail + 88 + 64), 8);
  if (count === 0) return NONE;
  const operands: Operand[] = [];
  for (let index = 0; index < count; index++) operands.push(readOperand(view, detail + 88 + 72 + 48 * index));
  return operands;
}

/** The last mnemonic of each instruction number: with another prefix it is another text. */
const mnemonics = new Map<number, string>();

function mnemonic(view: DataView, at: number): string {
  const id = view.getUint32(at, true);
  const known = mnemonics.get(id);
  if (known !== undefined && isAt(view, at + 42, known)) return known;
  const text = textAt(view, at + 42, 32);
  mnemonics.set(id, text);
  return text;
}

function isAt(view: DataView, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (view.getUint8(at + i) !== text.charCodeAt(i)) return false;
  return view.getUint8(at + text.length) === 0;
}

/**
 * capstone.h `cs_group_type`: jump 1, call 2, return 3, interrupt 4, return from interrupt 5. `loop`, `loope` and
 * `loopne` are in none.
 */
function flowOf(op: string, view: DataView, detail: number): Flow {
  let groups = 0;
  const count = Math.min(view.getUint8(detail + 83), 8);
  for (let i = 0; i < count; i++) groups |= 1 << Math.min(view.getUint8(detail + 75 + i), 31);
  if ((groups & 0b101000) !== 0) return 'return';
  if ((groups & 0b100) !== 0) return 'call';
  if ((groups & 0b10000) !== 0) return 'interrupt';
  if ((groups & 0b10) === 0) return op.startsWith('loop') ? 'branch' : 'next';
  return /(^| )l?jmp$/.test(op) ? 'jump' : 'branch';
}

function readOperand(view: DataView, at: number): Operand {
  const size = view.getUint8(at + 32);
  const id = (offset: number): string | undefined => engine?.registerName(view.getUint32(at + offset, true));
  switch (view.getUint32(at, true)) {
    case 1:
      return { kind: 'register', name: id(8) ?? 'unknown', size };
    case 3:
      return {
        kind: 'memory',
        segment: id(8),
        base: id(12),
        index: id(16),
        scale: view.getInt32(at + 20, true),
        displacement: Number(view.getBigInt64(at + 24, true)),
        size,
      };
    default:
      return { kind: 'immediate', value: view.getBigInt64(at + 8, true), size };
  }
}

function textAt(view: DataView, at: number, limit: number): string {
  let text = '';
  for (let index = 0; index < limit; index++) {
    const byte = view.getUint8(at + index);
    if (byte === 0) break;
    text += String.fromCharCode(byte);
  }
  return text;
}

// How x86 code ends QEMU: a write to a port of isa-debug-exit (QEMU hw/misc/debugexit.c), or to ACPI's power
// management control register, PM1a_CNT (ACPI specification, 4.8.3.2). QEMU's firmware has it at 0x604; older ones had
// it at 0xb004. Instructions are those of the Intel SDM, volume 2: MOV B8+r, OUT E6 and E7. Not seen: ports that come
// out of memory, and a triple fault.

const powerManagement = [0x604, 0xb004];

export const powerOff: PowerOffModel = {
  places(code, own) {
    const ports = new Set([...own, ...powerManagement]);
    const found: number[] = [];
    for (let at = 0; at + 3 <= code.length; at++) {
      const port = portAt(code, at);
      if (port !== undefined && ports.has(port)) found.push(at);
    }
    return found;
  },
};

/** The port that an instruction writes to, or the number that it loads into a register. */
function portAt(code: Uint8Array, at: number): number | undefined {
  const opcode = code[at] ?? 0;
  if (opcode === 0xe6 || opcode === 0xe7) return code[at + 1];
  // A prefix 66 says that 16 bits follow.
  const isShort = opcode === 0x66;
  const start = isShort ? at + 1 : at;
  if (((code[start] ?? 0) & 0xf8) !== 0xb8) return undefined;
  const low = (code[start + 1] ?? 0) | ((code[start + 2] ?? 0) << 8);
  if (isShort) return low;
  return code[start + 3] === 0 && code[start + 4] === 0 ? low : undefined;
}
