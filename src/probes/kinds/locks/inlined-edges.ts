import type { Addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import { type BlockEdge, type BlocksHere, stackNumber } from '../../../calls/index.js';
import type { FramePlace } from '../../function-graphs.js';
import { entryPlan, type ReadPlan } from '../../read-plan.js';
import { mostLevels } from '../poll/inlined-sites.js';
import type { InlinedLock, LockPlace } from './inlined.js';

/** Blocks of polls have higher keys. */
const firstKey = -(2n ** 40n);
/** Groups of places of polls have lower numbers. */
const firstGroup = 2 ** 20;

interface Begin {
  readonly block: number;
  readonly copy: InlinedLock;
  readonly address: Addr;
  readonly lock: LockPlace;
}

interface Here extends BlocksHere {
  readonly begun: BlockEdge[];
  readonly ended: BlockEdge[];
}

/** Which inlined copies of a lock's functions begin and end at an address. A block's number is its index in the list. */
export class InlinedEdges {
  readonly #at = new AddressMap<Here>();
  readonly #begins = new AddressMap<Begin[]>();
  readonly #releases = new AddressMap<LockPlace>();

  constructor(copies: readonly InlinedLock[]) {
    for (const [block, copy] of copies.entries()) {
      for (const { address, lock, frame } of copy.begins) {
        if (copy.role.does === 'release') {
          this.#releases.set(address, lock);
          continue;
        }
        this.#here(address).begun.push(edgeOf(block, frame));
        madeOnce(this.#begins, address, () => []).push({ block, copy, address, lock });
      }
      for (const { address, frame } of copy.ends) this.#here(address).ended.push(edgeOf(block, frame));
    }
  }

  at(pc: Addr): BlocksHere | undefined {
    return this.#at.get(pc);
  }

  /** The copy that begins there; without a block the first one, of which there is hardly ever more. */
  beginAt(pc: Addr, block?: number): Begin | undefined {
    const begins = this.#begins.get(pc);
    return block === undefined ? begins?.[0] : begins?.find((each) => each.block === block);
  }

  releaseAt(pc: Addr): LockPlace | undefined {
    return this.#releases.get(pc);
  }

  #here(address: Addr): Here {
    return madeOnce(this.#at, address, () => ({ begun: [], ended: [] }));
  }
}

/** Copies do not nest, and lie within all polls of their frame. */
function edgeOf(block: number, { register, offset }: FramePlace): BlockEdge {
  return {
    block,
    key: firstKey - BigInt(block),
    stackPointer: (registers: RegisterReader) => {
      const base = registers.register(register);
      return base === undefined ? undefined : stackNumber(base) + offset - 1 - mostLevels;
    },
  };
}

/** What the places of a copy read: the lock's address, and where the frame is. */
export function planCopy(copy: InlinedLock, block: number): readonly ReadPlan[] {
  const { name, into, begins, ends, scratchIsFree } = copy;
  const isRelease = copy.role.does === 'release';
  const planOf = ({ address, window }: InlinedLock['ends'][number]): ReadPlan => {
    const isKnown = typeof window !== 'string';
    const inside = isKnown ? window : { address, length: 0, free: undefined };
    return {
      ...entryPlan({ address, codeSize: 0, name: `${name} in ${into}` }),
      ...{ subject: name, scratchIsFree },
      needsStop: isKnown ? undefined : `it lies inside a function: ${window}`,
      inside: { window: inside, taken: [], noted: [], groups: [firstGroup + block] },
    };
  };
  const begun = begins.map((begin): ReadPlan => {
    const { register, through } = begin.lock;
    const registers = [...(register === undefined ? [] : [register]), ...(isRelease ? [] : [begin.frame.register])];
    const word = {
      pointer: register ?? '',
      from: through ?? 0,
      align: 8,
      size: 8,
      loads: [{ offset: 0, size: 8 }],
    } as const;
    return {
      ...planOf(begin),
      entryRegisters: [...new Set(registers)],
      entryReads: through === undefined ? [] : [word],
    };
  });
  const ended = ends.map((end): ReadPlan => ({ ...planOf(end), entryRegisters: [end.frame.register] }));
  return [...begun, ...ended];
}
