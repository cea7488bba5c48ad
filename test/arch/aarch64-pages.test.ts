// Page tables of aarch64 with pages of each size, and of both kinds at EL2: what QEMU's own monitor translates to, where it
// has them in use.
import t from 'tap';
import { aarch64 } from '../../src/arch/index.js';
import { type Addr, addOffset, addr, hex } from '../../src/base/addr.js';
import { connect } from '../../src/index.js';
import { assemble } from '../support/assembled.js';
import { scratchFolder, start } from '../support/command.js';
import { random } from './random.js';

const CODE = 0x4008_0000n;
const LOWER = 0x4100_0000n;
const UPPER = 0x4110_0000n;
/** Where further tables and pages begin. */
const FREE = 0x4200_0000n;
/** `size`: so many bits of an address are not translated. `ips`: 2 is 40 bits of physical addresses, 6 is 52. */
const usual = { ips: 2n, split: false } as const;
const wide = { ips: 6n } as const;
const formats = [
  { pageBits: 12, size: 25, tg0: 0n, tg1: 2n, scheme: '4 KiB', at: 'EL1', ...usual },
  { pageBits: 14, size: 25, tg0: 2n, tg1: 1n, scheme: '16 KiB', at: 'EL1', ...usual },
  { pageBits: 16, size: 22, tg0: 1n, tg1: 3n, scheme: '64 KiB', at: 'EL1', ...usual },
  { pageBits: 12, size: 25, tg0: 0n, tg1: 2n, scheme: '4 KiB', at: 'EL2', ...usual },
  { pageBits: 12, size: 25, tg0: 0n, tg1: 2n, scheme: '4 KiB', at: 'EL2 with E2H', ...usual },
  { pageBits: 12, size: 12, tg0: 0n, tg1: 2n, scheme: '4 KiB', at: 'EL1', ...wide, split: true },
  { pageBits: 14, size: 12, tg0: 2n, tg1: 1n, scheme: '16 KiB', at: 'EL1', ...wide, split: true },
  { pageBits: 16, size: 12, tg0: 1n, tg1: 3n, scheme: '64 KiB', at: 'EL1', ...wide, split: false },
  { pageBits: 12, size: 12, tg0: 0n, tg1: 2n, scheme: '4 KiB', at: 'EL2', ...wide, split: true },
] as const;

const AF = 1n << 10n;
const leafBits = [
  { bits: 0n, rights: 'rwx-' },
  { bits: 1n << 7n, rights: 'r-x-' },
  { bits: (1n << 6n) | (1n << 53n), rights: 'rw-u' },
  { bits: 3n << 6n, rights: 'r-xu' },
  { bits: 1n << 6n, rights: 'rw-u' },
  { bits: (3n << 6n) | (3n << 53n), rights: 'r--u' },
  { bits: 3n << 53n, rights: 'rw--' },
];
/** EL2 has no user: bit 6 is always set, and bit 53 never. */
const leafBitsOfEl2 = [
  { bits: 1n << 6n, rights: 'rwx-' },
  { bits: 3n << 6n, rights: 'r-x-' },
  { bits: (1n << 6n) | (1n << 54n), rights: 'rw--' },
];

/** Tables that map single pages, by the address of each word. */
class Tables {
  readonly words = new Map<bigint, bigint>();
  readonly #pageBits: number;
  readonly #split: boolean;
  #free = FREE;

  constructor(pageBits: number, split: boolean) {
    this.#pageBits = pageBits;
    this.#split = split;
  }

  /** Bits 51:48 of an address are elsewhere in an entry, which pages of 64 KiB and others do in two ways. */
  #entry(physical: bigint): bigint {
    const high = (physical >> 48n) & 0xfn;
    const low = physical & 0xffff_ffff_ffffn;
    return this.#split ? low | ((high & 3n) << 48n) | ((high >> 2n) << 8n) : low | (high << 12n);
  }

  /** Maps a page, or what an entry of a higher level maps. */
  map(root: bigint, bits: number, virtual: bigint, physical: bigint, more = 0n, last = 0): void {
    const each = this.#pageBits - 3;
    const offset = BigInt.asUintN(bits, virtual);
    let table = root;
    for (let level = Math.ceil((bits - this.#pageBits) / each) - 1; ; level--) {
      const index = (offset >> BigInt(this.#pageBits + each * level)) & ((1n << BigInt(each)) - 1n);
      const at = table + 8n * index;
      if (level === last) {
        this.words.set(at, this.#entry(physical) | more | AF | (level === 0 ? 3n : 1n));
        return;
      }
      if (!this.words.has(at)) {
        this.words.set(at, this.#free | 3n);
        this.#free += 1n << BigInt(this.#pageBits);
      }
      table = (this.words.get(at) as bigint) & 0xffff_ffff_f000n;
    }
  }
}

for (const { pageBits, size, tg0, tg1, scheme, at, ips, split } of formats) {
  const isSingle = at === 'EL2';
  t.test(
    `${at}, pages of ${scheme}, ${ips === 6n ? '52 bits' : 'as usual'}: addresses of each half, as QEMU's monitor translates them`,
    async (t) => {
      const next = random(pageBits);
      const bits = 64 - size;
      const tables = new Tables(pageBits, split);
      // The code, by the largest leaf: 1 GiB, 32 MiB or 512 MiB.
      const [level, code] = pageBits === 12 ? [2, 0x4000_0000n] : [1, 0x4000_0000n];
      tables.map(LOWER, bits, code, code, 0n, level);
      // Wider addresses have larger ones: 512 GiB, 64 GiB or 4 TiB.
      const huge = ips === 6n ? [1n << 47n] : [];
      for (const virtual of huge) tables.map(LOWER, bits, virtual, 5n << 48n, 0n, pageBits === 12 ? 3 : 2);
      const pages = Array.from({ length: 40 }, (_, index) => {
        const half = index % 2 === 0 || isSingle ? 0n : (1n << 64n) - (1n << BigInt(bits));
        const inside = (((BigInt(next()) << 20n) | BigInt(next() & 0xf_ffff)) % (1n << BigInt(bits))) | (1n << 35n);
        const virtual = half + ((inside >> BigInt(pageBits)) << BigInt(pageBits));
        const far = ips === 6n ? BigInt(next() % 16) << 48n : 0n;
        const physical = far + 0x4000_0000n + (BigInt(next() % 0x400) << BigInt(pageBits));
        const kinds = isSingle ? leafBitsOfEl2 : leafBits;
        const { bits: more, rights } = kinds[index % kinds.length] as (typeof kinds)[number];
        tables.map(half === 0n ? LOWER : UPPER, bits, virtual, physical, more);
        return { virtual: addr(virtual), physical, rights };
      });
      const ofHalves = isSingle ? ips << 16n : (BigInt(size) << 16n) | (tg1 << 30n) | (ips << 32n);
      const ds = split ? 1n << (isSingle ? 32n : 59n) : 0n;
      const config = BigInt(size) | (tg0 << 14n) | ofHalves | ds;
      // With E2H the names of EL1 mean the registers of EL2.
      const el = isSingle ? 'el2' : 'el1';
      const { bytes, labels } = assemble(
        aarch64,
        `${at === 'EL2 with E2H' ? 'ldr x0, =0x408000000; msr hcr_el2, x0; isb' : ''}
      ldr x0, =${config}
      msr tcr_${el}, x0
      ldr x0, =${LOWER}
      msr ttbr0_${el}, x0
      ldr x0, =${UPPER}
      ${isSingle ? '' : 'msr ttbr1_el1, x0'}
      mov x0, #0xff
      msr mair_${el}, x0
      isb
      mrs x0, sctlr_${el}
      orr x0, x0, #1
      msr sctlr_${el}, x0
      isb
      done: b done
      .ltorg`,
      );
      const socket = `${scratchFolder(t)}/gdb`;
      const machine =
        `-M virt${at === 'EL1' ? '' : ',virtualization=on'} -cpu max -m 128M -display none -S -device loader,addr=${hex(CODE)},cpu-num=0`.split(
          ' ',
        );
      const qemu = start('qemu-system-aarch64', [...machine, '-gdb', `unix:${socket},server=on,wait=off`]);
      t.teardown(() => void qemu.process.kill('SIGKILL'));
      await using session = await connect(socket, { waitMs: 60_000 });
      const physical = await session.physicalMemory();
      if (!physical) throw new Error('no physical memory');
      const spaceNow = async () => {
        const batch = session.batch();
        const registers = batch.readRegisters(aarch64.addressSpaces.registers);
        await batch.send();
        const space = aarch64.addressSpaces.of(registers.value, physical);
        if ('refused' in space) throw new Error(space.refused);
        return space;
      };
      t.equal((await spaceNow()).scheme, 'off', 'at reset');
      t.ok(await session.memory().write(addr(CODE), bytes));
      for (const [at, word] of tables.words) {
        const entry = new Uint8Array(8);
        new DataView(entry.buffer).setBigUint64(0, word, true);
        t.ok(await session.memory().write(addr(at), entry));
      }
      const done = addr(CODE + BigInt(labels.find(([name]) => name === 'done')?.[1] ?? 0));
      await session.insertBreakpoint({ type: 1, address: done, kind: 4 });
      await session.resume();
      const space = await spaceNow();
      t.match(space, { scheme, user: false });
      t.equal(aarch64.addressSpaces.tableChanges(bytes).length, isSingle ? 3 : 4);
      // A kernel's own: valid, of attribute 0, inner shareable, accessed; then what the two kinds of table have for its rights.
      const own = (['code', 'data'] as const).map((rights) => space.largePageEntry(addr(CODE), rights));
      const ofRights = isSingle ? [0xc0n, 0x40_0000_0000_0040n] : [0x40_0000_0000_0080n, 0x60_0000_0000_0000n];
      t.same(
        own,
        pageBits === 12 ? ofRights.map((bits) => CODE | (split ? 0x401n : 0x701n) | bits) : [undefined, undefined],
      );
      const monitor = async (at: Addr): Promise<bigint | undefined> => {
        const [, found] = /gpa: (0x[0-9a-f]+)/.exec((await session.monitor(`gva2gpa ${hex(at)}`)) ?? '') ?? [];
        return found === undefined ? undefined : BigInt(found);
      };
      const ours = async (at: Addr): Promise<bigint | undefined> => {
        const leaf = await space.translate(at);
        return leaf && leaf.physical + (at - leaf.virtual);
      };
      for (const { virtual, physical, rights } of pages) {
        const at = addOffset(virtual, 0x123);
        t.equal(await ours(at), await monitor(at), hex(at));
        t.equal(await ours(at), physical + 0x123n);
        const leaf = await space.translate(at);
        const own = leaf && [leaf.readable && 'r', leaf.writable && 'w', leaf.executable && 'x', leaf.user && 'u'];
        t.equal(own?.map((each) => each || '-').join(''), rights);
        const beside = addOffset(virtual, 2 ** pageBits);
        t.equal(await ours(beside), await monitor(beside), 'the page behind it');
      }
      t.equal(await ours(done), done, 'a large leaf');
      for (const at of huge.map((virtual) => addr(virtual + 0x1_2345n))) {
        t.equal(await ours(at), (5n << 48n) + 0x1_2345n, 'one of wider addresses');
        t.equal(await ours(at), await monitor(at));
      }
      for (const at of [1n << BigInt(bits), (1n << 64n) - (1n << BigInt(bits)) - 1n, 1n << 63n].map((at) => addr(at)))
        t.equal(await ours(at), await monitor(at), `${hex(at)} is of neither half`);
      const all = new Map<bigint, bigint>();
      for await (const leaf of space.mappings()) all.set(leaf.virtual, leaf.physical);
      t.equal(all.size, new Set(pages.map(({ virtual }) => virtual)).size + 1 + huge.length);
      t.ok(pages.every(({ virtual, physical }) => all.get(virtual) === physical));
    },
  );
}

t.test('what cannot be known is refused in a sentence', async (t) => {
  const physical = { read: async () => undefined };
  const values = { cpsr: 5n, SCTLR_EL1: 1n, TCR_EL1: 0x8019_0019n, TTBR0_EL1: 0n, TTBR1_EL1: 0n, HCR_EL2: 0n };
  const why = (change: Partial<Record<keyof typeof values, bigint>>): string | undefined => {
    const all: Record<string, bigint | undefined> = { ...values, ...change };
    const space = aarch64.addressSpaces.of({ register: (name) => all[name] }, physical);
    return 'refused' in space ? space.refused : space.scheme;
  };
  t.equal(why({}), '4 KiB');
  t.equal(why({ SCTLR_EL1: 0n }), 'off');
  t.match(why({ cpsr: 0x10n }), /32-bit/);
  t.match(why({ cpsr: 9n }), /does not give SCTLR_EL2/);
  t.match(why({ cpsr: 13n }), /EL3/);
  t.match(why({ HCR_EL2: 1n }), /guest, whose second page table is not read/);
  t.match(why({ TCR_EL1: 0x4019_0019n }), /two sizes/);
  t.match(why({ TCR_EL1: 0x8019_c019n }), /not known/);
});

t.test('who runs on a hart, and how it comes into its kernel', async (t) => {
  const { privilege, systemRegisters } = aarch64;
  const of = (cpsr: bigint, control = 1n) => {
    const all: Record<string, bigint> = {
      ...{ cpsr, SCTLR_EL1: control, TCR_EL1: 0x8019_0019n, TTBR0_EL1: 0x7_0000_4200_7001n },
      ...{ TTBR1_EL1: 0n, VBAR_EL1: 0xffff_8000_0801_0800n },
    };
    return { register: (name: string) => all[name] };
  };
  t.same(privilege.standing(of(0x6000_0000n)), { privilege: 'user', root: 0x4200_7000n });
  t.same(privilege.standing(of(0x3c5n)), { privilege: 'kernel', root: 0x4200_7000n });
  t.same(privilege.standing(of(0x3c5n, 0n)), { privilege: 'kernel', root: undefined });
  t.same(privilege.standing(of(0x3c9n)), { privilege: 'kernel', root: undefined });
  t.same(privilege.standing(of(0x3cdn)), { privilege: 'firmware', root: undefined });
  t.same(privilege.standing(of(0x10n)), { privilege: undefined, root: undefined });
  t.same(privilege.kernelEntry?.find(of(0n)), [0xffff_8000_0801_0c00n, 0xffff_8000_0801_0c80n]);
  t.equal(privilege.kernelEntry?.find(of(5n)), undefined, 'it is there');
  t.equal(privilege.kernelEntry?.find(of(0n, 0n)), undefined, 'all memory is seen');
  t.match(systemRegisters.state(of(5n)), {
    mode: 'EL1',
    paging: { scheme: '4 KiB pages', root: 0x4200_7000n, asid: 7 },
  });
  t.match(systemRegisters.state(of(5n, 0n)), { mode: 'EL1', paging: { scheme: 'off' } });
  t.equal(systemRegisters.state(of(0x10n)).mode, 'AArch32');
  t.equal(privilege.isKernelCode(Uint8Array.of(0x1f, 0x20, 0x03, 0xd5, 0xe0, 0x03, 0x9f, 0xd6)), true);
  t.equal(privilege.isKernelCode(Uint8Array.of(0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6)), false);
});
