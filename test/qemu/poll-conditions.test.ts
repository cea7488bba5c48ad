// `poll:GLOB if CONDITION`: the polls that are told are those that the guest counts itself, by both engines.

import t from 'tap';
import { launch } from '../../src/index.js';
import { rsptrace } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { long, usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, guest, type Lab, parseLab, qemuArgv } from './guests/guests.js';

const ways = [
  ['rv-o0', 'target'],
  ['rv-o0', 'stop'],
  ['x86-o0', 'target'],
  ['x86-o0', 'stop'],
] as const;

for (const [name, engine] of usually(ways, ([name, engine]) => name === 'rv-o0' && engine === 'target')) {
  t.test(`${name}, engine ${engine}: polls for which a condition holds`, async (t) => {
    const texts: Uint8Array[] = [];
    const onConsole = (text: Uint8Array): void => void texts.push(Uint8Array.from(text));
    await using target = await launch({ engine, elf: elfPath(name), command: qemuArgv(name), onConsole });
    const polls = ({ stats }: Lab, of: string): number => stats.get(of)?.polls ?? 0;
    const resumed = (lab: Lab, of: string): number => polls(lab, of) - (lab.stats.get(of)?.calls ?? 0);
    const chain = ({ tasks }: Lab) => tasks.filter(({ name }) => name === 'chain').map((task) => task.polls);
    const own = (lab: Lab): number => chain(lab)[1] ?? -1;
    const conditions: [string, (lab: Lab) => number][] = [
      // One of three tasks of the same type, in any of its states.
      ['work::chain_task if id == 1', own],
      ['work::chain_task if id == 0 || id > 1', (lab) => polls(lab, 'chain_task') - own(lab)],
    ];
    // These are polled most often: with stops under `--long`.
    const often = engine === 'target' || long;
    if (often)
      conditions.push(
        // Written by hand, so it has its members in every state.
        ['futs::YieldN if started == false', (lab) => lab.stats.get('yield_n')?.calls ?? -1],
        ['futs::YieldN if self.started == true && left < 100', (lab) => resumed(lab, 'yield_n')],
        // leaf_io(k) keeps `before`, k * 3, in the one state in which it waits.
        ['work::leaf_io if before >= 0', (lab) => resumed(lab, 'leaf_io')],
      );
    const probes = conditions.map(([text]) => target.probe(`poll:labkern::${text}`));
    const [seen, all]: [unknown[], unknown[]] = [[], []];
    const leaf = 'poll:labkern::work::leaf_io';
    if (often) {
      const take = (into: unknown[]) => (hit: { values: Readonly<Record<string, unknown>> }) => into.push(hit.values.k);
      probes.push(target.probe(`${leaf} if k == 2`, { capture: ['k'] }, take(seen)));
      target.probe(leaf, { capture: ['k'] }, take(all));
    }
    t.equal((await target.run({ duration: '380s' })).end, 'guest-ended');
    const lab = parseLab(Buffer.concat(texts).toString('latin1'));
    t.equal(lab.checksum, guest(name).checksum, 'the guest computes what it computes untraced');
    for (const [i, [text, counted]] of conditions.entries()) t.equal(probes[i]?.hits, counted(lab), text);
    t.equal(probes[0]?.returns, own(lab));
    t.same(
      seen,
      all.filter((k) => k === 2),
    );
    if (often) t.ok(seen.length > 0 && seen.length < polls(lab, 'leaf_io'));
    for (const probe of probes) t.equal(probe.engine, engine, `${probe.text}: ${probe.reason}`);
  });
}

interface Output extends Recording {
  readonly coverage: { readonly futures: readonly { readonly seen: string; readonly reason: string | null }[] };
}

t.test('on the command line: the table has those polls alone, and what only a stop can read says so', async (t) => {
  const probes = ['-p', 'poll:chain_task if id == 2', '-p', 'poll:joiner if labkern::exec::POLLS > 0'];
  const { stdout, lab } = await runLab(t, 'rv-o0', ['--json', '--engine', 'mixed', ...probes], { file: 'out.txt' });
  const { futures, probes: facts } = JSON.parse(stdout) as Output;
  t.same(futures.map(({ future }) => future).sort(), ['labkern::work::chain_task', 'labkern::work::joiner']);
  const third = lab.tasks.filter((task) => task.name === 'chain')[2];
  t.same(new Set(futures.map(({ polls }) => polls)), new Set([third?.polls, lab.stats.get('joiner')?.polls]));
  const joiner = facts.find((fact) => fact.function === 'labkern::work::joiner');
  t.match(joiner, { engine: 'stop', why: /'labkern::exec::POLLS' is compared at a stop: / });
});

t.test('what cannot be decided, and what makes no sense, is said before a target is there', async (t) => {
  const dry = async (...probes: string[]) => {
    const asked = probes.flatMap((probe) => ['-p', probe]);
    return JSON.parse(
      (await rsptrace('run', '--json', '--dry-run', ...asked, elfPath('rv-o2'), '--', 'false').ended).stdout,
    );
  };
  // It has no poll function here: its polls are worked out from the Future around it.
  const inlined = await dry('poll:labkern::work::level2 if k == 1');
  t.match(inlined, {
    error: { code: 'PROBE_INLINED', message: /a condition is decided at the entry of a poll function/ },
  });
  const both = (await dry('poll:labkern::work::level2 if k == 1', 'poll:labkern::work::leaf_io')) as Output;
  t.match(
    both.coverage.futures.find(({ seen }) => seen === 'not'),
    { reason: /inlined into .*: a condition is decided at the entry of a poll function/ },
  );
  for (const [probe, hint] of [
    ['poll:chain_task if idd == 3', /no member idd/],
    ['poll:chain_task if id == Some', /id is a u64/],
    ['poll:chain_task if id == 3 || idd == 3', /no member idd/],
  ] as const)
    t.match(await dry(probe), { error: { code: 'PROBE_CONDITION', hint } }, probe);
  const half = ['-p', 'poll:chain_task if id == 3 || idd == 3', '-p', 'poll:labkern::work::leaf_io'];
  const { stderr } = await rsptrace('run', '--dry-run', ...half, elfPath('rv-o2'), '--', 'false').ended;
  t.match(stderr, /no member idd.*poll:chain_task if id == 3 \|\| idd == 3/, 'also beside another probe');
  t.match(await dry('poll:chain_task', '!poll:chain_task if id == 1'), {
    error: { code: 'PROBE_SYNTAX', hint: "'poll:chain_task if id == 1' takes what the condition holds for" },
  });
});
