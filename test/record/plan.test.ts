// What is planned of a program before there is a target.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { planEngines } from '../../src/engines/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { enginePlan, prepare } from '../../src/record/index.js';
import { elfPath } from '../qemu/guests/guests.js';

t.test('the same wishes are planned once, others anew', async (t) => {
  const program = await prepare(elfPath('rv-o2'), [parseProbe('fn:**'), parseProbe('poll:**')]);
  const plan = enginePlan(program, { wanted: 'target', values: false });
  t.equal(enginePlan(program, { wanted: 'target', values: false, stackDepth: undefined }), plan);
  const others = [
    { wanted: 'auto', values: false },
    { wanted: 'target', values: true },
    { wanted: 'target', values: false, stackDepth: 3 },
    { wanted: 'target', values: false, until: addr(0x8000_0000) },
  ] as const;
  t.equal(new Set([plan, ...others.map((wishes) => enginePlan(program, wishes))]).size, 1 + others.length);
  const first = plan.plans[0]?.address;
  const { plans } = enginePlan(program, { wanted: 'target', values: false, until: first });
  t.match(plans[0]?.needsStop, /ends there/);
});

t.test('what has been looked at beforehand gives the same sites', async (t) => {
  for (const guest of ['rv-o2', 'x86-o2']) {
    const plan = enginePlan(await prepare(elfPath(guest), [parseProbe('fn:**')]), { wanted: 'target' });
    t.equal(plan.looks?.length, plan.plans.length);
    const anew = planEngines({ ...plan, looks: undefined });
    // One way or the other, something is not as it was asked for.
    const entriesAlone = anew.sites.filter(({ plan }) => !plan.seesReturn);
    t.ok(anew.sites.length > 50 && anew.refused.size + entriesAlone.length > 0);
    // Without the functions, which are never the same.
    const told = (sites: object): string =>
      JSON.stringify(sites, (_, value) =>
        typeof value === 'bigint' ? `${value}` : value instanceof Map ? [...value] : value,
      );
    t.equal(told(planEngines(plan)), told(anew));
  }
});

t.test('stacks are refused where no poll is traced', async (t) => {
  const program = await prepare(elfPath('rv-o2'), [parseProbe('fn:labkern::work::deep0')]);
  t.throws(() => enginePlan(program, { stackDepth: 3 }), { code: 'STACKS_UNAVAILABLE', hint: /poll:GLOB/ });
});

t.test('a function is not patched over a probe that stops', async (t) => {
  for (const guest of ['rv-o2', 'x86-o2']) {
    const plan = enginePlan(await prepare(elfPath(guest), [parseProbe('fn:labkern::work::deep7')]));
    const [fn] = plan.plans;
    if (!fn) throw new Error('no deep7');
    const beside = (offset: number) => {
      const other = { ...fn, address: addr(fn.address + BigInt(offset)), codeSize: 0, needsStop: 'it is told to' };
      return planEngines({ ...plan, plans: [fn, other], looks: undefined }).refused.get(0);
    };
    t.match(beside(2), /another probe stops in the code/, 'on an instruction that a patch displaces');
    t.equal(beside(fn.codeSize - 1), undefined, 'behind the patch');
    t.equal(beside(fn.codeSize), undefined, 'behind the function');
  }
});
