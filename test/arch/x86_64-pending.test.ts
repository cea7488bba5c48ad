import { ok, deepStrictEqual as same } from 'node:assert';
import fc from 'fast-check';
import t from 'tap';
import { headFlag } from '../../src/arch/index.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import {
  type Act,
  ENTRY,
  elsewhere,
  geometry,
  happenings,
  host,
  type Play,
  type Played,
  play,
  shown,
  tellable,
  toldOf,
} from './x86_64-pending.js';

/** Below what every call lasts, as an operand and as a constant in memory. */
const [soon, later] = [2n ** 31n - 1n, 2n ** 62n];
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
const call = (act: 1 | 2 | 3, id: number, ...inside: readonly Act[]): Act => ({ act, id, inside });
const own = 100;
const outermost = 101;

/** rcx, rdx, rdi: what scripts leave there tells which task was last to begin something. */
const scriptsOwn = [1, 2, 7];

/** What holds wherever interrupts come. */
function sound({ all, torn, registers }: Played, bare: readonly bigint[]): void {
  same(torn, [], 'every claim is written');
  const kept = (all: readonly bigint[]): readonly bigint[] => all.filter((_, number) => !scriptsOwn.includes(number));
  same(kept(registers), kept(bare), 'calls tell what they tell without probes, and all registers are kept');
  same(new Set(all.map(({ id, kind }) => `${id} ${kind}`)).size, all.length, 'nothing twice');
  ok(
    all.every(({ time }) => time > 0n),
    'each has its time',
  );
}

const inOrder = (all: Played['all']): boolean => all.every(({ time }, index) => time >= (all[index - 1]?.time ?? 0n));

const back: Act = { to: 'before' };

type Handler = 'brief calls' | 'other calls' | 'a switch to a task in the middle of a call';
const handlers: Readonly<Record<Handler, { readonly handler: readonly Act[]; readonly other?: readonly Act[] }>> = {
  'brief calls': { handler: [call(1, 1), call(1, 2, call(1, 3))] },
  'other calls': { handler: [call(3, 1), call(3, 2)] },
  'a switch to a task in the middle of a call': { handler: [{ to: 2 }], other: [call(1, 1, back), back, back, back] },
};

for (const act of [1, 2] as const) {
  for (const around of [false, true]) {
    for (const [name, { handler, other }] of Object.entries(handlers)) {
      const what = `${act === 1 ? 'brief' : 'long'}${around ? ', inside another' : ''}, by ${name}`;
      t.test(`a call that pends may be interrupted at each instruction: ${what}`, async (t) => {
        const outer: Act[] = around ? [{ to: 1 }] : [];
        const turns: Act[] = other ? [{ to: 2 }, { to: 2 }] : [];
        const tasks = [[...outer, call(act, own), ...turns, ...outer], [call(act, outermost, { to: 0 })], other ?? []];
        const the = { tasks, handler, below: soon, at: upTo(around ? 500 : 300) };
        const [may, never] = [tellable(the, [1, 2, 3]), new Set([shown(toldOf(happenings(the)))])];
        const { runs, bare } = play(the);
        const seen = new Set<string>();
        for (const [index, run] of runs.entries()) {
          const where = `after ${index + 1} instructions`;
          sound(run, bare);
          const told = run.interrupted ? may : never;
          ok(told.has(shown(run.all)), `${where}: ${shown(run.all)}`);
          same(run.flags, 0n, `${where}: nothing pends`);
          seen.add(shown(run.all));
          const begun = run.all.findIndex(({ id, kind }) => id === BigInt(own) && kind === ENTRY);
          if (begun >= 0)
            ok(inOrder(run.all.slice(Math.max(0, begun - 1), begun + 2)), `${where}: the times around its begin`);
        }
        const steps = runs.filter(({ interrupted }) => interrupted).length;
        t.ok(steps > 60 && steps < runs.length, `${steps} instructions`);
        const least = happenings(the).length / 2;
        t.ok(seen.size >= least, `${seen.size} of ${may.size} ways to be told`);
      });
    }
  }
}

t.test('a call that pends may be interrupted at each instruction while the ring is full', async (t) => {
  const tasks = [[{ to: 1 }, call(2, own), { to: 1 }], [call(2, outermost, { to: 0 })]];
  const calls = upTo(9).map((id) => call(3, id));
  const the = { tasks, handler: ['open', ...calls] as Act[], below: soon, full: true, at: upTo(600) };
  const { runs, bare } = play(the);
  const may = tellable(the, []);
  let opened = 0;
  for (const [index, run] of runs.entries()) {
    const where = `after ${index + 1} instructions: ${shown(run.all)}`;
    sound(run, bare);
    if (!run.interrupted) {
      same([run.all.length, run.flags], [0, BigInt(headFlag.pending)], 'it pends while nobody lets claims in');
      continue;
    }
    opened++;
    const of = (id: number): string => shown(run.all.filter((each) => each.id === BigInt(id)));
    for (const id of upTo(9)) same(of(id), `${id}( ${id})`, where);
    if (run.dropped === 0n) ok(may.has(shown(run.all)), where);
    else ok(['', `${own}( ${own})`].includes(of(own)), where);
  }
  t.ok(opened > 100 && opened < runs.length, `${opened} instructions`);
});

function callsOf(acts: readonly Act[]): Act[] {
  return acts.flatMap((act) => (act === 'open' || 'to' in act ? [] : [{ ...act, inside: callsOf(act.inside) }]));
}

/** Calls in calls, with turns of other tasks where there are some; every number once. */
function plays(tasks: number): fc.Arbitrary<Pick<Play, 'tasks' | 'handler'>> {
  const { tree } = fc.letrec<{ tree: Act[]; node: Act }>((tie) => ({
    tree: fc.array(tie('node'), { maxLength: 4, depthIdentifier: 'calls' }),
    node: fc.oneof(
      { depthSize: 'small', depthIdentifier: 'calls' },
      fc.integer({ min: 0, max: tasks - 1 }).map((to): Act => ({ to })),
      fc.record({ act: fc.constantFrom(1, 2, 3), id: fc.constant(0), inside: tie('tree') }) as fc.Arbitrary<Act>,
    ),
  }));
  const number = (acts: readonly Act[], next: () => number): Act[] =>
    acts.map((act) => (act === 'open' || 'to' in act ? act : { ...act, id: next(), inside: number(act.inside, next) }));
  return fc.tuple(fc.array(tree, { minLength: tasks, maxLength: tasks }), tree).map(([scripts, handler]) => {
    let last = 0;
    const next = (): number => ++last;
    // Of interrupts nothing but calls: a task that they leave may never be come back to.
    return { handler: number(callsOf(handler), next), tasks: scripts.map((acts) => number(acts, next)) };
  });
}

const small = ({ tasks, handler }: Pick<Play, 'tasks' | 'handler'>): boolean =>
  happenings({ tasks, handler }, 0).length < 120;

t.test('what is told is all but the two ends of brief calls that nothing comes between', async (t) => {
  const seen = { told: 0, left: 0, pending: 0 };
  fc.assert(
    fc.property(plays(3).filter(small), fc.constantFrom(soon, later), (the, below) => {
      const { runs, bare } = play({ ...the, below, at: [0] });
      const [run] = runs as [Played];
      const happened = happenings(the);
      const want = toldOf(happened);
      sound(run, bare);
      same(shown(run.all), shown(want));
      ok(inOrder(run.all), 'times go forward');
      const last = happened.at(-1);
      const pends = last !== undefined && last.kind === ENTRY && last.act !== 3;
      same(run.flags, pends ? BigInt(headFlag.pending) : 0n);
      seen.told += want.length;
      seen.left += happened.length - want.length;
      if (pends) seen.pending++;
    }),
    { seed: 6, numRuns: 150, endOnFailure: true },
  );
  t.ok(seen.told > 400 && seen.left > 80, JSON.stringify(seen));
});

t.test('an interrupt with calls of its own comes between two things that happen, whatever happens', async (t) => {
  let came = 0;
  const flat = (acts: readonly Act[]): number[] =>
    acts.flatMap((act) => (act === 'open' || 'to' in act ? [] : [act.id, ...flat(act.inside)]));
  fc.assert(
    fc.property(
      plays(2).filter(small),
      fc.constantFrom(soon, later),
      fc
        .array(fc.integer({ min: 1, max: 1500 }), { minLength: 30, maxLength: 30 })
        .map((at) => at.sort((a, b) => a - b)),
      (the, below, at) => {
        const { runs, bare } = play({ ...the, below, at });
        const may = tellable({ ...the, below, at }, flat(the.handler));
        for (const [index, run] of runs.entries()) {
          sound(run, bare);
          if (!run.interrupted) continue;
          came++;
          ok(may.has(shown(run.all)), `after ${at[index]} instructions: ${shown(run.all)}`);
        }
      },
    ),
    { seed: 7, numRuns: 60, endOnFailure: true },
  );
  t.ok(came > 300, `${came} interrupts`);
});

t.test(
  'a call that pends costs no claim, however full the ring is; one that is long has its record first',
  async (t) => {
    for (const act of [1, 2] as const) {
      const tasks = [upTo(4).map((id) => call(act, id))];
      const { runs, bare } = play({ tasks, handler: [], below: soon, full: act === 1, at: [0] });
      const [run] = runs as [Played];
      sound(run, bare);
      t.equal(shown(run.all), act === 1 ? '' : '1( 1) 2( 2) 3( 3) 4( 4)');
      t.equal(run.dropped, 0n);
      t.equal(run.ended > 0n, true, 'when it was last seen to end');
    }
  },
);

t.test('a full ring that nobody drains: what pends waits for room', async (t) => {
  const tasks = [[call(2, 1), 'open', call(2, 2)] as Act[]];
  const { runs, bare } = play({ tasks, handler: [], below: soon, full: true, at: [0] });
  const [run] = runs as [Played];
  sound(run, bare);
  t.equal(run.dropped, 1n, 'its exit');
  t.equal(shown(run.all), '1( 2( 2)');
});

t.test('what calls that pend cannot be', (t) => {
  const { start, code } = host.functions.get('act1') ?? { start: elsewhere, code: new Uint8Array() };
  const displaced = probeCode.displace(code, start, 'near');
  if ('refused' in displaced) throw new Error(displaced.refused);
  const fields = [{ at: 16, size: 8, from: { kind: 'time', counter: 'tsc' } }] as const;
  const none = { when: [], hook: undefined, nesting: undefined, outerCopy: undefined, counters: [] };
  const entry = { ...none, at: elsewhere, ring: geometry, fields, displaced, via: 'patch' as const, pends: true };
  const hook = { exit: elsewhere, keep: [] };
  const { pending: _, ...without } = geometry;
  t.throws(() => probeCode.entry(entry), /is hooked/);
  t.throws(() => probeCode.entry({ ...entry, hook, fields: [] }), /one time/);
  t.throws(() => probeCode.entry({ ...entry, hook, ring: without }), /No call pends/);
  t.throws(() => probeCode.entry({ ...entry, hook, outerCopy: { at: 48, room: 8 } }), /is hooked/);
  t.throws(() => probeCode.entry({ ...entry, hook, fields: [{ ...fields[0], at: 64 }] }), /no place/);
  t.throws(() => probeCode.flush(elsewhere, without), /No call pends/);
  t.end();
});
