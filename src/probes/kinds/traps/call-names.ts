import type { CallSignature, LinuxModel, Trap } from '../../../arch/index.js';
import { addr } from '../../../base/addr.js';
import { demangle, stripGenerics } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import type { TracerContext } from '../kind.js';

/** Words of a table of functions: no kernel has more system calls. */
const mostEntries = 1024;
const fewestEntries = 8;
const WORD = 8;

/** A system call's names, as a probe may have them; the first is shown. */
export interface NamedCall {
  readonly names: readonly string[];
  readonly signature: CallSignature | undefined;
}

/** What the system calls of a kernel's programs are called. */
export class CallNaming {
  readonly #linux: LinuxModel | undefined;
  readonly #own: ReadonlyMap<number, string>;

  /** `isLinux`: numbers and arguments are those of Linux. */
  constructor({ arch, elf }: Pick<TracerContext, 'arch' | 'elf'>, isLinux: boolean) {
    this.#linux = isLinux ? arch.linux : undefined;
    this.#own = isLinux ? new Map() : callTable(elf);
  }

  of({ number, isOther }: Pick<Trap, 'number' | 'isOther'>): NamedCall {
    if (number === undefined) return { names: ['unknown'], signature: undefined };
    const signed = BigInt.asIntN(64, number);
    const index = Number(signed);
    const name = isOther ? undefined : (this.#linux?.callName?.(index) ?? this.#own.get(index));
    const names = name === undefined ? [String(signed)] : [name, String(signed)];
    return { names, signature: name === undefined ? undefined : this.#linux?.callSignature?.(name) };
  }
}

/**
 * The table of functions by which a kernel serves its system calls: the variable whose words, as many as are not 0, are
 * functions called `sys_...`. A call's number is its place there. Empty if there is none, or more than one.
 */
function callTable(elf: ElfFile): ReadonlyMap<number, string> {
  const functions = new Map<bigint, string>();
  const tables = new Map<bigint, Map<number, string>>();
  for (const { type, address, name } of elf.symbols) {
    const call = type === 'function' && name.includes('sys_') ? calledBy(name) : undefined;
    if (call !== undefined) functions.set(address, call);
  }
  if (functions.size < fewestEntries) return new Map();
  for (const { type, address, size } of elf.symbols) {
    if (type !== 'object' || size % WORD !== 0 || size < WORD * fewestEntries || size > WORD * mostEntries) continue;
    const words = elf.bytesAt(address, size);
    const found = words && namesIn(words, functions);
    if (found && found.size >= fewestEntries) tables.set(address, found);
  }
  const [only, ...others] = tables.values();
  return only && others.length === 0 ? only : new Map();
}

/** Undefined where a word is anything else. */
function namesIn(words: Uint8Array, functions: ReadonlyMap<bigint, string>): Map<number, string> | undefined {
  const view = new DataView(words.buffer, words.byteOffset, words.byteLength);
  const found = new Map<number, string>();
  for (let offset = 0; offset < words.length; offset += WORD) {
    const word = view.getBigUint64(offset, true);
    const name = functions.get(addr(word));
    if (word !== 0n && name === undefined) return undefined;
    if (name !== undefined) found.set(offset / WORD, name);
  }
  return found;
}

/** `write`, of `sys_write` and of `kernel::syscall::sys_write`. */
function calledBy(symbol: string): string | undefined {
  return /(?:^|::)sys_(\w+)$/.exec(stripGenerics(demangle(symbol)))?.[1];
}
