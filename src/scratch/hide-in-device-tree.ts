// QEMU's riscv `virt` (hw/riscv/boot.c, riscv_setup_rom_reset_vec): the mask ROM at 0x1000 begins with the reset
// vector and holds
//
//   0x1018 where it jumps to (8)   0x1020 address of the device tree (8), which it passes on in a1
//
// The device tree lies in the topmost 2 MiB of RAM (below 3 GiB), and QEMU writes it there again at every reset.
import { type Addr, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { isRefusal, type Refusal } from '../base/refusal.js';
import type { Session, TargetMemory } from '../rsp/index.js';
import { FDT_HEADER, fdtSize, readFdt, writeFdtSize } from '../target/index.js';
import { writeAllOrNone } from './edited-memory.js';
import { LARGE_PAGE } from './scratch.js';

const fdtPointer = addr(0x1020);

interface HiddenInTree {
  /** Physical address and size of the RAM that is hidden from the guest and free for use. */
  readonly start: Addr;
  readonly size: number;
  readonly ramBase: Addr;
  /** Where QEMU puts the device tree at a reset. */
  readonly original: Addr;
}

/**
 * Removes the topmost `hidden` bytes of RAM from the device tree of a machine at its reset vector. Moves the tree to
 * where QEMU would have put it without these bytes. At a later reset `original` says where to find it.
 */
export async function hideInDeviceTree(
  session: Session,
  visible: number,
  hidden: number,
  original?: Addr,
): Promise<HiddenInTree | Refusal> {
  const memory = session.memory();
  const found = await deviceTree(memory, original);
  if (isRefusal(found)) return found;
  const { blob, at } = found;
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
  const pointer = new Uint8Array(8);
  new DataView(pointer.buffer).setBigUint64(0, to, true);
  const moved = [
    { address: fdtPointer, bytes: pointer },
    { address: at, bytes: new Uint8Array(blob.length) },
  ];
  const failed = await writeAllOrNone(memory, [...(to === at ? [] : moved), { address: to, bytes: blob }]);
  if (failed) return { refused: `the device tree cannot be changed: ${failed.refused}` };
  // QEMU writes the whole tree to its old place at a reset.
  return { start, size: hidden - LARGE_PAGE, ramBase: addr(range.base), original: at };
}

/** The device tree that the mask ROM points to, or the one at `original`. */
export async function deviceTree(
  memory: TargetMemory,
  original?: Addr,
): Promise<{ blob: Uint8Array; at: Addr } | Refusal> {
  const pointer = await memory.read(fdtPointer, 8);
  if (pointer === undefined) return { refused: 'the mask ROM cannot be read' };
  const at = original ?? addr(new DataView(pointer.buffer, pointer.byteOffset).getBigUint64(0, true));
  const size = fdtSize((await memory.read(at, FDT_HEADER)) ?? new Uint8Array(0));
  const blob = size === undefined ? undefined : await memory.read(at, size);
  return blob === undefined ? { refused: `there is no device tree at ${hex(at)}` } : { blob, at };
}

function readTree(blob: Uint8Array): ReturnType<typeof readFdt> | Refusal {
  try {
    return readFdt(blob);
  } catch (error) {
    if (error instanceof RsptraceError) return { refused: error.message };
    throw error;
  }
}
