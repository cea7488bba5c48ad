import { addr } from '../../base/addr.js';
import { isRefusal, type Refusal } from '../../base/errors.js';
import { type BootImage, bootImage, type QemuOption } from '../../target/index.js';
import { hideInMemoryMap } from '../hide-in-memory-map.js';
import type { Hide, Hiding, Machine } from './machine.js';

/** From this much RAM on, a part of it lies above 4 GiB (hw/i386/pc_piix.c, pc_q35.c). */
const SPLIT = { pc: 0xe000_0000, q35: 0xb000_0000 } as const;

/** QEMU's x86 `pc` and `q35` (hw/i386). */
export const pc: Machine = {
  name: 'pc',
  types: ['pc', 'q35'],
  isType: (type) => type === undefined || /^(pc|q35|pc-(i440fx|q35)-[\d.]+)$/.test(type),
  async hiding(options, type, visible, hidden) {
    const kernel = kernelOf(options);
    // Firmware reads a map of RAM in QEMU that nothing in the guest can change, and says the loader on a disk.
    if (kernel === undefined && hidden > 0) return memoryModule(options);
    const split = type?.includes('q35') ? SPLIT.q35 : SPLIT.pc;
    if (visible < split && visible + hidden >= split) {
      const more = `${hidden / 2 ** 20} MiB more than ${visible / 2 ** 20} MiB`;
      return { refused: `with ${more}, part of the RAM would move above 4 GiB` };
    }
    if (kernel === undefined)
      return { refused: 'without -kernel only the firmware says how much RAM there is; `rsptrace run` can add RAM' };
    const image = await bootImage(kernel);
    return isRefusal(image) ? image : { hide: hiding(image) };
  },
  async unpackedStart(options) {
    const kernel = kernelOf(options);
    const image = kernel === undefined ? undefined : await bootImage(kernel);
    if (image === undefined || isRefusal(image) || image.kind !== 'bzimage') return undefined;
    return options.findLast(({ name }) => name === 'append')?.value ?? '';
  },
};

/**
 * A module in a slot for memory hot-plug. Firmware and loaders do not know of it: only ACPI's namespace has it, which a
 * kernel with a driver for hot-plug reads (ACPI 6.5, 9.11; docs/specs/acpi_mem_hotplug.rst of QEMU).
 */
function memoryModule(options: readonly QemuOption[]): Hiding | Refusal {
  const acpi = options.find(
    ({ name, value }) => name === 'no-acpi' || (/^(M|machine)$/.test(name) && /\bacpi=off\b/.test(value ?? '')),
  );
  if (acpi)
    return {
      refused: `RAM can be added as a module only, for which the machine needs the ACPI that -${acpi.name} takes away`,
    };
  return {
    asModule: (backend, visible, hidden) => [
      ...['-m', `${visible}B,slots=1,maxmem=${visible + 2 * hidden}B`],
      ...['-device', `pc-dimm,memdev=${backend}`],
    ],
    async hide(session, _, size) {
      const answer = /addr: 0x([0-9a-f]{1,16})\b/i.exec((await session.monitor('info memory-devices')) ?? '')?.[1];
      if (answer === undefined) return { refused: 'QEMU does not say where the memory module is that was added' };
      const start = addr(BigInt(`0x${answer}`));
      return { start, size, fileBase: start };
    },
  };
}

function kernelOf(options: readonly QemuOption[]): string | undefined {
  return options.findLast(({ name }) => name === 'kernel')?.value;
}

function hiding(image: BootImage): Hide {
  // The firmware does not clear the rest of what was written before a reset.
  let written: Uint8Array | undefined;
  return async (session, _, hidden) => {
    const found = await hideInMemoryMap(session, image, hidden, { before: written });
    if (isRefusal(found)) return found;
    written ??= found.written;
    return { start: found.start, size: found.size, fileBase: addr(0) };
  };
}
