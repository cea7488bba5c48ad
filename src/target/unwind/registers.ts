import type { Architecture, FrameModel } from '../../arch/index.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { FrameRegisters } from './frame.js';

type Values = readonly (bigint | undefined)[];

/** The registers of one frame. Integer registers lie in an array by DWARF number, CSRs in a small map. */
export class RegisterSet implements FrameRegisters {
  readonly values: Values;
  readonly special: ReadonlyMap<number, bigint>;
  readonly #names: ReadonlyMap<string, number>;

  constructor(values: Values, special: ReadonlyMap<number, bigint>, names: ReadonlyMap<string, number>) {
    this.values = values;
    this.special = special;
    this.#names = names;
  }

  numbered(number: number): bigint | undefined {
    return this.values[number] ?? this.special.get(number);
  }

  register(name: string): bigint | undefined {
    const number = this.#names.get(name);
    return number === undefined ? undefined : this.numbered(number);
  }

  /** The same names with other values. */
  derive(values: Values, special: ReadonlyMap<number, bigint>): RegisterSet {
    return new RegisterSet(values, special, this.#names);
  }
}

export const noSpecial: ReadonlyMap<number, bigint> = new Map();

/** Names and numbers of one architecture, and which registers a call preserves. */
export class RegisterFile {
  readonly model: FrameModel;
  /** True for registers that keep the caller's value if no rule mentions them. */
  readonly kept: readonly boolean[];
  readonly #names = new Map<string, number>();

  constructor(arch: Architecture, model: FrameModel) {
    this.model = model;
    const { registerCount, returnAddress, special, preserved, fixed } = this.model;
    for (let number = 0; number <= Math.max(registerCount - 1, returnAddress); number++) {
      const name = arch.dwarfRegister(number);
      if (name !== undefined) this.#names.set(name, number);
    }
    for (const [number, name] of special) this.#names.set(name, number);
    this.kept = Array.from({ length: registerCount }, (_, n) => preserved.includes(n) || fixed.includes(n));
  }

  /** What unwinding needs of a stopped hart beyond its integer registers. */
  get specialNames(): string[] {
    return [...this.model.special.values()];
  }

  read(given: RegisterReader): RegisterSet {
    const registers = this.model.ofLevel?.(given) ?? given;
    const values: (bigint | undefined)[] = new Array(this.model.registerCount).fill(undefined);
    const special = new Map<number, bigint>();
    for (const [name, number] of this.#names) {
      const value = registers.register(name);
      if (number < values.length) values[number] = value;
      else if (value !== undefined && this.model.special.has(number)) special.set(number, value);
    }
    return new RegisterSet(values, special, this.#names);
  }
}
