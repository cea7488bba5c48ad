import { type Addr, addr } from '../../base/addr.js';
import { isRefusal } from '../../base/errors.js';
import type { MemoryPiece } from '../../target/index.js';
import { type FindTree, hideInDeviceTree, pointedTo } from '../hide-in-device-tree.js';
import type { Hide, Machine } from './machine.js';

/** The mask ROM, which holds the address of the device tree. */
const maskRom = 'riscv_virt_board.mrom';

/**
 * QEMU's riscv `virt` (hw/riscv/virt.c). The mask ROM at 0x1000 begins with the reset vector (hw/riscv/boot.c,
 * riscv_setup_rom_reset_vec) and holds
 *
 *   0x1018 where it jumps to (8)   0x1020 address of the device tree (8), which it passes on in a1
 *
 * The device tree lies in the topmost 2 MiB of RAM (below 3 GiB).
 */
export const virt: Machine = machineOf(
  'virt',
  ({ name, start }) => name === maskRom && start === 0x1000n,
  async (memory) => (await pointedTo(memory, addr(0x1020))) ?? { refused: 'the mask ROM cannot be read' },
);

/** VIRT_MEM of hw/arm/virt.c. */
const ram = addr(0x4000_0000);
/** `ldr x0, arg`, the first instruction of what QEMU puts there before a Linux image (hw/arm/boot.c). */
const loader = 0x5800_00c0;

/**
 * QEMU's arm `virt` (hw/arm/virt.c). The device tree lies at the start of RAM, if the kernel is an ELF that leaves
 * 1 MiB of room there. Else there is none, and such a kernel knows by itself where its RAM is. Before a Linux image
 * there is code that passes its address on (hw/arm/boot.c, bootloader_aarch64):
 *
 *   0x18 address of the device tree (8)   0x20 where it jumps to (8)
 */
export const armVirt: Machine = machineOf(
  'arm-virt',
  ({ name, start }) => name === 'mach-virt.ram' && start === ram,
  async (memory) => {
    const first = await memory.read(ram, 4);
    if (first === undefined) return { refused: 'the start of RAM cannot be read' };
    const isLoader = new DataView(first.buffer, first.byteOffset).getUint32(0, true) === loader;
    const found = isLoader ? await pointedTo(memory, addr(ram + 0x18n)) : undefined;
    return found ?? { at: ram, pointer: undefined, orNone: { ramBase: ram } };
  },
);

function machineOf(name: string, isPart: (piece: MemoryPiece) => boolean, deviceTree: FindTree): Machine {
  return {
    name,
    types: ['virt'],
    isType: (type) => type === 'virt',
    hiding: async () => ({ hide: hiding(deviceTree) }),
    hasDeviceTree: (memory) => memory.some(isPart),
    deviceTree,
  };
}

function hiding(find: FindTree): Hide {
  // QEMU writes the device tree there at every reset.
  let original: Addr | undefined;
  return async (session, visible, hidden) => {
    const found = await hideInDeviceTree(session, find, { visible, hidden, original });
    if (isRefusal(found)) return found;
    original ??= found.original;
    return { start: found.start, size: found.size, fileBase: found.ramBase };
  };
}
