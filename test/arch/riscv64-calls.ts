import type { Test } from 'tap';
import { values } from './random.js';
import { type Machine, order, type Registers } from './riscv64-machine.js';
import { place, type Way } from './riscv64-ring.js';

/** What a call of a function finds. */
export interface Start {
  readonly registers: Registers;
  /** From `place.stack` up; the stack pointer is in its upper half. */
  readonly stack: Uint8Array;
  /** From `place.data` up. */
  readonly data: Uint8Array;
}

export interface Outcome {
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

  /** Random, but for what must point somewhere: a2, t1 and tp into the data, s11 at `helper`, s2 and s3 at nothing that may be read. */
  registers(): Registers {
    const next = this.#next;
    return {
      ...Object.fromEntries(order.map((name) => [name, this.#value()])),
      zero: 0n,
      pc: place.code,
      ra: place.done,
      sp: place.stack + 0x800n + BigInt(16 * (next() % 64)),
      a2: place.data + BigInt(8 * (next() % 8)),
      t1: place.data + BigInt(8 * (next() % 8)),
      tp: place.data + BigInt(8 * (next() % 8)),
      s2: 0n,
      s3: place.data + 4n,
      s11: place.helper,
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

export async function prepare(machine: Machine, code: Uint8Array, { registers, stack, data }: Start): Promise<void> {
  await machine.write(place.code, code);
  await machine.write(place.stack, stack);
  await machine.write(place.data, data);
  await machine.setRegisters(registers);
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

/** A far patch leaves anything in t0. */
export function sameLeft(t: Test, { kind }: Pick<Way, 'kind'>, got: Outcome, wanted: Outcome, what: string): void {
  const { t0 = 0n } = wanted.registers;
  t.same(kind === 'far' ? { ...got, registers: { ...got.registers, t0 } } : got, wanted, what);
}
