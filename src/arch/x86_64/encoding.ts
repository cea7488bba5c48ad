/**
 * Intel SDM volume 2, chapter 2 "Instruction Format", for the one- and two-byte opcodes of 64-bit mode that `resume`
 * can emulate. It finds lengths and fields without a general decoder. Refused (undefined): every other opcode,
 * prefixes other than REX, 66, 2E and F3, and instructions cut off by the end of the bytes.
 *
 *     | 66 2E F3 ... | REX | opcode or 0F opcode | ModRM | SIB | disp8/32 | imm8/16/32/64 |
 */
export interface Encoding {
  readonly length: number;
  /** The opcode byte, or 0x0f00 plus the second byte. */
  readonly opcode: number;
  /** Prefix bytes seen before REX. */
  readonly operand16: boolean;
  readonly segment: boolean;
  readonly repeat: boolean;
  readonly rex: boolean;
  /** REX.W: operands of 64 bits. */
  readonly wide: boolean;
  /** REX.B as 8 or 0: extends the register number in the opcode's low bits. */
  readonly extension: number;
  readonly modrm: ModRm | undefined;
  /** Sign-extended; zero if the opcode has none. */
  readonly immediate: bigint;
}

export interface ModRm {
  /** The register operand, or an opcode extension in its low three bits. */
  readonly reg: number;
  readonly rm: { readonly register: number } | Memory;
}

/** `base + index * scale + displacement`; base 'rip' counts from the next instruction. */
export interface Memory {
  readonly base: number | 'rip' | undefined;
  readonly index: number | undefined;
  readonly scale: number;
  readonly displacement: number;
}

/** Bytes of immediate, `+ modrm` where a ModRM byte comes before it; `wide` is 8 with REX.W and 4 without. */
type Shape = { readonly modrm: boolean; readonly immediate: number | 'wide' };

const shapes = new Map<number, Shape>();
function define(
  modrm: boolean,
  immediate: number | 'wide',
  ...opcodes: readonly (number | readonly [number, number])[]
): void {
  for (const opcode of opcodes) {
    const [from, to] = typeof opcode === 'number' ? [opcode, opcode] : opcode;
    for (let each = from; each <= to; each++) shapes.set(each, { modrm, immediate });
  }
}
// The arithmetic groups: r/m,r and r,r/m in both widths, then al,imm8 and eax,imm32.
for (const base of [0x00, 0x08, 0x20, 0x28, 0x30, 0x38]) {
  define(true, 0, [base, base + 3]);
  define(false, 1, base + 4);
  define(false, 4, base + 5);
}
define(false, 0, [0x50, 0x5f], 0x90, 0xc3, 0xc9);
define(false, 1, [0x70, 0x7f], 0xa8, 0xeb);
define(false, 2, 0xc2);
define(false, 4, [0x0f80, 0x0f8f], 0xa9, 0xe8, 0xe9);
define(false, 'wide', [0xb8, 0xbf]);
define(true, 0, [0x84, 0x85], [0x88, 0x8b], 0x8d, 0x0f1e, 0x0f1f, 0x0fb6, 0x0fb7);
define(true, 1, 0x80, 0x83);
define(true, 4, 0x81, 0xc7);

const LONGEST = 15;

/** The fields of the instruction at the start of `code`. Never throws. */
export function parse(code: Uint8Array): Encoding | undefined {
  const bytes = code.length > LONGEST ? code.subarray(0, LONGEST) : code;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const seen = { operand16: false, segment: false, repeat: false };
  for (; ; at++) {
    if (bytes[at] === 0x66) seen.operand16 = true;
    else if (bytes[at] === 0x2e) seen.segment = true;
    else if (bytes[at] === 0xf3) seen.repeat = true;
    else break;
  }
  const prefix = bytes[at] ?? 0;
  const rex = prefix >> 4 === 4 ? prefix : 0;
  if (rex !== 0) at++;
  let opcode = bytes[at++];
  if (opcode === 0x0f) opcode = 0x0f00 | (bytes[at++] ?? 0);
  const shape = opcode === undefined ? undefined : shapes.get(opcode);
  if (opcode === undefined || shape === undefined) return undefined;
  const wide = (rex & 8) !== 0;
  let modrm: ModRm | undefined;
  if (shape.modrm) {
    const parsed = parseModRm(view, at, rex);
    if (parsed === undefined) return undefined;
    modrm = parsed.modrm;
    at = parsed.end;
  }
  const size = shape.immediate === 'wide' ? (wide ? 8 : 4) : shape.immediate;
  if (at + size > bytes.length) return undefined;
  const immediate = signedAt(view, at, size);
  const extension = (rex & 1) << 3;
  return { length: at + size, opcode, ...seen, rex: rex !== 0, wide, extension, modrm, immediate };
}

function signedAt(view: DataView, at: number, size: number): bigint {
  if (size === 0) return 0n;
  if (size === 1) return BigInt(view.getInt8(at));
  if (size === 2) return BigInt(view.getInt16(at, true));
  return size === 4 ? BigInt(view.getInt32(at, true)) : view.getBigInt64(at, true);
}

/**
 * Volume 2, tables 2-2 and 2-3: rm 4 means a SIB byte follows, mod 0 with rm 5 is rip-relative, SIB base 5 with mod 0
 * has no base.
 */
function parseModRm(view: DataView, start: number, rex: number): { modrm: ModRm; end: number } | undefined {
  let at = start;
  if (at >= view.byteLength) return undefined;
  const byte = view.getUint8(at++);
  const mod = byte >> 6;
  const low = byte & 7;
  const reg = ((byte >> 3) & 7) | ((rex & 4) << 1);
  if (mod === 3) return { modrm: { reg, rm: { register: low | ((rex & 1) << 3) } }, end: at };
  let base: Memory['base'] = low | ((rex & 1) << 3);
  let index: number | undefined;
  let scale = 1;
  let size = mod === 1 ? 1 : mod === 2 ? 4 : 0;
  if (low === 4) {
    if (at >= view.byteLength) return undefined;
    const sib = view.getUint8(at++);
    const number = ((sib >> 3) & 7) | ((rex & 2) << 2);
    index = number === 4 ? undefined : number;
    scale = 1 << (sib >> 6);
    base = (sib & 7) | ((rex & 1) << 3);
    if ((sib & 7) === 5 && mod === 0) {
      base = undefined;
      size = 4;
    }
  } else if (low === 5 && mod === 0) {
    base = 'rip';
    size = 4;
  }
  if (at + size > view.byteLength) return undefined;
  const displacement = Number(signedAt(view, at, size));
  return { modrm: { reg, rm: { base, index, scale, displacement } }, end: at + size };
}
