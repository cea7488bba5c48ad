import type { LoadBase } from '../inject/record-parts.js';
import type { Assembler } from './assembler.js';
import type { Place } from './encoder.js';
import { numberOf, RSP } from './registers.js';

/** Offsets from rsp while a trampoline has registers pushed, in bytes. */
export interface Stack {
  /** Numbers, in the order in which they were pushed. */
  readonly pushed: readonly number[];
  readonly returnAddress: number;
  /** The address that `stack-pointer` means. */
  readonly stackPointer: number;
  /** The kept words, the first one first; none at an entry. */
  readonly kept: readonly number[];
}

/** A general register's number. Throws RangeError for another name. */
export function general(name: string): number {
  const number = numberOf(name);
  if (number === undefined) throw new RangeError(`x86_64 has no general register ${name}`);
  return number;
}

/** Whether a pointer must be loaded from the stack, because its register is pushed and used. */
export function onStack(base: LoadBase, pushed: ReadonlySet<number>): boolean {
  return base.kind === 'kept' || general(base.name) === RSP || pushed.has(general(base.name));
}

/** The register with the function's value of this one: itself, or `scratch`, which is loaded if it was pushed. */
export function fetch(code: Assembler, number: number, stack: Stack, scratch: number): number {
  const index = stack.pushed.indexOf(number);
  if (number === RSP) code.address(scratch, { base: RSP, offset: stack.stackPointer });
  else if (index >= 0) code.load(scratch, { base: RSP, offset: 8 * (stack.pushed.length - 1 - index) });
  else return number;
  return scratch;
}

export function keptWord({ kept }: Stack, index: number): Place {
  const offset = kept[index];
  if (offset === undefined) throw new RangeError(`There is no kept word ${index} here`);
  return { base: RSP, offset };
}
