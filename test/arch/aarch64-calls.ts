import type { Test } from 'tap';
import { EL1, type Machine, order, place, type Registers } from './aarch64-machine.js';
import { values } from './random.js';
import type { Way } from './ring.js';

/** What a call of a function finds. */
export interface Start {
  readonly registers: Registers;
  /** From `place.stack` up; the stack pointer is in its upper half. */
  readonly stack: Uint8Array;
  /** From `place.data` up. */
  readonly data: Uint8Array;
}

interface Outcome {
  readonly registers: Registers;
  /** From the stack pointer up. */
  readonly stack: Uint8Array;
  readonly data: Uint8Array;
}

const STACK = 0x1000;
const DATA = 256;

/** Makes calls with random registers. */
export class Calls {
  readonly #next: () => number;
  readonly #value: () => bigint;

  constructor(next: () => number) {
    this.#next = next;
    this.#value = values(next);
  }

  /**
   * Random, flags too, but for what must point somewhere: x2 and x9 into the data, x28 at `helper`, x27 to the caller, x21
   * and x22 at nothing that may be read.
   */
  registers(): Registers {
    const next = this.#next;
    return {
      ...Object.fromEntries(order.map((name) => [name, this.#value()])),
      pc: place.code,
      x30: place.done,
      x27: place.done,
      sp: place.stack + 0x800n + BigInt(16 * (next() % 64)),
      x2: place.data + BigInt(8 * (next() % 8)),
      x9: place.data + BigInt(8 * (next() % 8)),
      x21: 0n,
      x22: place.data + 4n,
      x28: place.helper,
      cpsr: EL1 | (BigInt(next() & 15) << 28n),
    };
  }

  start(): Start {
    const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, this.#next);
    return { registers: this.registers(), stack: bytes(STACK), data: bytes(DATA) };
  }
}

/** Writes all of a call, and what its outcome is. */
export async function call(machine: Machine, code: Uint8Array, start: Start): Promise<Outcome> {
  await prepare(machine, code, start);
  await machine.run([place.done]);
  return outcome(machine);
}

/** PSTATE.BTYPE of an instruction behind `blr`: in guarded memory it must be a landing pad. */
const CALLED = 2n << 10n;

export async function prepare(machine: Machine, code: Uint8Array, { registers, stack, data }: Start): Promise<void> {
  await machine.write(place.code, code);
  await machine.write(place.stack, stack);
  await machine.write(place.data, data);
  const isPad = /^5f2403d5|^3f2303d5|^7f2303d5/.test(Buffer.from(code).toString('hex'));
  await machine.setRegisters({ ...registers, cpsr: (registers.cpsr ?? 0n) | (isPad ? CALLED : 0n) });
}

/** After a call has come to its end. */
export async function outcome(machine: Machine): Promise<Outcome> {
  const registers = await machine.registers();
  const sp = registers.sp ?? 0n;
  const stack = await machine.read(sp, Number(place.stack - sp) + STACK);
  return { registers, stack, data: await machine.read(place.data, DATA) };
}

/** Makes a call of a function as it is, and of it with a jump in it, which must leave the same. */
export async function calledBoth(
  t: Test,
  machine: Machine,
  [original, patched, way]: readonly [Uint8Array, Uint8Array, Way],
  start: Start,
  what = way.name,
): Promise<Outcome> {
  const untraced = await call(machine, original, start);
  const traced = await call(machine, patched, start);
  sameLeft(t, way, traced, untraced, what);
  return untraced;
}

/**
 * A far patch leaves anything in x16. `retaa` leaves the signature in x30, which a hooked return does not have; no caller
 * can know it.
 */
export function sameLeft(t: Test, { kind }: Pick<Way, 'kind'>, got: Outcome, wanted: Outcome, what: string): void {
  const { x16 = 0n, x30 = 0n } = wanted.registers;
  const isSigned = x30 !== place.done && BigInt.asUintN(39, x30) === place.done;
  const registers = { ...got.registers, ...(kind === 'far' && { x16 }), ...(isSigned && { x30 }) };
  t.same({ ...got, registers }, wanted, what);
}
