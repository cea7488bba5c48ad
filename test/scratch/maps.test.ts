// Memory maps and device trees: QEMU's own device trees, made-up maps, and bytes that are neither.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { type MapEntry, RAM, readMap, takeRam, writeMap } from '../../src/scratch/memory-map.js';
import { fdtSize, readFdt, writeFdtSize } from '../../src/target/fdt.js';
import { scratchFolder } from '../support/command.js';
import { long } from '../support/long.js';

const MIB = 2 ** 20;

/** The device tree that QEMU makes for `virt`. */
function deviceTree(t: { teardown: (fn: () => void) => void }, ...args: string[]): Uint8Array {
  const file = join(scratchFolder(t), 'virt.dtb');
  execFileSync('qemu-system-riscv64', ['-M', `virt,dumpdtb=${file}`, '-display', 'none', ...args], { stdio: 'pipe' });
  return Uint8Array.from(readFileSync(file));
}

t.test("QEMU's device trees: the RAM of -m, one node a NUMA node", async (t) => {
  for (const size of [128, 513, 5000]) {
    const blob = deviceTree(t, '-m', String(size), '-smp', '3');
    t.ok((fdtSize(blob) ?? 0) > 2000);
    const { memory, initrdEnd } = readFdt(blob);
    t.match(memory, [{ node: 'memory@80000000', sizeBytes: 8 }]);
    t.match(memory[0]?.ranges, [{ base: 0x8000_0000n, size: BigInt(size * MIB) }]);
    t.equal(initrdEnd, undefined);
  }
  const nodes = deviceTree(
    t,
    ...['-m', '256', '-smp', '2', '-object', 'memory-backend-ram,id=a,size=128M', '-object'],
    ...['memory-backend-ram,id=b,size=128M', '-numa', 'node,memdev=a', '-numa', 'node,memdev=b'],
  );
  t.same(
    readFdt(nodes)
      .memory.map(({ node }) => node)
      .sort(),
    ['memory@80000000', 'memory@88000000'],
  );
});

t.test('a size that is written is a size that is read', async (t) => {
  const blob = deviceTree(t, '-m', '144').slice();
  const before = blob.slice();
  const { memory } = readFdt(blob);
  const at = memory[0]?.ranges[0]?.sizeAt ?? 0;
  writeFdtSize(blob, at, 8, BigInt(128 * MIB));
  t.equal(readFdt(blob).memory[0]?.ranges[0]?.size, BigInt(128 * MIB));
  const differing = [...blob.keys()].filter((index) => blob[index] !== before[index]);
  t.ok(
    differing.every((index) => index >= at && index < at + 8),
    'nothing else has changed',
  );
  t.ok(differing.length > 0);
});

t.test('device trees that are damaged: an error, never a hang', async (t) => {
  const blob = deviceTree(t, '-m', '128');
  const end = 1600;
  let refused = 0;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(end), fc.nat(255)), { minLength: 1, maxLength: 6 }),
      fc.nat(end),
      (edits, cut) => {
        const bytes = blob.slice();
        for (const [at, value] of edits) bytes[at] = value;
        for (const each of [bytes, bytes.slice(0, cut)]) {
          try {
            readFdt(each);
          } catch (error) {
            if (!(error instanceof RsptraceError) || error.code !== 'FDT_DAMAGED') throw error;
            refused++;
          }
        }
      },
    ),
    { seed: 5, numRuns: 500 },
  );
  t.ok(refused > (long ? 500 : 100), `${refused} refused`);
});

const pc: MapEntry[] = [
  { start: 0, size: 0x9fc00, type: RAM },
  { start: 0x9fc00, size: 0x400, type: 2 },
  { start: 0xf0000, size: 0x10000, type: 2 },
  { start: MIB, size: 0x8fe_0000 - MIB, type: RAM },
  { start: 0x8fe_0000, size: 0x2_0000, type: 2 },
  { start: 0xfffc_0000, size: 0x4_0000, type: 2 },
  { start: 2 ** 32, size: 64 * MIB, type: RAM },
];

t.test('RAM is taken at the top of what lies below 4 GiB', async (t) => {
  const taken = takeRam(pc, 16 * MIB);
  t.equal(taken?.start, 0x7fe_0000);
  t.same(taken?.entries.slice(3, 6), [
    { start: MIB, size: 0x7fe_0000 - MIB, type: RAM },
    { start: 0x7fe_0000, size: 16 * MIB, type: 2 },
    { start: 0x8fe_0000, size: 0x2_0000, type: 2 },
  ]);
  t.same(
    taken?.entries.filter((_, index) => index < 3 || index > 4),
    pc.filter((_, index) => index !== 3),
  );
});

t.test('and below an initial RAM disk, which stays in RAM', async (t) => {
  const taken = takeRam(pc, 16 * MIB, 0x8f0_1234);
  t.equal(taken?.start, 0x7f0_1000);
  t.same(taken?.entries.slice(3, 6), [
    { start: MIB, size: 0x7f0_1000 - MIB, type: RAM },
    { start: 0x7f0_1000, size: 16 * MIB, type: 2 },
    { start: 0x8f0_1000, size: 0x8fe_0000 - 0x8f0_1000, type: RAM },
  ]);
  t.equal(takeRam(pc, 16 * MIB, 8 * MIB), undefined, 'no room below it');
  t.equal(takeRam([{ start: MIB, size: MIB, type: RAM }], 16 * MIB), undefined);
  t.equal(takeRam([], 16 * MIB), undefined);
});

t.test('any map: as much RAM less, everything else as it was', async () => {
  const entry = fc.record({
    start: fc.nat(0x1_4000).map((page) => page * 0x10000),
    size: fc.nat(0xffff_ffff),
    type: fc.nat(3),
  });
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 12 }),
      fc.constantFrom(
        { stride: 20, before: 0 } as const,
        { stride: 24, before: 0 } as const,
        { stride: 24, before: 4 } as const,
      ),
      fc.nat(0xffff_ffff),
      (entries, format, ceiling) => {
        const bytes = writeMap(entries, format);
        const back = readMap(bytes, format) ?? [];
        if (JSON.stringify(back) !== JSON.stringify(entries)) throw new Error('not what was written');
        const taken = takeRam(entries, 16 * MIB, ceiling);
        if (taken === undefined) return;
        const ram = (list: readonly MapEntry[]): number =>
          list.filter(({ type }) => type === RAM).reduce((sum, { size }) => sum + size, 0);
        if (ram(entries) - ram(taken.entries) !== 16 * MIB) throw new Error('another amount');
        if (taken.start + 16 * MIB > Math.min(ceiling, 2 ** 32) + 2 ** 32) throw new Error('above the ceiling');
      },
    ),
    { seed: 5, numRuns: 500 },
  );
});

t.test('numbers of another world', (t) => {
  t.equal(readMap(new Uint8Array(24).fill(255), { stride: 24, before: 0 }), undefined);
  t.equal(readMap(new Uint8Array(24), { stride: 24, before: 4 }), undefined, 'an entry of no bytes');
  t.equal(fdtSize(new Uint8Array(40).fill(255)), undefined);
  t.equal(fdtSize(Uint8Array.of(0xd0, 0x0d, 0xfe, 0xed)), undefined);
  t.end();
});
