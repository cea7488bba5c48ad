import type { Condition } from '../../arch/index.js';
import type { RsptraceError } from '../../base/errors.js';
import { selectVariant } from '../../dwarf/index.js';
import { type Shape, typeError } from '../../values/index.js';
import { compares, type Literal } from './condition.js';

type Op = Condition['op'];
type Enum = Shape & { readonly kind: 'enum' };

/** The number in a value that is compared: the value itself, or an enum's discriminant. */
interface Scalar {
  readonly offset: number;
  readonly size: number;
  readonly signed: boolean;
}

/** Which numbers a comparison holds for. */
export interface Meaning {
  readonly accepts: (value: bigint) => boolean;
  /** The same as one comparison, as trampolines make it; undefined if it takes several. */
  readonly target: { readonly op: Op; readonly value: bigint } | undefined;
}

/** Undefined for what is no number: structs, slices, floats. */
export function scalarOf(shape: Shape): Scalar | undefined {
  const { size } = shape;
  if (size === undefined || size > 16) return undefined;
  switch (shape.kind) {
    case 'integer':
    case 'enumeration':
      return { offset: 0, size, signed: shape.signed };
    case 'bool':
    case 'char':
    case 'pointer':
      return { offset: 0, size, signed: false };
    case 'enum':
      return shape.discriminant && { ...shape.discriminant, signed: false };
    default:
      return undefined;
  }
}

/**
 * What a comparison with a literal means for a type. `text`: what is compared, for messages.
 * @throws RsptraceError `EXPRESSION_TYPE` where the two cannot be compared
 */
export function meaningOf(literal: Literal, op: Op, shape: Shape, text: string): Meaning {
  if (scalarOf(shape) === undefined) throw typeError(`${text} is a ${shape.name}: no integer, bool, char or enum`);
  if (literal.kind === 'number') {
    const { value } = literal;
    if (shape.kind === 'enum')
      throw typeError(
        `${text} is a ${shape.name}: it is compared with one of its variants`,
        variantsOf(shape),
        undefined,
        'variants',
      );
    return { accepts: (found) => compares(op, found, value), target: { op, value } };
  }
  const { name } = literal;
  const isIn = op === 'eq';
  if (shape.kind === 'enumeration') {
    const bits = [...shape.names].find(([, each]) => each === name || each.endsWith(`::${name}`))?.[0];
    if (bits === undefined) throw noVariant(text, shape, name, [...shape.names.values()]);
    // The names have their bits, a comparison has a number.
    const value = shape.signed ? BigInt.asIntN(8 * (shape.size ?? 8), bits) : bits;
    return { accepts: (found) => (found === value) === isIn, target: { op, value } };
  }
  if (shape.kind !== 'enum') throw typeError(`${text} is a ${shape.name}, which has no variant ${name}`);
  const { variants } = shape;
  const variant = variants.find((each) => each.name === name);
  if (variant === undefined) throw noVariant(text, shape, name, variantsOf(shape));
  const accepts = (found: bigint): boolean => (selectVariant(variants, found) === variant) === isIn;
  return { accepts, target: onlyValue(shape, name, isIn) };
}

/** One comparison that distinguishes a variant: with its own number, or with that of the one other variant. */
function onlyValue({ variants }: Enum, name: string, isIn: boolean): Meaning['target'] {
  const numberOf = (each: Enum['variants'][number] | undefined): bigint | undefined => {
    const [range, more] = each?.values ?? [];
    return range && !more && range.low === range.high ? range.low : undefined;
  };
  const own = numberOf(variants.find((each) => each.name === name));
  if (own !== undefined) return { op: isIn ? 'eq' : 'ne', value: own };
  const others = variants.filter((each) => each.name !== name);
  const other = others.length === 1 ? numberOf(others[0]) : undefined;
  return other === undefined ? undefined : { op: isIn ? 'ne' : 'eq', value: other };
}

function variantsOf({ variants }: Enum): string[] {
  return variants.map(({ name }) => name);
}

function noVariant(text: string, shape: Shape, name: string, names: readonly string[]): RsptraceError {
  return typeError(`${text}, a ${shape.name}, has no variant ${name}`, names, name, 'variants');
}
