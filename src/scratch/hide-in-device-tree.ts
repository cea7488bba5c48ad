// A device tree that QEMU has put into RAM, and puts there again at every reset. The machine has run no instruction.
import { type Addr, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal, RsptraceError } from '../base/errors.js';
import type { Session, TargetMemory } from '../rsp/index.js';
import { FDT_HEADER, fdtSize, readFdt, writeFdtSize } from '../target/index.js';
import { writeAllOrNone } from './edited-memory.js';
import { LARGE_PAGE } from './scratch.js';

/** Where a machine's device tree lies, and the word that leads to it if it may be moved. */
interface TreePlace {
  readonly at: Addr;
  readonly pointer: Addr | undefined;
  /** The machine has no device tree if there is none: then nothing says to its guest how much RAM there is. */
  readonly orNone?: { readonly ramBase: Addr };
}

/** How the device tree of a machine is found. */
export type FindTree = (memory: TargetMemory) => Promise<TreePlace | Refusal>;

/** By a pointer of 8 bytes. */
export async function pointedTo(memory: TargetMemory, pointer: Addr): Promise<TreePlace | undefined> {
  const bytes = await memory.read(pointer, 8);
  return bytes && { at: addr(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true)), pointer };
}

interface HiddenInTree {
  /** Physical address and size of the RAM that is hidden from the guest and free for use. */
  readonly start: Addr;
  readonly size: number;
  readonly ramBase: Addr;
  /** Where QEMU puts the device tree at a reset; undefined if there is none. */
  readonly original: Addr | undefined;
}

/**
 * Removes the topmost `hidden` bytes of RAM from the device tree of a machine at its reset vector. Moves the tree to
 * where QEMU would have put it without these bytes. At a later reset `original` says where to find it.
 */
export async function hideInDeviceTree(
  session: Session,
  find: FindTree,
  {
    visible,
    hidden,
    original,
  }: { readonly visible: number; readonly hidden: number; readonly original?: Addr | undefined },
): Promise<HiddenInTree | Refusal> {
  const memory = session.memory();
  const found = await deviceTree(memory, find, original);
  if (isRefusal(found)) return found;
  if (found.blob === undefined) {
    const { ramBase } = found;
    return { start: addr(ramBase + BigInt(visible)), size: hidden - LARGE_PAGE, ramBase, original: undefined };
  }
  const { blob, at, pointer: pointsTo } = found;
  const tree = readTree(blob);
  if (isRefusal(tree)) return tree;
  const [node] = tree.memory;
  const range = node?.ranges[0];
  if (node === undefined || range === undefined || tree.memory.length !== 1 || node.ranges.length !== 1) {
    return { refused: 'the device tree has the RAM in more than one piece' };
  }
  if (range.size !== BigInt(visible + hidden)) {
    return { refused: `the device tree has ${range.size} bytes of RAM instead of ${visible + hidden}` };
  }
  const start = addr(range.base + BigInt(visible));
  if (tree.initrdEnd !== undefined && tree.initrdEnd > start) {
    return { refused: `the initial RAM disk reaches to ${hex(tree.initrdEnd)}, beyond ${hex(start)}` };
  }
  writeFdtSize(blob, range.sizeAt, node.sizeBytes, BigInt(visible));
  const to = at + BigInt(blob.length) > start ? addr((start - BigInt(blob.length)) & ~BigInt(LARGE_PAGE - 1)) : at;
  if (to !== at && pointsTo === undefined) return { refused: `the device tree at ${hex(at)} cannot be moved` };
  const pointer = new Uint8Array(8);
  new DataView(pointer.buffer).setBigUint64(0, to, true);
  const moved = [
    ...(pointsTo === undefined ? [] : [{ address: pointsTo, bytes: pointer }]),
    { address: at, bytes: new Uint8Array(blob.length) },
  ];
  const failed = await writeAllOrNone(memory, [...(to === at ? [] : moved), { address: to, bytes: blob }]);
  if (failed) return { refused: `the device tree cannot be changed: ${failed.refused}` };
  // QEMU writes the whole tree to its old place at a reset.
  return { start, size: hidden - LARGE_PAGE, ramBase: addr(range.base), original: at };
}

/** The device tree that is found, or the one at `original`. */
export async function deviceTree(
  memory: TargetMemory,
  find: FindTree,
  original?: Addr,
): Promise<
  | (TreePlace & { readonly blob: Uint8Array })
  | { readonly blob: undefined; readonly at: undefined; readonly ramBase: Addr }
  | Refusal
> {
  const found = await find(memory);
  if (isRefusal(found)) return found;
  const at = original ?? found.at;
  const size = fdtSize((await memory.read(at, FDT_HEADER)) ?? new Uint8Array(0));
  const blob = size === undefined ? undefined : await memory.read(at, size);
  if (blob !== undefined) return { ...found, blob, at };
  const { orNone } = found;
  return orNone
    ? { blob, at: undefined, ramBase: orNone.ramBase }
    : { refused: `there is no device tree at ${hex(at)}` };
}

function readTree(blob: Uint8Array): ReturnType<typeof readFdt> | Refusal {
  try {
    return readFdt(blob);
  } catch (error) {
    if (error instanceof RsptraceError) return { refused: error.message };
    throw error;
  }
}
