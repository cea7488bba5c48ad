/*
 * GDB manual, appendix "Target Descriptions": <architecture>, <feature>, <reg> and <xi:include>, nested. A <reg>
 * without regnum has the number of the one before it plus one, across features and includes
 * (gdb/target-descriptions.c). Passed over: types, flags, osabi, compatible. Refused: more than 64 documents or 4
 * MiB, includes deeper than 8, more than 8192 registers, numbers beyond 65535, registers wider than 65536 bits or not
 * of whole bytes.
 */

import { RsptraceError } from '../../base/errors.js';
import { readXml } from './xml.js';

export interface RegisterDescription {
  readonly name: string;
  /** The stub's number, which `p` and `P` take. */
  readonly number: number;
  readonly bits: number;
  /** Byte offset in the answer to `g`; undefined when it is not in there. */
  readonly offsetInG: number | undefined;
}

/** A register as the description spells it, before its place in `g` is known. */
export interface RegisterSpec {
  readonly name: string;
  readonly number: number;
  readonly bits: number;
  /** lldb-server says where in `g` a register lies. */
  readonly offset?: number | undefined;
}

/** What the target is: its architecture and its registers, by name, whatever the stub's numbering. */
export class TargetDescription {
  /** As the stub says it (`riscv:rv64`, `i386:x86-64`). */
  readonly architecture: string | undefined;
  /** Where the registers come from. */
  readonly source: 'target.xml' | 'built-in' | 'none';
  readonly registers: ReadonlyMap<string, RegisterDescription>;
  /** The length of an answer to `g`, in bytes. */
  readonly blockLength: number;
  readonly #aliases: ReadonlyMap<string, RegisterDescription>;

  /**
   * `blockLength` is the length of an answer to `g` in bytes: registers beyond it are not in there. `aliases`: lists
   * of names that mean one register. The stub may describe any of them.
   */
  constructor(
    architecture: string | undefined,
    specs: readonly RegisterSpec[],
    blockLength: number,
    source: TargetDescription['source'],
    aliases: readonly (readonly string[])[] = [],
  ) {
    this.architecture = architecture;
    this.source = source;
    this.blockLength = blockLength;
    const registers = new Map<string, RegisterDescription>();
    let offset = 0;
    let last = -1;
    for (const spec of [...specs].sort((a, b) => a.number - b.number)) {
      if (spec.number === last) continue;
      last = spec.number;
      const at = spec.offset ?? offset;
      const size = spec.bits >> 3;
      if (spec.offset === undefined) offset += size;
      // It has its place in g, too.
      if (registers.has(spec.name)) continue;
      const { name, number, bits } = spec;
      registers.set(name, { name, number, bits, offsetInG: at + size <= blockLength ? at : undefined });
    }
    this.registers = registers;
    this.#aliases = aliasesOf(aliases, registers);
  }

  /** A register by name, also by another that it is known by. */
  register(name: string): RegisterDescription | undefined {
    return this.registers.get(name) ?? this.#aliases.get(name);
  }
}

function aliasesOf(
  groups: readonly (readonly string[])[],
  registers: ReadonlyMap<string, RegisterDescription>,
): Map<string, RegisterDescription> {
  const aliases = new Map<string, RegisterDescription>();
  for (const names of groups) {
    const known = names.map((each) => registers.get(each)).find((each) => each !== undefined);
    if (known !== undefined) for (const each of names) aliases.set(each, known);
  }
  return aliases;
}

/** Reads a document by name; undefined when the stub has none of that name. */
type FetchAnnex = (annex: string) => Promise<string | undefined>;

const MOST_DOCUMENTS = 64;
const DEEPEST_INCLUDE = 8;
const LARGEST_TOTAL = 4 * 1024 * 1024;
const MOST_REGISTERS = 8192;

/** Reads target.xml and all that it includes; undefined when the stub has no target.xml. Throws `RSP_BAD_XML`. */
export async function readTargetXml(
  fetch: FetchAnnex,
): Promise<{ readonly architecture: string | undefined; readonly registers: RegisterSpec[] } | undefined> {
  const registers: RegisterSpec[] = [];
  let architecture: string | undefined;
  let documents = 0;
  let total = 0;
  let next = 0;

  const load = async (annex: string, depth: number): Promise<boolean> => {
    if (++documents > MOST_DOCUMENTS || depth > DEEPEST_INCLUDE) throw badXml(`${annex} includes itself, or too much`);
    const text = await fetch(annex);
    if (text === undefined) return false;
    total += text.length;
    if (total > LARGEST_TOTAL) throw badXml(`it is larger than ${LARGEST_TOTAL} bytes`);
    // An include stands between registers: everything is put into document order first, then numbered.
    const found: ({ readonly include: string } | { readonly reg: ReadonlyMap<string, string> })[] = [];
    readXml(text, annex, {
      open: ({ name, attributes }) => {
        if (name === 'xi:include' || name === 'include') found.push({ include: attributes.get('href') ?? '' });
        else if (name === 'reg') found.push({ reg: attributes });
      },
      close: ({ name, text: content }) => {
        if (name === 'architecture' && content !== '') architecture ??= content;
      },
    });
    for (const item of found) {
      if ('include' in item) {
        if (!/^[\w.+-]{1,200}$/.test(item.include)) throw badXml(`it includes "${item.include.slice(0, 40)}"`);
        if (!(await load(item.include, depth + 1))) throw badXml(`the stub does not serve ${item.include}`);
      } else {
        const spec = registerOf(item.reg, next);
        next = spec.number + 1;
        registers.push(spec);
        if (registers.length > MOST_REGISTERS) throw badXml(`it has more than ${MOST_REGISTERS} registers`);
      }
    }
    return true;
  };

  return (await load('target.xml', 0)) ? { architecture, registers } : undefined;
}

function registerOf(attributes: ReadonlyMap<string, string>, next: number): RegisterSpec {
  const name = attributes.get('name') ?? '';
  const bits = numberOf(attributes.get('bitsize'));
  const number = attributes.has('regnum') ? numberOf(attributes.get('regnum')) : next;
  if (!/^[\x21-\x7e]{1,64}$/.test(name)) throw badXml(`a register has the name "${name.slice(0, 40)}"`);
  if (bits === undefined || bits === 0 || bits > 65536 || bits % 8 !== 0)
    throw badXml(`${name} has an impossible size`);
  if (number === undefined || number > 65535) throw badXml(`${name} has an impossible number`);
  return { name, number, bits, offset: numberOf(attributes.get('offset')) };
}

function numberOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  return /^0x[0-9a-fA-F]{1,7}$/.test(text) ? Number.parseInt(text, 16) : undefined;
}

function badXml(why: string): RsptraceError {
  return new RsptraceError('RSP_BAD_XML', `The stub's target description cannot be used: ${why}`);
}
