// How a stopped hart sees memory.
import type { AddressSpace, Architecture, Mapping } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { registersOf, type Session } from '../rsp/index.js';

/** A stopped hart's view of memory, read through the stub: of `hart`, or of the one that has stopped. */
export async function currentAddressSpace(
  session: Session,
  arch: Architecture,
  hart?: string,
): Promise<AddressSpace | Refusal> {
  const { addressSpaces } = arch;
  if (!addressSpaces) return { refused: `page tables on ${arch.name} are not known` };
  const physical = await session.physicalMemory();
  if (physical === undefined) return { refused: 'the stub gives no physical memory, so page tables cannot be read' };
  return addressSpaces.of(await registersOf(session, hart, addressSpaces.registers), physical);
}

/** Why code that the kernel cannot execute is not patched. */
export const programsRunIt = 'its page is executed in user mode alone, where no trampoline is mapped';

/** Those of these addresses of code that lie in pages which programs can execute, and the kernel cannot. */
export async function inUserCode(
  session: Session,
  arch: Architecture,
  addresses: readonly Addr[],
): Promise<ReadonlySet<Addr>> {
  const found = new Set<Addr>();
  const space = arch.addressSpaces && (await currentAddressSpace(session, arch));
  if (!space || isRefusal(space)) return found;
  let leaf: Mapping | undefined;
  for (const address of addresses) {
    if (!leaf || address < leaf.virtual || address >= addOffset(leaf.virtual, leaf.size))
      leaf = await space.translate(address);
    if (leaf && !leaf.executable) found.add(address);
  }
  return found;
}

/** Code that a hart may execute and not read. */
export async function executeOnly(
  session: Session,
  arch: Architecture,
  { address, length, hart }: { readonly address: Addr; readonly length: number; readonly hart: string | undefined },
): Promise<Uint8Array | undefined> {
  const space = arch.addressSpaces && (await currentAddressSpace(session, arch, hart));
  if (!space || isRefusal(space)) return undefined;
  const physical = await session.physicalMemory();
  return physical && seenMemory(space, physical).read(address, length);
}

/** What an address space shows of physical memory; undefined where any of it is not mapped, or not there. */
export function seenMemory(space: AddressSpace, physical: MemoryReader): MemoryReader {
  return {
    async read(address, length) {
      const bytes = new Uint8Array(length);
      for (let done = 0; done < length; ) {
        const at = addOffset(address, done);
        const leaf = await space.translate(at);
        if (leaf === undefined) return undefined;
        const inside = at - leaf.virtual;
        const size = Math.min(length - done, leaf.size - Number(inside));
        const piece = await physical.read(addOffset(leaf.physical, inside), size);
        if (piece === undefined) return undefined;
        bytes.set(piece, done);
        done += size;
      }
      return bytes;
    },
  };
}
