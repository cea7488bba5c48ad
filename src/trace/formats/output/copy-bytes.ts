/** Copies the first `length` bytes of `from`. For the hundred bytes of a packet a loop beats `set(subarray())`. */
export function copyBytes(from: Uint8Array, length: number, to: Uint8Array, at: number): void {
  if (length > 1024) {
    to.set(from.subarray(0, length), at);
    return;
  }
  for (let i = 0; i < length; i++) to[at + i] = from[i] as number;
}
