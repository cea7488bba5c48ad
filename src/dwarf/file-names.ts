import { posix } from 'node:path';
import type { LineHeader } from './line-header.js';

export interface FileName {
  /** The compilation directory, the file's directory and its name, joined: `/labkern/src/work.rs`. */
  readonly path: string;
  /** The same without the compilation directory: `src/work.rs`. */
  readonly short: string;
}

/** The file names of one unit, joined when they are asked for. */
export class FileNames {
  readonly #compDir: string;
  readonly #header: LineHeader | undefined;
  readonly #known = new Map<number, FileName | undefined>();

  constructor(compDir: string | undefined, header: LineHeader | undefined) {
    this.#compDir = compDir ?? '';
    this.#header = header;
  }

  at(index: number): FileName | undefined {
    if (!this.#known.has(index)) this.#known.set(index, this.#join(index));
    return this.#known.get(index);
  }

  #join(index: number): FileName | undefined {
    const header = this.#header;
    const file = header?.files[index];
    if (header === undefined || file === undefined) return undefined;
    const path = join(this.#compDir, join(header.directories[file.directory] ?? '', file.name));
    const prefix = this.#compDir.endsWith('/') ? this.#compDir : `${this.#compDir}/`;
    return { path, short: prefix !== '/' && path.startsWith(prefix) ? path.slice(prefix.length) : path };
  }
}

// `..` stays: behind a symbolic link it does not lead back.
function join(directory: string, name: string): string {
  if (directory === '' || posix.isAbsolute(name)) return name;
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`;
}
