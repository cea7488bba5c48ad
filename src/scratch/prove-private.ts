import { type Addr, addOffset, hex } from '../base/addr.js';
import type { Session } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import { accessTo, pattern, type RegionAccess } from './region-access.js';
import { PAGE, type Scratch } from './scratch.js';

/** Bytes of the pattern in each page, at its beginning: whoever uses a page fills, clears or links it there. */
const SAMPLE = 64;
const WINDOW = 64;

/** A pattern that lies in memory while the target runs. */
export interface PrivacyProof {
  /**
   * A sentence if the memory does not keep what is written, or if something else has written to it. The target is
   * stopped. The old contents are restored.
   */
  end(): Promise<string | undefined>;
}

/** Writes a pattern to every page of the memory, and remembers the old contents. */
export async function beginPrivacyProof(
  scratch: Scratch,
  session: Session,
  ram: GuestRam | undefined,
): Promise<PrivacyProof> {
  const probes: Probe[] = [];
  for (const region of [scratch.code, scratch.data]) {
    // Nothing of ours is executed there yet.
    const access = await accessTo(session, region, { ram, isData: true });
    for (let offset = 0; offset + SAMPLE <= region.size; offset += PAGE) {
      probes.push({ address: addOffset(region.address, offset), access, offset, before: undefined });
    }
  }
  await each(probes, async (probe) => {
    probe.before = await probe.access.read(probe.offset, SAMPLE);
  });
  const unread = probes.find(({ before }) => before === undefined);
  if (unread !== undefined) return { end: async () => `memory at ${hex(unread.address)} cannot be read` };
  await each(probes, ({ address, access, offset }) => access.write(offset, pattern(address, SAMPLE)));
  const lost = await changed(probes);
  return {
    end: async () => {
      const at = lost ?? (await changed(probes));
      await each(probes, ({ access, offset, before }) => before && access.write(offset, before));
      if (lost !== undefined) return `memory at ${lost} does not keep what is written`;
      return at === undefined ? undefined : `somebody else writes to memory at ${at}`;
    },
  };
}

interface Probe {
  readonly address: Addr;
  readonly access: RegionAccess;
  readonly offset: number;
  before: Uint8Array | undefined;
}

/** Address of the first page whose pattern is gone. */
async function changed(probes: readonly Probe[]): Promise<string | undefined> {
  const gone: Addr[] = [];
  await each(probes, async ({ address, access, offset }) => {
    const now = await access.read(offset, SAMPLE);
    if (now === undefined || Buffer.compare(now, pattern(address, SAMPLE)) !== 0) gone.push(address);
  });
  const first = gone[0];
  return first === undefined ? undefined : hex(first);
}

/** Many at a time, so that the round trips overlap. */
async function each(probes: readonly Probe[], body: (probe: Probe) => unknown): Promise<void> {
  for (let at = 0; at < probes.length; at += WINDOW) await Promise.all(probes.slice(at, at + WINDOW).map(body));
}
