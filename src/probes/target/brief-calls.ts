import { addOffset } from '../../base/addr.js';
import type { Session } from '../../rsp/index.js';
import type { Scratch } from '../scratch/index.js';
import type { Piece, Write } from './ring.js';
import { writeAll } from './transfers.js';

/**
 * The number of ticks below which a call surely lasts less than a threshold, as the client counts: it rounds both times to nanoseconds.
 * Undefined where there is none.
 */
export function ticksBelow(thresholdNs: number, nanosPerTick: number): bigint | undefined {
  const ticks = Number.isInteger(nanosPerTick)
    ? Math.ceil(thresholdNs / nanosPerTick)
    : Math.floor((thresholdNs - 1) / nanosPerTick);
  return ticks > 0 && Number.isSafeInteger(ticks) ? BigInt(ticks) : undefined;
}

interface Where {
  readonly session: Session;
  readonly scratch: Scratch;
}

/** Reads scratch data while the target stands, or is gone and has left it to us; undefined where it cannot be read. */
export async function readData({ session, scratch }: Where, piece: Piece): Promise<Uint8Array | undefined> {
  const { shared, data } = scratch;
  if (!shared) return session.memory().read(piece.address, piece.length);
  const bytes = new Uint8Array(piece.length);
  shared.read(Number(piece.address - data.address), bytes);
  return bytes;
}

/** A word of the control block; 0 where it cannot be read. */
export async function controlWord(where: Where, offset: number): Promise<number> {
  const bytes = await readData(where, { address: addOffset(where.scratch.data.address, offset), length: 8 });
  return bytes ? Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true)) : 0;
}

/** False where any of it is refused. */
export async function writeData({ session, scratch }: Where, writes: readonly Write[]): Promise<boolean> {
  const { shared, data } = scratch;
  if (!shared) return writeAll(session, writes);
  for (const { address, bytes } of writes) shared.write(Number(address - data.address), bytes);
  return true;
}
