import type { Guard } from '../../../async/futures/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import {
  type BlockEdge,
  type BlocksHere,
  type HitMemory,
  type MemoryRequest,
  type Moment,
  stackNumber,
} from '../../../calls/index.js';
import type { FramePlace } from '../../function-graphs.js';
import type { InlinedSite } from './inlined-sites.js';
import type { InlinedProbe } from './resolve.js';

/** Which inlined polls begin and end at an address. A block's number is its index in the list of sites. */
export class InlinedPlaces {
  readonly #at = new AddressMap<Here>();

  constructor(sites: readonly InlinedProbe[]) {
    const outermostFirst = [...sites.entries()].sort(([, a], [, b]) => a.level - b.level);
    for (const [block, { site, level }] of outermostFirst) {
      for (const begin of site.begins) this.#here(begin.address).begun.push(new Begin(block, level, begin));
      for (const { address, frame } of site.ends) this.#here(address).ended.unshift(new Edge(block, level, frame));
    }
  }

  at(pc: Addr): BlocksHere | undefined {
    return this.#at.get(pc);
  }

  /** The Future of a block that begins here; undefined if that is not known, or a word that leads to it is not read. */
  selfAt(
    at: Moment,
    block: number,
    memory: HitMemory,
  ): { readonly address: Addr; readonly guards: readonly Guard[]; readonly isStored: boolean } | undefined {
    const begin = this.#beginAt(at, block);
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
    const { register, through } = this.#beginAt(at, block)?.self ?? {};
    const base = register === undefined || through === undefined ? undefined : at.registers.register(register);
    return base === undefined ? undefined : { address: addOffset(addr(base), through ?? 0), length: 8 };
  }

  #beginAt({ pc }: Moment, block: number): Begin | undefined {
    const begun = this.#at.get(pc)?.begun ?? nothing;
    for (let i = 0; i < begun.length; i++) if (begun[i]?.block === block) return begun[i];
    return undefined;
  }

  #here(address: Addr): Here {
    return madeOnce(this.#at, address, () => ({ begun: [], ended: [] }));
  }
}

const nothing: readonly Begin[] = [];

/** Inlined polls by their edges at one address. */
interface Here extends BlocksHere {
  readonly begun: Begin[];
  readonly ended: Edge[];
}

/** See `BlockEdge`. */
class Edge implements BlockEdge {
  readonly block: number;
  readonly key: bigint;
  readonly #level: number;
  readonly #frame: FramePlace;

  constructor(block: number, level: number, frame: FramePlace) {
    this.block = block;
    this.key = BigInt(-1 - block);
    this.#level = level;
    this.#frame = frame;
  }

  stackPointer(registers: RegisterReader): number | undefined {
    const base = registers.register(this.#frame.register);
    return base === undefined ? undefined : stackNumber(base) + this.#frame.offset - 1 - this.#level;
  }
}

type BeginPlace = InlinedSite['begins'][number];

class Begin extends Edge {
  readonly self: BeginPlace['self'];
  readonly isStored: boolean;

  constructor(block: number, level: number, { frame, self, isStored }: BeginPlace) {
    super(block, level, frame);
    this.self = self;
    this.isStored = isStored;
  }
}
