// What was found in a program by going over all of it, as columns of numbers: kept in the user's cache folder, so that
// the next start reads it there. The content of a file (src/base/kept-files.ts) is
//
//   columns (4) | kind and rows of each (4 + 4) ... | zeros to a multiple of 8 | rows of each, to a multiple of 8 ...
//
// Its name says what was read: the build ids of the program and of its debug file with the tables of their sections,
// or a hash of all they have, and the code that has read them.
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import { isKeeping, readKept, writeKept } from '../base/kept-files.js';
import type { ElfFile } from './elf.js';

/** The kinds of columns, by their number in a file. */
const KINDS = [Uint8Array, Uint32Array, Float64Array] as const;
/** Of a smaller file everything is found faster than a file of columns is read. */
const LEAST_BYTES = 100e3;
const WORD = 4;
const ALIGNMENT = 8;

export type Column = Uint8Array | Uint32Array | Float64Array;

const known = new WeakMap<ElfFile, Kept | undefined>();

/** What is kept of a program. */
export class Kept {
  readonly #key: string;

  private constructor(key: string) {
    this.#key = key;
  }

  /** Undefined where keeping does not pay, or where the environment variable RSPTRACE_CACHE says `off`. */
  static of(elf: ElfFile): Kept | undefined {
    if (!isKeeping() || elf.size < LEAST_BYTES) return undefined;
    if (!known.has(elf)) {
      const hash = createHash('sha1').update(readingCode());
      for (const part of elf.identity()) hash.update(part);
      known.set(elf, new Kept(hash.digest('hex')));
    }
    return known.get(elf);
  }

  /** Undefined if they were not kept. */
  read(name: string): readonly Column[] | undefined {
    const content = readKept(`${this.#key}-${name}`);
    return content && columnsIn(content);
  }

  /** The same of any value that can be cloned; undefined if it was not kept. */
  readValue(name: string): unknown {
    try {
      const [bytes] = this.read(name) ?? [];
      return bytes && deserialize(bytes);
    } catch {
      // Another version of Node wrote it.
      return undefined;
    }
  }

  writeValue(name: string, value: unknown): void {
    this.write(name, [serialize(value)]);
  }

  write(name: string, columns: readonly Column[]): void {
    writeKept(`${this.#key}-${name}`, contentOf(columns));
  }
}

/** Changes with the code that has found the columns. */
function readingCode(): string {
  const path = fileURLToPath(import.meta.url);
  const { size, mtimeMs } = statSync(path);
  return `${path} ${size} ${mtimeMs}`;
}

function contentOf(columns: readonly Column[]): Uint8Array[] {
  const kinds = columns.flatMap((column) => [KINDS.findIndex((kind) => column instanceof kind), column.length]);
  return [Uint32Array.of(columns.length, ...kinds), ...columns].flatMap(({ buffer, byteOffset, byteLength }) => [
    new Uint8Array(buffer, byteOffset, byteLength),
    new Uint8Array(-byteLength & (ALIGNMENT - 1)),
  ]);
}

/** Undefined for what no {@link contentOf} gives. */
function columnsIn(content: Buffer): Column[] | undefined {
  const { buffer, byteOffset, byteLength }: Uint8Array =
    content.byteOffset % ALIGNMENT === 0 ? content : new Uint8Array(content);
  const words = new Uint32Array(buffer, byteOffset, Math.floor(byteLength / WORD));
  const [count = 0] = words;
  const found: Column[] = [];
  if (2 * count + 1 > words.length) return undefined;
  let at = roundUp((2 * count + 1) * WORD);
  for (let i = 0; i < count; i++) {
    const kind = KINDS[words[2 * i + 1] as number];
    const rows = words[2 * i + 2] as number;
    if (kind === undefined || at + rows * kind.BYTES_PER_ELEMENT > byteLength) return undefined;
    found.push(new kind(buffer as ArrayBuffer, byteOffset + at, rows));
    at = roundUp(at + rows * kind.BYTES_PER_ELEMENT);
  }
  return found;
}

function roundUp(bytes: number): number {
  return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
}
