// Addresses that AArch64 code makes: what a scan of it names. The words are those of GNU as.
import t from 'tap';
import { references } from '../../src/arch/aarch64/references.js';

interface Found {
  readonly names: readonly number[];
  readonly holds: readonly number[];
}

function scanned(words: readonly number[], at = 0x1000, isFixed = false): Found {
  const found = { names: [] as number[], holds: [] as number[] };
  references.scan(new Uint8Array(Uint32Array.from(words).buffer), {
    at,
    text: { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY },
    starts: [],
    isFixed,
    leads: () => undefined,
    names: (address) => found.names.push(address),
    holds: (address) => found.holds.push(address),
  });
  return found;
}

const wide = (op: number) => (rd: number, imm: number, part: number) => (op | (part << 21) | (imm << 5) | rd) >>> 0;
const [movn, movz, movk] = [wide(0x9280_0000), wide(0xd280_0000), wide(0xf280_0000)];
const signed = (address: bigint): number => Number(BigInt.asIntN(64, address));

t.test('addresses in parts are signed numbers, by movz and by movn', async (t) => {
  const high = 0xffff_0000_4008_1234n;
  t.equal(scanned([movz(0, 0x1234, 0), movk(0, 0x4008, 1), movk(0, 0xffff, 3)], 0, true).names.at(-1), signed(high));
  t.equal(scanned([movz(0, 0xffff, 3), movk(0, 0x1234, 0), movk(0, 0x4008, 1)], 0, true).names.at(-1), signed(high));
  t.equal(scanned([movn(0, 0xffff, 2), movk(0, 0x4008, 1), movk(0, 0x1234, 0)], 0, true).names.at(-1), signed(high));
  const android = 0xffff_ffc0_0808_1234n;
  const parts = [movz(0, 0x1234, 0), movk(0, 0x0808, 1), movk(0, 0xffc0, 2), movk(0, 0xffff, 3)];
  t.equal(scanned(parts, 0, true).names.at(-1), signed(android));
  t.equal(scanned([movn(0, 0x3f, 2), movk(0, 0x0808, 1), movk(0, 0x1234, 0)], 0, true).names.at(-1), signed(android));
  t.equal(scanned([movn(0, 0xffff, 3), movk(0, 0, 2), movk(0, 0x4008, 1)], 0, true).names.at(-1), 0x4008_ffff);
  // movn w0, #0xedcb
  t.equal(scanned([0x1280_0000 | (0xedcb << 5)], 0, true).names.at(-1), 0xffff_1234);
  t.same(scanned(parts, 0, false).names, [], 'in a program that may be loaded anywhere they are no addresses');
});

t.test('a page stays known behind an add to its register, for code that a branch before it leads to', async (t) => {
  // adrp x8, 0x2000; cbz x0, C; add x8, x8, #4; ret; C: add x0, x8, #0x20
  const code = [0xb000_0008, 0xb400_0060, 0x9100_1108, 0xd65f_03c0, 0x9100_8100];
  t.same(scanned(code), { names: [0x2004], holds: [0x2020] });
  // adrp x8, 0x2000; add x0, x8, #0x20
  t.same(scanned([0xb000_0008, 0x9100_8100]), { names: [0x2020], holds: [] });
  // The same behind it: another page.
  t.same(scanned([...code, 0xb000_0008, 0x9100_8100]), { names: [0x2004, 0x2020], holds: [0x2020] });
});
