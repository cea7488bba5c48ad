// A machine's RAM by packets, where it cannot be read past the wire: `info mtree -f` says where it is.
import { addr } from '../base/addr.js';
import type { Session, TargetMemory } from '../rsp/index.js';
import { chunksOf, type RamChunk, type RamRange, ramPieces } from './memory-tree.js';

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
