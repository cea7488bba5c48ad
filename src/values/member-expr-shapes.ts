import { RsptraceError } from '../base/errors.js';
import { nearestWords } from '../base/nearest.js';
import type { ObjectPlace } from './object-place.js';
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
export function primitive(name: string): Shape | undefined {
  const found = /^([iu])(8|16|32|64|128|size)$/.exec(name);
  if (found === null) return undefined;
  const size = found[2] === 'size' ? WORD : Number(found[2]) / 8;
  return { kind: 'integer', signed: found[1] === 'i', character: false, name, size, die: undefined };
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

/** `wanted`: the member that there is not. */
export function typeError(what: string, members: readonly string[] = [], wanted?: string): RsptraceError {
  const [near] = wanted === undefined ? [] : nearestWords(wanted, members);
  const meant = near === undefined ? '' : `did you mean ${near}? `;
  const known = [...new Set(members)].slice(0, 20).join(', ');
  return new RsptraceError('EXPRESSION_TYPE', what, known === '' ? {} : { hint: `${meant}its members: ${known}` });
}
