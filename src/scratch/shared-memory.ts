// Memory of the target that this process reads and writes itself, past the stub.
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readlinkSync } from 'node:fs';
import { addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { readFully, writeFully } from '../base/file-bytes.js';
import type { Session } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import { accessTo } from './region-access.js';
import type { Region, Scratch, SharedMemory } from './scratch.js';

/** What {@link sharedMemory} is made of. The accesses are false where the memory is not there any more. */
interface SharedParts {
  readonly size: number;
  readonly endsWithTarget?: boolean;
  /** What has happened then, as a sentence. */
  readonly gone: string;
  read(offset: number, into: Uint8Array): boolean;
  write(offset: number, bytes: Uint8Array): boolean;
  close?(): void;
}

/** Memory of `size` bytes. Accesses beyond them throw a RangeError; others `SCRATCH_CLOSED`, once it is gone. */
export function sharedMemory({ size, endsWithTarget = false, gone, ...parts }: SharedParts): SharedMemory {
  let isOpen = true;
  const access = (what: 'read' | 'write', offset: number, bytes: Uint8Array): void => {
    if (!(offset >= 0) || offset + bytes.length > size)
      throw new RangeError(`${bytes.length} bytes at ${offset} are not inside the shared memory`);
    if (!isOpen || !parts[what](offset, bytes)) throw new RsptraceError('SCRATCH_CLOSED', gone);
  };
  return {
    endsWithTarget,
    read: (offset, into) => access('read', offset, into),
    write: (offset, bytes) => access('write', offset, bytes),
    close: () => {
      if (isOpen) parts.close?.();
      isOpen = false;
    },
  };
}

/**
 * Opens a memfd of another process (`/proc/PID/fd/N`). Undefined if it has none of that name and size: the process is
 * on another machine, belongs to another user, or has ended.
 */
export function openMemfd(path: string, name: string, size: number): SharedMemory | undefined {
  let file: number;
  try {
    if (readlinkSync(path) !== `/memfd:${name} (deleted)`) return undefined;
    file = openSync(path, 'r+');
  } catch {
    return undefined;
  }
  if (fstatSync(file).size !== size) {
    closeSync(file);
    return undefined;
  }
  return sharedMemory({ ...inFile(file), size, gone: 'The shared memory has become smaller' });
}

/** The bytes of a file from `start` on. */
export function inFile(file: number, start = 0): Required<Pick<SharedParts, 'read' | 'write' | 'close'>> {
  return {
    read: (offset, into) => readFully(file, into, start + offset),
    write: (offset, bytes) => writeFully(file, bytes, start + offset),
    close: () => closeSync(file),
  };
}

/**
 * The same scratch memory, its data read and written past the wire if the machine's RAM can be. The target is stopped.
 * Nothing changes if the data is no RAM, or if a pattern written on one side is not read on the other.
 */
export async function shareThroughRam(scratch: Scratch, ram: GuestRam, session: Session): Promise<Scratch> {
  const { physical, size } = scratch.data;
  if (scratch.shared !== undefined || physical === undefined || !ram.holds(physical, size)) return scratch;
  const shared = sharedMemory({
    size,
    endsWithTarget: !ram.outlives(physical),
    gone: "The guest's RAM cannot be read any more: QEMU has ended",
    read: (offset, into) => ram.read(addOffset(physical, offset), into),
    write: (offset, bytes) => ram.write(addOffset(physical, offset), bytes),
  });
  if (!(await isSame(session, scratch.data, shared))) return scratch;
  return { ...scratch, shared, source: `${scratch.source}, read past the wire (${ram.source})` };
}

/** Bytes that are written on one side and read on the other. */
const SAMPLE = 16;

/** A pattern written on one side is read on the other, in both directions. The old bytes are restored. */
export async function isSame(session: Session, data: Region, shared: SharedMemory): Promise<boolean> {
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
