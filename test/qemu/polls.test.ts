// What a trace of polls says beside its counts: where Futures wait, runs that repeat under -icount, stacks, white lists.
// One engine and architecture each here, and all of them under `scripts/test --long`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import { engines, type PollsOutput, tracePolls } from '../support/polls.js';
import { children, protoc, readPerfetto } from '../trace/decode-perfetto.js';
import { elfPath, qemuArgv, sourcePath } from './guests/guests.js';

/** Guests with engines; without `--long` the `usual` pair. */
const pairs = (names: readonly string[], usual: string) =>
  usually(
    names.flatMap((name) => engines.map((engine) => [name, engine] as const)),
    (pair) => pair.join(' ') === usual,
  );

/** The slices of a trace of all polls. */
async function slicesOf(...how: Parameters<typeof tracePolls>) {
  const { output } = await tracePolls(...how);
  return readPerfetto(children(protoc(readFileSync(output.trace)), 'packet')).slices;
}

let known: ReturnType<typeof slicesOf> | undefined;
/** Every poll of rv-o2, without stops. */
const everyPoll = () => (known ??= slicesOf(t, 'rv-o2'));

for (const [name, engine] of pairs(['rv-o0', 'rv-o2', 'x86-o2'], 'rv-o2 target')) {
  t.test(`${name}, --engine ${engine}: a Future waits at the line of an await`, async (t) => {
    const isShared = name === 'rv-o2' && engine === 'target';
    const slices = await (isShared ? everyPoll() : slicesOf(t, name, [], ['--engine', engine]));
    const lines = new Map<string, Set<string>>();
    for (const { name, category, place } of slices) {
      const [, future, state] = /^(.*): (Suspend\d+)$/.exec(name) ?? [];
      if (!future || !state || !place || !['state', 'derived'].includes(category)) continue;
      const seen = lines.get(future) ?? new Set();
      lines.set(future, seen.add(`${state} ${place}`));
    }
    const source = readFileSync(sourcePath('src/work.rs'), 'utf8').split('\n');
    let awaits = 0;
    for (const [future, places] of lines) {
      for (const place of places) {
        const [, file, line] = / (.*):(\d+)$/.exec(place) ?? [];
        t.equal(file, '/labkern/src/work.rs', place);
        // `.await` after a closing brace stands on a line of its own.
        t.match(source[Number(line) - 1], /\.await/, `${future} waits at ${place}`);
        awaits++;
      }
    }
    t.ok(lines.size >= 8, `${lines.size} Futures checked`);
    t.ok(awaits >= 12, `${awaits} awaits checked`);
    const line = (text: string): number => source.findIndex((code) => code.includes(text)) + 1;
    const expected: [string, string, string][] = [
      ['labkern::work::leaf_io', 'Suspend0', 'yield_n(k % 3).await'],
      ['labkern::work::level3', 'Suspend0', 'let a = leaf_io(k).await'],
      ['labkern::work::level3', 'Suspend1', 'let b = leaf_io(k + 1).await'],
      ['labkern::work::level2', 'Suspend0', 'level3(k + i).await'],
      ['labkern::work::level1', 'Suspend0', 'level2(k, &name).await'],
      ['labkern::work::chain_task', 'Suspend0', 'total += level1('],
      ['labkern::work::fib_box::{async_block#0}', 'Suspend1', 'fib_box(n - 1).await'],
    ];
    for (const [future, state, text] of expected) {
      t.ok(lines.get(future)?.has(`${state} /labkern/src/work.rs:${line(text)}`), `${future} ${state}: ${text}`);
    }
  });
}

t.test('--bt: who polls, through every inlined frame', async (t) => {
  const trace = join(scratchFolder(t), 'out.json');
  const words = ['run', '--json', '--bt', '8', '-n', '600', '-o', trace, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2')];
  const { status } = await rsptrace(...words).ended;
  t.equal(status, 0);
  const records = JSON.parse(readFileSync(trace, 'utf8')) as {
    ph: string;
    name: string;
    args?: { at?: string; stack?: string };
  }[];
  const polls = records.filter(({ ph, args }) => ph === 'b' && args?.at !== undefined);
  const stacks = polls.map(({ name, args }) => ({ name, stack: args?.stack ?? '' }));
  t.ok(stacks.length > 100);
  for (const { name, stack } of stacks) {
    const frames = stack.split(' < ').map((frame) => frame.replace(/ at .*/, ''));
    // Where a poll was inlined, its begin may lie in a function that was inlined into it.
    const poll = frames.findIndex((frame) => frame.replace('{async_fn#0}::', '').startsWith(name));
    const inlined = frames.findIndex((frame) => frame.startsWith(`<${name} as `));
    if (poll !== 0 && inlined !== 1) t.fail(`${name}: ${stack}`);
    if (!frames.includes('labkern::exec::poll_task')) t.fail(`not polled by the executor: ${stack}`);
  }
  // level1 and level2 have no code of their own here: they stand in the stack because the line table of chain_task says so.
  const chain = ['level3', 'level2', 'level1', 'chain_task'].map(
    (name) => `labkern::work::${name}::{async_fn#0} at [^<]*`,
  );
  t.ok(stacks.some(({ stack }) => new RegExp(`^${chain.join(' < ')} < labkern::exec::poll_task`).test(stack)));
});

t.test('a white list traces what it names, and nothing else', async (t) => {
  const folder = scratchFolder(t);
  const trace = join(folder, 'out.json');
  const { stdout } = await rsptrace(
    ...[
      'run',
      '--json',
      '-o',
      trace,
      '-p',
      'poll:level?',
      '-p',
      '!poll:level2',
      '-p',
      'poll:leaf_io',
      elfPath('rv-o0'),
    ],
    ...['--', ...qemuArgv('rv-o0')],
  ).ended;
  const { futures } = JSON.parse(stdout) as PollsOutput;
  t.strictSame(
    futures.map((row) => [row.future, row.polls]),
    [
      ['labkern::work::leaf_io', 433],
      ['labkern::work::level1', 150],
      ['labkern::work::level3', 267],
    ],
  );
  const records = JSON.parse(readFileSync(trace, 'utf8')) as { ph: string; name?: string }[];
  t.equal(records.filter(({ ph, name }) => ph === 'B' && name === 'labkern::work::level3').length, 267);
});
