// A counter is measured by code that runs in the target: whatever the stub refuses, the target is as it was before.
import t, { type Test } from 'tap';
import type { Architecture, CounterCalibration } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import type { ClockReader } from '../../src/clock/index.js';
import { counterScale } from '../../src/inject/counter-scales.js';
import { open } from '../rsp/open.js';
import { riscv, type Script } from '../support/fake-stub.js';

const at = addr(0x9000);
const clock: ClockReader = { info: { name: 'none', resolutionNs: 1, guest: true }, request: () => () => 5000 };
const arch = { pc: 'pc', breakpointKind: () => 4 } as unknown as Architecture;
const calibration: CounterCalibration = {
  name: 'counter',
  referenceHz: 1000,
  reference: async () => 0,
  code: (at) => ({ bytes: new Uint8Array(12), breakpoint: addOffset(at, 8) }),
  changes: ['a0', 'pc'],
  begin: ({ name, value }) => (name === 'a0' ? value + 1n : undefined),
  result: () => ({ counter: 100, elapsed: 10, reference: 10 }),
};

/** A RISC-V stub that keeps a0 and pc. Each packet in `refused` has an error as its answer. */
async function measured(t: Test, refused: readonly string[], changes = calibration.changes) {
  const registers = new Map([
    ['a', '0a00000000000000'],
    ['20', '2000000000000000'],
  ]);
  const breakpoints = new Set<string>();
  const unless = (packet: string, action: () => void): string => {
    if (refused.includes(packet)) return 'E22';
    action();
    return 'OK';
  };
  const script: Script = {
    'M9000,c:*': 'OK',
    'X9000,c:*': 'OK',
    g: () => {
      const all = (riscv.g as string).match(/.{16}/g) as string[];
      return all.map((value, number) => registers.get(number.toString(16)) ?? value).join('');
    },
    'P*': (packet) => {
      const [name = '', value = ''] = packet.slice(1).split('=');
      return unless(packet, () => registers.set(name, value));
    },
    'Z0,*': (packet) => unless(packet, () => breakpoints.add(packet.slice(1))),
    'z0,*': (packet) => unless(packet, () => breakpoints.delete(packet.slice(1))),
    'vCont;c*': () => {
      registers.set('a', 'ff00000000000000');
      registers.set('20', '0890000000000000');
      return 'T05thread:p01.01;';
    },
  };
  const { stub, session } = await open(t, script);
  const request = { session, arch, calibration: { ...calibration, changes }, clock, lastTime: () => 0 };
  const outcome = await counterScale(request, at).catch((error: unknown) => error);
  const left = { a0: registers.get('a'), pc: registers.get('20'), breakpoints: breakpoints.size };
  return { outcome, left, hasRun: stub.packets.some((packet) => packet.startsWith('vCont;c')) };
}

const asBefore = { a0: '0a00000000000000', pc: '2000000000000000', breakpoints: 0 };
const newPc = 'P20=0090000000000000';

t.test('a counter is measured', async (t) => {
  const { outcome, left, hasRun } = await measured(t, []);
  t.match(outcome, { nanosPerTick: 1e6 });
  t.same({ left, hasRun }, { left: asBefore, hasRun: true });
});

t.test('what the stub refuses ends it before the target runs', async (t) => {
  for (const packet of ['Z0,9008,4', newPc, 'Pa=0b00000000000000']) {
    const { outcome, left, hasRun } = await measured(t, [packet]);
    t.match(outcome, { code: 'COUNTER_UNKNOWN' }, packet);
    t.same({ left, hasRun }, { left: asBefore, hasRun: false }, packet);
  }
  const { outcome, left, hasRun } = await measured(t, [], ['a0', 'pc', 'mepc']);
  t.match(outcome, { code: 'COUNTER_UNKNOWN', message: /register mepc/ });
  t.same({ left, hasRun }, { left: asBefore, hasRun: false });
});

t.test('what cannot be restored is an error that no caller goes on from', async (t) => {
  const { outcome } = await measured(t, ['P20=2000000000000000']);
  t.match(outcome, { code: 'RSP_WRITE_REFUSED', message: /before its counter was measured: pc/ });
  t.match((await measured(t, ['z0,9008,4'])).outcome, { code: 'RSP_WRITE_REFUSED', message: /the breakpoint/ });
});
