import type { Condition, IntegerIn } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { Shape } from '../values/index.js';
import type { ValuePlace } from './argument-places.js';

/** `len > 100`: an argument by its name, compared with an integer. */
export interface Predicate {
  readonly argument: string;
  readonly op: Condition['op'];
  readonly value: bigint;
}

/** Conditions on registers at a function's entry: all of one list hold, in at least one of the lists. */
export type Conditions = readonly (readonly Condition[])[];

const operators: Readonly<Record<string, Condition['op']>> = {
  '==': 'eq',
  '!=': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
};

/**
 * Parses the text behind `if` in a probe: `ARG OP INTEGER`, several joined by `&&`. Integers are decimal or hex,
 * `true` or `false`. `bare` is the probe without its condition.
 * @throws RsptraceError `PROBE_SYNTAX`
 */
export function parsePredicates(text: string, probe: string, bare: string): Predicate[] {
  return text.split('&&').map((part) => {
    const [, argument, op, digits] =
      /^\s*(\w+)\s*(==|!=|<=|>=|<|>)\s*(true|false|-?(?:0x[\da-f][\da-f_]*|\d[\d_]*))\s*$/i.exec(part) ?? [];
    const known = op === undefined ? undefined : operators[op];
    if (argument === undefined || known === undefined || digits === undefined) {
      throw new RsptraceError('PROBE_SYNTAX', `'${part.trim()}' in '${probe}' is not a comparison with an integer`, {
        hint: `write '${bare} if len > 100', with one of ${Object.keys(operators).join(' ')}, and && between several`,
      });
    }
    return { argument, op: known, value: integer(digits.toLowerCase()) };
  });
}

function integer(text: string): bigint {
  if (text === 'true' || text === 'false') return text === 'true' ? 1n : 0n;
  const digits = text.replaceAll('_', '');
  return digits.startsWith('-') ? -BigInt(digits.slice(1)) : BigInt(digits);
}

/** The facts about an argument that a condition needs. */
interface Argument {
  readonly name: string;
  readonly shape: Shape | undefined;
  readonly where: ValuePlace;
}

/** The predicate for one function; words for the user if it has no such argument. */
export function conditionFor(
  { argument, op, value }: Predicate,
  values: readonly Argument[],
): Condition | { readonly refused: string } {
  const integer = integerArgument(argument, values);
  return 'refused' in integer ? integer : { ...integer, op, value };
}

/**
 * Where an integer argument is at a function's entry; words for the user if no argument of that name is in a
 * register.
 */
export function integerArgument(name: string, values: readonly Argument[]): IntegerIn | { readonly refused: string } {
  const argument = values.find((one) => one.name === name);
  if (!argument) {
    const names = values.map((one) => one.name).join(', ');
    return { refused: `it has no argument ${name}${names === '' ? '' : `, but ${names}`}` };
  }
  const integer = integerOf(argument.shape);
  if (!integer) return { refused: `its argument ${name} is no integer` };
  const { where } = argument;
  const [part, more] = where.kind === 'registers' ? where.parts : [];
  const bits = (1n << BigInt(8 * integer.size)) - 1n;
  // A bool is one bit of a byte; the conventions keep the other bits zero.
  const whole =
    part?.register === undefined ||
    part.mask === undefined ||
    argument.shape?.kind === 'bool' ||
    (part.mask & bits) === bits;
  if (part?.register === undefined || more || part.offset !== 0 || part.size < integer.size || !whole) {
    return { refused: `its argument ${name} is in no register at the entry` };
  }
  return { register: part.register, ...integer };
}

function integerOf(shape: Shape | undefined): Pick<Condition, 'size' | 'signed'> | undefined {
  if (shape === undefined) return { size: 8, signed: false };
  const { size, kind } = shape;
  if (size !== 1 && size !== 2 && size !== 4 && size !== 8) return undefined;
  if (kind === 'integer' || kind === 'enumeration') return { size, signed: shape.signed };
  return kind === 'bool' || kind === 'char' || kind === 'pointer' ? { size, signed: false } : undefined;
}

/**
 * Decides here what trampolines decide in the target: compares the register's low bytes, as a number, with the value.
 */
export function holds(conditions: Conditions, registers: RegisterReader): boolean {
  return conditions.some((all) => all.every((condition) => isTrue(condition, registers)));
}

/** The integer in a register's low bytes. */
export function integerIn({ register, size, signed }: IntegerIn, registers: RegisterReader): bigint | undefined {
  const word = registers.register(register);
  if (word === undefined) return undefined;
  return signed ? BigInt.asIntN(8 * size, word) : BigInt.asUintN(8 * size, word);
}

function isTrue(condition: Condition, registers: RegisterReader): boolean {
  const { op, value } = condition;
  const left = integerIn(condition, registers);
  if (left === undefined) return false;
  switch (op) {
    case 'eq':
      return left === value;
    case 'ne':
      return left !== value;
    case 'lt':
      return left < value;
    case 'le':
      return left <= value;
    case 'gt':
      return left > value;
    case 'ge':
      return left >= value;
  }
}
