import { type AddressSpaces, walkNow } from '../arch/index.js';
import { addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { isRefusal } from '../base/refusal.js';
import type { MemoryRequest } from '../calls/index.js';
import type { Reply } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import type { GuessedReads } from './read-guesses.js';

const PAGE = 4096n;

/**
 * Answers a stop's reads of memory out of the machine's RAM, without packets, as the stopped hart sees it. The page
 * tables are walked anew at each stop, because the program may have changed them. Nothing is found that is no RAM, not
 * mapped, or not for the hart's mode. `registers`: those that the spaces want.
 */
export function readsInRam(ram: GuestRam, spaces: AddressSpaces, registers: RegisterReader): GuessedReads {
  const translation = spaces.format(registers);
  if (isRefusal(translation)) return { find: () => undefined };
  const { pages, user } = translation;
  const word = (physical: bigint): bigint | undefined => ram.word(physical);
  const physicalOf = (address: bigint): bigint | undefined => {
    if (pages === undefined) return address;
    const leaf = walkNow(pages, addr(address), word);
    return leaf === undefined || leaf.user !== user ? undefined : leaf.physical + (address % BigInt(leaf.size));
  };
  const find = ({ address, length }: MemoryRequest): Reply<Uint8Array | undefined> | undefined => {
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const at = address + BigInt(done);
      const size = Math.min(length - done, Number(PAGE - (at % PAGE)));
      const physical = physicalOf(at);
      if (physical === undefined || !ram.read(physical, bytes.subarray(done, done + size))) return undefined;
      done += size;
    }
    return { value: bytes, errorText: undefined };
  };
  return { find };
}
