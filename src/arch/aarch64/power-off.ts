// How AArch64 code ends QEMU: by PSCI (Arm DEN0022, 5.9 to 5.12: SYSTEM_OFF, SYSTEM_RESET, and SYSTEM_RESET2 of 32 and
// 64 bits) and by semihosting (SYS_EXIT, SYS_EXIT_EXTENDED; Arm semihosting, 7.11). Not seen: numbers from memory.
import { field, wordAt } from '../instructions.js';
import type { PowerOffModel } from '../machine.js';

/** The halves of PSCI's numbers. */
const highest = [0x8400, 0xc400];
const lowest = [0x0008, 0x0009, 0x0012];
const sysExit = [0x18, 0x20];
/** hlt #0xf000. */
const semihosting = 0xd45e_0000;
/** Bytes between the halves of a number, and between a number and its call. */
const soon = 32;

interface Half {
  readonly register: number;
  readonly value: number;
  readonly isHigh: boolean;
}

export const powerOff: PowerOffModel = {
  places(code) {
    const found: number[] = [];
    for (let at = 0; at + 4 <= code.length; at += 4) {
      const half = halfAt(code, at);
      if (half && (endsNumber(code, at, half) || startsExit(code, at, half))) found.push(at);
    }
    return found;
  },
};

/** movz, movk: sf | 10 or 11 | 100101 | hw [22:21] | imm16 [20:5] | Rd [4:0], of the lower 32 bits. */
function halfAt(code: Uint8Array, at: number): Half | undefined {
  const word = wordAt(code, at) ?? 0;
  if (field(word, 28, 23) !== 0b100101 || field(word, 30, 30) !== 1 || field(word, 22, 22) !== 0) return undefined;
  return { register: field(word, 4, 0), value: field(word, 20, 5), isHigh: field(word, 21, 21) === 1 };
}

/** The later half of a number. */
function endsNumber(code: Uint8Array, at: number, { register, value, isHigh }: Half): boolean {
  const [own, other] = isHigh ? [highest, lowest] : [lowest, highest];
  if (!own.includes(value)) return false;
  for (let before = at - 4; before >= Math.max(0, at - soon); before -= 4) {
    const half = halfAt(code, before);
    if (half?.register === register) return half.isHigh !== isHigh && other.includes(half.value);
  }
  return false;
}

function startsExit(code: Uint8Array, at: number, { value, isHigh }: Half): boolean {
  if (isHigh || !sysExit.includes(value)) return false;
  for (let next = at + 4; next <= at + soon && next + 4 <= code.length; next += 4) {
    if (wordAt(code, next) === semihosting) return true;
  }
  return false;
}
