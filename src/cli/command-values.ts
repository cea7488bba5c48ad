// What a command gets of the words that `checkWords` has accepted.
import { messageOf, RsptraceError } from '../base/errors.js';
import type { Behind, PositionalTable, Table } from './options/option.js';
import { help, type Line, type NamedOption, usageHint } from './words.js';

/** Arguments that a command must have. */
const called: Readonly<Record<string, string>> = {
  elf: 'kernel.elf',
  trace: 'the trace',
  other: 'the other trace',
  others: 'another trace',
  pid: 'the number of the process',
};

const missingOptions: Readonly<Record<string, readonly [sentence: string, hint: string]>> = {
  remote: [
    'where is the stub? --remote is missing',
    'give --remote :1234, host:1234 or a socket path, or start QEMU with `rsptrace run`',
  ],
  output: [
    'where is it to be written? -o is missing',
    'give -o FILE: its extension says the format, such as .folded, .json or .svg; --help has them all',
  ],
};

export function missingOption(name: string): RsptraceError {
  const [sentence, hint] = missingOptions[name] ?? [`--${name} is missing`, help];
  return new RsptraceError('USAGE', sentence, { hint });
}

/** Throws `USAGE`. The options of `--elf` are `programs`, because the argument is `elf` already. */
export function valuesOf(
  line: Line,
  command: string | undefined,
  { options, places }: { readonly options: Table; readonly places: PositionalTable },
): Behind & Readonly<Record<string, unknown>> {
  const given = new Map<string, NamedOption[]>();
  for (const one of line.options) {
    const name = longName(one.name, options);
    given.set(name, [...(given.get(name) ?? []), one]);
  }
  checkChoices(given, options);
  const all = Object.entries(options).map(([name, option]) => [
    name === 'elf' ? 'programs' : name,
    optionValue(option, given.get(name)),
  ]);
  const values = { ...Object.fromEntries(all), ...placed(line.plain, command, places) };
  for (const [name, { demandOption, conflicts }] of Object.entries(options)) {
    if (demandOption && !given.has(name)) throw missingOption(name);
    const other = [conflicts ?? []].flat().find((one) => given.has(String(one)));
    if (given.has(name) && other !== undefined)
      throw new RsptraceError('USAGE', `--${name} and --${other} do not go together`, { hint: help });
  }
  return { ...values, '--': line.behind.length > 0 ? line.behind : undefined };
}

function longName(name: string, options: Table): string {
  if (name in options) return name;
  return Object.entries(options).find(([, { alias }]) => [alias ?? []].flat().includes(name))?.[0] ?? name;
}

function optionValue(
  { type, array, coerce, default: usual }: Table[string],
  given: readonly NamedOption[] = [],
): unknown {
  const texts = given.map(({ value }) => value ?? '');
  if (type === 'boolean') return given.length === 0 ? usual : isOn(given.at(-1) as NamedOption);
  const value = texts.length === 0 ? usual : array ? texts : texts.at(-1);
  if (value === undefined || coerce === undefined) return value;
  try {
    return coerce(value);
  } catch (error) {
    throw error instanceof RsptraceError ? error : new RsptraceError('USAGE', messageOf(error), { hint: help });
  }
}

/** `--json`, `--no-json`, `--json=false`. */
export function isOn({ spelled, value }: NamedOption): boolean {
  return spelled.startsWith('--no-') === (value === 'false');
}

function checkChoices(given: ReadonlyMap<string, readonly NamedOption[]>, options: Table): void {
  const wrong = [...given].flatMap(([name, all]) => {
    const choices = options[name]?.choices;
    const found = all.find(({ value }) => choices && !choices.includes(value ?? ''));
    return found ? [`--${name} is one of ${choices?.join(', ')}, not '${found.value}'`] : [];
  });
  if (wrong.length > 0) throw new RsptraceError('USAGE', wrong.join('; '), { hint: help });
}

/** The arguments in their places. */
function placed(plain: readonly string[], command: string | undefined, places: PositionalTable): object {
  const all = Object.entries(places);
  const missing = all.filter(([, { demandOption }], i) => demandOption && i >= plain.length);
  if (missing.length > 0) {
    const names = missing.map(([name]) => called[name] ?? `the ${name}`);
    throw new RsptraceError('USAGE', `an argument is missing: ${names.join(' and ')}`, { hint: help });
  }
  const more = all.at(-1)?.[1].isMany ? [] : plain.slice(all.length);
  if (more.length > 0) {
    const words = more.map((word) => `'${word}'`).join(', ');
    throw new RsptraceError('USAGE', `too many arguments: ${words}`, { hint: usageHint(command) });
  }
  return Object.fromEntries(all.map(([name, { isMany }], i) => [name, isMany ? plain.slice(i) : plain[i]]));
}
