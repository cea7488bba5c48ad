// Clocks that fail, or that the guest sets back, and a counter that firmware closes again: what no emulator does when it is asked to.
import t from 'tap';
import { riscv64, x86_64 } from '../../src/arch/index.js';
import { CounterGate, findClock, SteadyClock, SteppedLeak } from '../../src/clock/index.js';
import type { Batch, Session } from '../../src/rsp/index.js';

const machine = { features: { transfer: new Set() } };

t.test('an ACPI timer that answers no more: the last time and the host since, which is said once', async (t) => {
  let ticks: number | undefined = 0x1000;
  const monitor = async (): Promise<string> => (ticks === undefined ? '' : `portl[0x0608] = 0x${ticks.toString(16)}`);
  const answer = {
    get value() {
      return ticks === undefined ? undefined : `portl[0x0608] = 0x${ticks.toString(16)}`;
    },
  };
  const batch = { monitor: () => answer } as unknown as Batch;
  let ran = 0;
  const said: string[] = [];
  const session = { ...machine, monitor } as unknown as Session;
  const unread = (clock: string): number => said.push(clock);
  const clock = await findClock(session, x86_64, () => ran, 'acpi-pm', { unread });
  const first = clock.request(batch)();
  ticks = undefined;
  ran = 5000;
  t.equal(clock.request(batch)(), first + 5000);
  ran = 7000;
  t.equal(clock.request(batch)(), first + 7000);
  t.same(said, [clock.info.name]);
});

t.test('a counter that firmware closes again for one hart: all are as they were at the end', async (t) => {
  const harts = new Map(
    ['1', '2'].map((id) => [
      id,
      new Map([
        ['mcounteren', 5n],
        ['priv', 1n],
      ]),
    ]),
  );
  const batch = (id = '1') => {
    const of = harts.get(id);
    return {
      readRegisters: () => ({ value: { register: (name: string) => of?.get(name) } }),
      readRegister: (name: string) => ({ value: of?.get(name) }),
      writeRegister: (name: string, value: bigint) => ({ value: of?.set(name, value) !== undefined }),
      send: async () => {},
    };
  };
  const target = { register: (name: string) => name };
  const session = { ...machine, target, batch, harts: async () => [...harts.keys()].map((id) => ({ id })) };
  const gate = new CounterGate(session as unknown as Session, riscv64);
  const values = (): (bigint | undefined)[] => [...harts.values()].map((each) => each.get('mcounteren'));
  t.match(await gate.open(), { harts: [{ id: '1' }, { id: '2' }] });
  t.same(values(), [7n, 7n]);
  harts.get('2')?.set('mcounteren', 1n);
  t.match(await gate.open(), { harts: [{ id: '2' }] });
  t.same(values(), [7n, 3n]);
  await gate.close();
  t.same(values(), [5n, 1n]);
});

t.test('a guest that sets its clock back as an instruction is measured: times stay numbers', async (t) => {
  let now = 1e6;
  const clock = new SteadyClock({
    info: { name: 'test', resolutionNs: 1, guest: true },
    request: () => {
      const time = now;
      return () => time;
    },
  });
  let pc = 0x8000_0000n;
  const stop = { kind: 'signal', hart: '1' };
  const batch = () => ({
    readRegister: () => ({ value: pc }),
    send: async () => {},
  });
  const resume = async () => {
    pc += 4n;
    now = pc === 0x8000_0028n ? 10 : now + 10;
    return stop;
  };
  const session = { ...machine, state: { kind: 'idle', stop }, batch, resume } as unknown as Session;
  const code = (): Uint8Array => Uint8Array.of(0x13, 0, 0, 0);
  const counts = { nanosPerInstruction: undefined, sleeps: true };
  const leak = new SteppedLeak({ session, arch: riscv64, clock, counts, code });
  await leak.resume(batch() as unknown as Batch, { kind: 'continue' }, async () => ({ kind: 'gone' }));
  t.ok(Number.isFinite(clock.ahead), `${clock.ahead}`);
  t.ok(Number.isFinite(leak.facts?.totalNs));
});
