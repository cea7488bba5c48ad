// A machine's RAM by packets, where it cannot be read past the wire: `info mtree -f` says where it is.

import { addr } from '../base/addr.js';
import type { Session, TargetMemory } from '../rsp/index.js';

/** RAM of a machine that stands, by physical address. */
export class PacketRam {
  readonly #memory: TargetMemory;
  readonly #ranges: readonly RamRange[];
  #unread = 0;

  private constructor(memory: TargetMemory, ranges: readonly RamRange[]) {
    this.#memory = memory;
    this.#ranges = ranges;
  }

  /** Undefined where nobody says where the RAM is, and if it has more bytes than `most`. */
  static async find(session: Session, most: number): Promise<PacketRam | undefined> {
    if ((await session.stub()).name !== 'qemu-system') return undefined;
    const memory = await session.physicalMemory();
    const ram = memory && new PacketRam(memory, await ramPieces(session));
    return ram && ram.size > 0 && ram.size <= most ? ram : undefined;
  }

  /** In bytes. */
  get size(): number {
    return Number(this.#ranges.reduce((sum, { start, end }) => sum + (end - start), 0n));
  }

  /** Bytes that {@link chunks} had to leave out, because the stub did not read them. */
  get unread(): number {
    return this.#unread;
  }

  /** Nothing says what of it was touched. */
  touched(): readonly RamRange[] {
    return this.#ranges;
  }

  async *chunks(ranges: readonly RamRange[]): AsyncGenerator<RamChunk> {
    for (const { at, length } of chunksOf(ranges)) {
      const read = await this.#memory.read(addr(at), length);
      // The packets' answers may begin anywhere in a buffer.
      if (!read) this.#unread += length;
      else yield { start: at, bytes: read.byteOffset % 4 === 0 ? read : Uint8Array.from(read) };
    }
  }

  write(physical: bigint, bytes: Uint8Array): Promise<boolean> {
    return this.#memory.write(addr(physical), bytes);
  }
}

// What QEMU's monitor prints for `info mtree -f` (system/memory.c, mtree_print_flatview): the address space of the
// machine as it is now, piece by piece, with the owner of each.
//
//   FlatView #1
//    AS "memory", root: system
//     0000000080000000-0000000087ffffff (prio 0, ram): riscv_virt_board.ram @0000000000000000 KVM
//
// Read: the view of the address space "memory". Kinds: ram, rom, romd (flash), nv-ram, i/o and others.

export interface MemoryPiece {
  readonly start: bigint;
  /** Behind the last byte. */
  readonly end: bigint;
  readonly kind: string;
  readonly name: string;
  /** Of its first byte, in the block of that name. */
  readonly offset: number;
}

const line = /^\s+([0-9a-f]{16})-([0-9a-f]{16}) \(prio -?\d+, ([^)]+)\): (.+?)(?: @([0-9a-f]{16}))?(?: KVM)?$/;

/** The pieces of the machine's memory, in the order of their addresses; empty if the text is not QEMU's. */
export function readMemoryTree(text: string): MemoryPiece[] {
  const views = text.replaceAll('\r', '').split(/^FlatView #\d+$/m);
  const view = views.find((each) => /^ AS "memory", root: system/m.test(each)) ?? '';
  return view.split('\n').flatMap((each) => {
    const [, first = '', last = '', kind = '', name = '', at = '0'] = line.exec(each) ?? [];
    const offset = Number.parseInt(at, 16);
    return name === '' ? [] : [{ start: BigInt(`0x${first}`), end: BigInt(`0x${last}`) + 1n, kind, name, offset }];
  });
}

/** Smaller pieces belong to firmware and devices, and may change what they are: a PC's memory below 1 MiB. */
const SMALLEST = 2n ** 21n;

/** Where the machine at a stub has RAM, in pieces of at least so many bytes; none if it is not QEMU's. */
export async function ramPieces(session: Session, smallest = SMALLEST): Promise<readonly MemoryPiece[]> {
  if ((await session.stub()).name !== 'qemu-system') return [];
  const tree = readMemoryTree((await session.monitor('info mtree -f')) ?? '');
  return tree.filter(({ kind, start, end }) => kind === 'ram' && end - start >= smallest);
}

/** Physical addresses. */
export interface RamRange {
  readonly start: bigint;
  readonly end: bigint;
}

/** Memory that was read. */
export interface RamChunk {
  /** Physical. */
  readonly start: bigint;
  /** Valid until the next chunk is asked for. */
  readonly bytes: Uint8Array;
}

/** Ranges in pieces that are read at once. */
export function* chunksOf(ranges: readonly RamRange[]): Generator<{ readonly at: bigint; readonly length: number }> {
  for (const { start, end } of ranges)
    for (let at = start; at < end; at += BigInt(CHUNK)) yield { at, length: Math.min(CHUNK, Number(end - at)) };
}

const CHUNK = 2 ** 20;
