// Futures that debug info does not tell apart: several whose poll functions the compiler made one of, and some whose names are longer than
// 64 KiB; and some whose output has no values. The programs count their polls.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { pollsPrinted, pollsProgram } from '../support/native.js';
import type { Recording } from '../support/recording.js';

interface Output extends Recording {
  readonly coverage: { readonly futures: readonly { readonly future: string; readonly seen: string }[] };
}

type Name = 'merged' | 'names' | 'never-o0' | 'never-o2';

function recorded(t: Test, name: Name, ...args: string[]) {
  return recordedBy(t, ['-p', 'poll:**'], name, ...args);
}

async function recordedBy(t: Test, probes: readonly string[], name: Name, ...args: string[]) {
  const program = pollsProgram(t, name);
  const trace = join(scratchFolder(t), 'out.pftrace');
  const ran = await rsptrace('run', '--json', ...probes, '-o', trace, program, '--', ...args).ended;
  t.equal(ran.status, 0, ran.stderr);
  const [, json = ''] = /^(\{.*\})$/m.exec(ran.stdout) ?? [];
  return { ...(JSON.parse(json) as Output), counted: pollsPrinted((await start(program, args).ended).stdout) };
}

const KINDS = ['ReadFut', 'WriteFut', 'LockFut'];

t.test('one poll function for three types: who calls it tells whose each poll is', async (t) => {
  const { futures, coverage, counted } = await recorded(t, 'merged');
  for (const kind of KINDS) {
    const row = futures.find(({ future }) => future === `merged::${kind}`);
    t.match(row, { polls: counted.get(kind), at_least: false }, kind);
    t.match(
      coverage.futures.find(({ future }) => future === `merged::${kind}`),
      { seen: 'exact' },
    );
  }
  t.notOk(futures.some(({ future }) => future.startsWith('one of ')));
});

for (const kind of ['WriteFut', 'LockFut'])
  t.test(`${kind} alone: polls of what was not asked for are not its own`, async (t) => {
    const all = await recordedBy(t, ['-p', `poll:merged::${kind}`], 'merged');
    t.match(all.futures, [{ future: `merged::${kind}`, polls: all.counted.get(kind), at_least: false }]);
    // `main` makes 20 and 40 of them, and `outer` one each time that it runs.
    const made = { WriteFut: 20, LockFut: 40 }[kind] ?? 0;
    const last = await recordedBy(t, ['-p', `poll:merged::${kind} if left == 0`], 'merged');
    t.match(last.futures, [{ future: `merged::${kind}`, polls: made + 5, pending: 0 }]);
  });

t.test('each has its own condition, or none', async (t) => {
  for (const [whole, part] of [KINDS.slice(1), KINDS.slice(1).reverse()] as [string, string][]) {
    const probes = ['-p', `poll:merged::${whole}`, '-p', `poll:merged::${part} if left == 0`];
    const { futures, counted } = await recordedBy(t, probes, 'merged');
    const rows = new Map(futures.map(({ future, polls, pending }) => [future, [polls, pending]]));
    t.equal(rows.get(`merged::${whole}`)?.[0], counted.get(whole));
    t.same(rows.get(`merged::${part}`), [part === 'WriteFut' ? 25 : 45, 0]);
  }
});

t.test('polls of which nothing says whose they are have a row of their own', async (t) => {
  const { futures, coverage, counted } = await recorded(t, 'merged', 'boxed');
  for (const kind of KINDS) {
    const isBoxed = kind !== 'ReadFut';
    const row = futures.find(({ future }) => future === `merged::${kind}`);
    t.match(row, { polls: counted.get(kind), at_least: isBoxed }, kind);
    const seen = isBoxed ? 'lower-bound' : 'exact';
    t.match(
      coverage.futures.find(({ future }) => future === `merged::${kind}`),
      { seen },
    );
  }
  const untold = futures.filter(({ future }) => future.startsWith('one of '));
  t.match(untold, [{ future: /merged::LockFut, merged::WriteFut /, polls: counted.get('boxed') }]);
});

t.test('names of more than 64 KiB', async (t) => {
  const { futures, counted } = await recorded(t, 'names');
  const polls = (name: string): number =>
    futures.reduce((sum, row) => (row.future === `names::${name}` ? sum + row.polls : sum), 0);
  for (const [name, count] of counted) t.equal(polls(name), count, name);
});

for (const name of ['never-o0', 'never-o2'] as const)
  t.test(
    `${name}, whose outputs have no values, so that poll functions have no result: each poll, each pending`,
    async (t) => {
      const { futures, counted } = await recorded(t, name);
      for (const [future, by] of [
        [/^never::main::\{async_block#\d+\}$/, 'forever'],
        [/^never::Endless$/, 'endless'],
      ] as const) {
        const polls = counted.get(by);
        t.match(
          futures.find((row) => future.test(row.future)),
          { polls, ready: 0, pending: polls, at_least: false },
          `${future}: ${polls}`,
        );
      }
    },
  );
