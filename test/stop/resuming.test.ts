// What the last stop has added to the clock is measured by steps of the guest. Meanwhile the engine is asked to stop, or
// a timer is set that would interrupt a guest that runs.
import t, { type Test } from 'tap';
import { riscv64 } from '../../src/arch/index.js';
import { type ClockReader, SteadyClock, SteppedLeak } from '../../src/clock/index.js';
import { type Batch, connect } from '../../src/rsp/index.js';
import { Breakpoints } from '../../src/stop/breakpoints.js';
import { Resuming } from '../../src/stop/resuming.js';
import { Stepper } from '../../src/stop/stepping.js';
import type { StopEngineOptions } from '../../src/stop/stop-engine-options.js';
import { FakeStub, riscv } from '../support/fake-stub.js';

const clock: ClockReader = { info: { name: 'test', resolutionNs: 1, guest: true }, request: () => () => 0 };
/** `nop`, as the memory at the pc. */
const nop = '13000000';

const steps = ({ packets }: FakeStub): number => packets.filter((each) => each.startsWith('vCont;s')).length;
const runs = ({ packets }: FakeStub): number => packets.filter((each) => each.startsWith('vCont;c')).length;

/** A guest that stands, and is left by a step as under `-icount shift=auto`. */
async function standing(t: Test, more: Partial<StopEngineOptions> = {}): Promise<readonly [FakeStub, Resuming, Batch]> {
  const stub = await FakeStub.start(riscv, {
    ...{ 'm*': nop, 'vCont;s*': 'T05thread:p01.01;', 'vCont;c*': 'T02thread:p01.01;' },
  });
  t.teardown(() => stub[Symbol.asyncDispose]());
  const session = await connect({ kind: 'unix', path: stub.path });
  t.teardown(() => session.close());
  const counts = { nanosPerInstruction: undefined, sleeps: true };
  const code = (): undefined => undefined;
  const leak = new SteppedLeak({ session, arch: riscv64, clock: new SteadyClock(clock), counts, code });
  const options = { ...more, session, arch: riscv64, leak: () => leak, code } as unknown as StopEngineOptions;
  const resuming = new Resuming(options, new Breakpoints(options), new Stepper(session, riscv64, undefined));
  return [stub, resuming, session.batch()];
}

for (const [when, packet] of [
  ['between two steps', 'p20'],
  ['during a step', 'vCont;s*'],
] as const)
  t.test(`asked to stop ${when}: the guest does not run on`, async (t) => {
    const [stub, resuming, batch] = await standing(t);
    const answer = stub.script[packet] as string;
    stub.script[packet] = () => {
      void resuming.stop();
      return answer;
    };
    t.equal(await resuming.resume(batch), undefined);
    t.ok(steps(stub) > 0, 'a stop was measured');
    t.equal(runs(stub), 0);
  });

t.test('a sampler hears of a run when its steps are over, or its timer would find the guest standing', async (t) => {
  const before: number[] = [];
  let stopped = 0;
  const sampler = {
    runs: () => {
      before.push(steps(stub));
      return () => stopped++;
    },
  };
  const [stub, resuming, batch] = await standing(t, { sampler } as unknown as Partial<StopEngineOptions>);
  t.match(await resuming.resume(batch), { kind: 'signal' });
  t.equal(runs(stub), 1);
  t.ok(steps(stub) > 0);
  t.strictSame(before, [steps(stub)]);
  t.equal(stopped, 1);
});
