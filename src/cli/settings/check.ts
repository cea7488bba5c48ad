import { messageOf, type RsptraceError } from '../../base/errors.js';
import { nearestWords } from '../../base/search.js';
import type { Option, Table } from '../options/option.js';

/** A table of a TOML file, by its keys. */
export interface TomlTable {
  readonly [key: string]: unknown;
}

/** What settings may say of each command; `record` is the one without a name. */
export interface SettingsTables {
  readonly [command: string]: Table;
}

/** What else stands there than options: texts, or lists of them. */
export const ownKeys = {
  program: { isList: false, about: 'The ELF, or the program, that is looked at: where the command line names none' },
  runner: {
    isList: true,
    about: "What `run` and `profile` start behind `--`: QEMU's words, of which '{program}' is the ELF",
  },
  crates: {
    isList: true,
    about: "The program's own crates: recordings without a probe record the Futures of these, poll:CRATE::** each",
  },
} as const;

/** Says where in the file something wrong is. */
export type At = (keys: readonly string[], sentence: string, hint?: string) => RsptraceError;

/** Options that a file cannot have. */
export const never: ReadonlySet<string> = new Set(['config']);

/** @throws RsptraceError `SETTINGS_INVALID`, for the first thing that is wrong */
export function checkSettings(table: TomlTable, tables: SettingsTables, at: At): void {
  for (const [key, value] of Object.entries(table)) {
    const own = Object.hasOwn(tables, key) && isTable(value) ? value : undefined;
    if (own)
      for (const [inner, one] of Object.entries(own)) checkKey([key, inner], one, { [key]: tables[key] as Table }, at);
    else checkKey([key], value, tables, at);
  }
}

export function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function checkKey(keys: readonly string[], value: unknown, tables: SettingsTables, at: At): void {
  const key = keys.at(-1) as string;
  if (isOwn(key)) {
    const isRight = ownKeys[key].isList ? isListOfTexts(value) : typeof value === 'string';
    if (!isRight) throw at(keys, `${key} is ${ownKeys[key].isList ? listText(value) : 'a text'}`);
    return;
  }
  const having = Object.entries(tables).flatMap(([command, table]) => {
    const option = never.has(key) || !Object.hasOwn(table, key) ? undefined : table[key];
    return option ? [{ command, option }] : [];
  });
  if (having.length === 0) throw unknown(keys, value, tables, at);
  for (const { command, option } of having) {
    const why = whyNot(key, option, value);
    const isOfAll = keys.length === 1 && having.length > 1;
    const hint = isOfAll
      ? `so says ${command}; what is for one command alone stands below [${having[0]?.command}], say`
      : undefined;
    if (why !== undefined) throw at(keys, why, hint);
  }
}

function unknown(keys: readonly string[], value: unknown, tables: SettingsTables, at: At): RsptraceError {
  const key = keys.at(-1) as string;
  const commands = keys.length === 1 ? Object.keys(tables) : [];
  const options = Object.values(tables).flatMap((table) => Object.keys(table).filter((name) => !never.has(name)));
  const near = nearestWords(key, [...(isTable(value) ? commands : []), ...Object.keys(ownKeys), ...options]);
  const where = keys.length === 1 ? '' : ` of ${keys[0]}`;
  const what = isTable(value) && keys.length === 1 ? 'command' : 'option';
  return at(keys, `there is no ${what} '${key}'${where}`, near.length > 0 ? `nearest: ${near.join(', ')}` : undefined);
}

function isOwn(key: string): key is keyof typeof ownKeys {
  return Object.hasOwn(ownKeys, key);
}

/** A sentence; undefined for a value that the option can have. */
export function whyNot(key: string, option: Option<unknown>, value: unknown): string | undefined {
  const kind = kindOf(option);
  if (kind === 'flag') return typeof value === 'boolean' ? undefined : `${key} is true or false`;
  if (kind === 'list') {
    if (!isListOfTexts(value)) return `${key} is ${listText(value)}`;
    return whyNotParsed(key, option, value);
  }
  if (kind === 'choice') {
    const choices = (option.choices ?? []).map(String);
    return choices.some((one) => one === value) ? undefined : `${key} is one of ${choices.join(', ')}`;
  }
  const isText = typeof value === 'string' || (kind === 'parsed' && typeof value === 'number');
  if (!isText) return `${key} is a text: ${key} = "..."`;
  return whyNotParsed(key, option, String(value));
}

function whyNotParsed(key: string, { coerce }: Option<unknown>, value: unknown): string | undefined {
  try {
    coerce?.(value);
    return undefined;
  } catch (error) {
    return `${key}: ${messageOf(error)}`;
  }
}

/** What the values of an option are. `parsed`: a text that stands for something else, which may be a number. */
export function kindOf({ type, array, choices, is }: Option<unknown>): 'flag' | 'list' | 'choice' | 'text' | 'parsed' {
  if (type === 'boolean') return 'flag';
  if (array) return 'list';
  if (choices) return 'choice';
  return is('') ? 'text' : 'parsed';
}

function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function listText(value: unknown): string {
  return `a list of texts: ${typeof value === 'string' ? JSON.stringify([value]) : '["..."]'}`;
}
