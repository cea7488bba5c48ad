import { type Addr, addOffset, lowHalf } from '../base/addr.js';
import { someBytes } from '../base/some-bytes.js';
import type { Piece } from './ring.js';

/** Trampolines begin at multiples of this. A mark before each of them says what it is. */
export const alignment = 16;
/**
 * The mark before each trampoline that a patch leads to: `rsptrace` and the patch's address. A later `detach`
 * recognises the trampoline by it.
 */
export const markBytes = 16;
const markText = new TextEncoder().encode('rsptrace');

/** True if these 16 bytes are a trampoline's mark; then the second half is the patch's address. */
export function isMark(bytes: Uint8Array): boolean {
  return bytes.length >= markBytes && markText.every((byte, i) => bytes[i] === byte);
}

export function mark(address: Addr): Uint8Array {
  const bytes = someBytes(markBytes);
  bytes.set(markText);
  let rest = address as bigint;
  for (let at = 8; at < markBytes; at += 4, rest >>= 32n) {
    const half = lowHalf(rest);
    for (let i = 0; i < 4; i++) bytes[at + i] = half >>> (8 * i);
  }
  return bytes;
}

/** Every place of `room` can be reached from `start`. */
export function within(start: Addr, room: Piece, reach: number): boolean {
  const from = Number(room.address - start);
  return Math.abs(from) < reach && Math.abs(from + room.length) < reach;
}

export interface Allocator {
  /** Undefined if there is no room for that many bytes. */
  (length: number): Addr | undefined;
  /** Where the next code will be placed. */
  readonly next: Addr;
}

export function allocator(room: Piece): Allocator {
  let used = 0;
  const take = (length: number): Addr | undefined => {
    const rounded = Math.ceil(length / alignment) * alignment;
    if (used + rounded > room.length) return undefined;
    const address = addOffset(room.address, used);
    used += rounded;
    return address;
  };
  return Object.defineProperty(take, 'next', { get: () => addOffset(room.address, used) }) as Allocator;
}
