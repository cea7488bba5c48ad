// The pages of --help, and what `npm run build` makes of the command line: that a command loads no other one.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { commandNames, optionsOf } from '../../src/cli/command-line.js';
import { main, rsptrace, start } from '../support/command.js';
import { usually } from '../support/long.js';

const dist = resolve(import.meta.dirname, '../../dist/cli');

t.test('no line of --help is wider than the terminal, but for what cannot be broken', async (t) => {
  for (const command of usually([undefined, ...commandNames], (one) => [undefined, 'run', 'futures'].includes(one))) {
    const words = command === undefined ? [] : [command];
    const { status, stdout } = await rsptrace(...words, '--help').ended;
    t.equal(status, 0);
    t.match(stdout, new RegExp(`^rsptrace${command === undefined ? ':' : ` .*${command}`}`));
    const names = [...stdout.matchAll(/^ +(?:-\w, +)?--([a-z-]+)/gm)].map(([, name]) => name);
    t.strictSame(names, ['help', 'version', ...Object.keys(optionsOf(command))], command ?? 'rsptrace');
    // The usage, and examples.
    const wide = stdout.split('\n').filter((line) => line.length > 120 && !line.includes('rsptrace'));
    t.strictSame(wide, []);
  }
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
  t.match(readFileSync(join(dist, 'LICENSES.txt'), 'utf8'), /^string-width [\d.]+ \(MIT\)$/m);
  t.end();
});
