import { type Addr, addr } from '../base/addr.js';
import type { Effects } from './instructions.js';

export const noMemory: Effects['memory'] = [];

/**
 * What `load` returns if the address is unknown or not on the stack: nothing to read, and `effects` will return
 * undefined.
 */
export const noLoad: { readonly address: Addr; readonly length: number } = { address: addr(0), length: 0 };

/** The red zone of the x86-64 psABI: the bytes below the stack pointer that a leaf function may use. */
const BELOW = 128n;
const ABOVE = 0x1_0000n;

/** True for an address that a frame near the stack pointer could contain. */
export function isStackAddress(address: Addr, sp: bigint): boolean {
  return address >= sp - BELOW && address < sp + ABOVE;
}

/** Little-endian bytes as an unsigned number. */
export function unsignedOf(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let index = bytes.length - 1; index >= 0; index--) value = (value << 8n) | BigInt(bytes[index] as number);
  return value;
}

/** The low `size` bytes of a value, little-endian. */
export function bytesOf(value: bigint, size: number): Uint8Array {
  const all = new Uint8Array(8);
  new DataView(all.buffer).setBigUint64(0, BigInt.asUintN(64, value), true);
  return all.subarray(0, size);
}
