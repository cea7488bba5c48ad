import type { RegisterBlock } from './registers.js';
import type { Session } from './session.js';

/** One register of a stopped hart; undefined if the stub does not give it. */
export async function registerOf(session: Session, name: string, hart?: string): Promise<bigint | undefined> {
  const batch = session.batch(hart);
  const reply = batch.readRegister(name);
  await batch.send();
  return reply.value;
}

/** All registers of a stopped hart, or what a stub gives at once and those of `names`. */
export async function registersOf(session: Session, hart?: string, names?: readonly string[]): Promise<RegisterBlock> {
  const batch = session.batch(hart);
  const reply = batch.readRegisters(names);
  await batch.send();
  return reply.value;
}

/** Writes one register of a stopped hart; false if the stub refuses it. */
export async function setRegister(session: Session, name: string, value: bigint, hart?: string): Promise<boolean> {
  const batch = session.batch(hart);
  const reply = batch.writeRegister(name, value);
  await batch.send();
  return reply.value;
}
