import { basename } from 'node:path';
import { hex } from '../../../base/addr.js';
import { madeOnce } from '../../../base/made-once.js';
import { firstWhere } from '../../../base/search.js';
import { Damage } from '../read/fields.js';

/** 48 bits, as uftrace's records have them: high halves of kernels are cut alike. */
const ADDRESSES = 2 ** 48;

interface Mapping {
  readonly start: number;
  readonly end: number;
  readonly symbols: readonly Row[];
}

interface Row {
  readonly address: number;
  /** Undefined of a mark, which ends the one before. */
  readonly name: string | undefined;
}

/** Names by address, from the maps of all of uftrace's sessions and the symbol files next to them. */
export class UftraceSymbols {
  readonly #isRelative: boolean;
  readonly #mappings: Mapping[] = [];
  readonly #known = new Map<number, string>();

  /** `isRelative`: symbols count from where their file is mapped. */
  constructor(isRelative: boolean) {
    this.#isRelative = isRelative;
  }

  /** Adds a session's map, whose lines are those of /proc/PID/maps. `symbols` gives the text of a symbol file. */
  map(file: string, text: string, symbols: (name: string) => string | undefined): void {
    /** Where a file's first mapping is: in each session elsewhere. */
    const bases = new Map<string, number>();
    if (!text.endsWith('\n')) throw new Damage(`${file} ends in the middle of a line`);
    for (const [index, line] of text.trimEnd().split('\n').entries()) {
      const [, from, to, path] = /^([\da-f]{1,16})-([\da-f]{1,16}) \S+ \S+ \S+ \S+(?: +(\S.*))?$/.exec(line) ?? [];
      const [start, end] = [from, to].map((hex) => Number.parseInt(hex ?? '', 16) % ADDRESSES) as [number, number];
      if (!(start <= end)) throw new Damage(`${file} has no mapping in line ${index + 1}`);
      const [name] = path?.split(' build-id:') ?? [];
      if (!name?.startsWith('/')) continue;
      const rows = `${basename(name)}.sym`;
      const symbolText = symbols(rows);
      if (symbolText === undefined) continue;
      const base = this.#isRelative ? madeOnce(bases, name, () => start) : 0;
      this.#mappings.push({ start, end, symbols: symbolsOf(rows, symbolText, base) });
    }
  }

  nameAt(address: number): string {
    return madeOnce(this.#known, address, () => this.#find(address) ?? hex(address));
  }

  #find(address: number): string | undefined {
    for (const { start, end, symbols } of this.#mappings) {
      if (address < start || address >= end) continue;
      const behind = firstWhere(symbols.length, (i) => (symbols[i] as Row).address > address);
      if (behind > 0) return symbols[behind - 1]?.name;
    }
    return undefined;
  }
}

/**
 * `0000000000001139 T main`, or with a size between the two. `? __sym_end` and the like are no symbols: they end the
 * one before. The head says how many symbols there are.
 */
function symbolsOf(file: string, text: string, base: number): readonly Row[] {
  if (!text.endsWith('\n')) throw new Damage(`${file} ends in the middle of a line`);
  const lines = text.trimEnd().split('\n');
  const rows: Row[] = [];
  let ends = 0;
  let isEnd = true;
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('#')) continue;
    const [, hex = '', kind, name = ''] = /^([\da-f]{8,16}) (?:[\da-f]{8} )?([?A-Za-z]) (.+)$/.exec(line) ?? [];
    if (name === '') throw new Damage(`${file} has no symbol in line ${index + 1}`);
    isEnd = kind === '?' && /^__\w+_end$/.test(name);
    if (isEnd) ends++;
    rows.push({ address: (base + Number.parseInt(hex, 16)) % ADDRESSES, name: isEnd ? undefined : name });
  }
  const said = Number(/^# symbols: (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
  // rsptrace once counted the end, too.
  if (!isEnd || !(said === rows.length - ends || said === rows.length)) {
    throw new Damage(`${file} has ${rows.length - ends} symbols, and says that it has ${said}`);
  }
  return rows.sort((a, b) => a.address - b.address);
}
