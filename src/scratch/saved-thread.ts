/*
 * While a thread runs injected system calls, its registers and its signal mask are not its own. Their values are
 * saved below its stack pointer meanwhile. So if rsptrace is killed, the next one can restore them:
 *
 *   sp - 1024, aligned to 16:   u64 the mask that is wanted | u64 the mask that was          rt_sigprocmask
 *   4096 bytes below:           "rsptrace" | "thread\0\0" | u64 sp | u64 bytes of g | g      the saved thread
 */

import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { registersOf, type Session } from '../rsp/index.js';
import { PAGE } from './scratch.js';

/** Nothing is kept directly below the red zone, because a signal's frame would go there. */
const masksBelow = 1024n;
const recordBytes = 4096;
const headBytes = 32;
const magic = new TextEncoder().encode('rsptracethread\0\0');
/** Injected code begins its stack here, below the saved thread. */
export const stackBelow = masksBelow + BigInt(recordBytes) + 1024n;
/**
 * How far from the saved thread a killed rsptrace may have left the stack pointer, because injected code was running.
 */
const searched = 32 * 1024;

/** Where the two signal masks of a thread with this stack pointer lie. */
export function masksOf(stackPointer: bigint): Addr {
  return addr((stackPointer - masksBelow) & ~15n);
}

/** Saves the registers. False if there is no room, or if the stub does not report all of them. */
export async function saveThread(session: Session, hart: string, stackPointer: bigint): Promise<boolean> {
  const registers = await registersOf(session, hart);
  const { bytes, complete } = registers;
  if (!complete || bytes.length === 0 || headBytes + bytes.length > recordBytes) return false;
  const record = new Uint8Array(headBytes + bytes.length);
  record.set(magic);
  const view = new DataView(record.buffer);
  view.setBigUint64(16, stackPointer, true);
  view.setBigUint64(24, BigInt(bytes.length), true);
  record.set(bytes, headBytes);
  return session.memory(hart).write(placeOf(stackPointer), record);
}

/** The registers are the thread's own again. */
export async function forgetThread(session: Session, hart: string, stackPointer: bigint): Promise<void> {
  await session.memory(hart).write(placeOf(stackPointer), new Uint8Array(magic.length));
}

/**
 * Restores the registers of a thread that a killed rsptrace had borrowed. Returns the thread's stack pointer, or
 * undefined for any other thread.
 */
export async function takeBackThread(
  session: Session,
  { sp }: Architecture,
  hart: string,
): Promise<bigint | undefined> {
  const stackPointer = (await registersOf(session, hart)).register(sp);
  if (stackPointer === undefined) return undefined;
  const from = addr((stackPointer & ~15n) - BigInt(recordBytes) - masksBelow - 64n);
  const found = findRecord(await readToEnd(session.memory(hart), from), from);
  if (!found) return undefined;
  const back = session.batch(hart);
  const done = back.writeRegisters(Buffer.from(found.registers).toString('hex'));
  await back.send();
  if (!done.value) return undefined;
  await forgetThread(session, hart, found.stackPointer);
  return found.stackPointer;
}

/** Page by page: above a stack's last page nothing may be mapped, and a thread may stand just below its end. */
async function readToEnd(memory: MemoryReader, from: Addr): Promise<Uint8Array> {
  const pages: Uint8Array[] = [];
  for (let offset = 0; offset < searched; ) {
    const at = addOffset(from, offset);
    const bytes = await memory.read(at, PAGE - Number(at % BigInt(PAGE)));
    if (!bytes) break;
    pages.push(bytes);
    offset += bytes.length;
  }
  return Buffer.concat(pages);
}

function findRecord(
  bytes: Uint8Array,
  from: Addr,
): { readonly stackPointer: bigint; readonly registers: Uint8Array } | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at + headBytes <= bytes.length; at += 16) {
    if (!magic.every((byte, i) => bytes[at + i] === byte)) continue;
    const stackPointer = view.getBigUint64(at + 16, true);
    const length = Number(view.getBigUint64(at + 24, true));
    const end = at + headBytes + length;
    if (placeOf(stackPointer) !== addOffset(from, at) || headBytes + length > recordBytes || end > bytes.length)
      continue;
    return { stackPointer, registers: bytes.slice(at + headBytes, end) };
  }
  return undefined;
}

function placeOf(stackPointer: bigint): Addr {
  return addOffset(masksOf(stackPointer), -recordBytes);
}
