import { relative } from 'node:path';
import { parse } from 'smol-toml';
import { messageOf, RsptraceError } from '../../base/errors.js';
import { type At, checkSettings, isTable, type SettingsTables, type TomlTable } from './check.js';
import { type SettingsText, settingsHint } from './find.js';

/** The settings of the first file that has some, for a command: its own table over the top. */
export interface Settings {
  readonly path: string;
  readonly values: TomlTable;
  /** The keys of the command's own table. */
  readonly own: readonly string[];
}

/** @throws RsptraceError `SETTINGS_INVALID` with the file and the line */
export function loadSettings(
  files: Iterable<SettingsText>,
  tables: SettingsTables,
  command: string,
): Settings | undefined {
  for (const file of files) {
    const whole = parsed(file);
    const place = file.places.find((keys) => tableAt(whole, keys) !== undefined);
    const table = place && tableAt(whole, place);
    if (!place || !table) continue;
    checkSettings(table, tables, wrongIn(file, place));
    const own = tableAt(table, [command]) ?? {};
    const top = Object.entries(table).filter(([key, value]) => !(Object.hasOwn(tables, key) && isTable(value)));
    return { path: file.path, values: { ...Object.fromEntries(top), ...own }, own: Object.keys(own) };
  }
  return undefined;
}

function parsed({ path, text }: SettingsText): TomlTable {
  try {
    return parse(text);
  } catch (error) {
    const { line } = error as { readonly line?: number };
    const [sentence = ''] = messageOf(error).split('\n');
    const at = line === undefined ? '' : `:${line}`;
    throw new RsptraceError('SETTINGS_INVALID', `${shown(path)}${at}: ${sentence}`, { hint: settingsHint });
  }
}

function tableAt(table: TomlTable, keys: readonly string[]): TomlTable | undefined {
  const found = valueAt(table, keys);
  return isTable(found) ? found : undefined;
}

function valueAt(table: TomlTable, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((at, key) => (isTable(at) && Object.hasOwn(at, key) ? at[key] : undefined), table);
}

function wrongIn({ path, text }: SettingsText, place: readonly string[]): At {
  return (keys, sentence, hint = settingsHint) => {
    const line = lineOf(text, [...place, ...keys]);
    const at = line === undefined ? '' : `:${line}`;
    return new RsptraceError('SETTINGS_INVALID', `${shown(path)}${at}: ${sentence}`, { hint });
  };
}

/**
 * The line of a key. The parser does not say it, so that each place is tried: it is the one without which the key is
 * not there.
 */
function lineOf(text: string, keys: readonly string[]): number | undefined {
  const key = keys.at(-1) as string;
  for (let at = text.indexOf(key); at >= 0; at = text.indexOf(key, at + 1)) {
    const changed = `${text.slice(0, at)}x${text.slice(at)}`;
    try {
      if (valueAt(parse(changed), keys) === undefined) return text.slice(0, at).split('\n').length;
    } catch {
      // Not a key, or part of one.
    }
  }
  return undefined;
}

/** As it is from here, if that is shorter. */
export function shown(path: string): string {
  const near = relative('', path);
  return near.length < path.length ? near : path;
}
