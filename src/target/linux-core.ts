/*
 * What a core file of a Linux process says besides its memory, in its notes (core(5); Linux fs/binfmt_elf.c):
 *
 *   NT_AUXV       the auxiliary vector: where the program was loaded. Dumps of machines have none
 *   NT_PRSTATUS   one for each thread: signal and times (112 bytes), then its general registers
 *   NT_FILE       mapped files: count (8), page size (8), then start (8), end (8), offset (8) of each, then their names
 */

import { type Addr, addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { ElfNote } from '../elf/index.js';
import { parseAuxv } from './auxv.js';

export interface LinuxCore {
  readonly auxv: ReadonlyMap<number, bigint>;
  readonly threads: readonly RegisterReader[];
  readonly files: readonly CoreFile[];
}

/** A stretch of memory that a file was mapped to. */
interface CoreFile {
  readonly path: string;
  readonly start: Addr;
  /** Behind its last byte. */
  readonly end: Addr;
}

const NT = { PRSTATUS: 1, AUXV: 6, FILE: 0x4649_4c45 } as const;
/** Of `pr_pid`. */
const NUMBER_AT = 32;
/** Of `pr_reg`, where words have 8 bytes. */
const REGISTERS_AT = 112;
const WORD = 8;
/** A file's three words. */
const ENTRY = 3 * WORD;

/** Undefined for the dump of a machine. `registers`: see `LinuxModel.coreRegisters`. */
export function readLinuxCore(notes: readonly ElfNote[], registers: readonly string[]): LinuxCore | undefined {
  const auxv = notes.find(({ type }) => type === NT.AUXV);
  if (!auxv) return undefined;
  const threads = coreThreads(notes, registers).map((thread) => thread.registers);
  const files = notes.find(({ type }) => type === NT.FILE);
  return { auxv: parseAuxv(auxv.bytes), threads, files: files ? filesOf(files.bytes) : [] };
}

/**
 * The threads of a process, by number as the protocol writes it. In QEMU's dump of a machine they are its harts,
 * counted from 1.
 */
export function coreThreads(
  notes: readonly ElfNote[],
  registers: readonly string[],
): readonly { readonly id: string; readonly registers: RegisterReader }[] {
  return notes.flatMap(({ type, bytes }) => {
    if (type !== NT.PRSTATUS || bytes.length < REGISTERS_AT) return [];
    return [{ id: viewOf(bytes).getUint32(NUMBER_AT, true).toString(16), registers: threadOf(bytes, registers) }];
  });
}

function threadOf(bytes: Uint8Array, names: readonly string[]): RegisterReader {
  const view = viewOf(bytes);
  return {
    register(name) {
      const index = names.indexOf(name);
      const at = REGISTERS_AT + WORD * index;
      return index < 0 || at + WORD > view.byteLength ? undefined : view.getBigUint64(at, true);
    },
  };
}

function filesOf(bytes: Uint8Array): CoreFile[] {
  const view = viewOf(bytes);
  if (view.byteLength < 2 * WORD) return [];
  const count = Number(view.getBigUint64(0, true));
  const namesAt = 2 * WORD + count * ENTRY;
  if (namesAt > view.byteLength) return [];
  const names = Buffer.from(bytes.subarray(namesAt)).toString('utf8').split('\0');
  return Array.from({ length: count }, (_, index) => {
    const at = 2 * WORD + index * ENTRY;
    const [start, end] = [view.getBigUint64(at, true), view.getBigUint64(at + WORD, true)];
    return { path: names[index] ?? '', start: addr(start), end: addr(end) };
  });
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
