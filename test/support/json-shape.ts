// What a documented JSON object must look like: every field there and of its kind, and none that the documents do not name.

/** A kind; a text that a pattern matches; an object with exactly these fields; a list of one shape; one of several. */
export type Shape =
  | 'string'
  | 'number'
  | 'boolean'
  | 'null'
  | RegExp
  | { readonly fields: { readonly [name: string]: Shape } }
  | { readonly list: Shape }
  | { readonly or: readonly Shape[] };

/** Where and how a value differs from its shape; empty when it does not. */
export function checkShape(value: unknown, shape: Shape, path = '$'): string[] {
  if (typeof shape === 'string') {
    const kind = value === null ? 'null' : typeof value;
    return kind === shape ? [] : [`${path}: ${kind} instead of ${shape}`];
  }
  if (shape instanceof RegExp) {
    return typeof value === 'string' && shape.test(value) ? [] : [`${path}: ${JSON.stringify(value)} is not ${shape}`];
  }
  if ('list' in shape) {
    if (!Array.isArray(value)) return [`${path}: not a list`];
    return value.flatMap((item, i) => checkShape(item, shape.list, `${path}[${i}]`));
  }
  if ('or' in shape) {
    const tried = shape.or.map((one) => checkShape(value, one, path));
    return tried.some((wrong) => wrong.length === 0) ? [] : (tried[0] ?? []);
  }
  if (typeof value !== 'object' || value === null) return [`${path}: not an object`];
  const fields = value as { readonly [name: string]: unknown };
  return [
    ...Object.keys(shape.fields).flatMap((name) =>
      name in fields
        ? checkShape(fields[name], shape.fields[name] as Shape, `${path}.${name}`)
        : [`${path}.${name}: missing`],
    ),
    ...Object.keys(fields)
      .filter((name) => !(name in shape.fields))
      .map((name) => `${path}.${name}: not documented`),
  ];
}
