// A kernel seen in RAM while its loader prepares it. Page tables are written here by the manuals' formats.
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { architectures } from '../../src/arch/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { GuestRam } from '../../src/target/guest-ram.js';
import { KernelInRam } from '../../src/target/kernel-in-ram.js';
import type { RamRange } from '../../src/target/machine-ram.js';
import { scratchFolder } from '../support/command.js';
import { writeElf } from '../support/elf-writer.js';

const MIB = 2 ** 20;
/** The ELF's entry is its first byte, at 0x1000. */
const code = Uint8Array.from({ length: 300 }, (_, index) => (index * 7) % 251);

/** 4 MiB of RAM at 1 GiB, as a file that is written to while it is read. */
function ram(t: Test) {
  const start = 2 ** 30;
  const path = join(scratchFolder(t), 'ram');
  const bytes = Buffer.alloc(4 * MIB);
  writeFileSync(path, bytes);
  const file = openSync(path, 'r');
  t.teardown(() => closeSync(file));
  const piece = {
    start: BigInt(start),
    end: BigInt(start + bytes.length),
    file,
    position: 0,
    name: path,
    outlives: true,
  };
  const put = (physical: number, value: Uint8Array | bigint): void => {
    if (typeof value === 'bigint') bytes.writeBigUInt64LE(value, physical - start);
    else bytes.set(value, physical - start);
    writeFileSync(path, bytes);
  };
  return { start, put, ram: new GuestRam(process.pid, [piece]) };
}

for (const { name, machine, levels, entry } of [
  { name: 'x86_64', machine: 62, levels: 4, entry: (physical: number) => BigInt(physical) | 3n },
  { name: 'riscv64', machine: 243, levels: 3, entry: (physical: number) => BigInt(physical / 4) | 0xfn },
]) {
  t.test(`${name}: the loader puts it into RAM, then maps it`, async (t) => {
    const elf = ElfFile.parse(writeElf({ type: 3, machine, loads: [{ address: 0x1000n, bytes: code }] }), 'kernel');
    const arch = architectures().find((each) => each.name === name);
    const { start, put, ram: memory } = ram(t);
    const kernel = KernelInRam.of(elf, memory, arch?.addressSpaces?.search);
    if (kernel === undefined) return t.fail('its entry is not known');
    t.equal(kernel.hasChanged(), false);

    const frame = start + 2 * MIB;
    put(frame, code);
    t.equal(kernel.hasChanged(), true);
    t.same(kernel.entries(), [BigInt(frame)]);
    t.equal(kernel.hasChanged(), false);

    // The root last: index 1, 2, 3 and so on, each in a table of its own.
    const tables = Array.from({ length: levels }, (_, level) => start + MIB + level * 4096);
    let virtual = 0n;
    for (const [level, table] of tables.entries()) {
      put(table + (level + 1) * 8, entry(tables[level - 1] ?? frame));
      virtual |= BigInt(level + 1) << BigInt(12 + 9 * level);
    }
    t.equal(kernel.hasChanged(), true);
    t.same(kernel.entries(), [virtual, BigInt(frame)]);
    // Another index at the root would be the upper half.
    put((tables.at(-1) ?? 0) + 511 * 8, entry(tables.at(-2) ?? 0));
    const low = 2n ** BigInt(12 + 9 * (levels - 1));
    const upper = BigInt.asUintN(64, -low) | (virtual % low);
    t.same(kernel.entries(), [virtual, upper, BigInt(frame)]);
  });
}

t.test('a file that is still read is no kernel that is loaded', async (t) => {
  // The file has the entry at the same place of a page as memory has it.
  const segment = Buffer.concat([Buffer.alloc(0x1000 - 0x78, 1), code]);
  const bytes = writeElf({ type: 3, machine: 62, loads: [{ address: 0x78n, bytes: segment }] });
  const { start, put, ram: memory } = ram(t);
  const kernel = KernelInRam.of(ElfFile.parse(bytes, 'kernel'), memory, undefined);
  put(start + MIB, bytes.subarray(0, 0x1000 + code.length));
  t.same([kernel?.hasChanged(), kernel?.isLoaded], [true, false]);
  put(start + MIB, bytes);
  t.same([kernel?.hasChanged(), kernel?.isLoaded], [false, true]);
});

t.test('a segment alone is one', async (t) => {
  const bytes = writeElf({ type: 3, machine: 62, loads: [{ address: 0x1000n, bytes: code }] });
  const { start, put, ram: memory } = ram(t);
  const kernel = KernelInRam.of(ElfFile.parse(bytes, 'kernel'), memory, undefined);
  put(start + 2 * MIB, code);
  t.same([kernel?.hasChanged(), kernel?.isLoaded], [true, true]);
});

t.test('so many section headers as no kernel has are not read', async (t) => {
  const segment = Buffer.concat([Buffer.alloc(0x1000 - 0x78, 1), code]);
  const bytes = Buffer.from(writeElf({ type: 3, machine: 62, loads: [{ address: 0x78n, bytes: segment }] }));
  const { start, put, ram: memory } = ram(t);
  let most = 0;
  const counted = {
    touched: () => memory.touched(),
    chunks: (ranges: readonly RamRange[]) => memory.chunks(ranges),
    read: (physical: bigint, into: Uint8Array) => {
      most = Math.max(most, into.length);
      return memory.read(physical, into);
    },
  };
  const kernel = KernelInRam.of(ElfFile.parse(bytes, 'kernel'), counted as unknown as GuestRam, undefined);
  bytes.writeUInt32LE(0xffff_ffff, 58);
  put(start + MIB, bytes);
  t.same([kernel?.hasChanged(), kernel?.isLoaded], [true, true]);
  t.ok(most <= 4096, `${most} bytes at once`);
});
