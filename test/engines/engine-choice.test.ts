// Which probes stop the target, and which are left out instead.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { engineChoices } from '../../src/engines/engine-choice.js';
import type { EngineName } from '../../src/engines/engine-names.js';
import { parseProbe, type ReadPlan } from '../../src/probes/index.js';
import { enginePlan, prepare } from '../../src/record/index.js';
import { namesLeftOut } from '../../src/trace/index.js';
import { elfPath } from '../qemu/guests/guests.js';

/** What becomes of ten probes, or of `all`, of which so many need a stop. */
function chosen(
  stopping: number,
  options: { wanted?: EngineName; process?: boolean; stopsHarm?: boolean; asked?: boolean; all?: number } = {},
): string {
  const { wanted = 'auto', process = true, stopsHarm = false, asked = false, all = 10 } = options;
  const plans = Array.from({ length: all }, (_, i) => {
    return { name: `f${i}`, address: addr(BigInt(i)), ...(asked ? { stopIsAsked: true } : {}) } as unknown as ReadPlan;
  });
  const refused = new Map(Array.from({ length: stopping }, (_, i) => [i, 'too short'] as const));
  const facts = engineChoices({ plans, wanted, process, stopsHarm }, { refused });
  t.ok(facts.every(({ engine, why }) => engine === 'target' || why?.endsWith('too short')));
  return [...new Set(facts.slice(0, stopping).map(({ engine }) => engine))].join();
}

t.test('where stops may damage a process, those few that need one are left out', (t) => {
  t.equal(chosen(3), 'stop');
  t.equal(chosen(3, { stopsHarm: true }), 'none');
  t.equal(chosen(3, { stopsHarm: true, wanted: 'mixed' }), 'stop', 'as they are wanted');
  t.equal(chosen(3, { stopsHarm: true, asked: true }), 'stop', 'with --exact or --bt');
  t.equal(chosen(7, { stopsHarm: true }), 'stop', 'else hardly anything would be recorded');
  t.equal(chosen(3, { stopsHarm: true, process: false }), 'stop', 'a machine');
  t.equal(chosen(3, { wanted: 'target' }), 'none');
  t.end();
});

t.test('a machine has so many breakpoints beside trampolines, and hardly any probe goes without them', (t) => {
  t.equal(chosen(50, { process: false, all: 1000 }), 'stop');
  t.equal(chosen(51, { process: false, all: 1000 }), 'none');
  t.equal(chosen(51, { process: false, all: 1000, wanted: 'mixed' }), 'stop', 'as they are wanted');
  t.equal(chosen(51, { process: false, all: 1000, asked: true }), 'stop', 'with --exact or --bt');
  t.equal(chosen(1000, { process: false, all: 2000 }), 'stop', 'half of them');
  t.equal(chosen(1001, { process: false, all: 2000 }), 'none');
  t.equal(chosen(2000, { process: false, all: 2000 }), 'stop', 'else nothing would be recorded');
  t.equal(chosen(2000, { all: 10_000 }), 'stop', 'a process');
  t.equal(chosen(2001, { all: 10_000 }), 'none');
  t.equal(chosen(5001, { all: 10_000 }), 'none', 'half of them');
  t.end();
});

t.test('what a probe is on goes with what becomes of it', async (t) => {
  const plan = { name: 'k::leaf in k::run', subject: 'k::leaf', address: addr(1) } as unknown as ReadPlan;
  for (const refused of [new Map(), new Map([[0, 'too short']])]) {
    const [fact] = engineChoices({ plans: [plan], wanted: 'auto' }, { refused });
    t.match(fact, { name: 'k::leaf in k::run', subject: 'k::leaf' });
  }
});

t.test('a probe that is left out is missing to each kind that asked for its address', async (t) => {
  const asked = ['fn:labkern::**', 'poll:labkern::**'].map((text) => parseProbe(text));
  const options = enginePlan(await prepare(elfPath('rv-o2'), asked), { wanted: 'target' });
  const choices = engineChoices(options, { refused: new Map(options.plans.map((_, i) => [i, 'no room'])) });
  const names = namesLeftOut(choices);
  const poll = 'labkern::work::producer';
  t.same([names.has(poll), names.has(`${poll}::{async_fn#0}`)], [true, true]);
});
