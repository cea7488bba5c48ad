import type { Test } from 'tap';
import type { ProbeCode } from '../../src/arch/inject/probe-code.js';
import type { RecordField } from '../../src/arch/inject/record-parts.js';
import type { RingGeometry } from '../../src/arch/inject/ring-contract.js';
import type { BareMachine, Registers } from './machine.js';
import { values } from './random.js';
import { type Places, TestRing, type Way } from './ring.js';

/** A function whose first instructions are taken out. */
export interface TestFunction {
  readonly name: string;
  readonly code: Uint8Array;
}

/** An architecture with loads and stores, whose trampolines are tried on a machine. */
export interface ProbeTarget {
  readonly code: ProbeCode;
  readonly place: Places;
  readonly ways: readonly Way[];
  readonly smallRing: RingGeometry;
  readonly start: (harts?: number) => Promise<BareMachine>;
  readonly assemble: (text: string, at: bigint, symbols?: Readonly<Record<string, bigint>>) => Uint8Array;
  /** The names of the registers that calls find random. */
  readonly order: readonly string[];
  readonly functions: readonly TestFunction[];
  readonly helper: Uint8Array;
  /** The first argument, the one that points into the data, the return address; what a far patch overwrites. */
  readonly names: { readonly argument: string; readonly pointer: string; readonly link: string; readonly lost: string };
  readonly hart: RecordField['from'] & { readonly kind: 'hart' };
  /** Registers that must point somewhere, by random numbers. */
  readonly pointing: (next: () => number) => Registers;
  /** The state in which this code is called. */
  readonly called?: (code: Uint8Array, registers: Registers) => Registers;
  /** The registers of an outcome, but for what no caller can know. */
  readonly known?: (registers: Registers, wanted: Registers) => Registers;
}

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
  readonly #target: ProbeTarget;
  readonly #next: () => number;
  readonly #value: () => bigint;

  constructor(target: ProbeTarget, next: () => number) {
    this.#target = target;
    this.#next = next;
    this.#value = values(next);
  }

  registers(): Registers {
    const { order, place, names, pointing } = this.#target;
    const next = this.#next;
    return {
      ...Object.fromEntries(order.map((name) => [name, this.#value()])),
      pc: place.code,
      [names.link]: place.done,
      sp: place.stack + 0x800n + BigInt(16 * (next() % 64)),
      [names.pointer]: place.data + BigInt(8 * (next() % 8)),
      ...pointing(next),
    };
  }

  start(): Start {
    const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, this.#next);
    return { registers: this.registers(), stack: bytes(STACK), data: bytes(DATA) };
  }
}

/** Calls on a machine. */
export class Caller {
  readonly #target: ProbeTarget;
  readonly machine: BareMachine;

  constructor(target: ProbeTarget, machine: BareMachine) {
    this.#target = target;
    this.machine = machine;
  }

  ring(geometry = this.#target.smallRing): TestRing {
    return new TestRing(this.machine, this.#target, geometry);
  }

  /** Writes all of a call, and what its outcome is. */
  async call(code: Uint8Array, start: Start): Promise<Outcome> {
    await this.prepare(code, start);
    await this.machine.run([this.#target.place.done]);
    return this.outcome();
  }

  async prepare(code: Uint8Array, { registers, stack, data }: Start): Promise<void> {
    const { place, called } = this.#target;
    await this.machine.write(place.code, code);
    await this.machine.write(place.stack, stack);
    await this.machine.write(place.data, data);
    await this.machine.setRegisters(called?.(code, registers) ?? registers);
  }

  /** After a call has come to its end. */
  async outcome(): Promise<Outcome> {
    const { place } = this.#target;
    const registers = await this.machine.registers();
    const sp = registers.sp ?? 0n;
    const stack = await this.machine.read(sp, Number(place.stack - sp) + STACK);
    return { registers, stack, data: await this.machine.read(place.data, DATA) };
  }

  /** Makes a call of a function as it is, and of it with a jump in it, which must leave the same. */
  async both(
    t: Test,
    [original, patched, way]: readonly [Uint8Array, Uint8Array, Way],
    start: Start,
    what = way.name,
  ): Promise<Outcome> {
    const untraced = await this.call(original, start);
    const traced = await this.call(patched, start);
    this.sameLeft(t, way, traced, untraced, what);
    return untraced;
  }

  /** A far patch leaves anything in one register. */
  sameLeft(t: Test, { kind }: Pick<Way, 'kind'>, got: Outcome, wanted: Outcome, what: string): void {
    const { names, known } = this.#target;
    const { [names.lost]: lost = 0n } = wanted.registers;
    const left = kind === 'far' ? { ...got.registers, [names.lost]: lost } : got.registers;
    t.same({ ...got, registers: known?.(left, wanted.registers) ?? left }, wanted, what);
  }
}
