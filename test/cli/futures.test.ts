// `rsptrace futures` on guests, once run as a user runs it.
// The JSON against llvm-dwarfdump and readelf; table, tree and sizes against golden text (UPDATE_GOLDEN=1 rewrites it); the graph against Graphviz itself.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { instance } from '@viz-js/viz';
import t from 'tap';
import { elfPath, sourcePath } from '../qemu/guests/guests.js';
import { type Ran, rsptrace, rsptraceProcess, scratchFolder } from '../support/command.js';
import { dumpInfo, run } from '../support/dwarfdump.js';
import { usually } from '../support/long.js';

const futures = (...args: string[]): Promise<Ran> => rsptrace('futures', ...args).ended;

interface FutureJson {
  readonly future: string;
  readonly instance: string;
  readonly kind: string;
  readonly file: string;
  readonly line: number;
  readonly size: number;
  readonly states: readonly {
    readonly name: string;
    readonly line: number;
    readonly awaits: readonly string[];
    readonly locals: readonly { readonly name: string; readonly offset: number; readonly size: number }[];
    readonly holds: readonly { readonly future: string; readonly role: string; readonly may_be: readonly unknown[] }[];
  }[];
  readonly holds: readonly { readonly future: string; readonly path: string }[];
  readonly polls: readonly { readonly address: string; readonly symbol: string; readonly name: string }[];
  readonly inlined: readonly { readonly into: string; readonly file: string; readonly line: number }[];
  readonly vtables: readonly string[];
}

async function json(...args: string[]): Promise<{ futures: FutureJson[] }> {
  const { status, stdout, stderr } = await futures(...args, '--json');
  if (status !== 0 || stderr !== '') throw new Error(stderr);
  return JSON.parse(stdout);
}

for (const name of usually(['rv-o0', 'rv-o2-dwarf5', 'x86-o2-legacy'], (one) => one === 'x86-o2-legacy')) {
  t.test(`${name}: the JSON is the file`, async (t) => {
    const all = await json(elfPath(name));
    // The environments by size, and the members of each state's struct, as llvm-dwarfdump reads them.
    const sizes = new Map<string, number>();
    const members = new Map<string, { name: string; offset: number }[]>();
    const path: string[] = [];
    let state: { name: string; offset: number }[] | undefined;
    for (const { depth, tag, attributes } of dumpInfo(elfPath(name))) {
      const own = (attributes.get('name') ?? '').replace(/^"|"$/g, '');
      path.length = depth;
      path[depth] = own;
      const full = path.slice(1).join('::');
      if (tag === 'structure_type') {
        state = undefined;
        if (/^\{async_\w+_env#\d+\}/.test(own)) sizes.set(full, Number(attributes.get('byte_size')));
        if (/_env#\d+\}.*::(Unresumed|Returned|Panicked|Suspend\d+)$/.test(full) && !members.has(full)) {
          state = [];
          members.set(full, state);
        }
      } else if (tag === 'member' && own !== '__awaitee') {
        state?.push({ name: own, offset: Number(attributes.get('data_member_location')) });
      }
    }
    const made = all.futures.filter(({ kind }) => kind !== 'impl');
    t.strictSame(new Set(made.map((f) => f.instance)), new Set(sizes.keys()));
    for (const { instance, size, states } of made) {
      t.equal(size, sizes.get(instance), instance);
      for (const { name, locals } of states) {
        const wanted = members.get(`${instance}::${name}`) ?? [];
        const distinct = new Set(wanted.map((one) => JSON.stringify(one)));
        t.strictSame(new Set(locals.map(({ name, offset }) => JSON.stringify({ name, offset }))), distinct);
      }
    }

    // The map from async function to poll symbol; what has none is told with the places that it was inlined into.
    const symbols = new Map(
      [...run('readelf', '-sW', elfPath(name)).matchAll(/^ +\d+: 0*([0-9a-f]+) .* (\S+)$/gm)].map((m) => [m[2], m[1]]),
    );
    for (const one of all.futures) {
      for (const poll of one.polls) t.equal(poll.address, `0x${symbols.get(poll.symbol)}`, poll.name);
      if (one.polls.length > 0) continue;
      t.not(one.inlined.length, 0, `${one.instance} is inlined`);
      for (const { into, file, line } of one.inlined) {
        if (!file.startsWith('/labkern/')) continue;
        const text = readFileSync(sourcePath(file), 'utf8').split('\n')[line - 1];
        t.match(text, /\.await|poll/, `${one.future} is awaited at line ${line} in ${into}`);
      }
    }
  });
}

t.test('awaits, holds and what a dyn Future may be', async (t) => {
  const { futures } = await json(elfPath('rv-o2'));
  const named = (name: string) => futures.filter((one) => one.future === `labkern::${name}`);
  const awaits = (name: string) =>
    named(name)[0]?.states.map((state) => state.awaits.map((a) => a.replace(/^labkern::/, '')));
  t.strictSame(awaits('work::level3'), [[], [], [], ['work::leaf_io'], ['work::leaf_io']]);
  t.strictSame(awaits('work::joiner'), [[], [], [], ['futs::Join2']]);
  t.strictSame(awaits('work::fib_task')?.[3], ['dyn core::future::future::Future<Output=u64>']);
  t.strictSame(
    named('futs::Join2').map(({ holds }) => holds.map((h) => `${h.path} ${h.future}`)),
    [
      ['a.Pending.0 labkern::work::joiner::{async_block#0}', 'b.Pending.0 labkern::work::level3'],
      ['a.Pending.0 labkern::work::leaf_io', 'b.Pending.0 labkern::futs::Join2'],
    ],
  );
  t.strictSame(
    named('futs::Select2')[0]?.holds.map((h) => `${h.path} ${h.future}`),
    ['a.Some.0 labkern::work::loser', 'b.Some.0 labkern::work::leaf_io'],
  );
  const fib = named('work::fib_box::{async_block#0}')[0];
  const boxed = fib?.states.flatMap((state) => state.holds).filter((h) => h.may_be.length > 0);
  t.equal(boxed?.length, 2, 'fib_box awaits itself at two places');
  for (const { may_be } of boxed ?? []) t.match(may_be, [{ future: 'labkern::work::fib_box::{async_block#0}' }]);
});

t.test('text', async (t) => {
  const path = join(import.meta.dirname, 'futures.golden.txt');
  const views: [string, string[]][] = [
    ['', []],
    ['--tree', ['--tree']],
    ['--size', ['--size']],
    ['level*', ['level*']],
    ["--tree '**::{async_block#0}'", ['--tree', '**::{async_block#0}']],
  ];
  const shown: string[] = [];
  for (const [title, args] of views) {
    const { stdout, stderr, status } = await futures(elfPath('rv-o2'), ...args);
    t.strictSame([status, stderr], [0, '']);
    shown.push(`$ rsptrace futures rv-o2.elf ${title}\n${stdout}`);
  }
  const spawned = await rsptraceProcess('futures', elfPath('rv-o2')).ended;
  t.equal(`$ rsptrace futures rv-o2.elf \n${spawned.stdout}`, shown[0], 'and run as a user runs it');
  const text = shown.join('\n');
  if (process.env.UPDATE_GOLDEN) writeFileSync(path, text);
  t.equal(text, readFileSync(path, 'utf8'));
});

t.test('the graph is one that Graphviz draws', async (t) => {
  const viz = await instance();
  const { stdout: dot } = await futures(elfPath('rv-o2'), '--dot');
  const read = JSON.parse(viz.renderString(dot, { format: 'json' })) as {
    objects: { name: string; label: string; tooltip: string }[];
    edges: { tail: number; head: number; style: string }[];
  };
  const { futures: all } = await json(elfPath('rv-o2'));
  // A Pin<Box<..>> passes polls on: the graph shows what it points to.
  const wanted = all.map((one) => one.instance).filter((instance) => !instance.startsWith('core::pin::Pin<'));
  t.strictSame(
    read.objects.map(({ tooltip }) => tooltip).sort(),
    [...wanted, 'dyn core::future::future::Future<Output=u64>'].sort(),
  );
  const edge = (from: RegExp, to: RegExp) =>
    read.edges.filter(
      ({ tail, head }) => from.test(read.objects[tail]?.tooltip ?? '') && to.test(read.objects[head]?.tooltip ?? ''),
    );
  t.match(edge(/^labkern::work::level1/, /^labkern::work::level2/), [{ style: 'solid' }]);
  t.match(edge(/^labkern::futs::Select2/, /^labkern::work::loser/), [{ style: 'dashed' }]);
  t.match(edge(/^labkern::work::fib_box/, /^dyn/), [{ style: 'solid' }]);
  t.match(edge(/^dyn/, /^labkern::work::fib_box/), [{ style: 'dotted' }]);

  const file = join(scratchFolder(t), 'futures.svg');
  const drawn = await futures(elfPath('rv-o2'), `--svg=${file}`);
  t.strictSame([drawn.status, drawn.stdout, drawn.stderr], [0, '', '']);
  const svg = readFileSync(file, 'utf8');
  t.equal(illFormed(svg), undefined);
  t.equal([...svg.matchAll(/<g id="node\d+"/g)].length, read.objects.length);
  const printed = await futures(elfPath('rv-o2'), 'level1', '--svg');
  t.match(printed.stdout, /^<\?xml[\s\S]*level1[\s\S]*<\/svg>\s*$/);
});

t.test('what goes wrong', async (t) => {
  const cases: { args: string[]; status: number; code: string; says: RegExp }[] = [
    { args: [elfPath('rv-o2'), 'levle3'], status: 1, code: 'FUTURES_NO_MATCH', says: /nearest: labkern::work::level3/ },
    { args: [elfPath('rv-o2'), '--tree', '--size'], status: 2, code: 'USAGE', says: /--tree and --size/ },
    { args: [], status: 2, code: 'USAGE', says: /an argument is missing: the ELF of the kernel or program \[/ },
    { args: ['/nowhere.elf'], status: 1, code: 'ELF_UNREADABLE', says: /nowhere/ },
    { args: ['/bin/true'], status: 1, code: 'DWARF_MISSING', says: /no debug info/ },
    { args: [elfPath('rv-o2'), '--svg=/nowhere/x.svg'], status: 1, code: 'OUTPUT_CANNOT_WRITE', says: /x\.svg/ },
  ];
  for (const { args, status, code, says } of cases) {
    const ran = await futures(...args);
    t.equal(ran.status, status, args.join(' '));
    t.match(ran.stderr, `[${code}]`);
    t.match(ran.stderr, says);
    t.equal(ran.stdout, '');
  }
  const asked = await futures(elfPath('rv-o2'), 'levle3', '--json');
  t.match(JSON.parse(asked.stdout), { version: 1, error: { code: 'FUTURES_NO_MATCH', hint: /level3/ } });
});

/** What keeps a text from being well-formed XML (https://www.w3.org/TR/xml/#sec-well-formed), as far as SVG goes. */
function illFormed(text: string): string | undefined {
  const open: string[] = [];
  const token =
    /<\?[\s\S]*?\?>|<!--(?:(?!--)[\s\S])*-->|<!DOCTYPE[^>]*>|<(\/?)([\w:-]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>|([^<]+)/gy;
  let end = 0;
  for (const found of text.matchAll(token)) {
    if (found.index !== end) return text.slice(end, end + 60);
    end = found.index + found[0].length;
    const [, close, name, attributes = '', empty, words = ''] = found;
    if (/&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-f]+);)/.test(attributes + words)) return found[0];
    if (name === undefined || empty === '/') continue;
    if (close === '') open.push(name);
    else if (open.pop() !== name) return `</${name}>`;
  }
  return end === text.length && open.length === 0 ? undefined : text.slice(end, end + 60);
}
