import { type Addr, hex } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import { SourceFrames } from '../../../target/unwind/index.js';
import { lockText, type PlaceRef, releaseName, type StackEntry, stackText } from '../../../trace/index.js';
import type { TracerContext } from '../kind.js';
import { actingFunction } from '../poll/callers.js';
import { type KnownLock, LockNames } from './lock-names.js';
import { lockRole } from './names.js';
import type { FoundLocks, LockType } from './resolve.js';
import { TakenLocks } from './taken-locks.js';

/** A call that takes a lock, as far as it says which. */
interface Asked {
  readonly address: Addr;
  readonly space: number | undefined;
  readonly type: LockType | undefined;
  readonly by: { readonly name: string; readonly address: Addr };
  /** The address is that of a word inside the lock. */
  readonly isPart: boolean;
}

/** The locks that were taken, by their addresses; and who takes and releases them. */
export class LockBook {
  readonly #names: LockNames;
  readonly #spaces: TracerContext['spaces'];
  readonly #sources: SourceFrames;
  readonly #wants: FoundLocks['wants'];
  /** By the name of the function that takes it. */
  readonly #wanted = new Map<string, Map<KnownLock, boolean>>();
  readonly #taken = new TakenLocks();
  readonly #places = new Map<string, PlaceRef>();
  readonly #actors = [new AddressMap<StackEntry>(), new AddressMap<StackEntry>()] as const;

  constructor(wants: FoundLocks['wants'], context: TracerContext) {
    const { elf, debug, spaces } = context;
    this.#wants = wants;
    this.#names = new LockNames(context);
    this.#spaces = spaces;
    this.#sources = new SourceFrames(elf, debug);
  }

  /** The lock that is to be taken; undefined if it is not traced. */
  take({ address, space, type, by, isPart }: Asked): KnownLock | undefined {
    const lock = this.#names.of(address, type, by.address, isPart);
    const wanted = madeOnce(this.#wanted, by.name, () => new Map<KnownLock, boolean>());
    if (!lock || !madeOnce(wanted, lock, () => this.#wants([...lock.names, by.name]))) return undefined;
    this.#taken.take(this.#placeOf(lock.address, space), lock);
    return lock;
  }

  /** The lock that is released, if it was taken before. `isPart`: the address may lie inside of it. */
  released(address: Addr, space: number | undefined, isPart: boolean): KnownLock | undefined {
    const place = this.#placeOf(address, space);
    return this.#taken.at(place) ?? (isPart ? this.#taken.around(place) : undefined);
  }

  #placeOf(address: Addr, space: number | undefined): bigint {
    return inSpace(address, this.#spaces.root(space));
  }

  text({ address }: KnownLock, space: number | undefined): string {
    return lockText(address, this.#spaces.root(space));
  }

  /** Where a lock is released. */
  releaseAt(lock: KnownLock, space: number | undefined, by: StackEntry): PlaceRef {
    const { address } = lock;
    const name = releaseName(lock.ref, this.#spaces.root(space));
    const text = this.text(lock, space);
    return madeOnce(this.#places, `${name} ${hex(address)} ${stackText([by])}`, () => {
      return { key: this.#places.size, name, category: 'lock', address, lock: text, by };
    });
  }

  /**
   * Who acts at an instruction, or before it where a call returns. Of the functions inlined there it is the innermost
   * of the program's own that is no function of a lock.
   */
  actor(pc: Addr | undefined, isReturn: boolean): StackEntry {
    if (pc === undefined) return { function: undefined, file: undefined, line: undefined };
    return madeOnce(this.#actors[isReturn ? 0 : 1], pc, () => {
      const entries = this.#sources.entriesOf({ pc, exact: !isReturn });
      const last = entries.findLastIndex(({ function: name }) => name !== undefined && lockRole(name) !== undefined);
      const around = entries.slice(last + 1);
      const acting = actingFunction(around.length > 0 ? around : entries);
      // Code of another file of the process.
      return acting.function === undefined ? { ...acting, function: hex(pc) } : acting;
    });
  }
}

/** Whether an address lies in a lock, or in the word with which it begins. */
export function holds({ address: from, size }: KnownLock, address: Addr): boolean {
  return address >= from && address < from + BigInt(Math.max(size, 1));
}
