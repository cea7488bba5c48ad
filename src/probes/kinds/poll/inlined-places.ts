import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import type { Guard } from '../../../futures/index.js';
import { stackNumber } from '../../calls/call-stacks.js';
import type { BlockPlace, BlocksHere, Moment } from '../../calls/call-tracer.js';
import type { FramePlace } from '../../function-graphs.js';
import type { InlinedSite } from './inlined-sites.js';
import type { InlinedProbe } from './resolve.js';

/** Which inlined polls begin and end at an address. A block's number is its index in the list of sites. */
export class InlinedPlaces {
  readonly #at = new AddressMap<Here>();

  constructor(sites: readonly InlinedProbe[]) {
    const outermostFirst = [...sites.entries()].sort(([, a], [, b]) => a.level - b.level);
    for (const [block, { site, level }] of outermostFirst) {
      for (const begin of site.begins) this.#here(begin.address).begins.push({ block, level, ...begin });
      for (const end of site.ends) this.#here(end.address).ends.unshift({ block, level, ...end });
    }
  }

  at({ pc, registers }: Moment): BlocksHere | undefined {
    const here = this.#at.get(pc);
    if (!here) return undefined;
    return { ended: placed(here.ends, registers), begun: placed(here.begins, registers) };
  }

  /** The Future of a block that begins here. */
  selfAt(
    { pc, registers }: Moment,
    block: number,
  ): { readonly address: Addr; readonly guards: readonly Guard[]; readonly isStored: boolean } | undefined {
    const begin = this.#at.get(pc)?.begins.find((one) => one.block === block);
    const base = begin && registers.register(begin.self.register);
    if (!begin || base === undefined) return undefined;
    const { offset, guards } = begin.self;
    return { address: addOffset(addr(base), offset), guards, isStored: begin.isStored };
  }

  #here(address: Addr): Here {
    let here = this.#at.get(address);
    if (!here) {
      here = { begins: [], ends: [] };
      this.#at.set(address, here);
    }
    return here;
  }
}

interface Place {
  readonly block: number;
  readonly level: number;
  readonly frame: FramePlace;
}

interface Here {
  readonly begins: (Place & InlinedSite['begins'][number])[];
  readonly ends: Place[];
}

/** With a loop, because this runs for each record and `flatMap` takes a microsecond. */
function placed(places: readonly Place[], registers: RegisterReader): readonly BlockPlace[] {
  if (places.length === 0) return nowhere;
  const found: BlockPlace[] = [];
  for (const place of places) {
    const stackPointer = stackPointerAt(place, registers);
    if (stackPointer !== undefined) found.push({ block: place.block, stackPointer });
  }
  return found;
}

const nowhere: readonly never[] = [];

function stackPointerAt({ frame, level }: Place, registers: RegisterReader): number | undefined {
  const base = registers.register(frame.register);
  return base === undefined ? undefined : stackNumber(addOffset(addr(base), frame.offset)) - 1 - level;
}
