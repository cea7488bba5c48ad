import { addr } from '../../base/addr.js';
import type { ResetModel } from '../reset.js';

const maskRom = 0x1000n;
const machineMode = 3n;

/**
 * QEMU's machines begin in their mask ROM at 0x1000 (QEMU 7.2, hw/riscv/virt.c; others 0x1004), in M-mode, all harts.
 */
export const reset: ResetModel = {
  vectorAt(pc) {
    if (pc >> 12n !== maskRom >> 12n) return undefined;
    return { breakpoint: { type: 0, address: addr(pc), kind: 4 }, pc: addr(pc), isCertain: true };
  },
  mode: { register: 'priv', value: machineMode },
  begins: 'all',
  firmwareResets: false,
};
