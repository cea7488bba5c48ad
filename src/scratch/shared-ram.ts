import { randomBytes } from 'node:crypto';
import { type Addr, addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Session } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import { accessTo } from './region-access.js';
import { PAGE, type Scratch, type SharedMemory } from './scratch.js';

/** Bytes that are written on one side and read on the other. */
const SAMPLE = 16;

/**
 * The same scratch memory, its data read and written past the wire if the machine's RAM can be. The target is stopped.
 * Nothing changes if the data is no RAM, or if a pattern written on one side is not read on the other.
 */
export async function shareThroughRam(scratch: Scratch, ram: GuestRam, session: Session): Promise<Scratch> {
  if (scratch.shared !== undefined) return scratch;
  const pages = pagesOf(scratch);
  if (pages === undefined || !pages.every(({ at, size }) => ram.holds(at, size))) return scratch;
  const shared = new SharedRam(ram, pages);
  if (!(await isSame(session, scratch, shared))) return scratch;
  return { ...scratch, shared, source: `${scratch.source}, read past the wire (${ram.source})` };
}

/** Physical memory that is one piece. */
interface PhysicalPiece {
  readonly at: Addr;
  readonly size: number;
}

function pagesOf({ data, dataPages }: Scratch): readonly PhysicalPiece[] | undefined {
  if (dataPages !== undefined) return dataPages.map((at) => ({ at, size: PAGE }));
  return data.physical === undefined ? undefined : [{ at: data.physical, size: data.size }];
}

class SharedRam implements SharedMemory {
  readonly endsWithTarget: boolean;
  readonly #ram: GuestRam;
  readonly #pieces: readonly PhysicalPiece[];
  #open = true;

  constructor(ram: GuestRam, pieces: readonly PhysicalPiece[]) {
    this.endsWithTarget = !pieces.every(({ at }) => ram.outlives(at));
    this.#ram = ram;
    this.#pieces = pieces;
  }

  read(offset: number, into: Uint8Array): void {
    this.#each(offset, into, (at, bytes) => this.#ram.read(at, bytes));
  }

  write(offset: number, bytes: Uint8Array): void {
    this.#each(offset, bytes, (at, part) => this.#ram.write(at, part));
  }

  close(): void {
    this.#open = false;
  }

  /** Goes through the physical pieces that have these bytes. They all have the same size. */
  #each(offset: number, bytes: Uint8Array, move: (at: Addr, bytes: Uint8Array) => boolean): void {
    const size = this.#pieces[0]?.size ?? 0;
    if (!(offset >= 0) || offset + bytes.length > size * this.#pieces.length) {
      throw new RangeError(`${bytes.length} bytes at ${offset} are not inside the shared memory`);
    }
    for (let done = 0; done < bytes.length; ) {
      const [index, inside] = [Math.floor((offset + done) / size), (offset + done) % size];
      const length = Math.min(bytes.length - done, size - inside);
      const { at } = this.#pieces[index] as PhysicalPiece;
      if (!this.#open || !move(addOffset(at, inside), bytes.subarray(done, done + length))) throw closed();
      done += length;
    }
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
