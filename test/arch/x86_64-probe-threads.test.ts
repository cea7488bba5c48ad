import t from 'tap';
import { controlBlock, type RecordField, x86_64 } from '../../src/arch/index.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { probeHost, type Region } from './x86_64-probe-host.js';

await x86_64.prepare();
const host = probeHost();

const CODE = addr(0x1100_0000);
const CONTROL = addr(0x1200_0000);
const SLOT_SHIFT = 6;

interface Shape {
  readonly segmentShift: number;
  readonly countShift: number;
  readonly hooked: boolean;
  readonly spins: bigint;
}

const register = (at: number, name: string): RecordField => ({ at, size: 8, from: { kind: 'register', name } });
const constant = (value: bigint): RecordField => ({ at: 8, size: 8, from: { kind: 'constant', value } });

/** `mixed` and `again` with a probe each, in the records that x86_64-probe-host.c reads. */
function install({ segmentShift, countShift, hooked, spins }: Shape): Region[] {
  const ring = { control: CONTROL, wait: CODE, slotShift: SLOT_SHIFT, segmentShift, countShift };
  const code = new Uint8Array(0x4000);
  code.set(probeCode.wait(CODE, ring, true).code);
  const regions = host.loaded.map(({ address, bytes }) => ({ address, bytes: Uint8Array.from(bytes) }));
  const text = regions[0] as Region;
  for (const [index, name] of ['mixed', 'again'].entries()) {
    const at = addOffset(CODE, 0x1000 * (index + 1));
    const exit = addOffset(at, 0x800);
    const keep = ['rsi', 'rdi'];
    const found = host.functions.get(name);
    if (found === undefined) throw new Error(`There is no function ${name}`);
    const displaced = probeCode.displace(found.code, found.start, 'near');
    if ('refused' in displaced) throw new Error(displaced.refused);
    const entry = probeCode.entry({
      at,
      ring,
      fields: [constant(BigInt(2 * index + 1)), register(16, 'rdi'), register(24, 'rsi'), register(32, 'rdx')],
      displaced,
      when: [],
      hook: hooked ? { exit, keep } : undefined,
      nesting: undefined,
      outerCopy: undefined,
      counters: [],
      via: 'patch',
    });
    code.set(entry, Number(at - CODE));
    const left: RecordField[] = [
      constant(BigInt(2 * index + 2)),
      register(40, 'rax'),
      { at: 48, size: 8, from: { kind: 'kept', index: 0 } },
      { at: 56, size: 8, from: { kind: 'kept', index: 1 } },
    ];
    code.set(probeCode.exit({ at: exit, ring, fields: left, keep, nesting: false }), Number(exit - CODE));
    text.bytes.set(probeCode.patch(displaced, at), Number(found.start - text.address));
  }
  const control = new Uint8Array(0x1000);
  new DataView(control.buffer).setBigUint64(controlBlock.spins, spins, true);
  return [...regions, { address: CODE, bytes: code }, { address: CONTROL, bytes: control }];
}

const threads = 4;

interface Load {
  readonly calls: number;
  /** Microseconds between a thread's signals, each of which calls the other function. */
  readonly every: number;
  /** Microseconds for which the drainer sleeps when it has read all that there was. */
  readonly nap: number;
}

function run(shape: Shape, { calls, every, nap }: Load): Record<string, number> {
  const { segmentShift, countShift, hooked } = shape;
  const sizes = [1 << SLOT_SHIFT, 1 << segmentShift, 1 << (segmentShift + countShift)];
  const functions = [host.symbol('mixed'), host.symbol('again')];
  const words = [CONTROL, ...functions, threads, calls, ...sizes, every, nap, hooked ? 1 : 0].map(BigInt);
  return host.ring(words, install(shape));
}

const patient = 1n << 62n;
const shapes: readonly (Shape & Load & { name: string })[] = [
  {
    name: 'a large ring',
    segmentShift: 16,
    countShift: 3,
    hooked: false,
    spins: patient,
    calls: 300_000,
    every: 500,
    nap: 50,
  },
  {
    name: 'a large ring with exits',
    segmentShift: 16,
    countShift: 3,
    hooked: true,
    spins: patient,
    calls: 200_000,
    every: 300,
    nap: 50,
  },
  {
    name: 'a ring that is always full',
    segmentShift: 9,
    countShift: 1,
    hooked: true,
    spins: patient,
    calls: 2_000,
    every: 300,
    nap: 1,
  },
  {
    name: 'segments of one slot',
    segmentShift: SLOT_SHIFT,
    countShift: 6,
    hooked: false,
    spins: patient,
    calls: 4_000,
    every: 300,
    nap: 1,
  },
];

for (const shape of shapes) {
  t.test(`${threads} threads and their signals, ${shape.name}: nothing is torn, lost or out of order`, async (t) => {
    const { events = 0, claimed = 0, signals = 0, nanoseconds = 0, mostHeld, ...is } = run(shape, shape);
    const cost = `${(nanoseconds / events).toFixed(0)} ns an event`;
    t.comment(`${events} events, ${cost}, ${signals} signals, ${mostHeld} segments held`);
    const right = {
      dropped: 0,
      unattended: 0,
      neverWritten: 0,
      torn: 0,
      twice: 0,
      missing: 0,
      backwards: 0,
      wrongResults: 0,
    };
    t.same(is, right);
    t.equal(events, (threads * shape.calls + signals) * (shape.hooked ? 2 : 1));
    t.equal(claimed, events);
    t.ok(signals > 0);
  });
}

t.test('who does not wait long drops, and what is dropped is counted and claims nothing', async (t) => {
  const shape = { segmentShift: 9, countShift: 1, hooked: false, spins: 10n };
  const load = { calls: 20_000, every: 500, nap: 200 };
  const { events = 0, claimed, dropped = 0, signals = 0, missing, mostHeld, nanoseconds, ...is } = run(shape, load);
  t.same(is, { unattended: 1, neverWritten: 0, torn: 0, twice: 0, backwards: 0, wrongResults: 0 });
  t.equal(claimed, events);
  t.equal(missing, dropped);
  t.equal(events + dropped, threads * load.calls + signals);
  t.ok(dropped > 0, `${dropped} dropped`);
});
