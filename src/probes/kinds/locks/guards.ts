import type { Shape } from '../../../values/index.js';

const deepest = 4;
const lockLike = /Mutex|Lock|Spin|Atomic/;

/** The pointer of a guard that leads to its lock, or into it; undefined for a guard of something else. */
export function pointerWithin(
  { kind, ...shape }: Shape,
  depth = 0,
): { readonly offset: number; readonly target: Shape } | undefined {
  if (kind !== 'struct' || depth > deepest) return undefined;
  for (const { offset, type } of (shape as Shape & { kind: 'struct' }).fields) {
    const field = type();
    const target = field.kind === 'pointer' ? field.target() : undefined;
    if (target && lockLike.test(target.name)) return { offset, target };
    const inner = pointerWithin(field, depth + 1);
    if (inner) return { ...inner, offset: offset + inner.offset };
  }
  return undefined;
}
