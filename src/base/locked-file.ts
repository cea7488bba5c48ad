// Files that one process at a time writes. Node has no flock(2), so flock(1) of util-linux or busybox takes the lock on
// an open file of ours: it belongs to the open file, not to flock(1), and is gone when we are, even killed.
import { spawnSync } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, statSync, unlinkSync } from 'node:fs';
import { RsptraceError } from './errors.js';

export interface OpenedFile {
  readonly fd: number;
  /** It was not there before. */
  readonly isNew: boolean;
}

/** How often a file that vanishes between its opening and its locking is opened again. */
const MOST_TRIES = 10;
/** What flock(1) ends with when somebody else holds the lock. */
const CONFLICT = 1;

/** Opens a file for writing, made if need be, and leaves what is in it. Throws what the system says. */
export function openUntouched(path: string): OpenedFile {
  try {
    return { fd: openSync(path, 'wx'), isNew: true };
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
  }
  // Not 'w', which would empty the file. O_CREAT makes the target of a dangling link.
  return { fd: openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o666), isNew: false };
}

/**
 * The same for a file that no other process holds so. Only regular files are locked. Where flock(1) cannot be had,
 * `warn` is told and the file is not locked. Throws `OUTPUT_IN_USE`, or what the system says.
 */
export function openLocked(path: string, warn: (message: string) => void): OpenedFile {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const opened = openUntouched(path);
    try {
      if (!fstatSync(opened.fd).isFile()) return opened;
      const lock = takeLock(opened.fd);
      if (lock === 'taken') throw inUse(path);
      if (lock === 'none') warn(`a second rsptrace could write ${path} too, since flock(1) cannot lock it here`);
      // Who held it before may have removed or renamed it meanwhile.
      if (isAt(path, opened.fd)) return opened;
    } catch (error) {
      closeSync(opened.fd);
      throw error;
    }
    closeSync(opened.fd);
  }
  throw inUse(path);
}

/** Whether a file holds what writing would destroy: devices and pipes hold nothing. */
export function holdsBytes(fd: number): boolean {
  const stat = fstatSync(fd);
  return stat.isFile() && stat.size > 0;
}

/** The error of an output that would overwrite what is there already. */
export function outputExists(path: string): RsptraceError {
  return new RsptraceError('OUTPUT_EXISTS', `${path} is there already`, {
    hint: 'name another one, or have it overwritten with --force (`force` of the library)',
  });
}

/** Closes a file to which nothing was written; one that was not there before is removed. */
export function abandon(path: string, { fd, isNew }: OpenedFile): void {
  // Removed while it is locked: nobody else can have begun to write it.
  if (isNew && isAt(path, fd)) unlinkSync(path);
  closeSync(fd);
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function takeLock(fd: number): 'ours' | 'taken' | 'none' {
  const { status } = spawnSync('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
  if (status === 0) return 'ours';
  return status === CONFLICT ? 'taken' : 'none';
}

/** Whether a path still leads to the file that was opened. */
export function isAt(path: string, fd: number): boolean {
  const now = statSync(path, { bigint: true, throwIfNoEntry: false });
  const ours = fstatSync(fd, { bigint: true });
  return now?.ino === ours.ino && now.dev === ours.dev;
}

function inUse(path: string): RsptraceError {
  return new RsptraceError('OUTPUT_IN_USE', `${path} is being written by another rsptrace`, {
    hint: 'name another file, or wait until that one has ended',
  });
}
