// What a pass over all debug info has found, as columns of DIE offsets: kept in the user's cache folder, so that the
// next start reads it there. A file has one set of columns:
//
//   magic (16) | SHA-1 of all behind it (20) | columns (4) | rows of each (4) ... | rows (4 each) ...
//
// Its name says what was read: a hash of the debug info, and of the code that has read it. A file that is damaged, or
// cannot be read or written, is one that is not there.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder, makeCacheFolder } from '../base/cache-folder.js';
import type { DwarfSections } from '../elf/index.js';

/** What the passes read. */
const readSections = [
  'info',
  'types',
  'abbrev',
  'str',
  'line_str',
  'str_offsets',
  'addr',
  'names',
  'rnglists',
  'ranges',
];
/** Less debug info is read faster than a file of columns pays for. */
const LEAST_BYTES = 64 << 10;
/** All files together; the ones that were not used for the longest time go first. */
const MOST_KEPT = 500e6;
const MAGIC = Buffer.from('rsptrace columns');
const DIGEST = 20;
const HEAD = MAGIC.length + DIGEST;
const WORD = 4;

type Columns = readonly Uint32Array[];

/** The kept columns of one program's debug info. */
export class KeptColumns {
  readonly #folder: string;
  readonly #key: string;

  private constructor(folder: string, key: string) {
    this.#folder = folder;
    this.#key = key;
  }

  /** Undefined where keeping them does not pay, or where the environment variable RSPTRACE_CACHE says `off`. */
  static of(sections: DwarfSections): KeptColumns | undefined {
    const folder = cacheFolder();
    if (folder === undefined || sections.get('.debug_info').length < LEAST_BYTES) return undefined;
    const hash = createHash('sha1').update(readingCode());
    for (const name of readSections) {
      const bytes = sections.get(`.debug_${name}`);
      hash.update(`${name} ${bytes.length} `).update(bytes);
    }
    return new KeptColumns(folder, hash.digest('hex'));
  }

  /** Undefined if they were not kept. */
  read(name: string): Columns | undefined {
    const path = this.#path(name);
    try {
      const found = columnsIn(readFileSync(path));
      if (found) utimesSync(path, new Date(), new Date());
      return found;
    } catch {
      return undefined;
    }
  }

  write(name: string, columns: Columns): void {
    const path = this.#path(name);
    const part = `${path}.${randomBytes(4).toString('hex')}`;
    try {
      makeCacheFolder(this.#folder);
      writeFileSync(part, fileOf(columns), { mode: 0o600 });
      renameSync(part, path);
      removeOldest(this.#folder);
    } catch {
      removePart(part);
    }
  }

  #path(name: string): string {
    return join(this.#folder, `${this.#key}-${name}`);
  }
}

/** Changes with the code that has found the columns. */
function readingCode(): string {
  const path = fileURLToPath(import.meta.url);
  const { size, mtimeMs } = statSync(path);
  return `${path} ${size} ${mtimeMs}`;
}

function fileOf(columns: Columns): Uint8Array {
  const sizes = Uint32Array.of(columns.length, ...columns.map(({ length }) => length));
  const body = [sizes, ...columns].map(({ buffer, byteOffset, byteLength }) =>
    Buffer.from(buffer, byteOffset, byteLength),
  );
  const hash = createHash('sha1');
  for (const each of body) hash.update(each);
  return Buffer.concat([MAGIC, hash.digest(), ...body]);
}

/** Undefined for a file that is damaged. */
function columnsIn(file: Buffer): Columns | undefined {
  if (file.length < HEAD + WORD || !file.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const body = file.subarray(HEAD);
  const digest = createHash('sha1').update(body).digest();
  if (!digest.equals(file.subarray(MAGIC.length, HEAD))) return undefined;
  const words = new Uint32Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.length));
  const count = words[0] as number;
  let from = 1 + count;
  return Array.from({ length: count }, (_, i) => {
    const length = words[1 + i] as number;
    from += length;
    return words.subarray(from - length, from);
  });
}

function removePart(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A folder that may not be looked into, or that is none: nothing was written there.
  }
}

function removeOldest(folder: string): void {
  const files = readdirSync(folder).map((name) => {
    const { size, mtimeMs } = statSync(join(folder, name));
    return { path: join(folder, name), size, mtimeMs };
  });
  let rest = files.reduce((sum, { size }) => sum + size, 0) - MOST_KEPT;
  for (const { path, size } of files.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
    if (rest <= 0) return;
    rmSync(path, { force: true });
    rest -= size;
  }
}
