// Words that yargs would misunderstand, or report as something else:
//
//   --foo k.elf    no such option: yargs gives it the ELF for its value, and misses the ELF
//   runn k.elf     no such command: it would be the ELF
//   --remote       its value is missing: yargs misses the ELF first
//   --json=abc     takes no value: it would be false
import { existsSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/search.js';
import { flag, type Table } from './options/option.js';

const help = helpHint(undefined);

/** Where the options of a command are; without one those of recording. */
export function helpHint(command: string | undefined): string {
  return `try 'rsptrace ${command === undefined ? '' : `${command} `}--help'`;
}

/** What to do about words that a command does not know. */
export function usageHint(command: string | undefined, words: readonly string[] = [], own = '--its-option'): string {
  if (command !== 'run') return helpHint(command);
  const qemu = words.findIndex((word) => /(?:^|\/)qemu-[\w-]+$/.test(word));
  if (qemu >= 0) return `QEMU's command goes behind --: rsptrace run -- ${words.slice(qemu).join(' ')}`;
  return `a program's own arguments go behind --: rsptrace run ./program -- ${own}; a kernel's user programs are --elf FILE each`;
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

type Arity = 'no value' | 'may have a value' | 'needs a value';

/** The options of a command, aliases included. */
type KnownOptions = ReadonlyMap<string, Arity>;

function knownOf(table: Table): KnownOptions {
  const known = new Map<string, Arity>();
  const all = { ...table, help: flag('', { alias: 'h' }), version: flag('', { alias: 'V' }) };
  for (const [name, { type, alias, requiresArg, nargs }] of Object.entries<Table[string]>(all)) {
    const needs = requiresArg || nargs !== undefined ? 'needs a value' : 'may have a value';
    for (const one of [name, ...(alias ? [alias].flat() : [])]) known.set(one, type === 'boolean' ? 'no value' : needs);
  }
  return known;
}

export interface NamedOption {
  readonly name: string;
  /** With its dashes. */
  readonly spelled: string;
  /** The text behind its `=`; null if it is missing. */
  readonly value: string | null | undefined;
}

/** A command line up to `--`. */
interface Words {
  readonly options: readonly NamedOption[];
  /** Where those are that are neither options nor the values of some. */
  readonly plainAt: readonly number[];
}

/** What words ask for: a command or none, its help or that it runs. */
export interface Asked {
  readonly command: string | undefined;
  readonly asksHelp: boolean;
  /** All words but the command's name. */
  readonly rest: readonly string[];
  /** Where in them an argument is `-`: standard input. */
  readonly standardInputAt: number;
  readonly options: readonly NamedOption[];
  /** Those of them that are arguments, up to `--`. */
  readonly plain: readonly string[];
}

/**
 * Throws `USAGE` for the first of these that occurs. `commandNames`: those that can take the place of the ELF;
 * `tableOf`: the options of one, or of none.
 */
export function checkWords(
  words: readonly string[],
  commandNames: readonly string[],
  tableOf: (command: string | undefined) => Table,
): Asked {
  const optionsFor = (one: string | undefined): KnownOptions => knownOf(tableOf(one));
  if (words.length === 0) throw new RsptraceError('USAGE', 'what is to be done?', { hint: firstCommands });
  const { plainAt } = split(words, union([undefined, ...commandNames].map(optionsFor)));
  const [firstAt = -1] = plainAt;
  const first = words[firstAt];
  const command = first !== undefined && commandNames.includes(first) ? first : undefined;
  // A path with a stub is missed when it is read.
  const isWord = (one: string): boolean =>
    /^[a-z]+$/i.test(one) || !words.some((word) => /^(?:-r|--remote)/.test(word));
  if (command === undefined && first !== undefined && isWord(first) && !existsSync(first)) {
    const near = nearestWords(first, [...commandNames, ...recordingWords]);
    const hint = near.length > 0 ? `nearest: ${near.join(', ')}` : help;
    throw new RsptraceError('USAGE', `there is neither a command nor a file '${first}'`, {
      hint: recordingWords.has(near[0] ?? '') ? recordingHint : hint,
    });
  }
  const known = optionsFor(command);
  const { options } = split(words, known);
  const unknown = options.filter(({ name }) => !known.has(name));
  if (unknown.length > 0) throw noOption(unknown, known, command, words);
  for (const { name, spelled, value } of options) {
    if (value === null) throw new RsptraceError('USAGE', `a value is missing behind ${spelled}`, { hint: help });
    if (value !== undefined && known.get(name) === 'no value' && !/^(?:true|false)$/.test(value)) {
      throw new RsptraceError('USAGE', `${spelled} takes no value, such as '${value}'`, {
        hint: `write ${spelled} alone, or leave it away`,
      });
    }
  }
  const asksHelp = options.some(({ name, value }) => (name === 'help' || name === 'h') && value !== 'false');
  const rest = command === undefined ? words : words.toSpliced(firstAt, 1);
  const places = split(rest, known).plainAt;
  const standardInputAt = places.find((at) => rest[at] === '-') ?? -1;
  return { command, asksHelp, rest, standardInputAt, options, plain: places.map((at) => rest[at] as string) };
}

/**
 * The options of all commands. Each takes a value in all of them or in none, so the first word that is no value is
 * found.
 */
function union(all: readonly KnownOptions[]): KnownOptions {
  return new Map(all.flatMap((known) => [...known]));
}

function split(words: readonly string[], known: KnownOptions): Words {
  const options: NamedOption[] = [];
  const plainAt: number[] = [];
  for (let i = 0; i < words.length && words[i] !== '--'; i++) {
    const word = words[i] as string;
    const found = longOption(word, known) ?? shortOptions(word, known);
    const last = found?.at(-1);
    if (found === undefined || last === undefined) {
      plainAt.push(i);
      continue;
    }
    const arity = last.value === undefined ? known.get(last.name) : undefined;
    const isBehind = /^(?!-\D)/s.test(words[i + 1] ?? '--');
    options.push(...found.slice(0, -1), arity === 'needs a value' && !isBehind ? { ...last, value: null } : last);
    if (arity !== undefined && arity !== 'no value' && isBehind) i++;
  }
  return { options, plainAt };
}

function longOption(word: string, known: KnownOptions): NamedOption[] | undefined {
  const found = /^--([^=]+)(?:=(.*))?$/s.exec(word);
  if (!found) return undefined;
  const [, text = '', value] = found;
  const name = kebab(text);
  const flag = name.replace(/^no-/, '');
  return [{ name: known.get(flag) === 'no value' ? flag : name, spelled: `--${text}`, value }];
}

/** `-xy` is `-x -y`. A value may directly follow its letter if it does not begin with a letter: `-n100`. */
function shortOptions(word: string, known: KnownOptions): NamedOption[] | undefined {
  const text = /^-([^-\d].*)$/s.exec(word)?.[1];
  if (text === undefined) return undefined;
  const letters = /^[a-z]*/i.exec(text)?.[0] || text.slice(0, 1);
  const value = text.slice(letters.length);
  return [...letters].map((name, index) => {
    const isLast = index === letters.length - 1;
    return { name, spelled: `-${name}`, value: isLast && value !== '' && known.has(name) ? value : undefined };
  });
}

/** yargs accepts `--maxEvents` for `--max-events`. */
function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
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
  const usage = usageHint(command, words);
  return new RsptraceError('USAGE', `there is no option ${spelled.join(' or ')}`, {
    hint: near.length > 0 && !usage.startsWith('QEMU') ? `nearest: ${[...new Set(near)].join(', ')}` : usage,
  });
}
