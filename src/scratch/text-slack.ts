import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { currentAddressSpace, isLinux } from '../target/index.js';
import { checkMapped } from './region-access.js';
import { reservedStatic } from './reserved-memory.js';
import { alignUp, PAGE, type Region } from './scratch.js';
import type { ScratchRequest } from './source.js';

const PT_LOAD = 1;
const PF_X = 1;
/** Alignment of code. */
const ALIGN = 16;

/**
 * The slack: the bytes between the end of the program's executable segment and the end of its last page. They are
 * executable and in reach of the text. They are free if they are zero in the target, no segment and no section begins
 * there, and nothing is loaded there. The largest such piece is taken. In Linux it is the piece behind `_etext`.
 * Linux frees the other segments' ends or uses them for data, but never the end of the text's last page.
 *
 * A program may set room for code aside instead, with examples/rsptrace-scratch.
 */
export async function textSlack(session: Session, arch: Architecture, elf: ElfFile): Promise<Region | Refusal> {
  const best = expectedSlack(elf);
  if (best === undefined) return { refused: 'the text has no room behind it on its last page' };
  const bytes = await session.memory().read(best.address, best.size);
  if (bytes === undefined || bytes.some((byte) => byte !== 0)) {
    return { refused: `the room behind the text, at ${hex(best.address)}, is not empty in the target` };
  }
  const space = await currentAddressSpace(session, arch);
  const mapping = isRefusal(space) ? undefined : await space.translate(best.address);
  if (mapping === undefined) return best;
  if (!mapping.executable) return { refused: `the room behind the text, at ${hex(best.address)}, is not executable` };
  const found = { ...best, physical: addOffset(mapping.physical, best.address - mapping.virtual) };
  const wrong = isRefusal(space) ? undefined : await checkMapped(space, found, 'code');
  return wrong === undefined ? found : { refused: `the room for code cannot be used: ${wrong}` };
}

/** Where it is if the target has nothing there. */
export function expectedSlack(elf: ElfFile): Region | undefined {
  return reservedCode(elf) ?? (isLinux(elf) ? behindKernelText(elf) : behindSegments(elf));
}

function reservedCode(elf: ElfFile): Region | undefined {
  const reserved = reservedStatic(elf, 'code');
  return reserved && { address: reserved.address, size: reserved.size };
}

/** {@link textSlack}, if there is any. */
export async function slackOf({
  session,
  arch,
  elf,
}: Pick<ScratchRequest, 'session' | 'arch' | 'elf'>): Promise<Region | undefined> {
  const slack = await textSlack(session, arch, elf);
  return isRefusal(slack) ? undefined : slack;
}

function behindKernelText(elf: ElfFile): Region | undefined {
  const [end] = elf.symbols.named('_etext');
  return end && restOfPage(end.address);
}

function behindSegments(elf: ElfFile): Region | undefined {
  let best: Region | undefined;
  for (const segment of elf.segments) {
    if (segment.type !== PT_LOAD || (segment.flags & PF_X) === 0 || segment.memorySize === 0) continue;
    const rest = restOfPage(addOffset(segment.address, segment.memorySize));
    if (rest === undefined || rest.size <= (best?.size ?? 0)) continue;
    const next = addOffset(rest.address, rest.size);
    const taken = [...elf.segments.filter(({ type }) => type === PT_LOAD), ...elf.sections].some(
      (each) => each !== segment && each.address < next && each.address + BigInt(sizeOf(each)) > rest.address,
    );
    if (!taken) best = rest;
  }
  return best;
}

/** The rest of the page in which something ends; undefined if there is none. */
function restOfPage(end: Addr): Region | undefined {
  const offset = Number(end & BigInt(PAGE - 1));
  const start = alignUp(offset, ALIGN);
  return start % PAGE === 0 ? undefined : { address: addOffset(end, start - offset), size: PAGE - start };
}

function sizeOf(part: { readonly memorySize: number } | { readonly size: number }): number {
  return 'memorySize' in part ? part.memorySize : part.size;
}
