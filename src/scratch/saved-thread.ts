/*
 * While a thread runs injected system calls, its registers and its signal mask are not its own. Their values are
 * saved below its stack pointer meanwhile. So if rsptrace is killed, the next one can restore them:
 *
 *   sp - 1024, aligned to 16:   u64 the mask that is wanted | u64 the mask that was          rt_sigprocmask
 *   4096 bytes below:           "rsptrace" | "thread\0\0" | u64 sp | u64 bytes of g | g      the saved thread
 *
 * What was there is put back: below the stack of a coroutine there may be anything. Injected code that needs a stack
 * runs on one of ours, whose first words say whose stack pointer that was: the same without registers.
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
/** So far above the stack pointer a record may be, because injected code was running. */
const searched = 32 * 1024;
/** Bytes at the begin of a stack of ours. */
const leadBytes = 64;

/** Where the two signal masks of a thread with this stack pointer lie. */
export function masksOf(stackPointer: bigint): Addr {
  return addr((stackPointer - masksBelow) & ~15n);
}

/**
 * Saves the registers. Returns what puts the memory back when they are the thread's own again; undefined if there is no
 * room, or if the stub does not report all of them.
 */
export async function saveThread(
  session: Session,
  hart: string,
  stackPointer: bigint,
): Promise<(() => Promise<void>) | undefined> {
  const { bytes, complete } = await registersOf(session, hart);
  if (!complete || bytes.length === 0 || headBytes + bytes.length > recordBytes) return undefined;
  const record = recordOf(stackPointer, bytes);
  const memory = session.memory(hart);
  const place = placeOf(stackPointer);
  const there = await memory.read(place, record.length);
  if (there === undefined || !(await memory.write(place, record))) return undefined;
  return async () => {
    await memory.write(place, there);
  };
}

function recordOf(stackPointer: bigint, registers: Uint8Array): Uint8Array {
  const record = new Uint8Array(headBytes + registers.length);
  record.set(magic);
  const view = new DataView(record.buffer);
  view.setBigUint64(16, stackPointer, true);
  view.setBigUint64(24, BigInt(registers.length), true);
  record.set(registers, headBytes);
  return record;
}

/** Where injected code of the thread may begin its stack, below `top`; undefined if that cannot be written. */
export async function leadToThread(
  session: Session,
  hart: string,
  top: Addr,
  stackPointer: bigint,
): Promise<Addr | undefined> {
  const start = addOffset(top, -leadBytes);
  return (await session.memory(hart).write(start, recordOf(stackPointer, new Uint8Array(0)))) ? start : undefined;
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
  const memory = session.memory(hart);
  const found = await savedNear(memory, stackPointer);
  if (!found) return undefined;
  const back = session.batch(hart);
  const done = back.writeRegisters(Buffer.from(found.registers).toString('hex'));
  await back.send();
  if (!done.value) return undefined;
  // What was there nobody knows any more.
  await memory.write(placeOf(found.stackPointer), new Uint8Array(magic.length));
  return found.stackPointer;
}

interface SavedThread {
  readonly stackPointer: bigint;
  readonly registers: Uint8Array;
}

async function savedNear(memory: MemoryReader, stackPointer: bigint): Promise<SavedThread | undefined> {
  const from = addr((stackPointer & ~15n) - BigInt(recordBytes) - masksBelow - 64n);
  const records = recordsIn(await readToEnd(memory, from, searched));
  const own = records.find(({ at, saved }) => placeOf(saved.stackPointer) === addOffset(from, at));
  if (own) return own.saved;
  // Injected code runs on a stack of ours, which leads to it.
  const lead = records.find(({ saved }) => saved.registers.length === 0)?.saved;
  if (lead === undefined) return undefined;
  const [first] = recordsIn(await readToEnd(memory, placeOf(lead.stackPointer), recordBytes));
  return first?.at === 0 && first.saved.stackPointer === lead.stackPointer ? first.saved : undefined;
}

/** Page by page: above a stack's last page nothing may be mapped, and a thread may stand just below its end. */
async function readToEnd(memory: MemoryReader, from: Addr, most: number): Promise<Uint8Array> {
  const pages: Uint8Array[] = [];
  for (let offset = 0; offset < most; ) {
    const at = addOffset(from, offset);
    const bytes = await memory.read(at, PAGE - Number(at % BigInt(PAGE)));
    if (!bytes) break;
    pages.push(bytes);
    offset += bytes.length;
  }
  return Buffer.concat(pages);
}

/** With the places where they begin. */
function recordsIn(bytes: Uint8Array): readonly { readonly at: number; readonly saved: SavedThread }[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const found: { at: number; saved: SavedThread }[] = [];
  for (let at = 0; at + headBytes <= bytes.length; at += 16) {
    if (!magic.every((byte, i) => bytes[at + i] === byte)) continue;
    const length = Number(view.getBigUint64(at + 24, true));
    const end = at + headBytes + length;
    if (headBytes + length > recordBytes || end > bytes.length) continue;
    const registers = bytes.slice(at + headBytes, end);
    found.push({ at, saved: { stackPointer: view.getBigUint64(at + 16, true), registers } });
  }
  return found;
}

function placeOf(stackPointer: bigint): Addr {
  return addOffset(masksOf(stackPointer), -recordBytes);
}
