// Arguments and results that lie in memory: as the program itself prints them by Rust's Debug, with both engines, in every output.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { gdbserver, pollsProgram } from '../support/native.js';
import { trace, withoutStops } from '../support/native-trace.js';

const probes = ['-p', 'fn:texts::*', ...['main', 'told', 'at_*'].flatMap((name) => ['-p', `!fn:texts::${name}`])];

/** A text of more than 48 bytes is cut, a slice has its first six elements, and a large struct is its address. */
function limited(printed: string): string {
  return printed.replace(/(name: "[^"\\]{48})[^"\\]+"/, '$1"...').replace(/\[((?:\d+, ){5}\d+), [\d, ]+\]/, '[$1, ..]');
}

/** The calls of a tree, without what is before them. */
function callsIn(text: string): string[] {
  return [...text.matchAll(/^.*?\[ *\d+\] +texts::(.*)$/gm)].map(([, call = '']) =>
    call.replace(/value: 0x[0-9a-f]+\)/, 'value: ADDRESS)'),
  );
}

/** What the compiler has left of the arguments is what counts: it may split a pair of texts into pointers. */
const isTold = (call: string): boolean => !call.startsWith('pair(');

for (const engine of ['target', 'stop'] as const) {
  t.test(`engine ${engine}: calls as the program prints them`, async (t) => {
    const program = pollsProgram(t, 'texts');
    const untraced = (await start(program, []).ended).stdout;
    const { output, stdout, text } = await trace(t, [program], '--engine', engine, ...probes);
    t.equal(stdout, untraced, 'which it does untraced, too');
    if (engine === 'target') withoutStops(t, output);
    const printed = untraced.trimEnd().split('\n').map(limited);
    t.ok(printed.length > 15);
    t.same(callsIn(text).filter(isTold), printed.filter(isTold));
  });
}

t.test('every output that has a place for arguments holds the same', async (t) => {
  const folder = scratchFolder(t);
  const program = pollsProgram(t, 'texts');
  const saved = join(folder, 'calls.pftrace');
  const server = await gdbserver(t, program);
  t.equal((await rsptrace('-r', server.address, '-o', saved, ...probes, program).ended).status, 0);
  const named = 'name: "gr\u{fc}n \\"quoted\\"\\n"';
  const held = 'item: &Item { id: 7, name: "tea", price: 350 }';
  const as = async (extension: string): Promise<string> => {
    const path = join(folder, `calls.${extension}`);
    t.equal((await rsptrace('convert', saved, '-o', path).ended).status, 0, extension);
    return readFileSync(path, 'utf8');
  };
  const tree = await as('txt');
  for (const text of [`greet(${named}) = 15`, `item(${held}) = 350`, 'title(n: 0) = "nought"'])
    t.ok(tree.includes(text), text);
  const { stdout: story } = await rsptrace('replay', saved).ended;
  t.same(callsIn(story), callsIn(tree));
  t.same(chromeArguments(await as('json')), [named, held]);
  const lines = (await as('jsonl'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { detail?: string });
  for (const one of [named, held])
    t.ok(
      lines.some((line) => JSON.stringify(line).includes(JSON.stringify(one).slice(1, -1))),
      one,
    );
  const csv = await as('csv');
  for (const one of [named, held]) t.ok(csv.includes(one.replaceAll('"', '""')), `${one} in CSV`);
  const ftrace = await as('ftrace');
  for (const one of [named, held]) t.ok(ftrace.includes(one.replace(': ', '=')), `${one} in ftrace`);
  await as('parquet');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const rows = await connection.runAndReadAll(`select detail from '${join(folder, 'calls.parquet')}'`);
  const details = rows.getRows().flat().map(String);
  for (const one of [named, held]) t.ok(details.includes(one), `${one} in Parquet`);
  connection.closeSync();
});

t.test('a graph that is shown live has them, too', async (t) => {
  const program = pollsProgram(t, 'texts');
  const server = await gdbserver(t, program);
  const { stdout, status } = await rsptrace('graph', '-r', server.address, '--fn', 'texts::greet', program).ended;
  t.equal(status, 0);
  t.match(stdout, /texts::greet\(name="alpha"\); \/\* ret=5 \*\//);
});

function chromeArguments(text: string): string[] {
  const records = JSON.parse(text) as readonly { cat?: string; args?: { arguments?: string } }[];
  const given = records.flatMap(({ cat, args }) => (cat === 'detail' && args?.arguments ? [args.arguments] : []));
  return given.filter((one) => one.includes('quoted') || one.startsWith('item'));
}
