import type { Test } from 'tap';
import type { Architecture } from '../../src/arch/architecture.js';
import { addr } from '../../src/base/addr.js';
import { random, values } from './random.js';
import { type Case, StepOracle } from './step-oracle.js';

/** One instruction, and the state it meets. */
export interface Trial {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly pc: bigint;
  readonly registers: ReadonlyMap<string, bigint>;
  /** Put where the instruction reads or writes memory, at the stack pointer where it does neither. */
  readonly memory: Uint8Array;
}

export interface Difference {
  readonly instruction: string;
  readonly what: string;
  readonly expected: string;
  readonly actual: string;
}

/** Bits that a debugger's own work may leave in a register after a real step. */
export type Masks = Readonly<Record<string, bigint>>;

export interface Comparison {
  readonly carried: number;
  /** Names of trials that had no effects, so that a step is needed. */
  readonly left: readonly string[];
  readonly differences: readonly Difference[];
}

/** Steps every trial that has effects, and reports where a register or a byte differs from what the effects say. */
export async function compare(
  architecture: Architecture,
  oracle: StepOracle,
  order: readonly string[],
  trials: readonly Trial[],
  masks: Masks = {},
): Promise<Comparison> {
  const left: string[] = [];
  const prepared = trials.flatMap((trial) => {
    const prediction = predict(architecture, trial);
    if (prediction === undefined) left.push(trial.name);
    return prediction === undefined ? [] : [prediction];
  });
  const cases = prepared.map(
    ({ trial, base }): Case => ({
      registers: order.map((register) => trial.registers.get(register) ?? 0n),
      memory: [
        { address: trial.pc, bytes: trial.bytes },
        { address: base, bytes: trial.memory },
      ],
      watch: { address: base, length: trial.memory.length },
    }),
  );
  const outcomes = await oracle.run(cases);
  const differences: Difference[] = [];
  for (const [index, { trial, registers, memory }] of prepared.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined) throw new Error('A case was not run');
    const instruction = `${Buffer.from(trial.bytes).toString('hex')} ${trial.name} at 0x${trial.pc.toString(16)}`;
    for (const [at, register] of order.entries()) {
      const keep = masks[register] ?? 0xffff_ffff_ffff_ffffn;
      const expected = (outcome.registers[at] ?? 0n) & keep;
      const actual = (registers.get(register) ?? 0n) & keep;
      if (actual !== expected) {
        differences.push({ instruction, what: register, expected: expected.toString(16), actual: actual.toString(16) });
      }
    }
    const expected = Buffer.from(outcome.watched ?? []).toString('hex');
    const actual = Buffer.from(memory).toString('hex');
    if (actual !== expected) differences.push({ instruction, what: 'memory', expected, actual });
  }
  return { carried: prepared.length, left, differences };
}

/** Instructions of an architecture that a QEMU without firmware steps. */
export interface Stepped {
  readonly architecture: Architecture;
  readonly program: string;
  readonly machine: readonly string[];
  /** The registers of its `g` packet, of eight bytes but for those in `sizes`. */
  readonly order: readonly string[];
  readonly sizes?: Readonly<Record<string, number>>;
  /** Where code and stack begin. */
  readonly code: bigint;
  readonly stack: bigint;
  /** The stack pointer is a multiple of it. */
  readonly alignment: number;
  readonly encodings: (next: () => number) => Promise<Map<string, Uint8Array[]>> | Map<string, Uint8Array[]>;
  /** Trials of each class, and how many different ones it has at least. */
  readonly perClass: number;
  readonly least: number;
  /** The base, besides the stack pointer, of what accesses the stack; registers that get the value of the first now and then. */
  readonly framePointer: string;
  readonly equal: readonly string[];
  /** What else must be so. */
  readonly prepare: (registers: Map<string, bigint>, bytes: Uint8Array, next: () => number) => void;
  /** Classes of which some are left to a step: where they access what is not the stack. */
  readonly left: RegExp;
  readonly masks?: Masks;
}

export async function carriesOut(t: Test, given: Stepped): Promise<void> {
  const { architecture, order, sizes = {}, code, stack, alignment, perClass, equal } = given;
  const next = random(42);
  const value = values(next);
  const trials: Trial[] = [];
  for (const [name, list] of await given.encodings(next)) {
    t.ok(list.length >= given.least, `${name}: ${list.length} encodings`);
    for (let index = 0; index < perClass; index++) {
      const bytes = list[index % list.length] as Uint8Array;
      const pc = code + BigInt(16 * (next() % 4096));
      const registers = new Map(order.map((register) => [register, value()]));
      const sp = stack + BigInt(alignment * (next() % (0x1_0000 / alignment)));
      registers.set('pc', pc).set(architecture.sp, sp);
      // It points into the frame, now and then elsewhere, where no effects are expected.
      if (next() % 4 !== 0) registers.set(given.framePointer, sp + BigInt(next() % 4096));
      // Equal operands, which random ones hardly ever are.
      if (next() % 4 === 0)
        for (const register of equal) registers.set(register, registers.get(equal[0] as string) ?? 0n);
      given.prepare(registers, bytes, next);
      trials.push({ name, bytes, pc, registers, memory: Uint8Array.from({ length: 32 }, next) });
    }
  }
  await using oracle = await StepOracle.start(
    given.program,
    given.machine,
    order.map((register) => sizes[register] ?? 8),
  );
  const { carried, left, differences } = await compare(architecture, oracle, order, trials, given.masks);
  t.same(differences.slice(0, 10), []);
  t.ok(carried > 0.95 * trials.length, `${carried} carried out of ${trials.length}`);
  t.ok(left.length > 0 && left.every((name) => given.left.test(name)), 'only accesses outside the stack are left');
}

interface Prediction {
  readonly trial: Trial;
  /** Where the trial's memory goes. */
  readonly base: bigint;
  readonly registers: ReadonlyMap<string, bigint>;
  readonly memory: Uint8Array;
}

/** The state after the effects are applied. */
function predict(architecture: Architecture, trial: Trial): Prediction | undefined {
  const carried = architecture.emulate(trial.bytes, addr(trial.pc));
  if (carried === undefined) throw new Error(`${trial.name} is not carried out`);
  if (carried.length !== trial.bytes.length) throw new Error(`${trial.name} has another length`);
  const known = { register: (name: string) => trial.registers.get(name) };
  const load = carried.load?.(known);
  if (load?.length === 0) {
    if (carried.effects(known, new Uint8Array(8)) !== undefined)
      throw new Error(`${trial.name} has effects without its load`);
    return undefined;
  }
  const middle = trial.memory.length / 2;
  const loaded = load && trial.memory.subarray(middle, middle + load.length);
  const effects = carried.effects(known, loaded);
  if (effects === undefined) return undefined;
  const written = effects.memory[0];
  const near = load?.address ?? written?.address ?? trial.registers.get(architecture.sp) ?? 0n;
  const base = near - BigInt(middle);
  const memory = Uint8Array.from(trial.memory);
  for (const { address, bytes } of effects.memory) memory.set(bytes, Number(address - base));
  const names = effects.registers.map(({ name }) => name);
  if (new Set(names).size !== names.length) throw new Error(`${trial.name} writes a register twice`);
  const registers = new Map(trial.registers);
  for (const { name, value } of effects.registers) registers.set(name, value);
  return { trial, base, registers, memory };
}
