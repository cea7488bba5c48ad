import type { Command } from '../command.js';
import { isOn } from '../command-values.js';
import { note } from '../failure.js';
import type { SettingsTaken } from '../options/option.js';
import { type Line, lineWith } from '../words.js';
import type { SettingsTables } from './check.js';
import { settingsFiles } from './find.js';

interface WithSettings {
  readonly line: Line;
  readonly settings?: SettingsTaken;
}

/**
 * A command line, with the words of the nearest file of settings that it does not say itself.
 * @throws RsptraceError `SETTINGS_INVALID`
 */
export async function withSettings(
  name: string | undefined,
  line: Line,
  { options: table, places }: Command,
  tablesOf: () => SettingsTables,
): Promise<WithSettings> {
  const { words: given, options, plain } = line;
  const config = options.findLast((one) => one.name === 'config');
  if ((config && !isOn(config)) || !('config' in table)) return { line };
  const strangers = (path: string): void => note(`${path} is another user's, so that it is not taken`);
  const files = [...settingsFiles(process.cwd(), strangers)];
  if (files.length === 0) return { line };
  const [{ loadSettings, shown }, { filledBy }] = [await import('./load.js'), await import('./words.js')];
  const command = name ?? 'record';
  const found = loadSettings(files, tablesOf(), command);
  if (found === undefined) return { line };
  const end = given.indexOf('--');
  const environment = process.env.RSPTRACE_LOG ? ['log'] : [];
  const { taken, before, behind } = filledBy(found, {
    ...{ command, options: table, places: Object.keys(places), plain, hasCommand: end >= 0 },
    needed: Object.values(places).filter(({ demandOption }) => demandOption).length,
    given: [...options.map(({ name: option }) => option), ...environment],
  });
  if (taken.length === 0) return { line };
  const file = shown(found.path);
  note(`settings of ${file}: ${taken.join(', ')}`);
  const own = end < 0 ? given : given.slice(0, end);
  const words = [...before, ...own, ...(end < 0 ? behind : given.slice(end))];
  return { line: lineWith(words, table), settings: { file, keys: taken } };
}
