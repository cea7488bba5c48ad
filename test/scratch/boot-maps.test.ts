// Kernels that boot as Linux does, and by Multiboot, and print the memory map that they were given.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addr } from '../../src/base/addr.js';
import { connect } from '../../src/rsp/index.js';
import { hideInMemoryMap } from '../../src/scratch/hide-in-memory-map.js';
import { hideAtReset } from '../../src/scratch/index.js';
import { frozenQemu, scratchFolder } from '../support/command.js';
import { hiddenMachine, plainRun, programOf } from '../support/hidden.js';
import { usually } from '../support/long.js';
import { diskKernel, mapPrinter } from '../support/tiny-kernels.js';

const MIB = 2 ** 20;
const RAM = 1;
const RESERVED = 2;

interface Printed {
  readonly map: readonly { readonly start: number; readonly size: number; readonly type: number }[];
  readonly disk: { readonly start: number; readonly size: number };
  /** By Multiboot: the end of the RAM that begins at 1 MiB. */
  readonly upper: number | undefined;
}

function printed(console: string): Printed {
  const map = [...console.matchAll(/([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{8})\r?\n/g)].map(
    ([, start, size, type]) => ({
      start: Number(`0x${start}`),
      size: Number(`0x${size}`),
      type: Number(`0x${type}`),
    }),
  );
  const [, at, size] = /([0-9a-f]{8})\+([0-9a-f]{8})/.exec(console) ?? [];
  const upper = /u([0-9a-f]{8})/.exec(console)?.[1];
  const upperEnd = upper === undefined ? undefined : MIB + 1024 * Number(`0x${upper}`);
  return { map, disk: { start: Number(`0x${at}`), size: Number(`0x${size}`) }, upper: upperEnd };
}

const ramOf = ({ map }: Printed): number =>
  map.filter(({ type }) => type === RAM).reduce((sum, { size }) => sum + size, 0);

function holding({ map }: Printed, at: number): Printed['map'][number] | undefined {
  return map.find(({ start, size }) => at >= start && at < start + size);
}

function isReservedIn(t: Test, told: Printed, hidden: { readonly start: bigint; readonly size: number }): void {
  for (let at = Number(hidden.start); at < Number(hidden.start) + hidden.size; at += MIB) {
    t.equal(holding(told, at)?.type, RESERVED, `0x${at.toString(16)} is reserved`);
  }
  const sorted = told.map.toSorted((a, b) => a.start - b.start);
  t.same(told.map, sorted, 'in order');
  t.ok(
    sorted.every(({ start, size }, index) => start + size <= (sorted[index + 1]?.start ?? 2 ** 53)),
    'none overlap',
  );
}

const machines = [
  ['bzimage', 'pc', ['-m', '512'], 0],
  ['bzimage', 'q35', ['-M', 'q35', '-m', '512'], 0],
  ['bzimage', 'pc with an initial RAM disk', ['-m', '100'], 3 * MIB + 5],
  ['bzimage', 'pc with RAM above 4 GiB', ['-m', '4G'], 0],
  ['bzimage', 'q35 with RAM above 4 GiB, and a disk', ['-M', 'q35', '-m', '3G'], 100_000],
  ['multiboot', 'pc', ['-m', '512'], 0],
  ['multiboot', 'q35 with RAM above 4 GiB, and a module', ['-M', 'q35', '-m', '3G'], 3 * MIB + 5],
] as const;
// Each protocol, RAM above 4 GiB, what is loaded beside the kernel.
const isUsual = ([protocol, , , disk]: (typeof machines)[number]) =>
  disk > 0 && (protocol === 'multiboot' || disk < MIB);
for (const [protocol, name, machine, disk] of usually(machines, isUsual)) {
  t.test(`${protocol} on ${name}: the kernel is told of the RAM that -m says`, async (t) => {
    const file = join(scratchFolder(t), 'disk');
    writeFileSync(file, Buffer.alloc(disk, 'a RAM disk '));
    const command = [...mapPrinter(t, protocol, ...machine), ...(disk === 0 ? [] : ['-initrd', file])];
    const plain = plainRun(t, command);
    const { plan, session, hidden, ended, console } = await hiddenMachine(t, command);
    const whole = Buffer.alloc(hidden.size, 'untouched ');
    const piece = plan.file?.piece(Number(hidden.start), hidden.size);
    piece?.write(0, whole);
    await session.resume();
    await ended;
    const told = printed(console());
    const before = printed(await plain);
    t.ok(before.map.length >= 6, `${before.map.length} entries`);
    t.equal(ramOf(told), ramOf(before), 'as much as without the hidden RAM');
    isReservedIn(t, told, hidden);
    const first = holding(told, MIB);
    const upper = protocol === 'multiboot' ? (first?.start ?? 0) + (first?.size ?? 0) : undefined;
    t.equal(told.upper, upper, 'where the RAM from 1 MiB on ends');
    t.equal(told.disk.size, disk);
    if (disk > 0) {
      const ram = holding(told, told.disk.start);
      t.equal(ram?.type, RAM, 'the disk is in RAM');
      t.ok(told.disk.start + disk <= (ram?.start ?? 0) + (ram?.size ?? 0), 'all of it');
      const read = Buffer.alloc(disk);
      plan.file?.piece(told.disk.start, disk).read(0, read);
      t.ok(read.equals(Buffer.alloc(disk, 'a RAM disk ')), 'and whole');
    }
    const after = Buffer.alloc(hidden.size);
    piece?.read(0, after);
    t.ok(after.equals(whole), 'the hidden RAM is untouched');
  });
}

t.test('a PC without -kernel: that its RAM is not kept is said, with what helps', async (t) => {
  const { elf, command } = diskKernel(t, 1);
  const qemu = frozenQemu(t, command);
  const session = await connect(`unix:${qemu.socket}`, { waitMs: 10_000 });
  t.teardown(() => session.close());
  t.match(await hideAtReset({ session, ...(await programOf(elf)), codeSize: 0 }), {
    refused: /^without -kernel .*; `rsptrace run` can add RAM$/,
  });
});

t.test('firmware that starts no kernel: that is said, with what helps', async (t) => {
  const qemu = frozenQemu(t, ['qemu-system-x86_64', '-nographic', '-nic', 'none']);
  const session = await connect(`unix:${qemu.socket}`, { waitMs: 10_000 });
  t.teardown(() => session.close());
  const image = { kind: 'multiboot', entry: addr(0x10_0000) } as const;
  t.match(await hideInMemoryMap(session, image, 16 * MIB, { mostMs: 200 }), {
    refused: "the guest did not come to its kernel's entry 0x100000 in 0.2 s",
    wayOut: /console/,
  });
});
