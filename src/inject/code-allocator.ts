import { type Addr, addOffset } from '../base/addr.js';
import { someBytes } from '../base/memory-reader.js';
import type { Piece, Write } from './ring.js';

/** Trampolines begin at multiples of this. A mark before each of them says what it is. */
export const alignment = 16;
/**
 * The mark before each trampoline that a patch leads to. A later `detach` recognises the trampoline by it:
 *
 *      "rspt" | i32: bytes from here to the ring's control block, 0: it has none | u64: the patch's address
 */
export const markBytes = 16;
const markText = new TextEncoder().encode('rspt');

/** True if these 16 bytes are a trampoline's mark. */
export function isMark(bytes: Uint8Array): boolean {
  return bytes.length >= markBytes && markText.every((byte, i) => bytes[i] === byte);
}

/** What the mark at this address says: see {@link markBytes}. */
export function readMark(bytes: Uint8Array, at: Addr): { readonly patch: bigint; readonly control: Addr | undefined } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, markBytes);
  const distance = view.getInt32(4, true);
  return { patch: view.getBigUint64(8, true), control: distance === 0 ? undefined : addOffset(at, distance) };
}

export function mark(at: Addr, patch: Addr, control?: Addr): Write {
  const bytes = someBytes(markBytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, markBytes);
  const distance = control === undefined ? 0 : Number(control - at);
  bytes.set(markText);
  view.setInt32(4, distance === (distance | 0) ? distance : 0, true);
  view.setBigUint64(8, patch, true);
  return { address: at, bytes };
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
