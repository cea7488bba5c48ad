import type { Value } from './value.js';

/**
 * A value without what was not read of it. A pointer to that is its address, and a collection keeps its length.
 * Undefined if nothing of it was read.
 */
export function brief(value: Value): Value | undefined {
  switch (value.kind) {
    case 'unreadable':
      return undefined;
    case 'cut':
      return value.reason === 'cycle' ? value : undefined;
    case 'pointer':
      return value.target === undefined ? value : { ...value, target: brief(value.target) };
    case 'sequence': {
      const elements = value.elements.map(brief);
      const end = elements.indexOf(undefined);
      return { ...value, elements: elements.slice(0, end < 0 ? undefined : end) as readonly Value[] };
    }
    case 'struct':
      return {
        ...value,
        fields: value.fields.map((field) => ({ ...field, value: brief(field.value) ?? left(field.value) })),
      };
    case 'wrapper':
      return value.value === undefined ? value : { ...value, value: brief(value.value) };
    default:
      return value;
  }
}

function left({ type }: Value): Value {
  return { kind: 'cut', type, reason: 'size' };
}
