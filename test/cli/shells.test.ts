// What the shells themselves complete, in a terminal, and the man pages as man and mandoc read them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { commandNames, optionsOf } from '../../src/cli/command-line.js';
import { elfPath } from '../qemu/guests/guests.js';
import { main, rsptrace, scratchFolder } from '../support/command.js';
import { Terminal } from '../support/terminal.js';

const root = resolve(import.meta.dirname, '../..');
const pages = join(root, 'dist/man');

const shells = [
  { words: ['bash', '--norc', '--noprofile', '-i'], source: 'source <(rsptrace completion bash)' },
  {
    words: ['zsh', '-f', '-i'],
    source: 'autoload -U compinit && compinit -D -u && source <(rsptrace completion zsh)',
  },
  {
    words: ['fish', '--no-config', '-i'],
    source:
      'rsptrace completion fish | source; functions -e fish_prompt; function fish_prompt; echo -n "ready\\$ "; end',
  },
];

for (const { words, source } of shells) {
  t.test(words[0] as string, async (t) => {
    const folder = scratchFolder(t);
    mkdirSync(join(folder, 'bin'));
    symlinkSync(main, join(folder, 'bin/rsptrace'));
    symlinkSync(elfPath('rv-o2'), join(folder, 'kernel'));
    const path = `PATH=${folder}/bin:${process.env.PATH}`;
    const terminal = new Terminal(
      t,
      150,
      30,
      ['-C', folder, `HOME=/dev/null`, path, 'TERM=screen', `RSPTRACE_CACHE=${process.env.RSPTRACE_CACHE ?? 'off'}`],
      words,
    );
    const types = (text: string): void => terminal.keys('-l', text);
    await terminal.until(/[$>%#]/);
    types(source);
    terminal.keys('Enter');
    await terminal.until(/^ready\$$/m);
    const completed = async (typed: string, whole: RegExp): Promise<void> => {
      types(typed);
      terminal.keys('Tab');
      const screen = await terminal.until(whole);
      t.match(screen, whole, typed);
      terminal.keys('C-u');
      await terminal.until((one) => !whole.test(one.trimEnd().split('\n').at(-1) ?? ''));
    };
    await completed('rsptrace run kernel -p poll:leaf', /-p poll:leaf_io$/m);
    await completed('rsptrace run kernel --probe poll:work::joi', /--probe poll:work::joiner/);
    await completed('rsptrace kernel --probe fn:labkern::exec::poll_t', /fn:labkern::exec::poll_task$/m);
    await completed('rsptrace report --by late', /report --by latency$/m);
    await completed('rsptrace types ker', /types kernel$/m);
    // There that letter is another option's.
    await completed('rsptrace bt -p ker', /bt -p kernel$/m);
  });
}

t.test('probes of a command line', async (t) => {
  const of = async (word: string, ...line: string[]): Promise<string[]> => {
    const { stdout, status } = await rsptrace('completion', 'probes', word, '--', 'rsptrace', ...line).ended;
    t.equal(status, 0);
    return stdout.split('\n').slice(0, -1);
  };
  const elf = elfPath('rv-o2');
  t.same(await of('poll:level', 'run', elf), ['poll:level1', 'poll:level2', 'poll:level3']);
  t.same(await of('!poll:labkern::futs::Jo', 'run', '--', 'qemu-system-riscv64', '-kernel', elf), [
    '!poll:labkern::futs::Join2',
  ]);
  t.same(await of('fn:labkern::exec::poll_t', elf), ['fn:labkern::exec::poll_task']);
  t.same(await of('po', 'run', elf), ['poll:']);
  t.same(await of('poll:le', 'run', '/nowhere'), [], 'no program');
  t.same(await of('sample:', elf), [], 'no names');
});

t.test('man pages', async (t) => {
  const { man } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly man: readonly string[] };
  const names = readdirSync(pages);
  t.same(names.toSorted(), ['rsptrace.1', ...commandNames.map((name) => `rsptrace-${name}.1`)].toSorted());
  t.same([...man].toSorted(), names.map((name) => `./dist/man/${name}`).toSorted(), 'npm installs each');
  for (const name of names) {
    const words = ['-Tlint', '-W', 'warning', join(pages, name)];
    t.equal(execFileSync('mandoc', words, { encoding: 'utf8' }), '', name);
  }
  for (const command of [undefined, 'run']) {
    const page = join(pages, command === undefined ? 'rsptrace.1' : `rsptrace-${command}.1`);
    const text = execFileSync('man', ['--warnings', '-l', page], {
      encoding: 'utf8',
      env: { ...process.env, MANWIDTH: '120', LC_ALL: 'C.UTF-8' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.match(text, /^NAME\n +rsptrace.* - /m);
    for (const option of Object.keys(optionsOf(command))) t.ok(text.includes(`--${option}`), `--${option}`);
  }
});

t.test('help of a command', async (t) => {
  const ran = await rsptrace('help', 'bt').ended;
  t.match(ran, { status: 0, stdout: /^rsptrace bt --remote ADDR/ });
  t.match(await rsptrace('help', 'btt').ended, { status: 2, stderr: /no command 'btt' \[USAGE\]\n {2}nearest: bt/ });
  const terminal = new Terminal(t, 100, 30, ['PAGER=cat', 'MANPAGER=cat', `MAIN=${main}`]);
  await terminal.until(/ready/);
  terminal.keys('node $MAIN help types', 'Enter');
  t.match(await terminal.until(/RSPTRACE-TYPES\(1\)$/m), /SEE ALSO/, 'man itself');
});
