import { addr } from '../../../base/addr.js';
import { isRefusal } from '../../../base/refusal.js';
import { type BootImage, bootImage, type QemuOption } from '../../../facts/index.js';
import { hideInMemoryMap } from '../hide-in-memory-map.js';
import type { Hide, Machine } from './machine.js';

/** From this much RAM on, a part of it lies above 4 GiB (hw/i386/pc_piix.c, pc_q35.c). */
const SPLIT = { pc: 0xe000_0000, q35: 0xb000_0000 } as const;

/** QEMU's x86 `pc` and `q35` (hw/i386). */
export const pc: Machine = {
  name: 'pc',
  types: ['pc', 'q35'],
  isType: (type) => type === undefined || /^(pc|q35|pc-(i440fx|q35)-[\d.]+)$/.test(type),
  async hiding(options, type, visible, hidden) {
    const split = type?.includes('q35') ? SPLIT.q35 : SPLIT.pc;
    if (visible < split && visible + hidden >= split) {
      const more = `${hidden / 2 ** 20} MiB more than ${visible / 2 ** 20} MiB`;
      return { refused: `with ${more}, part of the RAM would move above 4 GiB` };
    }
    const kernel = kernelOf(options);
    if (kernel === undefined)
      return { refused: 'without -kernel it is not known where the guest reads its memory map' };
    const image = await bootImage(kernel);
    return isRefusal(image) ? image : hiding(image);
  },
  async unpackedStart(options) {
    const kernel = kernelOf(options);
    const image = kernel === undefined ? undefined : await bootImage(kernel);
    if (image === undefined || isRefusal(image) || image.kind !== 'bzimage') return undefined;
    return options.findLast(({ name }) => name === 'append')?.value ?? '';
  },
};

function kernelOf(options: readonly QemuOption[]): string | undefined {
  return options.findLast(({ name }) => name === 'kernel')?.value;
}

function hiding(image: BootImage): Hide {
  // The firmware does not clear the rest of what was written before a reset.
  let written: Uint8Array | undefined;
  return async (session, _, hidden) => {
    const found = await hideInMemoryMap(session, image, hidden, written);
    if (isRefusal(found)) return found;
    written ??= found.written;
    return { start: found.start, size: found.size, fileBase: addr(0) };
  };
}
