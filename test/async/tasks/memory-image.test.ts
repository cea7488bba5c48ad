// A dump of RAM by physical addresses, of a kernel that lies elsewhere virtually.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openMemoryImage } from '../../../src/async/tasks/index.js';
import { addr } from '../../../src/base/addr.js';
import type { ElfFile } from '../../../src/elf/index.js';
import { scratchFolder } from '../../support/command.js';

const [PHYSICAL, VIRTUAL, SIZE] = [0x8000_0000n, 0xffff_ffc0_8000_0000n, 0x1000];

/** gABI: the header of a little-endian ELF64 core, one PT_LOAD, and its bytes, each its own offset by 8. */
function core(address: bigint): Uint8Array {
  const bytes = new Uint8Array(0x1000 + SIZE);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  for (const [at, value] of [
    [16, 4],
    [18, 243],
    [52, 64],
    [54, 56],
    [56, 1],
  ] as const)
    view.setUint16(at, value, true);
  view.setUint32(20, 1, true);
  view.setBigUint64(32, 64n, true);
  view.setUint32(64, 1, true);
  const sizes = [BigInt(SIZE), BigInt(SIZE)];
  for (const [i, value] of [0x1000n, address, PHYSICAL, ...sizes].entries()) view.setBigUint64(72 + 8 * i, value, true);
  for (let at = 0; at < SIZE; at += 8) view.setBigUint64(0x1000 + at, BigInt(at), true);
  return bytes;
}

/** The segments of a kernel: its data, and what runs before there are page tables. */
function kernel(virtual: bigint): Pick<ElfFile, 'loads' | 'machine'> {
  const segment = { type: 1, offset: 0, fileSize: 64, memorySize: 64, align: 8 };
  const at = (address: bigint, physical: bigint, flags: number) =>
    ({ ...segment, address: addr(address), physical: addr(physical), flags }) as unknown as ElfFile['loads'][number];
  return { machine: 243, loads: [at(PHYSICAL, PHYSICAL, 5), at(virtual + 64n, PHYSICAL + 64n, 6)] };
}

for (const [what, address] of [
  ['QEMU: both addresses are the physical one', PHYSICAL],
  ['no virtual address', 0n],
] as const) {
  t.test(`RAM lies where the kernel maps it: ${what}`, async (t) => {
    const path = join(scratchFolder(t), 'core');
    writeFileSync(path, core(address));
    using image = await openMemoryImage(path, undefined, kernel(VIRTUAL));
    t.match(image.regions, [{ start: VIRTUAL, length: SIZE }]);
    t.equal(image.regions.length, 1);
    const word = async (at: bigint): Promise<number | undefined> => (await image.read(addr(at), 8))?.[0];
    // Behind the segment, too: a heap is no part of an ELF.
    t.same(await Promise.all([word(VIRTUAL + 64n), word(VIRTUAL + 128n), word(PHYSICAL + 8n)]), [64, 128, 8]);
    t.equal(await word(VIRTUAL + 0x1000n), undefined);
    using same = await openMemoryImage(path, undefined, kernel(PHYSICAL));
    t.match(same.regions, [{ start: PHYSICAL, length: SIZE }]);
  });
}
