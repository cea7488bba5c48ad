// What `npm run build` makes of the command line: the pages of --help.
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { commandNames } from '../../src/cli/command-line.js';
import { pageName, pageWidths } from '../../src/cli/help-pages.js';
import { main, rsptrace, scratchFolder, start } from '../support/command.js';
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

t.test('a page needs no other code: it is read as fast as Node starts', async (t) => {
  const folder = scratchFolder(t);
  for (const name of readdirSync(dist))
    if (!name.startsWith('code-')) cpSync(join(dist, name), join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const run = (word: string) => start(process.execPath, [join(folder, 'main.js'), word]).ended;
  t.match(await run('--help'), { status: 0, stdout: /^rsptrace: / });
  t.equal((await run('--version')).status, 1, 'anything else does');
});

t.test('what is bundled keeps its licence', (t) => {
  t.match(readFileSync(join(dist, 'LICENSES.txt'), 'utf8'), /^yargs [\d.]+ \(MIT\)$/m);
  t.end();
});
