import { type Addr, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import type { Guard } from '../../../futures/index.js';
import { stackNumber } from '../../calls/call-stacks.js';
import type { BlockEdge, BlocksHere, Moment } from '../../calls/call-tracer.js';
import type { FramePlace } from '../../function-graphs.js';
import type { InlinedSite } from './inlined-sites.js';
import { innerAddresses } from './inner-addresses.js';
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

  /** The Future of a block that begins here. */
  selfAt(
    { pc, registers }: Moment,
    block: number,
  ): { readonly address: Addr; readonly guards: readonly Guard[]; readonly isStored: boolean } | undefined {
    for (const begin of this.#at.get(pc)?.begun ?? nowhere) {
      if (begin.block !== block) continue;
      const { self, isStored } = begin;
      const base = registers.register(self.register);
      return base === undefined
        ? undefined
        : { address: innerAddresses.at(addr(base), self.offset), guards: self.guards, isStored };
    }
    return undefined;
  }

  #here(address: Addr): Here {
    let here = this.#at.get(address);
    if (!here) {
      here = { begun: [], ended: [] };
      this.#at.set(address, here);
    }
    return here;
  }
}

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

const nowhere: readonly never[] = [];
