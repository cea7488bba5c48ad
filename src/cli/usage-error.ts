// What yargs 18 says of a command line, as one sentence in our words. Its messages: yargs/locales/en.json, completed in build/lib/validation.js.
import { RsptraceError } from '../base/errors.js';

const sentences: readonly [RegExp, (found: RegExpExecArray, words: readonly string[]) => string][] = [
  [
    /^Not enough non-option arguments: got (\d+), need at least (\d+)/,
    ([, got, needed], words) => {
      const missing = ['kernel.elf', 'the type'].slice(Number(got), Number(needed)).join(' and ');
      // yargs takes the word behind an option that it does not know for that option's value.
      const taken = words.some((word) => word.startsWith('-'))
        ? ' (an option that does not exist may have taken it)'
        : '';
      return `an argument is missing: ${missing}${taken}`;
    },
  ],
  [/^Missing required arguments?: remote/, () => 'where is the stub? --remote is missing'],
  [/^Unknown (?:argument|command)s?: (.*)/s, ([, names = ''], words) => unknown(names.split(', '), words)],
  [/^Not enough arguments following: (\S+)/, ([, name = '']) => `a value is missing behind ${dashed(name)}`],
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
          return `${dashed(name)} is one of ${bare}, not ${given.replaceAll('"', "'")}`;
        })
        .join('; '),
  ],
];

/** An error for what yargs `said` of these `words`, a command line. */
export function usageError(said: string, words: readonly string[]): RsptraceError {
  const hint = /^Missing required arguments?: remote/.test(said)
    ? 'give --remote :1234, host:1234 or a socket path, or start QEMU with `rsptrace run`'
    : "try 'rsptrace --help'";
  for (const [pattern, sentence] of sentences) {
    const found = pattern.exec(said);
    if (found) return new RsptraceError('USAGE', sentence(found, words), { hint });
  }
  return new RsptraceError('USAGE', said.trim().replace(/\s*\n\s*/g, '; '), { hint });
}

function dashed(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
}

/** yargs tells options without their dashes, one with a dash inside also in camel case, and superfluous words like options. */
function unknown(names: readonly string[], words: readonly string[]): string {
  const isShort = (name: string): boolean => words.some((word) => /^-[^-]/.test(word) && word.slice(1).includes(name));
  const options: string[] = [];
  const others: string[] = [];
  for (const name of names) {
    const long = words.find((word) => /^--(?:no-)?([^=.]+)/.exec(word)?.[1] === name);
    if (long) options.push(long.replace(/=.*/s, ''));
    else if (name.length === 1 && isShort(name)) options.push(`-${name}`);
    else if (words.includes(name)) others.push(name);
  }
  return [
    ...(options.length > 0 ? [`there is no option ${options.join(' or ')}`] : []),
    ...(others.length > 0 ? [`too many arguments: ${others.map((word) => `'${word}'`).join(', ')}`] : []),
  ].join('; ');
}
