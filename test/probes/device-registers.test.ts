// To read a register of a device may change it, so nothing is read of arguments that lead to one.
import t from 'tap';
import { ValueReads } from '../../src/probes/value-reads.js';
import { ValueTexts } from '../../src/probes/value-texts.js';
import type { Shape } from '../../src/values/index.js';

const byte: Shape = { kind: 'integer', signed: false, character: false, name: 'u8', size: 1, die: undefined };
const struct = (name: string, size: number, fields: Readonly<Record<string, [number, Shape]>>): Shape => ({
  ...{ kind: 'struct', name, short: name, size, die: undefined, view: () => undefined },
  fields: Object.entries(fields).map(([name, [offset, type]]) => {
    return { name, offset, bits: undefined, type: () => type };
  }),
});
const to = (target: Shape, style: 'mut' | 'raw' = 'mut'): Shape => ({
  ...{ kind: 'pointer', style, name: `&mut ${target.name}`, size: 8, die: undefined, target: () => target },
});
const slice = (element: Shape): Shape => ({
  ...{ kind: 'slice', style: 'ref', name: `&[${element.name}]`, size: 16, die: undefined, fields: [] },
  ...{ pointer: 0, length: 8, text: false, element: () => element },
});
const cell = (name: string): Shape => struct(name, 1, { value: [0, byte] });
const port = struct('driver::SerialPort', 6, { data: [0, cell('io::Mmio<u8>')], status: [5, cell('io::Mmio<u8>')] });
const driver = struct('app::Driver', 16, { port: [0, to(port)], sent: [8, byte] });

const where = {
  kind: 'registers',
  parts: ['a0', 'a1'].map((register, i) => ({ register, offset: 8 * i, size: 8 })),
} as const;

/** Reads and copies that a trampoline makes, and whether a stop reads. */
function readsOf(shape: Shape): readonly [number, boolean] {
  const reads = new ValueReads(160);
  reads.add(where, shape);
  const asked: unknown[] = [];
  const memory = { at: () => undefined, bytes: () => 'unread' as const } as never;
  const texts = new ValueTexts({ kind: 'registers', parts: where.parts.slice(0, (shape.size ?? 8) / 8) }, shape);
  asked.push(texts.missing({ register: () => 0x1000_0000n }, memory));
  return [reads.reads.length + reads.extents.length, asked[0] !== undefined];
}

t.test('registers of devices are not read', async (t) => {
  for (const name of ['io::Mmio<u8>', 'vcell::VolatileCell<u8>', 'volatile::Volatile<u8>', 'volatile_register::RW<u8>'])
    t.same(readsOf(to(cell(name))), [0, false], name);
  t.same(readsOf(to(cell('tock_registers::registers::ReadWrite<u8>'))), [0, false]);
  t.same(readsOf(to(port)), [0, false], 'one of several');
  t.same(readsOf(to(driver)), [0, false], 'behind a reference in what is pointed to');
  t.same(readsOf(slice(cell('io::Mmio<u8>'))), [0, false], 'a slice of them');
});

t.test('other memory is', async (t) => {
  for (const shape of [to(cell('app::Cell')), to(cell('app::VolatileThing')), slice(byte)])
    t.same(readsOf(shape), [1, true], shape.name);
  const mapped = struct('app::Mapped', 16, { port: [0, to(port, 'raw')], sent: [8, byte] });
  t.same(readsOf(to(mapped)), [1, true], 'a raw pointer is not followed');
});
