// What a shell completes: bash itself is asked; the scripts of the others have every option.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commandNames, optionsOf } from '../../src/cli/command-line.js';
import { rsptrace, scratchFolder } from '../support/command.js';

const scriptOf = async (shell: string): Promise<string> => (await rsptrace('completion', shell).ended).stdout;

t.test('in bash', async (t) => {
  const path = join(scratchFolder(t), 'completion.bash');
  writeFileSync(path, await scriptOf('bash'));
  const completed = (...words: string[]): string[] => {
    const asks = `source "$0"; COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}; _rsptrace; echo "\${COMPREPLY[*]}"`;
    const printed = execFileSync('bash', ['-c', asks, path, ...words], { encoding: 'utf8' }).trim();
    return printed === '' ? [] : printed.split(' ');
  };
  t.same(
    completed('rsptrace', 're'),
    commandNames.filter((name) => name.startsWith('re')),
  );
  t.same(completed('rsptrace', 'report', '--by', 'la'), ['latency']);
  t.same(completed('rsptrace', 'report', 'a.pftrace', '--so'), ['--sort']);
  t.same(completed('rsptrace', 'open', '--no'), ['--no-browser', '--no-config']);
  t.same(completed('rsptrace', '--remo'), ['--remote']);
  t.same(completed('rsptrace', 'run', 'app', '--', '--re'), [], "a program's own");
  t.same(completed('rsptrace', 'report', 'a'), [], 'files are left to the shell');
});

t.test('each option of each command, in each shell', async (t) => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = await scriptOf(shell);
    for (const name of [undefined, ...commandNames]) {
      for (const [option, { default: value }] of Object.entries(optionsOf(name))) {
        const words = new RegExp(`(--|-l )${value === true ? 'no-' : ''}${option}\\b`);
        if (!words.test(script)) t.fail(`${shell}: ${name} --${option}`);
      }
    }
    t.match(script, /^#.*\n(# .*\n)?/);
  }
  t.match(await rsptrace('completion', 'tcsh').ended, { status: 2, stderr: /no completion for tcsh/ });
});
