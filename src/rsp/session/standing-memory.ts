import { Buffer } from 'node:buffer';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { Addr } from '../../base/addr.js';
import type { Session } from './session.js';
import { pidOf } from './stop-reply.js';

/** Bytes that both ways of reading must agree about. */
const COMPARED = 8;

/** Memory of a process that stands, past its gdbserver: a piece costs 2 us, and 30 by packets. */
export interface StandingMemory extends Disposable {
  /** Undefined if any of it is not mapped. */
  read(address: Addr, length: number): Uint8Array | undefined;
  /** Read-only code, too. False if any of it was refused. */
  write(address: Addr, bytes: Uint8Array): boolean;
}

/**
 * The same for many small pieces. Undefined where the process may not be written from here, and while breakpoints are
 * inserted, which gdbserver hides. `known` is an address of which both must show the same. `child`: of a process that
 * has just forked. Breakpoints stay in it meanwhile, whose places are gdbserver's.
 */
export async function standingMemory(
  session: Session,
  known: Addr,
  child?: string,
): Promise<StandingMemory | undefined> {
  const here = session.processHere;
  const pid = child === undefined ? here : Number.parseInt(pidOf(child) ?? '', 16);
  if (here === undefined || (child === undefined && session.breakpoints.length > 0)) return undefined;
  let file: number;
  try {
    file = openSync(`/proc/${pid}/mem`, 'r+');
  } catch {
    return undefined;
  }
  const memory: StandingMemory = {
    read(address, length) {
      const bytes = new Uint8Array(length);
      try {
        return readSync(file, bytes, 0, length, address) === length ? bytes : undefined;
      } catch {
        // EIO: a page that is not mapped.
        return undefined;
      }
    },
    write(address, bytes) {
      try {
        // Node takes no larger position.
        if (address > Number.MAX_SAFE_INTEGER) return false;
        return writeSync(file, bytes, 0, bytes.length, Number(address)) === bytes.length;
      } catch {
        return false;
      }
    },
    [Symbol.dispose]: () => closeSync(file),
  };
  const [expected, got] = [await session.memory(child).read(known, COMPARED), memory.read(known, COMPARED)];
  if (expected && got && Buffer.compare(expected, got) === 0) return memory;
  memory[Symbol.dispose]();
  return undefined;
}
