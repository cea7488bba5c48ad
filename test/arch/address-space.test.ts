// Page tables: what QEMU's own monitor shows of a machine that pages, and tables that no machine should have.

import fc from 'fast-check';
import t from 'tap';
import {
  type AddressSpace,
  type Architecture,
  aarch64,
  type CompleteArchitecture,
  type Mapping,
  riscv64,
  walkNow,
  x86_64,
} from '../../src/arch/index.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import type { MemoryReader, RegisterReader } from '../../src/base/memory-reader.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { elfPath, qemuArgv } from '../qemu/guests/guests.js';
import { assemble } from '../support/assembled.js';
import { scratchFolder, start } from '../support/command.js';
import { programOf } from '../support/hidden.js';
import { pagingKernel } from '../support/tiny-kernels.js';

async function spaceOf(session: Session, arch: CompleteArchitecture): Promise<AddressSpace> {
  const physical = await session.physicalMemory();
  if (physical === undefined) throw new Error('QEMU gives no physical memory');
  const batch = session.batch();
  const block = batch.readRegisters(arch.addressSpaces.registers);
  await batch.send();
  const space = arch.addressSpaces.of(block.value, physical);
  if ('refused' in space) throw new Error(space.refused);
  return space;
}

interface Line {
  readonly virtual: bigint;
  readonly physical: bigint;
  readonly size: bigint;
  readonly rights: string;
}

/** Neighbours with the same rights as one. */
function merged(lines: readonly Line[]): Line[] {
  const out: Line[] = [];
  for (const line of lines) {
    const last = out.at(-1);
    const next = last && last.virtual + last.size === line.virtual && last.physical + last.size === line.physical;
    if (last && next && last.rights === line.rights) out[out.length - 1] = { ...last, size: last.size + line.size };
    else out.push(line);
  }
  return out;
}

async function ours(space: AddressSpace): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const { virtual, physical, size, readable, writable, executable, user } of space.mappings()) {
    const rights = `${readable ? 'r' : '-'}${writable ? 'w' : '-'}${executable ? 'x' : '-'}${user ? 'u' : '-'}`;
    lines.push({ virtual, physical, size: BigInt(size), rights });
  }
  return merged(lines);
}

/** `info mem` of riscv64: `ffffffff80200000 0000000080200000 0000000000001000 r-x--ad`. */
function infoMem(text: string): Line[] {
  const found = [...text.matchAll(/^([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{16}) ([-rwxu]{4})/gm)];
  return merged(
    found.map(([, virtual, physical, size, rights = '']) => ({
      virtual: BigInt(`0x${virtual}`),
      physical: BigInt(`0x${physical}`),
      size: BigInt(`0x${size}`),
      rights,
    })),
  );
}

/** `info tlb` of x86: `ffffffff80100000: 0000000000100000 ---DA----`; X first, U and W last, P for a large page. */
function infoTlb(text: string): Line[] {
  const found = [...text.matchAll(/^([0-9a-f]{16}): ([0-9a-f]{16}) ([-A-Z]{9})/gm)];
  return merged(
    found.map(([, virtual, physical, flags = '']) => {
      const rights = `r${flags[8] === 'W' ? 'w' : '-'}${flags[0] === 'X' ? '-' : 'x'}${flags[7] === 'U' ? 'u' : '-'}`;
      const size = flags[2] === 'P' ? 0x20_0000n : 0x1000n;
      return { virtual: BigInt(`0x${virtual}`), physical: BigInt(`0x${physical}`), size, rights };
    }),
  );
}

for (const [arch, levels, scheme] of [
  [riscv64, 3, 'sv39'],
  [riscv64, 4, 'sv48'],
  [riscv64, 5, 'sv57'],
  [x86_64, 4, '4-level'],
  [x86_64, 5, '5-level'],
  [x86_64, 0, '4-level'],
] as const) {
  const what = levels === 0 ? 'the guest of x86-o2' : 'a kernel of 4 KiB pages';
  t.test(`${scheme}: ${what}, as QEMU's monitor shows it`, async (t) => {
    const socket = `${scratchFolder(t)}/gdb`;
    const kernel = levels === 0 ? undefined : pagingKernel(t, arch === riscv64 ? 'riscv64' : 'x86_64', levels);
    const [program = '', ...args] = kernel?.command ?? qemuArgv('x86-o2');
    const qemu = start(program, [...args, '-S', '-gdb', `unix:${socket},server=on,wait=off`]);
    t.teardown(() => void qemu.process.kill('SIGKILL'));
    await using session = await connect(socket, { waitMs: 60_000 });
    const { elf } = await programOf(kernel?.elf ?? elfPath('x86-o2'));
    t.equal((await spaceOf(session, arch)).scheme, 'off', 'at reset');
    const name = kernel === undefined ? /9poll_task/ : /^work$/;
    const at = [...elf.symbols].find((symbol) => name.test(symbol.name))?.address ?? addr(0);
    await session.insertBreakpoint({ type: 1, address: at, kind: 1 });
    await session.resume();
    const space = await spaceOf(session, arch);
    t.equal(space.scheme, scheme);
    t.equal(space.user, false);
    const truth =
      arch === riscv64
        ? infoMem((await session.monitor('info mem')) ?? '')
        : infoTlb((await session.monitor('info tlb')) ?? '');
    t.ok(truth.length >= (kernel ? 2 : 1), `${truth.length} mappings`);
    t.same(await ours(space), truth);

    // The physical address that the monitor itself translates to, and the same bytes through both.
    const gva = (await session.monitor(`gva2gpa 0x${at.toString(16)}`)) ?? '';
    const mapping = (await space.translate(at)) as Mapping;
    const physical = addOffset(mapping.physical, at - mapping.virtual);
    if (arch === x86_64) t.equal(BigInt(/gpa: (0x[0-9a-f]+)/.exec(gva)?.[1] ?? 0), physical);
    const there = await (await session.physicalMemory())?.read(physical, 16);
    t.same(there, await session.memory().read(at, 16));
    t.equal(await space.translate(addr(0xffff_ff00_0000_0000n)), undefined, 'not mapped');
    t.equal(await space.translate(addr(0x4000_0000_0000_0000n)), undefined, 'not canonical');
    if (kernel === undefined) return;
    const some: Mapping[] = [];
    for await (const each of space.mappings({ from: at, to: addOffset(at, 1) })) some.push(each);
    t.same(some, [mapping], 'a range of one page');
    const table = await space.largePageTable(at);
    t.equal(table?.virtual, addr(0xffff_ffff_8000_0000n));
    t.equal(table?.entries.filter((entry) => entry !== 0n).length, 1);
  });
}

const PAGES = 12;

/** Physical memory of a few pages, in which every entry that is not zero was thrown; registers that name its first page as the root. */
function machine(entries: readonly { page: number; index: number; value: bigint }[]): MemoryReader {
  const bytes = new DataView(new ArrayBuffer(PAGES * 4096));
  for (const { page, index, value } of entries) bytes.setBigUint64(page * 4096 + index * 8, value, true);
  return {
    read: async (address: Addr, length: number) =>
      address + BigInt(length) <= BigInt(PAGES * 4096)
        ? new Uint8Array(bytes.buffer.slice(Number(address), Number(address) + length))
        : undefined,
  };
}

function registers(values: Record<string, bigint>): RegisterReader {
  return { register: (name) => values[name] };
}

const modes: [string, CompleteArchitecture, Record<string, bigint>][] = [
  ...[8n, 9n, 10n].map((mode): [string, CompleteArchitecture, Record<string, bigint>] => [
    `satp mode ${mode}`,
    riscv64,
    { satp: mode << 60n, priv: 1n },
  ]),
  ...[0n, 0x1000n].map((cr4): [string, CompleteArchitecture, Record<string, bigint>] => [
    `cr4 ${cr4}`,
    x86_64,
    { cr0: 1n << 31n, cr3: 0n, cr4, efer: 0xd00n, cs: 8n },
  ]),
];

/** An entry that leads to one of the pages, with flags as they come. */
function entry(arch: CompleteArchitecture): fc.Arbitrary<bigint> {
  return fc
    .tuple(fc.nat(PAGES), fc.nat(0xff), fc.boolean(), fc.bigInt(0n, (1n << 64n) - 1n))
    .map(([page, flags, high, wild]) => {
      if (flags === 0xff) return wild;
      const bits = BigInt(flags) | 1n | (high ? 1n << 63n : 0n);
      return arch === riscv64 ? (BigInt(page) << 10n) | bits : (BigInt(page) << 12n) | bits;
    });
}

for (const [name, arch, values] of modes) {
  t.test(`${name}: any tables at all: an end, and the same answer both ways`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ page: fc.nat(PAGES - 1), index: fc.nat(511), value: entry(arch) }), { maxLength: 40 }),
        fc.bigInt(0n, (1n << 64n) - 1n),
        async (entries, wild) => {
          const space = arch.addressSpaces.of(registers(values), machine(entries));
          if ('refused' in space) throw new Error(space.refused);
          let count = 0;
          let before = -1n;
          try {
            for await (const mapping of space.mappings({ mostTables: 60 })) {
              if (mapping.virtual <= before) throw new Error('out of order');
              before = mapping.virtual;
              const inside = addOffset(mapping.virtual, wild % BigInt(mapping.size));
              const again = await space.translate(inside);
              if (JSON.stringify(again, show) !== JSON.stringify(mapping, show)) throw new Error('they differ');
              sameAtOnce(arch, values, entries, inside, mapping);
              if (++count > 50) break;
            }
          } catch (error) {
            if (!/more than 60 page tables/.test(String(error))) throw error;
          }
          sameAtOnce(arch, values, entries, addr(wild), await space.translate(addr(wild)));
          await space.largePageTable(addr(wild));
        },
      ),
      { seed: 5, numRuns: 300 },
    );
  });

  t.test(`${name}: a table that is full of itself`, async (t) => {
    const self = arch === riscv64 ? 1n : 7n;
    const entries = Array.from({ length: 512 }, (_, index) => ({ page: 0, index, value: self }));
    const space = arch.addressSpaces.of(registers(values), machine(entries));
    if ('refused' in space) throw new Error(space.refused);
    const all = async (): Promise<void> => {
      for await (const _ of space.mappings({ mostTables: 40 }));
    };
    await t.rejects(all(), { code: 'PAGE_TABLES_TOO_LARGE' });
    t.equal((await space.translate(addr(0x1234)))?.size, arch === riscv64 ? undefined : 4096);
  });
}

t.test('code that gives guests a second page table, or runs them, is a hypervisor', (t) => {
  const places = (arch: Architecture, source: string, cpsr = 9n): readonly number[] | undefined =>
    arch.addressSpaces?.guestPlaces?.(
      { register: (name) => (name === 'cpsr' ? cpsr : 0n) },
      assemble(arch, source).bytes,
    );
  t.same(places(aarch64, 'nop; msr vttbr_el2, x3'), [4]);
  t.same(places(aarch64, 'nop; msr vttbr_el2, x3', 5n), [], 'at EL1 it cannot');
  t.same(places(aarch64, 'msr vttbr_el2, xzr; msr vtcr_el2, x1; mrs x1, vttbr_el2'), []);
  t.same(places(riscv64, 'c.nop; csrw 0x680, a0'), [2]);
  t.same(places(riscv64, 'csrw 0x680, zero; csrr a0, 0x680; csrw satp, a0'), []);
  t.same(places(x86_64, 'nop; vmlaunch; vmresume; vmrun'), [1, 4, 7]);
  t.same(places(x86_64, 'vmxoff; vmmcall; vmload; clgi; invlpg [rax]'), []);
  t.end();
});

/** Throws if the walk that does not wait finds something else. */
function sameAtOnce(
  arch: CompleteArchitecture,
  values: Record<string, bigint>,
  entries: Parameters<typeof machine>[0],
  address: Addr,
  expected: Mapping | undefined,
): void {
  const format = arch.addressSpaces.format(registers(values));
  if ('refused' in format || format.pages === undefined) throw new Error('these registers page');
  const word = wordsOf(entries);
  const found = walkNow(format.pages, address, word);
  const what = expected && { physical: expected.physical, size: expected.size, user: expected.user };
  if (JSON.stringify(found, show) !== JSON.stringify(what, show)) throw new Error('the walk at once differs');
}

/** The same memory as that of `machine`, eight bytes at a time. */
function wordsOf(entries: Parameters<typeof machine>[0]): (physical: bigint) => bigint | undefined {
  const words = new Map(entries.map(({ page, index, value }) => [BigInt(page * 4096 + index * 8), value]));
  return (physical) => (physical < PAGES * 4096 ? (words.get(physical) ?? 0n) : undefined);
}

function show(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString(16) : value;
}

t.test('what cannot be told is said', async (t) => {
  const memory = machine([]);
  const why = (arch: CompleteArchitecture, values: Record<string, bigint>): string => {
    const space = arch.addressSpaces.of(registers(values), memory);
    return 'refused' in space ? space.refused : space.scheme;
  };
  t.match(why(riscv64, {}), /privilege/);
  t.match(why(riscv64, { priv: 1n }), /satp/);
  t.match(why(riscv64, { priv: 5n, satp: 0n }), /hypervisor/);
  t.match(why(riscv64, { priv: 1n, satp: 1n << 60n }), /mode 1/);
  t.equal(why(riscv64, { priv: 3n, satp: 8n << 60n }), 'off', 'machine mode is not translated');
  t.match(why(x86_64, { cr0: 0n }), /control registers/);
  t.match(why(x86_64, { cr0: 1n << 31n, cr3: 0n, cr4: 0x20n, efer: 0n, cs: 8n }), /32-bit/);
});
