import { layoutOf, variantName } from '../../../dwarf/index.js';
import type { Part } from '../layout.js';

/** Where tokio's stage, and that of runtimes made after it, has the Future as long as it runs. */
export function runningOffset({ offset, type }: Part): number | undefined {
  const variants = layoutOf(type).variantPart?.variants ?? [];
  const member = variants.find((variant) => variantName(variant) === 'Running')?.members[0];
  if (member?.type === undefined) return undefined;
  const [inner] = layoutOf(member.type).members;
  return offset + member.offset + (inner?.offset ?? 0);
}
