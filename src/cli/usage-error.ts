// What yargs 18 says about a command line, as one sentence in rsptrace's words. Its messages: yargs/locales/en.json,
// completed in build/lib/validation.js.
import { RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/search.js';
import { helpHint, usageHint } from './check-words.js';

/** Arguments that a command must have. */
const called: Readonly<Record<string, string>> = {
  elf: 'the ELF of the kernel or program',
  ELF: 'the ELF of the kernel or program',
  trace: 'the trace',
  other: 'the other trace',
  'others..': 'another trace',
  pid: 'the number of the process',
};

/** The arguments from the first that is missing on. */
function missingWords(positionals: string, got: number, needed: number): string {
  const names = [...positionals.matchAll(/<([^>]+)>/g)].map(([, name = '']) => called[name] ?? `the ${name}`);
  return names.slice(got, needed).join(' and ');
}

const sentences: readonly [RegExp, (found: RegExpExecArray, positionals: string) => string][] = [
  [
    /^Not enough non-option arguments: got (\d+), need at least (\d+)/,
    ([, got, needed], positionals) =>
      `an argument is missing: ${missingWords(positionals, Number(got), Number(needed))}`,
  ],
  [/^Missing required arguments?: remote/, () => 'where is the stub? --remote is missing'],
  [/^Missing required arguments?: output/, () => 'where is it to be written? -o is missing'],
  [/^Missing required arguments?: (\w+)/, ([, name = '']) => `--${name} is missing`],
  [
    /^Unknown (?:argument|command)s?: (.*)/s,
    ([, names = '']) =>
      `too many arguments: ${names
        .split(', ')
        .map((word) => `'${word}'`)
        .join(', ')}`,
  ],
  [
    /^Not enough arguments following: (\S+)/,
    ([, name = '']) => `a value is missing behind ${dashed(name)}: one with a dash needs a =, ${dashed(name)}=-5ms`,
  ],
  [
    /^Arguments (\S+) and (\S+) are mutually exclusive/,
    ([, one = '', other = '']) => `${dashed(one)} and ${dashed(other)} do not go together`,
  ],
  [
    /^Invalid values:\n(.*)/s,
    ([, lines = '']) =>
      [...lines.matchAll(/Argument: (\S+), Given: (.*), Choices: (.*)/g)]
        .map(([, name = '', given = '', choices = '']) => {
          const bare = choices.replaceAll('"', '');
          const near = nearestWords(given.replaceAll('"', ''), bare.split(', '));
          const guess = near.length > 0 ? `, nearest: ${near.join(', ')}` : '';
          return `${dashed(name)} is one of ${bare}, not ${given.replaceAll('"', "'")}${guess}`;
        })
        .join('; '),
  ],
];

const missingHints: Readonly<Record<string, string>> = {
  remote: 'give --remote :1234, host:1234 or a socket path, or start QEMU with `rsptrace run`',
  output: 'give -o FILE: its extension says the format, such as .folded, .json or .svg; --help has them all',
};

/**
 * An error for the message `said` of yargs about the words of a command that `checkWords` has accepted. `positionals`:
 * the command's arguments, as yargs has them.
 */
export function usageError(said: string, command?: string, positionals = '<elf>'): RsptraceError {
  const [, missing = ''] = /^Missing required arguments?: (\w+)/.exec(said) ?? [];
  const [, extra] = /^Unknown (?:argument|command)s?: (.*)/s.exec(said) ?? [];
  const hint =
    missingHints[missing] ??
    (extra === undefined ? helpHint(command) : usageHint(command, [], extra.replaceAll(', ', ' ')));
  for (const [pattern, sentence] of sentences) {
    const found = pattern.exec(said);
    if (found) return new RsptraceError('USAGE', sentence(found, positionals), { hint });
  }
  return new RsptraceError('USAGE', said.trim().replace(/\s*\n\s*/g, '; '), { hint });
}

function dashed(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
}
