/*
 * While a thread carries system calls out for us, its registers and its signal mask are not its own. What they were stands below its stack pointer
 * meanwhile, so that the next rsptrace can put them back should this one be killed:
 *
 *   sp - 1024, aligned to 16:   u64 the mask that is wanted | u64 the mask that was          rt_sigprocmask
 *   4096 bytes below:           "rsptrace" | "thread\0\0" | u64 sp | u64 bytes of g | g      the saved thread
 */

import type { Architecture } from '../../arch/index.js';
import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { Session } from '../../rsp/index.js';

/** Below the red zone nothing is kept: a signal's frame would go there. */
const masksBelow = 1024n;
const recordBytes = 4096;
const headBytes = 32;
const magic = new TextEncoder().encode('rsptracethread\0\0');
/** Code that a thread runs for us begins its stack here, below the saved thread. */
export const stackBelow = masksBelow + BigInt(recordBytes) + 1024n;
/** How far from the saved thread a killed rsptrace may have left the stack pointer: code of ours was running. */
const searched = 32 * 1024;

/** Where the two signal masks lie of a thread with this stack pointer. */
export function masksOf(stackPointer: bigint): Addr {
  return addr((stackPointer - masksBelow) & ~15n);
}

/** Writes down what the registers are. False where there is no room, or the stub does not tell all of them. */
export async function saveThread(session: Session, hart: string, stackPointer: bigint): Promise<boolean> {
  const batch = session.batch(hart);
  const registers = batch.readRegisters();
  await batch.send();
  const { bytes, complete } = registers.value;
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

/** Puts back the registers of a thread that an rsptrace had borrowed when it was killed. Its stack pointer, or undefined for any other thread. */
export async function takeBackThread(
  session: Session,
  { sp }: Architecture,
  hart: string,
): Promise<bigint | undefined> {
  const batch = session.batch(hart);
  const registers = batch.readRegisters();
  await batch.send();
  const stackPointer = registers.value.register(sp);
  if (stackPointer === undefined) return undefined;
  const memory = session.memory(hart);
  const from = addr((stackPointer & ~15n) - BigInt(recordBytes) - masksBelow - 64n);
  // A stack's last page ends where nothing may be mapped.
  for (let size = searched; size >= 2 * recordBytes; size /= 2) {
    const bytes = await memory.read(from, size);
    if (!bytes) continue;
    const found = findRecord(bytes, from);
    if (!found) return undefined;
    const back = session.batch(hart);
    const done = back.writeRegisters(Buffer.from(found.registers).toString('hex'));
    await back.send();
    if (!done.value) return undefined;
    await forgetThread(session, hart, found.stackPointer);
    return found.stackPointer;
  }
  return undefined;
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
