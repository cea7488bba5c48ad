import { type Addr, hex } from '../base/addr.js';
import type { Refusal } from '../base/errors.js';
import type { TargetMemory } from '../rsp/index.js';

interface Write {
  readonly address: Addr;
  readonly bytes: Uint8Array;
}

/**
 * Writes all of it and reads it back, because QEMU says OK to writes that it does not keep. If any of it is not there
 * then, everything is as it was before.
 */
export async function writeAllOrNone(
  memory: Pick<TargetMemory, 'read' | 'write'>,
  writes: readonly Write[],
): Promise<Refusal | undefined> {
  const before: Write[] = [];
  for (const { address, bytes } of writes) {
    const old = await memory.read(address, bytes.length);
    if (old === undefined) return { refused: `${hex(address)} cannot be read` };
    before.unshift({ address, bytes: old });
  }
  const failed = await firstFailed(memory, writes);
  if (failed === undefined) return undefined;
  const left = await firstFailed(memory, before);
  const { address } = failed;
  const refused = `${hex(address)} does not keep what is written`;
  return { refused: left ? `${refused}, and ${hex(left.address)} could not be restored` : refused };
}

/** What is not there afterwards. All are tried. */
async function firstFailed(
  memory: Pick<TargetMemory, 'read' | 'write'>,
  writes: readonly Write[],
): Promise<Write | undefined> {
  for (const { address, bytes } of writes) await memory.write(address, bytes);
  for (const { address, bytes } of writes) {
    const now = await memory.read(address, bytes.length);
    if (now === undefined || Buffer.compare(now, bytes) !== 0) return { address, bytes };
  }
  return undefined;
}
