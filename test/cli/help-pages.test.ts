// What `npm run build` makes of the command line: the pages of --help, and that a command loads no other one.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { commandNames } from '../../src/cli/command-line.js';
import { pageName, pageWidths } from '../../src/cli/help-pages.js';
import { main, rsptrace, start } from '../support/command.js';
import { usually } from '../support/long.js';

const dist = resolve(import.meta.dirname, '../../dist/cli');

t.test('--help is what yargs lays out', async (t) => {
  const few = [undefined, 'run', 'futures'];
  for (const command of usually([undefined, ...commandNames], (one) => few.includes(one))) {
    const words = command === undefined ? [] : [command];
    const page = await start(process.execPath, [main, ...words, '--help']).ended;
    // Two of them are no page's words, so yargs answers.
    const laidOut = await rsptrace(...words, '--help', '--help').ended;
    t.equal(page.stdout, laidOut.stdout, command ?? 'rsptrace');
    t.equal(page.status, 0);
    t.match(page.stdout, new RegExp(`^rsptrace${command === undefined ? ':' : ` .*${command}`}`));
  }
});

t.test('no page is wider than its name says', (t) => {
  for (const width of pageWidths) {
    const lines = commandNames.flatMap((command) =>
      readFileSync(join(dist, pageName(command, width)), 'utf8').split('\n'),
    );
    // Lines that cannot be broken: the usage, and examples.
    const wide = lines.filter((line) => line.length > width && line.includes('  '));
    t.strictSame(wide, [], `${width} columns`);
  }
  t.end();
});

t.test('a command behind -- keeps its own --help', async (t) => {
  const { status, stderr } = await start(process.execPath, [main, 'run', '/nowhere.elf', '--', 'true', '--help']).ended;
  t.equal(status, 1);
  t.match(stderr, /nowhere\.elf/);
});

/** All the text that is loaded with a file of the bundle, except for what is imported on demand. */
function loadedWith(file: string, seen = new Map<string, string>()): string {
  if (!seen.has(file)) {
    const text = readFileSync(join(dist, file), 'utf8');
    seen.set(file, text);
    for (const [, other = ''] of text.matchAll(/(?:from|import)"\.\/([^"]*)"/g)) loadedWith(other, seen);
  }
  return [...seen.values()].join('');
}

t.test('a command loads what it needs', (t) => {
  const bundled = (name: string): string =>
    loadedWith(readdirSync(dist).find((file) => new RegExp(`^${name}-[0-9A-Z]{8}\\.js$`).test(file)) ?? `${name}.js`);
  // The name of a message stands where it is written: in the Perfetto writer, and in the demangler's error.
  const writesTraces = /\bPerfettoWriter\b/;
  const demangles = /names cannot be demangled/;
  t.match(bundled('record'), writesTraces, 'this test sees the writer where it is');
  t.match(bundled('bt'), demangles, 'and the demangler');
  t.notMatch(bundled('bt'), writesTraces);
  t.notMatch(bundled('command-line'), writesTraces);
  t.notMatch(bundled('command-line'), demangles);
  t.end();
});

t.test('what is bundled keeps its licence', (t) => {
  t.match(readFileSync(join(dist, 'LICENSES.txt'), 'utf8'), /^yargs [\d.]+ \(MIT\)$/m);
  t.end();
});
