import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import type { Table } from '../options/option.js';
import { ofLiveGraph, ofSavedGraph } from '../options/saved-trace.js';
import { ofLookedTasks, ofSampling, ofSavedProfile, ofSavedTasks } from '../options/target.js';
import { kindOf } from './check.js';
import type { Settings } from './load.js';

/** What a command line says itself. */
export interface Line {
  /** `record` where it names none. */
  readonly command: string;
  readonly options: Table;
  /** What the command's arguments are called, and how many it must have. */
  readonly places: readonly string[];
  readonly needed: number;
  /** Options that are given, as they are spelled, without dashes. */
  readonly given: readonly string[];
  readonly plain: readonly string[];
  /** A command behind `--`. */
  readonly hasCommand: boolean;
}

/** The words of settings that a line does not have itself. */
export interface Filled {
  /** Their keys. */
  readonly taken: readonly string[];
  /** To stand before the line's own. */
  readonly before: readonly string[];
  /** To stand behind them: `--` and a command. */
  readonly behind: readonly string[];
}

/** What a command is about, if it does not start it. */
const targets: readonly string[] = ['remote', 'pid', 'core', 'at', 'off-cpu'];
/** A command takes one of each row: what the line has stands in place of the others. */
const eitherOr: readonly (readonly string[])[] = [
  targets,
  ['frequency', 'period'],
  ['scratch', 'scratch-symbol'],
  ['by', 'callers', 'callees', 'story'],
  ['filter', 'story'],
  ['kernel', 'user'],
  ['offset', 'align'],
  ['tree', 'json', 'dot', 'svg', 'size'],
];
/** What a command takes only with an option, and only without it. */
const modes: Readonly<Record<string, { readonly option: string; readonly only: Keys; readonly never: Keys }>> = {
  graph: { option: 'fn', only: [...ofLiveGraph, 'remote', 'pid'], never: ofSavedGraph },
  tasks: { option: 'at', only: ofSavedTasks, never: [...ofLookedTasks, 'findings'] },
  profile: { option: 'off-cpu', only: ofSavedProfile, never: ofSampling },
};
type Keys = readonly string[];
/** These take no program as well. */
const withoutProgram = ['pid', 'at', 'off-cpu'];
/** Options that name files, which are those of the settings' folder. */
const files: ReadonlySet<string> = new Set([
  ...['elf', 'output', 'record-wire', 'console', 'svg', 'junit', 'markdown'],
  ...['debug-file', 'debug-dir', 'core', 'budget', 'plugin'],
]);

export function filledBy({ path, values, own }: Settings, line: Line): Filled {
  const { options } = line;
  const names = namesOf(line);
  const isOn = (key: string): boolean => Object.hasOwn(options, key) && values[key] !== false;
  const isGivenIn = (all: ReadonlySet<string>, key: string): boolean => isGiven(key, line, all);
  // What the command's own table has stands in place of what the top has.
  const nearer = new Set([...names, ...own.filter((key) => isOn(key) && !isGivenIn(names, key))]);
  const all = [...nearer, ...Object.keys(values).filter(isOn)];
  const target = all.find((key) => targets.includes(key));
  const isOther = (key: string): boolean => isOfOther(key, line.command, all, target);
  const taken: string[] = [];
  const before: string[] = [];
  const take = (key: string, words: readonly string[]): void => {
    if (words.length > 0) taken.push(key);
    before.push(...words);
  };
  for (const [key, value] of Object.entries(values)) {
    const option = Object.hasOwn(options, key) ? options[key] : undefined;
    if (option === undefined || isOther(key) || isGivenIn(own.includes(key) ? names : nearer, key)) continue;
    const flag = [value === true ? `--${key}` : `--no-${key}`];
    const valued = (one: unknown): string => `--${key}=${inFolder(key, String(one), path)}`;
    take(key, kindOf(option) === 'flag' ? flag : [value].flat().map(valued));
  }
  const there = new Set([...names, ...taken.filter(isOn)]);
  const { program, crates, probe } = values;
  const polls = Array.isArray(crates) ? crates.map((crate) => `--probe=poll:${crate}::**`) : [];
  if (Object.hasOwn(options, 'probe') && !there.has('probe') && probe === undefined) take('crates', polls);
  const elf = typeof program === 'string' && lacksProgram(line, there) ? argument(placed(program, path)) : undefined;
  if (elf !== undefined) take('program', [elf]);
  const isStub = ['remote', 'pid', 'off-cpu'].some((one) => there.has(one));
  const behind = isStub ? [] : runnerFor(values.runner, line, elf);
  return { taken: behind.length > 0 ? [...taken, 'runner'] : taken, before, behind };
}

/** A file whose name is not read as options. */
function argument(file: string): string {
  return file.startsWith('-') ? `./${file}` : file;
}

/** The options that a line has, by their long names. */
function namesOf({ options, given }: Line): ReadonlySet<string> {
  const isGivenOne = ([name, { alias }]: [string, Table[string]]): boolean =>
    [name, ...[alias ?? []].flat()].some((one) => given.includes(one));
  return new Set(
    Object.entries(options)
      .filter(isGivenOne)
      .map(([name]) => name),
  );
}

/** Whether an option is among `names`, or something else in its place. */
function isGiven(key: string, { command, plain, hasCommand }: Line, names: ReadonlySet<string>): boolean {
  if (targets.includes(key) && hasCommand) return true;
  // A program of the line is started.
  if ((key === 'remote' || key === 'pid') && (command === 'graph' || command === 'profile') && plain.length > 0)
    return true;
  return [key, ...eitherOr.filter((row) => row.includes(key)).flat()].some((one) => names.has(one));
}

/** Whether an option is for what the line is not about. `all`: the options that it may have; `target`: the nearest. */
function isOfOther(key: string, command: string, all: Keys, target: string | undefined): boolean {
  // Only a machine has further programs.
  if (key === 'elf') return command === 'attach' || (target !== undefined && target !== 'remote');
  const { option = '', only = [], never = [] } = modes[command] ?? {};
  return (option === target || (option === 'fn' && all.includes(option)) ? never : only).includes(key);
}

/** Whether the program is left out that the line's command is about. `names`: of all options that it has then. */
function lacksProgram({ command, places, needed, plain, hasCommand }: Line, names: ReadonlySet<string>): boolean {
  const [first, second] = places;
  if (first !== 'elf' && !(command === 'graph' && names.has('fn'))) return false;
  if (hasCommand || withoutProgram.some((one) => names.has(one))) return false;
  const [word] = plain;
  if (word === undefined || plain.length < needed) return true;
  return first === 'elf' && second !== undefined && plain.length === 1 && needed === 1 && !existsSync(word);
}

/** `program`: that of the settings, where it is taken. */
function runnerFor(runner: unknown, { command, plain, hasCommand }: Line, program: string | undefined): string[] {
  if (!Array.isArray(runner) || runner.length === 0 || hasCommand) return [];
  if (command !== 'run' && command !== 'profile') return [];
  const words = runner.map(String);
  const elf = program ?? plain[0];
  // Without a place for the program, a runner names its own.
  if (elf === undefined || (program === undefined && !words.some((word) => word.includes('{program}')))) return [];
  return ['--', ...words.map((word) => word.replaceAll('{program}', elf))];
}

/** The value of an option: a file is one of the settings' folder; so is the path of a socket, or of a recorded wire. */
function inFolder(key: string, value: string, path: string): string {
  if (files.has(key)) return placed(value, path);
  const [, kind = '', name = ''] = (key === 'remote' && /^(unix:|replay:|(?=\.\.?\/))(.*)$/s.exec(value)) || [];
  if (name === '') return value;
  const found = placed(name, path);
  return kind === '' && !/^\.{0,2}\//.test(found) ? `./${found}` : `${kind}${found}`;
}

/** A file of the settings' folder, as it is from here. */
export function placed(name: string, path: string): string {
  if (name === '' || isAbsolute(name)) return name;
  return relative('', join(dirname(path), name)) || '.';
}
