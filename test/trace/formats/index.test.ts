// The list of formats, and all that is derived from it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { headOf } from '../../../src/base/file-bytes.js';
import {
  type Format,
  formatOf,
  formats,
  openTrace,
  type TraceEvent,
  type TraceFacts,
} from '../../../src/trace/index.js';
import { rsptrace } from '../../support/command.js';
import { readChrome } from '../decode-chrome.js';
import { readPerfetto } from '../decode-perfetto.js';
import { oneTask } from '../one-task.js';
import { linked, nanos, tell } from '../stories.js';
import { decode, folder, parse, write } from '../written.js';

t.test('every format says at its end which engine each probe used', async (t) => {
  const probe = (name: string, at: bigint, why?: string): TraceFacts['probes'][number] => {
    return { name, address: addr(at), engine: why === undefined ? 'target' : 'stop', why };
  };
  const facts: TraceFacts = {
    probes: [
      probe('a::without', 16n),
      probe('a::stopped', 32n, 'it is short'),
      probe('a::of', 48n),
      probe('a::of', 64n),
    ],
  };
  const wanted = {
    'a::without': 'without stops',
    'a::stopped': 'stops: it is short',
    'a::of @0x30': 'without stops',
    'a::of @0x40': 'without stops',
  };
  const { slices } = readPerfetto(decode(write('engines.pftrace', [], facts)));
  t.same(slices.find(({ name }) => name === 'engines')?.args, {
    'a::without': JSON.stringify({ name: 'a::without', ...{ address: '0x10', engine: 'target' } }),
    'a::stopped': JSON.stringify({ name: 'a::stopped', ...{ address: '0x20', engine: 'stop', why: 'it is short' } }),
    'a::of': JSON.stringify({ name: 'a::of', ...{ address: '0x30', engine: 'target' } }),
    'a::of @0x40': JSON.stringify({ name: 'a::of', ...{ address: '0x40', engine: 'target' } }),
  });
  const chrome = readChrome(parse(write('engines.json', [], facts)));
  t.same(chrome.find(({ name }) => name === 'engines')?.args, wanted);
  const tree = write('engines.txt', [], facts).toString();
  t.match(tree, '\n# 3 probes without stops\n# a::stopped: stops: it is short\n');
});

t.test('a file that any format has written is a trace, and belongs to that one alone', async (t) => {
  for (const format of formats.filter((one) => one.openFolder === undefined)) {
    for (const extension of format.extensions) {
      const path = join(folder, `known${extension}`);
      tell(openTrace(path), oneTask);
      const head = headOf(path);
      t.ok(head, extension);
      t.same(
        formats.filter((other) => head && other.recognizes(head)),
        [format],
      );
      t.equal(formatOf(path), format);
      t.equal(formatOf(path.toUpperCase()), format, 'in any case');
    }
  }
  const all = formats.flatMap(({ extensions }) => extensions);
  t.equal(new Set(all).size, all.length, 'no two formats share an extension');
});

const csv: Format = {
  name: 'CSV',
  extensions: ['.own', '.own.json'],
  about: 'a line an event',
  use: 'open it in a spreadsheet',
  isAppended: true,
  recognizes: ({ bytes }) => Buffer.from(bytes).toString().startsWith('time,event\n'),
  open: (file) => ({
    begin: () => file.textRecord('time,event\n'),
    event: (event) => file.textRecord(`${event.type === 'gap' ? event.from : event.time},${event.type}\n`),
    hart: () => {},
    flush: () => file.flush(),
    end: () => file.close(),
  }),
};

t.test(
  'a format of the user: chosen by the longest extension, and its files are overwritten only by force',
  async (t) => {
    for (const name of ['a.own', 'a.own.json']) {
      const path = join(folder, name);
      for (const force of [false, true]) tell(openTrace(path, { formats: [csv], force }), oneTask);
      t.throws(() => openTrace(path, { formats: [csv] }), { code: 'OUTPUT_EXISTS' });
      const [first, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n');
      t.equal(first, 'time,event');
      t.same(
        lines,
        oneTask.map((event) => `${'time' in event ? event.time : ''},${event.type}`),
      );
    }
    t.throws(() => openTrace(join(folder, 'a.own')), {
      code: 'TRACE_UNKNOWN_FORMAT',
      hint: `known extensions: ${formats.flatMap(({ extensions }) => extensions).join(', ')}`,
    });
    t.throws(() => openTrace(join(folder, 'x.tsv'), { formats: [csv] }), {
      code: 'TRACE_UNKNOWN_FORMAT',
      hint: `known extensions: .own, .own.json, ${formats.flatMap(({ extensions }) => extensions).join(', ')}`,
    });
  },
);

t.test('a format that cannot begin leaves no file', async (t) => {
  const path = join(folder, 'never.own');
  const failing: Format = {
    ...csv,
    open: () => {
      throw new Error('no memory');
    },
  };
  t.throws(() => openTrace(path, { formats: [failing] }), { message: 'no memory' });
  t.notOk(existsSync(path));
});

t.test('docs/formats.md and --help say of each format what the list says', async (t) => {
  const docs = readFileSync('docs/formats.md', 'utf8');
  const help = (await rsptrace('--help').ended).stdout.replace(/\s+/g, ' ');
  for (const { name, extensions, about, isAppended } of formats) {
    const cells = [extensions.map((one) => `\`${one}\``).join(', '), name, about, isAppended ? 'yes' : 'no'];
    t.match(docs, `| ${cells.join(' | ')} |`, name);
    t.match(help, `${extensions[0]} (${name}): ${about}`);
  }
});

t.test('no cell of CSV is a formula, and numbers stay what they are', async (t) => {
  const call = { hart: 0, depth: 0, arguments: [] } as const;
  const names = ['=HYPERLINK("http://x")', '+a', '-a,b', '@SUM', '-5', 'plain'];
  const events = names.flatMap((name, i): TraceEvent[] => {
    const began = nanos(i * 10);
    const fn = { key: i, name, instance: 'i', address: addr(16n), file: undefined, line: undefined };
    const begin = { type: 'call-begin', time: began, function: fn, ...call } as const;
    return [begin, { type: 'call-end', time: nanos(i * 10 + 5), began, function: fn, ...call }];
  });
  const rows = write('formula.csv', linked(events)).toString().trimEnd().split('\n').slice(1);
  t.same(
    rows.map((row) => /^call,\d+,\d+,0,,0,(".*?[^"]"|[^,]*),/.exec(row)?.[1]),
    [`"'=HYPERLINK(""http://x"")"`, "'+a", `"'-a,b"`, "'@SUM", '-5', 'plain'],
  );
});
