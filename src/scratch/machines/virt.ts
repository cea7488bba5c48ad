import type { Addr } from '../../base/addr.js';
import { isRefusal } from '../../base/refusal.js';
import { hideInDeviceTree } from '../hide-in-device-tree.js';
import type { Hide, Machine } from './machine.js';

/** The mask ROM, which holds the address of the device tree. */
const maskRom = 'riscv_virt_board.mrom';

/** QEMU's riscv `virt` (hw/riscv/virt.c). */
export const virt: Machine = {
  name: 'virt',
  types: ['virt'],
  isType: (type) => type === 'virt',
  hiding: async () => ({ hide: hiding() }),
  hasDeviceTree: (memory) => memory.some(({ name, start }) => name === maskRom && start === 0x1000n),
};

function hiding(): Hide {
  // QEMU writes the device tree there at every reset.
  let original: Addr | undefined;
  return async (session, visible, hidden) => {
    const found = await hideInDeviceTree(session, visible, hidden, original);
    if (isRefusal(found)) return found;
    original ??= found.original;
    return { start: found.start, size: found.size, fileBase: found.ramBase };
  };
}
