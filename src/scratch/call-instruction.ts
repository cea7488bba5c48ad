import { type Addr, addOffset } from '../base/addr.js';
import type { Session } from '../rsp/index.js';
import { AT, auxvAddress, parseMaps, readAuxv } from '../target/index.js';
import { PAGE } from './scratch.js';

/** How many bytes of one mapping are searched for the instruction. */
const searched = 1 << 20;

/** Where the process has this system call instruction in executable memory, if anywhere. */
export async function findInstruction(
  session: Session,
  pid: number,
  instruction: Uint8Array,
  alignment: number,
): Promise<Addr | undefined> {
  const memory = session.memory();
  const find = async (start: Addr, size: number): Promise<Addr | undefined> => {
    // A sequence may begin at the end of one page and end on the next.
    let tail = new Uint8Array(0);
    for (let offset = 0; offset < size; offset += PAGE) {
      const bytes = await memory.read(addOffset(start, offset), PAGE);
      if (bytes === undefined) return undefined;
      const joined = Buffer.concat([tail, bytes]);
      for (let at = joined.indexOf(instruction); at >= 0; at = joined.indexOf(instruction, at + 1)) {
        const place = offset - tail.length + at;
        if (place % alignment === 0) return addOffset(start, place);
      }
      tail = Uint8Array.from(joined.subarray(joined.length - instruction.length + 1));
    }
    return undefined;
  };
  // The kernel's own page of code for user programs (the vDSO) needs it now and then.
  const vdso = auxvAddress(await readAuxv(session), AT.SYSINFO_EHDR);
  const inVdso = vdso && (await find(vdso, 4 * PAGE));
  if (inVdso !== undefined) return inVdso;
  const maps = await session.remoteFile(`/proc/${pid}/maps`);
  for (const { start, end, permissions } of maps ? parseMaps(new TextDecoder('latin1').decode(maps)) : []) {
    if (!permissions.startsWith('r-x')) continue;
    const found = await find(start, Math.min(Number(end - start), searched));
    if (found !== undefined) return found;
  }
  return undefined;
}
