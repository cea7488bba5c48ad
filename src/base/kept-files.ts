// Files of the user's cache folder: what takes long to find, and can be found anew. A file has
//
//   magic (16) | CRC-32 of the content (4) | zeros (4) | content
//
// One that is damaged, or cannot be read, is one that is not there. It is written under another name first, so that
// two processes do not meet.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { cacheFolder, makeCacheFolder } from './cache-folder.js';
import { messageOf } from './errors.js';

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
    sum.writeUInt32LE(content.reduce((before, piece) => crc32(piece, before), 0));
    writeFileSync(part, Buffer.concat([MAGIC, sum, ...content]), { mode: 0o600 });
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
    return stat === undefined ? [] : [{ path, size: stat.size, mtimeMs: stat.mtimeMs }];
  });
  let rest = files.reduce((sum, { size }) => sum + size, 0) - MOST_KEPT;
  for (const { path, size } of files.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
    if (rest <= 0) return;
    rmSync(path, { force: true });
    rest -= size;
  }
}
