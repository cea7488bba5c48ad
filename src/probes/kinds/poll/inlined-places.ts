import type { Guard } from '../../../async/futures/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import type { BlocksHere, HitMemory, MemoryRequest, Moment } from '../../../calls/index.js';
import { BlockEdges } from '../../inlined-code.js';
import type { InlinedSite } from './inlined-sites.js';
import type { InlinedProbe } from './resolve.js';

/** Which inlined polls begin and end at an address. A block's number is its index in the list of sites. */
export class InlinedPlaces {
  readonly #edges: BlockEdges<InlinedSite['begins'][number]>;

  constructor(sites: readonly InlinedProbe[]) {
    const blocks = sites.map(({ site, level }, block) => ({ ...site, level, block, key: BigInt(-1 - block) }));
    this.#edges = new BlockEdges(blocks);
  }

  at(pc: Addr): BlocksHere | undefined {
    return this.#edges.at(pc);
  }

  /** The Future of a block that begins here; undefined if that is not known, or a word that leads to it is not read. */
  selfAt(
    at: Moment,
    block: number,
    memory: HitMemory,
  ): { readonly address: Addr; readonly guards: readonly Guard[]; readonly isStored: boolean } | undefined {
    const begin = this.#edges.beginAt(at.pc, block)?.place;
    const word = this.wordAt(at, block);
    const base = word
      ? memory.at(word.address, word.length)?.word(0)
      : begin && at.registers.register(begin.self.register);
    if (!begin || base === undefined) return undefined;
    const { self, isStored } = begin;
    return { address: addOffset(addr(base), self.offset), guards: self.guards, isStored };
  }

  /** The word that leads to the Future of a block that begins here; undefined if none does. */
  wordAt(at: Moment, block: number): MemoryRequest | undefined {
    const { register, through } = this.#edges.beginAt(at.pc, block)?.place.self ?? {};
    const base = register === undefined || through === undefined ? undefined : at.registers.register(register);
    return base === undefined ? undefined : { address: addOffset(addr(base), through ?? 0), length: 8 };
  }
}
