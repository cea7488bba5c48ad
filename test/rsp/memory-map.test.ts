import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { RsptraceError } from '../../src/base/errors.js';
import { parseMemoryMap, regionOf } from '../../src/rsp/session/memory-map.js';

// The example of the GDB manual, "Memory Map Format", with a region of each type.
const MAP = `<?xml version="1.0"?>
<!DOCTYPE memory-map PUBLIC "+//IDN gnu.org//DTD GDB Memory Map V1.0//EN" "http://sourceware.org/gdb/gdb-memory-map.dtd">
<memory-map>
  <memory type="flash" start="0x8000000" length="0x20000"><property name="blocksize">0x400</property></memory>
  <memory type="rom" start="0x1fff0000" length='4096'/>
  <memory type="ram" start="0x20000000" length="0xffffffffdfffffff"/>
</memory-map>`;

t.test('regions, and which one an address lies in', async (t) => {
  const regions = parseMemoryMap(MAP);
  t.same(
    regions.map(({ type, start, length }) => [type, start, length]),
    [
      ['flash', 0x800_0000n, 0x2_0000n],
      ['rom', 0x1fff_0000n, 4096n],
      ['ram', 0x2000_0000n, 0xffff_ffff_dfff_ffffn],
    ],
  );
  const typeAt = (value: bigint): string | undefined => regionOf(regions, addr(value))?.type;
  t.equal(typeAt(0x7ff_ffffn), undefined);
  t.equal(typeAt(0x800_0000n), 'flash');
  t.equal(typeAt(0x801_ffffn), 'flash');
  t.equal(typeAt(0x802_0000n), undefined);
  t.equal(typeAt(0x1fff_0fffn), 'rom');
  t.equal(typeAt(0xffff_ffff_ffff_fffen), 'ram');
});

t.test('what cannot be a memory map', async (t) => {
  for (const bad of ['<memory type="ram" start="0x0"/>', '<memory start="-1" length="1"/>', '<memory start="0x1"']) {
    t.throws(() => parseMemoryMap(`<memory-map>${bad}</memory-map>`), { code: 'RSP_BAD_XML' }, bad);
  }
  t.throws(() => parseMemoryMap(`<m>${'<memory start="0" length="1"/>'.repeat(5000)}</m>`), { code: 'RSP_BAD_XML' });
});

t.test('damaged maps are refused, never misread', async (t) => {
  fc.assert(
    fc.property(fc.nat(MAP.length - 1), fc.string({ maxLength: 4 }), fc.nat(6), (at, put, cut) => {
      try {
        for (const { type, length } of parseMemoryMap(MAP.slice(0, at) + put + MAP.slice(at + cut))) {
          if (!['ram', 'rom', 'flash'].includes(type) || length < 0n) return false;
        }
        return true;
      } catch (error) {
        return error instanceof RsptraceError && error.code === 'RSP_BAD_XML';
      }
    }),
    { seed: 6, numRuns: 500 },
  );
  t.pass();
});
