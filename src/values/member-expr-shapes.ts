import { RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/search.js';
import { type TypeExpr, typeText } from './member-expr.js';
import type { ObjectPlace } from './object-place.js';
import type { ProgramNames } from './program-names.js';
import { arrayOf, type Shapes } from './program-shapes.js';
import { type FieldShape, fieldName, type Shape, type VariantShape } from './shape.js';

/** Bytes of a pointer, and of a length. */
export const WORD = 8;

/** What can be indexed. */
export interface List {
  readonly element: Shape;
  readonly length: number | undefined;
  readonly contiguous: boolean;
  placeOf(index: number): ObjectPlace;
}

export function row(element: Shape, place: ObjectPlace, length: number | undefined): List {
  const size = sizeOrThrow(element);
  return { element, length, contiguous: true, placeOf: (i) => place.inside(i * size) };
}

export function sizeOrThrow(element: Shape): number {
  if (element.size === undefined) throw typeError(`the size of a ${element.name} is not known`);
  return element.size;
}

export function isList(shape: Shape): boolean {
  if (shape.kind === 'array' || shape.kind === 'slice') return true;
  const view = shape.kind === 'struct' ? shape.view()?.kind : undefined;
  return view === 'vec' || view === 'deque';
}

/** Rust's own number types. A cast may use one even if the program does not. */
function primitive(name: string): Shape | undefined {
  const found = /^[iu](8|16|32|64|128|size)$/.exec(name);
  if (found === null) return undefined;
  return integer(name, found[1] === 'size' ? WORD : Number(found[1]) / 8);
}

/** A number that is written in an expression. */
export const anyInteger = integer('i128', 16);

function integer(name: string, size: number): Shape {
  return { kind: 'integer', signed: name.startsWith('i'), character: false, name, size, die: undefined };
}

export function variantShape(shape: Shape, variant: VariantShape): Shape {
  const { size, die } = shape;
  const fields = variant.fields();
  const name = `${shape.name}::${variant.name}`;
  return { kind: 'struct', short: variant.name, fields, view: () => undefined, name, size, die };
}

export function fieldsOf(shape: Shape): readonly FieldShape[] {
  return 'fields' in shape ? shape.fields : [];
}

/** An async fn's argument and its working copy have one name; the copy is listed first. */
export function pick(fields: readonly FieldShape[], name: string): FieldShape | undefined {
  return fields.find((f) => f.name === name || fieldName(f.name) === name);
}

/** The members that an expression may name: fields, those of variants too, then the variants: a Future's states. */
export function memberNames(shape: Shape): string[] {
  const fields = [...fieldsOf(shape)];
  const variants = shape.kind === 'enum' ? shape.variants : [];
  for (const variant of variants) fields.push(...variant.fields());
  return [...fields.map(({ name }) => fieldName(name)), ...variants.map(({ name }) => name)];
}

/** `wanted`: the one of these members, or what `of` calls them, that there is not. */
export function typeError(
  what: string,
  members: readonly string[] = [],
  wanted?: string,
  of = 'members',
): RsptraceError {
  const [near] = wanted === undefined ? [] : nearestWords(wanted, members);
  const meant = near === undefined ? '' : `did you mean ${near}? `;
  const known = [...new Set(members)].slice(0, 20).join(', ');
  return new RsptraceError('EXPRESSION_TYPE', what, known === '' ? {} : { hint: `${meant}its ${of}: ${known}` });
}

export function severalNames(name: string, all: readonly string[], hint: string): RsptraceError {
  const some = all.slice(0, 8).join(', ');
  return new RsptraceError('EXPRESSION_NAME', `${name} is the end of several names: ${some}`, { hint });
}

/** Where types are found. */
interface Program {
  readonly shapes: Shapes;
  readonly names: ProgramNames;
}

/** The type that a cast names. */
export function typeShape(type: TypeExpr, program: Program): Shape {
  switch (type.kind) {
    case 'pointer': {
      // A pointer to an unsized type is two words. The program must have that pointer type, or the cast is of no
      // use.
      const fat = type.to.kind === 'array' ? type.to.count === undefined : isUnsized(type.to);
      if (fat) return named(typeText(type), program);
      return program.shapes.pointerTo(typeShape(type.to, program));
    }
    case 'array':
      return arrayOf(typeShape(type.of, program), type.count);
    case 'named':
      return primitive(type.name) ?? named(type.name, program);
  }
}

function named(name: string, { names, shapes }: Program): Shape {
  const found = names.types(name);
  const die = found[0]?.die;
  if (die === undefined) {
    const like = names.typesLike(name, 3);
    throw new RsptraceError('EXPRESSION_NAME', `there is no type ${name}`, {
      ...(like.length > 0 ? { hint: `did you mean ${like.join(' or ')}?` } : {}),
    });
  }
  const paths = new Set(found.map((f) => f.name));
  if (paths.size > 1) throw severalNames(name, [...paths], 'give more of the path, or the generic arguments');
  return shapes.of(die);
}

function isUnsized(type: TypeExpr): boolean {
  return type.kind === 'named' && (type.name === 'str' || type.name.startsWith('dyn '));
}
