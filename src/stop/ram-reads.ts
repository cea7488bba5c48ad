import { type AddressSpaces, type Architecture, walkNow } from '../arch/index.js';
import { addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { isRefusal } from '../base/refusal.js';
import type { MemoryRequest } from '../calls/index.js';
import type { Reply } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import type { GuessedReads } from './read-guesses.js';

const PAGE = 4096n;

/**
 * Answers a stop's reads of memory out of the machine's RAM, without packets. The page tables are walked anew at each
 * stop, because the program may have changed them.
 */
export class RamReads {
  readonly #ram: GuestRam;
  readonly #spaces: AddressSpaces;

  private constructor(ram: GuestRam, spaces: AddressSpaces) {
    this.#ram = ram;
    this.#spaces = spaces;
  }

  /** Undefined if the RAM is not at hand, or if page tables of the architecture are not known. */
  static for(ram: GuestRam | undefined, { addressSpaces }: Architecture): RamReads | undefined {
    return ram && addressSpaces && new RamReads(ram, addressSpaces);
  }

  /** The registers that the walk needs. */
  get registers(): readonly string[] {
    return this.#spaces.registers;
  }

  /** The memory that the stopped hart sees. Nothing is found that is no RAM, not mapped, or not for the hart's mode. */
  at(registers: RegisterReader): GuessedReads {
    const translation = this.#spaces.format(registers);
    if (isRefusal(translation)) return { find: () => undefined };
    const { pages, user } = translation;
    const word = (physical: bigint): bigint | undefined => this.#ram.word(physical);
    const physicalOf = (address: bigint): bigint | undefined => {
      if (pages === undefined) return address;
      const leaf = walkNow(pages, addr(address), word);
      return leaf === undefined || leaf.user !== user ? undefined : leaf.physical + (address % BigInt(leaf.size));
    };
    return { find: (request) => this.#find(request, physicalOf) };
  }

  #find(
    { address, length }: MemoryRequest,
    physicalOf: (address: bigint) => bigint | undefined,
  ): Reply<Uint8Array | undefined> | undefined {
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const at = address + BigInt(done);
      const size = Math.min(length - done, Number(PAGE - (at % PAGE)));
      const physical = physicalOf(at);
      if (physical === undefined || !this.#ram.read(physical, bytes.subarray(done, done + size))) return undefined;
      done += size;
    }
    return { value: bytes, errorText: undefined };
  }
}
