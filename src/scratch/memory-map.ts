// The memory maps that x86 firmware hands to kernels: e820 tables. An entry is start (8), size (8), type (4). PVH's
// hvm_memmap_table_entry (Xen, public/arch-x86/hvm/start_info.h) has 4 reserved bytes more. Multiboot's entry has the
// number of the bytes that follow (4) before it.

export interface MapEntry {
  readonly start: number;
  readonly size: number;
  readonly type: number;
}

export const RAM = 1;
const RESERVED = 2;
const FOUR_GIB = 2 ** 32;
const ONE_MIB = 2 ** 20;

/** Bytes of each entry, of which so many come before `start`: the size of the rest. */
export interface MapFormat {
  readonly stride: number;
  readonly before: 0 | 4;
}

/** The entries of a table; undefined if a number in it is not plausible. */
export function readMap(bytes: Uint8Array, { stride, before }: MapFormat): MapEntry[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: MapEntry[] = [];
  for (let entry = 0; entry + stride <= bytes.length; entry += stride) {
    if (before > 0 && view.getUint32(entry, true) !== stride - before) return undefined;
    const at = entry + before;
    const start = Number(view.getBigUint64(at, true));
    const size = Number(view.getBigUint64(at + 8, true));
    if (!Number.isSafeInteger(start + size)) return undefined;
    entries.push({ start, size, type: view.getUint32(at + 16, true) });
  }
  return entries;
}

export function writeMap(entries: readonly MapEntry[], { stride, before }: MapFormat): Uint8Array {
  const bytes = new Uint8Array(entries.length * stride);
  const view = new DataView(bytes.buffer);
  for (const [index, { start, size, type }] of entries.entries()) {
    const at = index * stride + before;
    if (before > 0) view.setUint32(at - before, stride - before, true);
    view.setBigUint64(at, BigInt(start), true);
    view.setBigUint64(at + 8, BigInt(size), true);
    view.setUint32(at + 16, type, true);
  }
  return bytes;
}

/** A map without `size` bytes of RAM at its top below 4 GiB, and where they are. */
export interface Taken {
  readonly entries: readonly MapEntry[];
  readonly start: number;
}

/**
 * Removes `size` bytes from the RAM below 4 GiB, as high as possible but below `ceiling`. That may be an initial RAM
 * disk, which the kernel must find in RAM. The bytes become reserved, so that no device is mapped into the gap.
 * Undefined if the RAM at the top is not large enough.
 */
export function takeRam(entries: readonly MapEntry[], size: number, ceiling = FOUR_GIB): Taken | undefined {
  let at = -1;
  for (const [index, { start, type }] of entries.entries()) {
    if (type !== RAM || start < ONE_MIB || start >= Math.min(FOUR_GIB, ceiling)) continue;
    if (at < 0 || start > (entries[at] as MapEntry).start) at = index;
  }
  const ram = entries[at];
  if (ram === undefined) return undefined;
  const ramEnd = ram.start + ram.size;
  const end = Math.min(ramEnd, ceiling - (ceiling % 0x1000));
  const start = end - size;
  if (start <= ram.start) return undefined;
  const split: MapEntry[] = [
    { start: ram.start, size: start - ram.start, type: RAM },
    { start, size, type: RESERVED },
  ];
  if (end < ramEnd) split.push({ start: end, size: ramEnd - end, type: RAM });
  return { entries: [...entries.slice(0, at), ...split, ...entries.slice(at + 1)], start };
}
