import type { CodeReferences, ScanOptions } from '../code-references.js';

/**
 * x86-64 code is scanned byte by byte: an instruction may begin anywhere. Distances of 32 bits hardly ever lead into
 * the text by chance. Those of 8 bits would in every sixth function, so they are asked for where it matters.
 *
 *     e8 call, e9 jmp, 0f 80-8f jcc, c7 f8 xbegin      rel32
 *     REX.W 8d 05+8r                                   lea reg, [rip + rel32]
 *     70-7f jcc, e0-e3 loop, jrcxz, eb jmp             rel8
 */
export const references: CodeReferences = {
  scan(code, { at, text, isFixed, leads, names, holds }) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const end = code.length - 4;
    for (let i = 1; i <= end; i++) {
      const opcode = code[i - 1] as number;
      if (opcode === 0xe8 || opcode === 0xe9) leads(at + i + 4 + view.getInt32(i, true));
      else if (opcode >= 0x80 && opcode <= 0x8f && code[i - 2] === 0x0f) leads(at + i + 4 + view.getInt32(i, true));
      else if (opcode === 0xf8 && code[i - 2] === 0xc7) leads(at + i + 4 + view.getInt32(i, true));
      else if ((opcode & 0xc7) === 5 && code[i - 2] === 0x8d && ((code[i - 3] as number) & 0xf8) === 0x48)
        names(at + i + 4 + view.getInt32(i, true));
    }
    if (isFixed) constants(code, view, { text, holds });
  },
  leave(code, at) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const [jumps, calls, jumpsThrough, callsThrough]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let i = 1; i < code.length; i++) {
      const opcode = code[i - 1] as number;
      const short = i + 1 + (((code[i] as number) << 24) >> 24);
      if ((opcode >> 4 === 7 || opcode === 0xeb) && (short < 0 || short >= code.length)) jumps.push(at + short);
      if (i + 4 > code.length) continue;
      const to = i + 4 + view.getInt32(i, true);
      if (opcode === 0xe8) calls.push(at + to);
      else if (opcode === 0xe9 || (opcode >> 4 === 8 && code[i - 2] === 0x0f)) {
        if (to < 0 || to >= code.length) jumps.push(at + to);
      } else if (opcode === 0x25 && code[i - 2] === 0xff) jumpsThrough.push(at + to);
      else if (opcode === 0x15 && code[i - 2] === 0xff) callsThrough.push(at + to);
    }
    return { jumps, calls, jumpsThrough, callsThrough };
  },
  mayReadReturn,
  shortInto(code, low, high) {
    const found: number[] = [];
    for (let i = Math.max(0, low - 129); i < Math.min(code.length - 1, high + 126); i++) {
      const opcode = code[i] as number;
      const isShort = opcode >> 4 === 7 || opcode === 0xeb || (opcode >= 0xe0 && opcode <= 0xe3);
      const to = isShort ? i + 2 + (((code[i + 1] as number) << 24) >> 24) : -1;
      if (to >= low && to < high) found.push(i);
    }
    return found;
  },
};

/**
 * Constants of 32 bits that may be an address: zero-extended (`mov r32`, the low half of `movabs`) or sign-extended.
 */
function constants(code: Uint8Array, view: DataView, { text, holds }: Pick<ScanOptions, 'text' | 'holds'>): void {
  // Of code that lies elsewhere none is one.
  if (text.low < -(2 ** 31) || text.low >= 2 ** 32) return;
  const isHigh = text.low < 0;
  for (let i = 1; i + 4 <= code.length; i++) {
    const value = isHigh ? view.getInt32(i, true) : view.getUint32(i, true);
    if (value >= text.low && value < text.high && mayHold(code, i)) holds(value);
  }
}

/**
 * Whether a constant may begin there: behind an opcode alone (b8 mov, 68 push, and 05, 2d, 3d of eax), or behind one
 * (c7 mov, 81 add, cmp, ...) with its ModRM byte, SIB byte and displacement.
 */
function mayHold(code: Uint8Array, i: number): boolean {
  const opcode = code[i - 1] as number;
  if ((opcode & 0xf8) === 0xb8 || opcode === 0x68 || (opcode & 0xc7) === 5) return true;
  return [2, 3, 4, 6, 7].some((back) => code[i - back] === 0xc7 || code[i - back] === 0x81);
}

/**
 * Whether code may read its own return address; false if it surely does not. Frames are followed for those that may,
 * because decoding takes long. The stack pointer is at the return address first; pushes and a `sub` move it down:
 *
 *     50-57, 41 50-57 push | 48 83 ec ib, 48 81 ec id sub rsp     until then
 *     ModRM mm reg 100, SIB 24 [rsp + disp]                       as far up as the return address, or above
 *     ModRM 01 reg 101, 08 [rbp + 8]                              the same by a frame pointer
 *     58-5f pop                                                   at the start
 */
function mayReadReturn(code: Uint8Array): boolean {
  const { depth, at } = frameOf(code);
  const first = code[at] as number;
  if (first >> 3 === 0x58 >> 3 || (first === 0x41 && (code[at + 1] as number) >> 3 === 0x58 >> 3)) return depth === 0;
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  for (let i = 1; i + 1 < code.length; i++) {
    const modrm = code[i] as number;
    if ((modrm & 0xc7) === 0x45 && code[i + 1] === 8) return true;
    if ((modrm & 7) !== 4 || code[i + 1] !== 0x24 || modrm >= 0xc0) continue;
    const far = modrm >= 0x80 && i + 6 <= code.length ? view.getInt32(i + 2, true) : undefined;
    const offset = modrm < 0x40 ? 0 : (far ?? ((code[i + 2] as number) << 24) >> 24);
    // A call without arguments may have moved it further.
    if (offset >= depth) return true;
  }
  return false;
}

/** How far the prologue moves the stack pointer down. */
function frameOf(code: Uint8Array): { readonly depth: number; readonly at: number } {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  // endbr64
  let at = code[0] === 0xf3 && code[1] === 0x0f && code[2] === 0x1e && code[3] === 0xfa ? 4 : 0;
  for (let depth = 0; ; depth += 8) {
    const byte = code[at] as number;
    if (byte >> 3 === 0x50 >> 3) at++;
    else if (byte === 0x41 && (code[at + 1] as number) >> 3 === 0x50 >> 3) at += 2;
    else if (byte === 0x48 && code[at + 1] === 0x89 && code[at + 2] === 0xe5) [at, depth] = [at + 3, depth - 8];
    else if (byte === 0x48 && code[at + 1] === 0x83 && code[at + 2] === 0xec)
      return { depth: depth + (code[at + 3] as number), at: at + 4 };
    else if (byte === 0x48 && code[at + 1] === 0x81 && code[at + 2] === 0xec && at + 7 <= code.length)
      return { depth: depth + view.getInt32(at + 3, true), at: at + 7 };
    else return { depth, at };
  }
}
