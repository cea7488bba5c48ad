// Files of the user's cache folder: what takes long to find, and can be found anew. A file has
//
//   magic (16) | CRC-32 of the content (4) | zeros (4) | content
//
// One that is damaged, or cannot be read, is one that is not there. It is written under another name first, so that
// two processes do not meet.
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { homedir, hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { messageOf } from './errors.js';
import { readFully } from './file-bytes.js';

/** Changes with the format. */
const MAGIC = Buffer.from('rsptrace kept 1\n');
/** A multiple of 8, which columns of numbers need. */
const HEAD = MAGIC.length + 8;
/** All files together; the ones that were not used for the longest time go first. */
const MOST_KEPT = 500e6;

/** Whether anything is kept: see `RSPTRACE_CACHE`. */
export function isKeeping(): boolean {
  return cacheFolder() !== undefined;
}

/** The content of a file; undefined if it was not kept. Its name says what it was made of. */
export function readKept(name: string): Buffer | undefined {
  const folder = cacheFolder();
  if (folder === undefined) return undefined;
  const path = join(folder, name);
  try {
    const file = readFileSync(path);
    if (file.length < HEAD || !file.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
    const content = file.subarray(HEAD);
    if (crc32(content) !== file.readUInt32LE(MAGIC.length)) return undefined;
    utimesSync(path, new Date(), new Date());
    return content;
  } catch {
    return undefined;
  }
}

/** Keeps the content of a file, in pieces. */
export function writeKept(name: string, content: readonly Uint8Array[]): void {
  const folder = cacheFolder();
  if (folder === undefined) return;
  const path = join(folder, name);
  const part = `${path}.${randomBytes(4).toString('hex')}`;
  try {
    makeCacheFolder(folder);
    const sum = Buffer.alloc(HEAD - MAGIC.length);
    // Of a piece without bytes Node's crc32 may be 0, whatever came before.
    const pieces = content.filter(({ length }) => length > 0);
    sum.writeUInt32LE(pieces.reduce((before, piece) => crc32(piece, before), 0));
    writeFileSync(part, Buffer.concat([MAGIC, sum, ...pieces]), { mode: 0o600 });
    renameSync(part, path);
    removeOldest(folder);
  } catch (error) {
    removePart(part);
    sayOnce(`nothing can be kept for the next start in ${folder}: ${messageOf(error)}`);
  }
}

let say: ((sentence: string) => void) | undefined;

/** From now on, that nothing can be kept is said in one sentence, once. */
export function sayWhereNothingIsKept(listener: (sentence: string) => void): void {
  say = listener;
}

function sayOnce(sentence: string): void {
  say?.(sentence);
  say = undefined;
}

function removePart(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A folder that may not be looked into, or that is none: nothing was written there.
  }
}

function removeOldest(folder: string): void {
  const files = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    // Another process may have removed it meanwhile.
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat?.isFile() ? [{ path, size: stat.size, mtimeMs: stat.mtimeMs }] : [];
  });
  if (sizeOf(files) <= MOST_KEPT) return;
  // A folder that RSPTRACE_CACHE names may have files of others.
  const own = files.filter(({ path }) => isKept(path));
  let rest = sizeOf(own) - MOST_KEPT;
  for (const { path, size } of own.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
    if (rest <= 0) return;
    rmSync(path, { force: true });
    rest -= size;
  }
}

function sizeOf(files: readonly { readonly size: number }[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Whether it begins as ours do. */
function isKept(path: string): boolean {
  const magic = Buffer.alloc(MAGIC.length);
  try {
    const fd = openSync(path, 'r');
    try {
      return readFully(fd, magic, 0) && magic.equals(MAGIC);
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

/** Where what can be made anew is kept for the next start; undefined where RSPTRACE_CACHE says `off`. */
function cacheFolder(): string | undefined {
  const { RSPTRACE_CACHE: own, XDG_CACHE_HOME: caches } = process.env;
  if (own === 'off') return undefined;
  return own || join(caches || join(homedir(), '.cache'), 'rsptrace');
}

/** Makes it, and the folder around it. Throws if that cannot be. */
function makeCacheFolder(folder: string): void {
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
