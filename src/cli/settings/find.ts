// Which file of settings counts for a command line. What reads it is loaded only where there is one.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf, RsptraceError } from '../../base/errors.js';

/** A file that may have settings. */
export interface SettingsText {
  readonly path: string;
  readonly text: string;
  /** The tables of the file that they may be in: the first that is there counts. */
  readonly places: readonly (readonly string[])[];
}

export const settingsHint = '--no-config leaves files of settings out';

const MOST_BYTES = 1e6;
const ofCargo = [
  ['package', 'metadata', 'rsptrace'],
  ['workspace', 'metadata', 'rsptrace'],
];

/**
 * Files that may have settings, from a folder upward: `rsptrace.toml`, and a `Cargo.toml` whose text has a table of
 * them. `leftOut` is called with one that is somebody else's.
 * @throws RsptraceError `SETTINGS_INVALID`
 */
export function* settingsFiles(from: string, leftOut: (path: string) => void): Generator<SettingsText> {
  for (let folder = from; ; folder = dirname(folder)) {
    for (const name of ['rsptrace.toml', 'Cargo.toml']) {
      const path = join(folder, name);
      if (!existsSync(path)) continue;
      const isCargo = name === 'Cargo.toml';
      const text = textOf(path);
      if (isCargo && !/\bmetadata\b.*\brsptrace\b/s.test(text)) continue;
      // What settings name is started: a stranger's in /tmp must not count for all that lies below.
      if (folder !== from && isStrangers(path)) leftOut(path);
      else yield { path, text, places: isCargo ? ofCargo : [[]] };
    }
    if (folder === dirname(folder)) return;
  }
}

function isStrangers(path: string): boolean {
  const us = process.getuid?.();
  const owner = statSync(path).uid;
  return us !== undefined && owner !== us && owner !== 0 && String(owner) !== process.env.SUDO_UID;
}

function textOf(path: string): string {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) throw new Error('it is no file');
    if (stat.size > MOST_BYTES) throw new Error(`it has ${stat.size} bytes, more than ${MOST_BYTES}`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new RsptraceError('SETTINGS_INVALID', `${path} cannot be read: ${messageOf(error)}`, { hint: settingsHint });
  }
}
