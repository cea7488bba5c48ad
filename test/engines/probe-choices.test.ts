// What trampolines could not be made for is known when they are tried again.
import t from 'tap';
import type { EnginesOptions } from '../../src/engines/engines-options.js';
import { ProbeChoices } from '../../src/engines/probe-choices.js';
import { parseProbe } from '../../src/probes/index.js';
import { enginePlan, prepare } from '../../src/record/index.js';
import type { Session } from '../../src/rsp/index.js';
import { programsRunIt } from '../../src/target/index.js';
import { elfPath } from '../qemu/guests/guests.js';

t.test('code of programs is no code of the kernel, however often that is tried', async (t) => {
  const plan = enginePlan(await prepare(elfPath('rv-o2'), [parseProbe('fn:labkern::work::deep*')]));
  let ofPrograms = 0n;
  const addressSpaces = {
    registers: [],
    of: () => ({ translate: async (at: bigint) => ({ virtual: at, size: 1, executable: at !== ofPrograms }) }),
  };
  const session = {
    physicalMemory: async () => ({}),
    target: { register: () => undefined },
    batch: () => ({ readRegisters: () => ({ value: {} }), send: async () => {} }),
  } as unknown as Session;
  const choices = new ProbeChoices({ ...plan, arch: { ...plan.arch, addressSpaces } } as unknown as EnginesOptions);
  const [first] = choices.plan.sites;
  if (first === undefined) return t.fail('no function can be patched');
  ofPrograms = first.plan.address;
  const all = choices.plan.sites.length;
  for (let tries = 0; tries < 2; tries++) {
    choices.retry();
    await choices.refuseUserCode(session);
    t.match(choices.facts[first.index], { engine: 'stop', why: programsRunIt });
    t.equal(choices.plan.sites.length, all - 1);
  }
});
