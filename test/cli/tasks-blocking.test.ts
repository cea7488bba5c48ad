// `rsptrace tasks` shows what a thread blocks on, while no poll of it is on the stack: against what the program says of where it lies.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { long, usually } from '../support/long.js';
import { pollsProgram, waitingProgram } from '../support/native.js';

interface Node {
  readonly future: string;
  readonly address: string;
  readonly state: string | null;
  readonly line: number | null;
  readonly awaits: readonly Node[];
}
interface Report {
  readonly tasks: readonly object[];
  readonly blocking: readonly (Node & {
    readonly facts: { readonly by: string };
    readonly waits: readonly { readonly kind: string; readonly counted: object }[];
  })[];
  readonly notes: readonly string[];
}

const SOURCE = readFileSync(join(import.meta.dirname, '../native/roots.rs'), 'utf8').split('\n');

async function look(t: Test, elf: string, words: readonly string[]) {
  const { printed, tasks: text } = await waitingProgram(t, elf, words);
  const places = new Map([...printed.matchAll(/^(\w+) (0x\w+)$/gm)].map(([, name, at]) => [name, Number(at)]));
  return { places, report: JSON.parse(await text('--json')) as Report, text };
}

/** Who blocks, and the Futures from the outermost to the innermost of the program's own. */
const CASES: readonly (readonly [words: string, by: RegExp, own: readonly string[]])[] = [
  ['ct', /^tokio::.*::Runtime::block_on$/, ['root', 'inner']],
  ['ct boxed', /^tokio::.*::Runtime::block_on$/, ['large', 'root', 'inner']],
  ['mt', /^tokio::.*::Runtime::block_on$/, ['root', 'inner']],
  ['main', /^tokio::.*::Runtime::block_on$/, ['by_macro::{async_block#0}', 'root', 'inner']],
  ['smol', /^async_io::.*::block_on$/, ['root', 'inner']],
  ['futures', /^futures_executor::.*::block_on$/, ['root', 'inner']],
  ['pollster', /^pollster::block_on$/, ['root', 'inner']],
];

for (const build of ['roots-o0', 'roots-o3'] as const) {
  const elf = pollsProgram(t, build);
  // In release builds no variable leads to the Future. One that is boxed holds what `ct` has, and tokio's runtimes block alike.
  const usual = usually(
    CASES,
    ([words]) => (build === 'roots-o3') === !/^(ct|mt|main)$/.test(words) && !/^([cm]t|futures)$/.test(words),
  );
  for (const [words, by, own] of usual) {
    t.test(`${build} ${words}`, async (t) => {
      const { places, report, text } = await look(t, elf, words.split(' '));
      t.strictSame([report.notes, report.tasks], [[], []]);
      const [root, ...others] = report.blocking;
      t.equal(others.length, 0);
      t.match(root?.facts.by, by);
      t.match(root?.waits, [{ kind: 'oneshot', counted: { of: 'sender', count: 1 } }]);
      let node: Node | undefined = root;
      for (const [i, name] of own.entries()) {
        t.equal(node?.future, `roots_program::${name}`);
        const next: Node | undefined = node?.awaits[0];
        const place = places.get(name);
        // Its variable lies in it, before what it awaits.
        const [from, to] = [Number(node?.address), Number(next?.address)];
        if (place !== undefined) t.ok(place >= from && place < to, `${name}'s variable`);
        t.match(SOURCE[(node?.line ?? 0) - 1], i + 1 < own.length ? `${own[i + 1]}(` : 'from.await', `${name}'s await`);
        node = next;
      }
      t.equal(node?.future, 'futures_channel::oneshot::Receiver');
      if (words !== 'smol') return;
      const tree = await text();
      t.match(tree, /^roots_program::root {2}Suspend0 at .* {2}\[block_on: by async_io::driver::block_on\]$/m);
      t.match(tree, /^no task was found beside what a thread blocks on, because .*: .*; the target stood for/m);
      const line =
        /^what a thread blocks on \(roots_program::root, .*main\.rs:\d+\) waits for the message of the oneshot/m;
      t.match(await text('--blocked'), line);
    });
  }

  if (build === 'roots-o0' && !long) continue;

  t.test(`${build}: one inside a Future written by hand`, async (t) => {
    const { places, report } = await look(t, elf, ['ct', 'wrapped']);
    t.strictSame([report.notes, report.tasks], [[], []]);
    const [wrapped] = report.blocking;
    const root = wrapped?.awaits[0];
    t.strictSame([wrapped?.future, root?.future], ['roots_program::Wrapped', 'roots_program::root']);
    const [from, to] = [Number(root?.address), Number(root?.awaits[0]?.address)];
    t.ok((places.get('root') ?? 0) >= from && (places.get('root') ?? 0) < to);
  });

  t.test(`${build}: one without a state number is said not to be shown`, async (t) => {
    const { report } = await look(t, elf, ['ct', 'closure']);
    t.equal(report.blocking.length, 0);
    t.match(report.notes, [
      /PollFn, which a thread blocks on in .* is not told: written by hand, it has no state number/,
    ]);
  });

  t.test(`${build}: one that is polled now does not wait`, async (t) => {
    const { report } = await look(t, elf, ['ct', 'poll']);
    t.strictSame([report.notes, report.blocking], [[], []]);
  });
}
