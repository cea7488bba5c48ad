import type { Asked } from '../check-words.js';
import type { Command } from '../command.js';
import { note } from '../failure.js';
import type { SettingsTaken } from '../options/option.js';
import type { SettingsTables } from './check.js';
import { settingsFiles } from './find.js';

interface WithSettings {
  readonly words: readonly string[];
  readonly settings?: SettingsTaken;
}

/**
 * The words of a command line, with those of the nearest file of settings that it does not say itself. `given`: its
 * words without the command's name.
 * @throws RsptraceError `SETTINGS_INVALID`
 */
export async function withSettings(
  { command: name, options, plain }: Asked,
  given: readonly string[],
  { options: table, places }: Command,
  tablesOf: () => SettingsTables,
): Promise<WithSettings> {
  const isOff = options.some(
    ({ name: option, spelled, value }) => option === 'config' && (spelled === '--no-config') !== (value === 'false'),
  );
  if (isOff || !('config' in table)) return { words: given };
  const strangers = (path: string): void => note(`${path} is another user's, so that it is not taken`);
  const files = [...settingsFiles(process.cwd(), strangers)];
  if (files.length === 0) return { words: given };
  const [{ loadSettings, shown }, { filledBy }] = [await import('./load.js'), await import('./words.js')];
  const command = name ?? 'record';
  const found = loadSettings(files, tablesOf(), command);
  if (found === undefined) return { words: given };
  const end = given.indexOf('--');
  const environment = process.env.RSPTRACE_LOG ? ['log'] : [];
  const { taken, before, behind } = filledBy(found, {
    ...{ command, options: table, places: Object.keys(places), plain, hasCommand: end >= 0 },
    needed: Object.values(places).filter(({ demandOption }) => demandOption).length,
    given: [...options.map(({ name: option }) => option), ...environment],
  });
  if (taken.length === 0) return { words: given };
  const file = shown(found.path);
  note(`settings of ${file}: ${taken.join(', ')}`);
  const own = end < 0 ? given : given.slice(0, end);
  const words = [...before, ...own, ...(end < 0 ? behind : given.slice(end))];
  return { words, settings: { file, keys: taken } };
}
