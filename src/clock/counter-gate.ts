// A counter that firmware keeps from the kernel: code of ours in the kernel would trap where it reads it.
import type { Architecture } from '../arch/index.js';
import type { Refusal } from '../base/errors.js';
import { isProcess, registerOf, registersOf, type Session, setRegister } from '../rsp/index.js';

/** The harts whose kernel may not read the time counter. */
export interface ClosedCounter {
  /** The register that says so, with the bit that allows it. */
  readonly register: string;
  readonly bit: bigint;
  /** What it is on each of those harts. */
  readonly harts: readonly { readonly id: string; readonly value: bigint }[];
  /** Harts that are in their firmware, which may close it later. */
  readonly inFirmware: number;
}

/** Reads only. Undefined if every kernel that runs may read the counter, or if nothing says. The target is stopped. */
export async function closedCounter(session: Session, arch: Architecture): Promise<ClosedCounter | undefined> {
  const clock = arch.clocks?.find(({ kind }) => kind === 'time');
  const gate = clock?.kind === 'time' ? clock.gate : undefined;
  const { privilege } = arch;
  if (!gate || !privilege || isProcess(session.features) || !session.target.register(gate.register)) return undefined;
  const { register, bit } = gate;
  const harts: { id: string; value: bigint }[] = [];
  let inFirmware = 0;
  for (const { id } of await session.harts()) {
    const reply = await registersOf(session, id, [register, ...privilege.registers]);
    const value = reply.register(register);
    if (value === undefined || (value & bit) !== 0n) continue;
    const { privilege: level } = privilege.standing(reply);
    if (level === 'firmware') inFirmware++;
    else if (level !== undefined) harts.push({ id, value });
  }
  return harts.length === 0 ? undefined : { register, bit, harts, inFirmware };
}

/** In the reason why the counter stays closed. */
export const isInFirmware = 'harts are in their firmware, which may set';

/** A counter of the kernel's that is opened where it has to be, as often as that is, and closed at the end. */
export class CounterGate {
  readonly #session: Session;
  readonly #arch: Architecture;
  #opened: ClosedCounter | undefined;

  constructor(session: Session, arch: Architecture) {
    this.#session = session;
    this.#arch = arch;
  }

  /**
   * At a stop. Returns what was closed, or why it stays so: the stub does not write it, or firmware may take it back.
   * Undefined if nothing was. Firmware may have closed some of what was opened before. The others are still to be
   * closed at the end.
   */
  async open(): Promise<ClosedCounter | Refusal | undefined> {
    const closed = await closedCounter(this.#session, this.#arch);
    if (closed === undefined) return undefined;
    const { register, bit, harts, inFirmware } = closed;
    if (inFirmware > 0) return { refused: `${inFirmware} ${isInFirmware} ${register} again` };
    for (const { id, value } of harts) await setRegister(this.#session, register, value | bit, id);
    for (const { id } of harts) {
      if ((((await registerOf(this.#session, register, id)) ?? 0n) & bit) !== 0n) continue;
      await this.#putBack(closed);
      return { refused: `the stub does not write ${register}` };
    }
    const others = this.#opened?.harts.filter(({ id }) => !harts.some((hart) => hart.id === id)) ?? [];
    this.#opened = { ...closed, harts: [...harts, ...others] };
    return closed;
  }

  /** The harts whose kernel may read it now, because of us. */
  get opened(): ClosedCounter | undefined {
    return this.#opened;
  }

  /** The target is stopped, and no code of ours runs any more. */
  async close(): Promise<void> {
    if (this.#opened) await this.#putBack(this.#opened);
    this.#opened = undefined;
  }

  async #putBack({ register, harts }: ClosedCounter): Promise<void> {
    for (const { id, value } of harts) await setRegister(this.#session, register, value, id);
  }
}
