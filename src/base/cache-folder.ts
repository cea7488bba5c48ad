import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { dirname, join } from 'node:path';

/** Where what can be made anew is kept for the next start; undefined where RSPTRACE_CACHE says `off`. */
export function cacheFolder(): string | undefined {
  const { RSPTRACE_CACHE: own, XDG_CACHE_HOME: caches } = process.env;
  if (own === 'off') return undefined;
  return own || join(caches || join(homedir(), '.cache'), 'rsptrace');
}

/** Makes it, and the folder around it. Throws if that cannot be. */
export function makeCacheFolder(folder: string): void {
  for (const each of [dirname(folder), folder]) makeFolder(each);
}

/** Not `recursive`: below /proc, where nothing can be made, Node tries for ever. */
function makeFolder(path: string): void {
  if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
}

/** Whether this is said for the first time on this machine. True each time where nothing can be kept. */
export function isFirstSaid(sentence: string): boolean {
  const folder = cacheFolder();
  if (folder === undefined) return true;
  const key = createHash('sha1').update(`${hostname()}\n${sentence}`).digest('hex');
  try {
    makeCacheFolder(folder);
    writeFileSync(join(folder, `${key}-said`), '', { mode: 0o600, flag: 'wx' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EEXIST';
  }
}
