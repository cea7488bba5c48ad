// The words of a command line: which command they name, and what they give to its options and arguments.
import { existsSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/nearest.js';
import { flag, type Option, type PositionalTable, type Table, usage } from './options/option.js';

const help = "try 'rsptrace --help'";

/** What to do about words that a command does not know. */
function usageHint(command: string | undefined, words: readonly string[] = []): string {
  if (command !== 'run') return help;
  const qemu = words.findIndex((word) => /(?:^|\/)qemu-[\w-]+$/.test(word));
  if (qemu >= 0) return `QEMU's command goes behind --: rsptrace run -- ${words.slice(qemu).join(' ')}`;
  return "a program's own arguments go behind --: rsptrace run ./program -- --its-option";
}

/** What to begin with. */
const firstCommands = [
  'rsptrace tasks --pid 1234                             what each task of a running program waits for, and where',
  'rsptrace run ./program                                record every poll of a program',
  'rsptrace run -- qemu-system-... -kernel kernel.elf    record those of a kernel, from its first instruction on',
  'rsptrace --remote :1234 kernel.elf                    record those of whatever a stub debugs',
  'rsptrace report --by await rsptrace.pftrace           what was waited for most, by line',
  "all of them: 'rsptrace --help'",
].join('\n');

/** What other tracers call it. */
const recordingWords: ReadonlySet<string> = new Set(['record', 'trace']);
const recordingHint =
  'to record, give --remote :1234 kernel.elf and no command, or: rsptrace run kernel.elf -- qemu...';

/** Of every command. */
export const everyOption = {
  help: flag('Show help', { alias: 'h' }),
  version: flag('Show version number', { alias: 'V' }),
};

/** The options of a command by their names and aliases, each with its name. */
type KnownOptions = ReadonlyMap<string, readonly [name: string, option: Option<unknown>]>;

function knownOf(table: Table): KnownOptions {
  const all: Table = { ...everyOption, ...table };
  return new Map(
    Object.entries(all).flatMap(([name, option]) =>
      [name, ...(option.alias ? [option.alias] : [])].map((one) => [one, [name, option]] as const),
    ),
  );
}

interface NamedOption {
  readonly name: string;
  /** With its dashes. */
  readonly spelled: string;
  /** Behind its `=`, or the next word; null if it is missing. */
  readonly value: string | null | undefined;
}

/** A command line up to `--`, and what is behind it. */
interface Words {
  readonly options: readonly NamedOption[];
  /** Where those are that are neither options nor the values of some. */
  readonly plainAt: readonly number[];
  readonly behind: readonly string[] | undefined;
}

/** What words ask for: a command or none, and what they give to it. */
export interface Asked {
  readonly command: string | undefined;
  /** By the options' names, in their order: of a flag `true` or `false`. */
  readonly given: ReadonlyMap<string, readonly string[]>;
  readonly plain: readonly string[];
  /** The words behind `--`. */
  readonly behind: readonly string[] | undefined;
}

/**
 * Throws `USAGE` for the first word that cannot be understood. `commandNames`: those that can take the place of the ELF;
 * `tableOf`: the options of one, or of none.
 */
export function askedBy(
  words: readonly string[],
  commandNames: readonly string[],
  tableOf: (command: string | undefined) => Table,
): Asked {
  if (words.length === 0) throw usage('what is to be done?', firstCommands);
  // Each takes a value in all commands or in none, so the first word that is no value is found.
  const all = new Map([undefined, ...commandNames].flatMap((name) => [...knownOf(tableOf(name))]));
  const [firstAt = -1] = split(words, all).plainAt;
  const first = words[firstAt];
  const command = first !== undefined && commandNames.includes(first) ? first : undefined;
  if (command === undefined && first !== undefined && /^[a-z]+$/i.test(first) && !existsSync(first)) {
    const near = nearestWords(first, commandNames);
    const hint = near.length > 0 ? `nearest: ${near.join(', ')}` : help;
    const what = `there is neither a command nor a file '${first}'`;
    throw usage(what, recordingWords.has(first) ? recordingHint : hint);
  }
  const known = knownOf(tableOf(command));
  const { options, plainAt, behind } = split(words, known);
  const unknown = options.filter(({ name }) => !known.has(name));
  if (unknown.length > 0) throw noOption(unknown, known, command, words);
  const given = new Map<string, string[]>();
  for (const { name, spelled, value } of options) {
    const [canonical, { takes }] = known.get(name) as readonly [string, Option<unknown>];
    if (value === null) throw usage(`a value is missing behind ${spelled}`, help);
    if (takes === 'nothing' && !/^(?:true|false)$/.test(value ?? 'true'))
      throw usage(`${spelled} takes no value, such as '${value}'`, `write ${spelled} alone, or leave it away`);
    const text = value ?? (takes === 'nothing' ? 'true' : '');
    given.set(canonical, [...(given.get(canonical) ?? []), text]);
  }
  const plain = plainAt.filter((at) => command === undefined || at !== firstAt).map((at) => words[at] ?? '');
  return { command, given, plain, behind };
}

function split(words: readonly string[], known: KnownOptions): Words {
  const options: NamedOption[] = [];
  const plainAt: number[] = [];
  let i = 0;
  for (; i < words.length && words[i] !== '--'; i++) {
    const word = words[i] as string;
    const found = longOption(word, known) ?? shortOptions(word, known);
    const last = found?.at(-1);
    if (found === undefined || last === undefined) {
      plainAt.push(i);
      continue;
    }
    const takes = last.value === undefined ? known.get(last.name)?.[1].takes : 'nothing';
    const next = words[i + 1] ?? '--';
    const isBehind = takes !== undefined && takes !== 'nothing' && /^(?!-\D)/s.test(next);
    if (isBehind) i++;
    const value = isBehind ? next : takes === 'a value' ? null : last.value;
    options.push(...found.slice(0, -1), { ...last, value });
  }
  return { options, plainAt, behind: i < words.length ? words.slice(i + 1) : undefined };
}

/** Also `--no-color` for `--color=false`, and `--maxEvents` for `--max-events`. */
function longOption(word: string, known: KnownOptions): NamedOption[] | undefined {
  const found = /^--([^=]+)(?:=(.*))?$/s.exec(word);
  if (!found) return undefined;
  const [, text = '', value] = found;
  const name = text.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const bare = name.replace(/^no-/, '');
  if (known.has(name) || known.get(bare)?.[1].takes !== 'nothing') return [{ name, spelled: `--${text}`, value }];
  return [{ name: bare, spelled: `--${text}`, value: value ?? 'false' }];
}

/** `-xy` is `-x -y`. A value may directly follow its letter if it does not begin with a letter: `-n100`. */
function shortOptions(word: string, known: KnownOptions): NamedOption[] | undefined {
  const text = /^-([^-\d].*)$/s.exec(word)?.[1];
  if (text === undefined) return undefined;
  const letters = /^[a-z]*/i.exec(text)?.[0] || text.slice(0, 1);
  const value = text.slice(letters.length).replace(/^=/, '');
  return [...letters].map((name, index) => {
    const isLast = index === letters.length - 1;
    return { name, spelled: `-${name}`, value: isLast && value !== '' && known.has(name) ? value : undefined };
  });
}

function noOption(
  unknown: readonly NamedOption[],
  known: KnownOptions,
  command: string | undefined,
  words: readonly string[],
): RsptraceError {
  const names = [...known.keys()].filter((name) => name.length > 1);
  const near = unknown.flatMap(({ name }) => nearestWords(name, names).map((one) => `--${one}`));
  const spelled = [...new Set(unknown.map((one) => one.spelled))];
  const hint = usageHint(command, words);
  return usage(
    `there is no option ${spelled.join(' or ')}`,
    near.length > 0 && !hint.startsWith('QEMU') ? `nearest: ${[...new Set(near)].join(', ')}` : hint,
  );
}

/** Arguments that a command must have. */
const called: Readonly<Record<string, string>> = {
  elf: 'kernel.elf',
  trace: 'the trace',
  other: 'the other trace',
  others: 'another trace',
  pid: 'the number of the process',
};

const missing: Readonly<Record<string, readonly [sentence: string, hint: string]>> = {
  remote: [
    'where is the stub? --remote is missing',
    'give --remote :1234, host:1234 or a socket path, or start QEMU with `rsptrace run`',
  ],
  output: [
    'where is it to be written? -o is missing',
    'give -o FILE: its extension says the format, such as .folded, .json or .svg; --help has them all',
  ],
};

/** The error of a command that must have this option. */
export function isMissing(name: string): RsptraceError {
  const [sentence, hint] = missing[name] ?? [`--${name} is missing`, help];
  return usage(sentence, hint);
}

/** What a command gets of its arguments. Throws `USAGE`. */
export function argumentsOf({ command, plain }: Asked, table: PositionalTable): object {
  const all = Object.entries(table);
  const wanted = all.filter(([, { isRequired }]) => isRequired).slice(plain.length);
  if (wanted.length > 0)
    throw usage(`an argument is missing: ${wanted.map(([name]) => called[name] ?? `the ${name}`).join(' and ')}`, help);
  const isOpen = all.at(-1)?.[1].isMany === true;
  const more = isOpen ? [] : plain.slice(all.length);
  if (more.length > 0)
    throw usage(`too many arguments: ${more.map((word) => `'${word}'`).join(', ')}`, usageHint(command));
  return Object.fromEntries(all.map(([name, { isMany }], i) => [name, isMany ? plain.slice(i) : plain[i]]));
}

/** What a command gets of its options. Throws `USAGE`, and what options throw for what they are given. */
export function valuesOf(given: Asked['given'], table: Table): object {
  const all = Object.entries(table);
  const absent = all.find(([name, { isRequired }]) => isRequired && !given.has(name));
  if (absent) throw isMissing(absent[0]);
  const wrong = [...given].flatMap(([name, words]) => {
    const choices = table[name]?.choices;
    const word = choices && words.find((one) => !choices.includes(one));
    return word === undefined ? [] : [`--${name} is one of ${choices?.join(', ')}, not '${word}'`];
  });
  if (wrong.length > 0) throw usage(wrong.join('; '), help);
  for (const [name, { conflicts }] of all) {
    if (conflicts !== undefined && given.has(name) && given.has(conflicts))
      throw usage(`--${name} and --${conflicts} do not go together`, help);
  }
  return Object.fromEntries(all.map(([name, option]) => [name, optionValue(option, given.get(name))]));
}

function optionValue(
  { isMany, default: usual, parse }: Option<unknown>,
  words: readonly string[] | undefined,
): unknown {
  try {
    if (isMany) return (words ?? []).map(parse);
    // Of an option that is given twice the last value counts.
    const word = words?.at(-1) ?? usual;
    return word === undefined ? undefined : parse(word);
  } catch (error) {
    throw error instanceof RsptraceError ? error : usage((error as Error).message, help);
  }
}
