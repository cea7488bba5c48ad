// llvm-dwarfdump's text as data: the oracle for what stands in a file's debug info.
import { execFileSync } from 'node:child_process';

export interface DumpedDie {
  readonly offset: number;
  readonly depth: number;
  readonly tag: string;
  /** Attribute name to the text in parentheses (the first line of it where it has several). */
  readonly attributes: ReadonlyMap<string, string>;
  /** The `[low, high)` pairs of a range or location list, with what follows the colon. */
  readonly ranges: readonly { readonly low: bigint; readonly high: bigint; readonly text: string }[];
}

export function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { maxBuffer: 1 << 30, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** All DIEs of .debug_info in order. */
export function* dumpInfo(path: string): Generator<DumpedDie> {
  const text = run('llvm-dwarfdump', '--debug-info', path);
  let die:
    | {
        offset: number;
        depth: number;
        tag: string;
        attributes: Map<string, string>;
        ranges: DumpedDie['ranges'][number][];
      }
    | undefined;
  for (let at = 0; at < text.length; ) {
    let end = text.indexOf('\n', at);
    if (end < 0) end = text.length;
    const line = text.slice(at, end);
    at = end + 1;
    if (line.startsWith('0x')) {
      const head = /^0x([0-9a-f]+):( +)(DW_TAG_\w+|NULL)/.exec(line);
      if (head === null) continue;
      if (die !== undefined) yield die;
      die =
        head[3] === 'NULL'
          ? undefined
          : {
              offset: Number.parseInt(head[1] as string, 16),
              depth: ((head[2] as string).length - 1) / 2,
              tag: (head[3] as string).slice('DW_TAG_'.length),
              attributes: new Map(),
              ranges: [],
            };
      continue;
    }
    const attribute = /^ +DW_AT_(\w+)\t\((.*?)\)?$/.exec(line);
    if (attribute !== null) {
      die?.attributes.set(attribute[1] as string, attribute[2] as string);
      continue;
    }
    const range = /^ +\[0x([0-9a-f]+), 0x([0-9a-f]+)\)(?::? ?)(.*?)\)?$/.exec(line);
    if (range !== null) {
      die?.ranges.push({ low: BigInt(`0x${range[1]}`), high: BigInt(`0x${range[2]}`), text: range[3] as string });
    }
  }
  if (die !== undefined) yield die;
}

export interface DumpedRow {
  readonly address: bigint;
  readonly line: number;
  readonly column: number;
  readonly file: number;
  readonly isStmt: boolean;
  readonly endSequence: boolean;
}

/** The rows of every line table, by the table's offset in .debug_line. */
export function dumpLines(path: string): Map<number, DumpedRow[]> {
  const tables = new Map<number, DumpedRow[]>();
  let rows: DumpedRow[] = [];
  for (const line of run('llvm-dwarfdump', '--debug-line', path).split('\n')) {
    const head = /^debug_line\[0x([0-9a-f]+)\]/.exec(line);
    if (head !== null) {
      rows = [];
      tables.set(Number.parseInt(head[1] as string, 16), rows);
      continue;
    }
    const row = /^0x([0-9a-f]{16}) +(\d+) +(\d+) +(\d+) +\d+ +\d+ (.*)$/.exec(line);
    if (row === null) continue;
    const flags = (row[5] as string).split(' ');
    rows.push({
      address: BigInt(`0x${row[1]}`),
      line: Number(row[2]),
      column: Number(row[3]),
      file: Number(row[4]),
      isStmt: flags.includes('is_stmt'),
      endSequence: flags.includes('end_sequence'),
    });
  }
  return tables;
}
