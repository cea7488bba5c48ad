import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import type { Table } from '../options/option.js';
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

/** A command takes one of each row: what the line has stands in place of the others. */
const eitherOr: readonly (readonly string[])[] = [
  ['remote', 'pid', 'core', 'at', 'off-cpu'],
  ['frequency', 'period'],
  ['scratch', 'scratch-symbol'],
  ['by', 'callers', 'callees'],
  ['offset', 'align'],
  ['tree', 'json', 'dot', 'svg', 'size'],
];
/** These take no program as well. */
const withoutProgram = ['pid', 'at', 'off-cpu'];
/** Options that name files, which are those of the settings' folder. */
const files: ReadonlySet<string> = new Set([
  ...['elf', 'output', 'record-wire', 'console', 'svg', 'junit', 'markdown'],
  ...['debug-file', 'debug-dir', 'core', 'budget', 'plugin'],
]);

export function filledBy({ path, values }: Settings, line: Line): Filled {
  const names = namesOf(line);
  const taken: string[] = [];
  const before: string[] = [];
  for (const [key, value] of Object.entries(values)) {
    const option = line.options[key];
    if (option === undefined || isGiven(key, line, names)) continue;
    taken.push(key);
    if (kindOf(option) === 'flag') before.push(value === true ? `--${key}` : `--no-${key}`);
    else before.push(...[value].flat().map((one) => `--${key}=${inFolder(key, String(one), path)}`));
  }
  const { program, crates, probe } = values;
  if ('probe' in line.options && !names.has('probe') && probe === undefined && Array.isArray(crates)) {
    taken.push('crates');
    before.push(...crates.map((crate) => `--probe=poll:${crate}::**`));
  }
  const elf = typeof program === 'string' && lacksProgram(line, names) ? placed(program, path) : undefined;
  if (elf !== undefined) {
    taken.push('program');
    before.push(elf);
  }
  const isStub = ['remote', 'pid', 'off-cpu'].some((one) => names.has(one)) || taken.includes('remote');
  const behind = isStub ? [] : runnerFor(values.runner, line, elf);
  return { taken: behind.length > 0 ? [...taken, 'runner'] : taken, before, behind };
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

/** Whether the line has an option, or another one in its place. */
function isGiven(key: string, { command, plain }: Line, names: ReadonlySet<string>): boolean {
  // Only with the function at which it begins a graph is one of a target; a program is started.
  if (key === 'remote' && command === 'graph' && (!names.has('fn') || plain.length > 0)) return true;
  if (key === 'remote' && command === 'profile' && plain.length > 0) return true;
  return [key, ...(eitherOr.find((row) => row.includes(key)) ?? [])].some((one) => names.has(one));
}

/** Whether the line leaves out the program that its command is about. */
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
