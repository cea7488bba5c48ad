/**
 * Whether code may read its own return address; false if it surely does not. Frames are followed for those that may,
 * because decoding takes long. The stack pointer is at the return address first; pushes and a `sub` move it down:
 *
 *     50-57, 41 50-57 push | 48 83 ec ib, 48 81 ec id sub rsp     until then
 *     ModRM mm reg 100, SIB 24 [rsp + disp]                       as far up as the return address, or above
 *     ModRM 01 reg 101, 08 [rbp + 8]                              the same by a frame pointer
 *     58-5f pop                                                   at the start
 */
export function mayReadReturn(code: Uint8Array): boolean {
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
