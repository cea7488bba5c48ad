// Memory of ours in a kernel that has page tables of its own for the upper half of addresses, as Linux on aarch64 has.
import t from 'tap';
import { aarch64 } from '../../src/arch/index.js';
import { type Addr, addr } from '../../src/base/addr.js';
import type { Session } from '../../src/rsp/index.js';
import { OwnPages } from '../../src/scratch/own-pages.js';

const [LOWER, UPPER, MIDDLE, OURS] = [0x4100_0000n, 0x4110_0000n, 0x4120_0000n, 0x5000_0000n];

function memoryOf(words: readonly (readonly [bigint, bigint])[]) {
  const bytes = new Map<bigint, number>();
  const write = async (address: Addr, data: Uint8Array): Promise<boolean> => {
    for (const [i, byte] of data.entries()) bytes.set(address + BigInt(i), byte);
    return true;
  };
  for (const [at, word] of words) write(addr(at), new Uint8Array(BigUint64Array.of(word).buffer));
  const read = async (address: Addr, length: number): Promise<Uint8Array> =>
    Uint8Array.from({ length }, (_, i) => bytes.get(address + BigInt(i)) ?? 0);
  return { read, write };
}

for (const [what, mair, pages, refused] of [
  ['in pages of 4 KiB', 0xff_44_00n, { tg0: 0n, tg1: 2n }, undefined],
  ['not in larger ones', 0xff_44_00n, { tg0: 1n, tg1: 3n }, /larger than 4 KiB/],
] as const) {
  t.test(`an address of the upper half is entered there, ${what}`, async (t) => {
    // Each half has 39 bits: a root of 1 GiB each, and in the upper one a table of 2 MiB each.
    const memory = memoryOf([[UPPER, MIDDLE | 3n]]);
    const registers = new Map<string, bigint>([
      ['cpsr', 0x3c5n],
      ['SCTLR_EL1', 1n],
      ['TCR_EL1', 25n | (25n << 16n) | (pages.tg0 << 14n) | (pages.tg1 << 30n)],
      ['TTBR0_EL1', LOWER],
      ['TTBR1_EL1', UPPER],
      ['MAIR_EL1', mair],
    ]);
    const space = aarch64.addressSpaces.of({ register: (name) => registers.get(name) }, memory);
    if ('refused' in space) return t.fail(space.refused);
    const session = { physicalMemory: async () => memory, stub: async () => ({ isQemu: true }) };
    const address = addr(0xffff_ff80_1000_0000n);
    const own = new OwnPages({
      session: session as unknown as Session,
      arch: aarch64,
      address,
      physical: addr(OURS),
      count: 2,
      code: 1,
      tables: { address: addr(address + 0x40_0000n), physical: addr(OURS + 0x40_0000n), size: 0x1000 },
    });
    const wrong = await own.enter(space);
    if (refused) return t.match(wrong?.refused, refused);
    t.equal(wrong, undefined);
    const now = aarch64.addressSpaces.of({ register: (name) => registers.get(name) }, memory);
    if ('refused' in now) return t.fail(now.refused);
    t.match(await now.translate(addr(address + 8n)), {
      physical: OURS,
      executable: true,
      writable: false,
      user: false,
    });
    const data = await now.translate(addr(address + 0x20_0000n));
    t.match(data, { physical: OURS + 0x20_0000n, executable: false, writable: true, user: false });
    // Index 2 of MAIR_EL1 is the memory that is cached.
    const [low = 0] = await memory.read(addr(MIDDLE + 8n * 128n), 1);
    t.equal((low >> 2) & 7, 2);
    t.ok(
      (await memory.read(addr(LOWER), 4096)).every((byte) => byte === 0),
      'the lower half has nothing of ours',
    );
    await own.remove();
    t.ok(
      (await memory.read(addr(MIDDLE), 4096)).every((byte) => byte === 0),
      'nothing is left',
    );
  });
}
