import { randomBytes } from 'node:crypto';
import { type Addr, addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Session } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import { accessTo } from './region-access.js';
import type { Scratch, SharedMemory } from './scratch.js';

/** Bytes that are written on one side and read on the other. */
const SAMPLE = 16;

/**
 * The same scratch memory, its data read and written past the wire if the machine's RAM can be. The target is stopped.
 * Nothing changes if the data is no RAM, or if a pattern written on one side is not read on the other.
 */
export async function shareThroughRam(scratch: Scratch, ram: GuestRam, session: Session): Promise<Scratch> {
  if (scratch.shared !== undefined) return scratch;
  const { physical, size } = scratch.data;
  if (physical === undefined || !ram.holds(physical, size)) return scratch;
  const shared = new SharedRam(ram, physical, size);
  if (!(await isSame(session, scratch, shared))) return scratch;
  return { ...scratch, shared, source: `${scratch.source}, read past the wire (${ram.source})` };
}

/** One piece of physical memory. */
class SharedRam implements SharedMemory {
  readonly endsWithTarget: boolean;
  readonly #ram: GuestRam;
  readonly #start: Addr;
  readonly #size: number;
  #open = true;

  constructor(ram: GuestRam, start: Addr, size: number) {
    this.endsWithTarget = !ram.outlives(start);
    this.#ram = ram;
    this.#start = start;
    this.#size = size;
  }

  read(offset: number, into: Uint8Array): void {
    if (!this.#ram.read(this.#at(offset, into), into)) throw closed();
  }

  write(offset: number, bytes: Uint8Array): void {
    if (!this.#ram.write(this.#at(offset, bytes), bytes)) throw closed();
  }

  close(): void {
    this.#open = false;
  }

  #at(offset: number, { length }: Uint8Array): Addr {
    if (!(offset >= 0) || offset + length > this.#size)
      throw new RangeError(`${length} bytes at ${offset} are not inside the shared memory`);
    if (!this.#open) throw closed();
    return addOffset(this.#start, offset);
  }
}

function closed(): RsptraceError {
  return new RsptraceError('SCRATCH_CLOSED', "The guest's RAM cannot be read any more: QEMU has ended");
}

/** A pattern written on one side is read on the other, in both directions. The old bytes are restored. */
async function isSame(session: Session, { data }: Scratch, shared: SharedMemory): Promise<boolean> {
  const access = await accessTo(session, data);
  const before = await access.read(0, SAMPLE);
  if (before === undefined) return false;
  const [there, here, seen] = [randomBytes(SAMPLE), randomBytes(SAMPLE), new Uint8Array(SAMPLE)];
  await access.write(0, there);
  shared.read(0, seen);
  const isRead = there.equals(seen);
  if (isRead) shared.write(0, here);
  const back = await access.read(0, SAMPLE);
  await access.write(0, before);
  return isRead && back !== undefined && here.equals(back);
}
