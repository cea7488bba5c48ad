import type { Architecture } from '../../arch/index.js';
import { addOffset, hex } from '../../base/addr.js';
import type { ElfFile } from '../../dwarf/index.js';
import type { Session } from '../../rsp/index.js';
import { currentAddressSpace, physicalOf } from './access.js';
import { alignUp, isRefusal, PAGE, type Refusal, type Region } from './scratch.js';

const PT_LOAD = 1;
const PF_X = 1;
/** What code is aligned to. */
const ALIGN = 16;

/**
 * The bytes between the end of the program's executable segment and the end of its last page: executable, in reach of the text, and used by
 * nobody where they are zero in the target, no segment and no section begins there, and nothing is loaded. The largest such piece.
 */
export async function textSlack(session: Session, arch: Architecture, elf: ElfFile): Promise<Region | Refusal> {
  let best: Region | undefined;
  for (const segment of elf.segments) {
    if (segment.type !== PT_LOAD || (segment.flags & PF_X) === 0 || segment.memorySize === 0) continue;
    const end = Number((segment.address + BigInt(segment.memorySize)) & BigInt(PAGE - 1));
    const start = alignUp(end, ALIGN);
    const address = addOffset(segment.address, segment.memorySize + start - end);
    const size = end === 0 ? 0 : PAGE - start;
    if (size <= (best?.size ?? 0)) continue;
    const next = addOffset(address, size);
    const taken = [...elf.segments.filter(({ type }) => type === PT_LOAD), ...elf.sections].some(
      (each) => each !== segment && each.address < next && each.address + BigInt(sizeOf(each)) > address,
    );
    if (!taken) best = { address, size };
  }
  if (best === undefined) return { refused: 'the text has no room behind it on its last page' };
  const bytes = await session.memory().read(best.address, best.size);
  if (bytes === undefined || bytes.some((byte) => byte !== 0)) {
    return { refused: `the room behind the text, at ${hex(best.address)}, is not empty in the target` };
  }
  const space = await currentAddressSpace(session, arch);
  const physical = isRefusal(space) ? undefined : await physicalOf(space, best.address);
  return physical === undefined ? best : { ...best, physical };
}

function sizeOf(part: { readonly memorySize: number } | { readonly size: number }): number {
  return 'memorySize' in part ? part.memorySize : part.size;
}
