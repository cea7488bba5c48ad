// How RISC-V code ends QEMU: SiFive's test device (QEMU hw/misc/sifive_test.c: 0x5555 pass, 0x3333 fail,
// 0x7777 reset), SBI's System Reset Extension (SBI specification, chapter 10), the legacy sbi_shutdown (chapter 5.9),
// and semihosting (SYS_EXIT; RISC-V semihosting, 2.; Arm semihosting, 7.11). Not seen: numbers that come from memory.
import type { PowerOffModel } from '../machine.js';
import { decode } from './decode.js';
import { reads, writes } from './relocate.js';

/** Numbers that such code loads by `lui` and `addi`: of the test device, and the extension's id, "SRST". */
const loaded = [0x5555, 0x3333, 0x7777, 0x5352_5354];
/** The `lui` is at most so many bytes before its `addi`. */
const farthest = 32;

/** addi, addiw: imm[31:20] | rs1 [19:15] | 000 | rd [11:7] | opcode. */
const isAddi = (word: number): boolean => (word & 0x707f) === 0x0013 || (word & 0x707f) === 0x001b;

/** `li a7, 8`, compressed and not. */
const legacyShutdown = [0x48a1, 0x0080_0893];
const ecall = 0x0000_0073;
/** slli x0, x0, 0x1f; ebreak; srai x0, x0, 7. */
const semihosting = [0x01f0_1013, 0x0010_0073, 0x4070_5013];
/** `li a0, 0x18` and 0x20: SYS_EXIT, SYS_EXIT_EXTENDED. */
const sysExit = [0x4561, 0x0180_0513, 0x0200_0513];
/** An environment call or semihosting call comes at most so many bytes behind its number. */
const soon = 24;

export const powerOff: PowerOffModel = {
  places(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const found: number[] = [];
    for (let at = 0; at + 4 <= code.length; at += 2) {
      const word = view.getUint32(at, true) >>> 0;
      const ends = endsNumber(view, at, word) && !isMask(code, at + 4, (word >>> 7) & 31);
      if (ends || startsCall(view, at, word)) found.push(at);
    }
    return found;
  },
};

/** The `addi` of one of the numbers, with its `lui` before it. */
function endsNumber(view: DataView, at: number, word: number): boolean {
  if (!isAddi(word)) return false;
  const number = loaded.find((one) => (one & 0xfff) === word >>> 20);
  if (number === undefined) return false;
  const register = (word >>> 15) & 31;
  const upper = number >>> 12;
  for (let before = at - 2; before >= Math.max(0, at - farthest); before -= 2) {
    if (luiOf(view, before, register) === upper) return true;
  }
  return false;
}

/** Code that counts the bits of 16-bit numbers masks them with 0x5555 and 0x3333. Nobody masks what ends a machine. */
function isMask(code: Uint8Array, from: number, register: number): boolean {
  for (let at = from; at < from + farthest; ) {
    const instruction = decode(code, at);
    if (instruction === undefined) return false;
    if (reads(instruction, register)) return instruction.form === 'register' && instruction.op === 'and';
    if (writes(instruction, register)) return false;
    at += instruction.length;
  }
  return false;
}

/** What a `lui` or `c.lui` into a register loads there, without its 12 low bits. */
function luiOf(view: DataView, at: number, register: number): number | undefined {
  const half = view.getUint16(at, true);
  // c.lui: 011 | imm[17] | rd [11:7] | imm[16:12] | 01
  if ((half & 0xe003) === 0x6001 && ((half >>> 7) & 31) === register) return ((half >>> 2) & 31) | ((half >>> 7) & 32);
  const word = view.getUint32(at, true) >>> 0;
  return (word & 0xfff) === ((register << 7) | 0x37) ? word >>> 12 : undefined;
}

/** The number of a call that ends the machine, with the call soon behind it. */
function startsCall(view: DataView, at: number, word: number): boolean {
  const isOne = (one: number): boolean => (one > 0xffff ? word === one : (word & 0xffff) === one);
  if (legacyShutdown.some(isOne)) return comesSoon(view, at, [ecall]);
  return sysExit.some(isOne) && comesSoon(view, at, semihosting);
}

function comesSoon(view: DataView, from: number, words: readonly number[]): boolean {
  for (let at = from + 2; at <= from + soon; at += 2) {
    if (at + 4 * words.length > view.byteLength) return false;
    if (words.every((word, index) => view.getUint32(at + 4 * index, true) >>> 0 === word)) return true;
  }
  return false;
}
